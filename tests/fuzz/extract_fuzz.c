/*
 * Any text through the extraction. The first byte chooses the protocol and how the text is cut.
 * What must hold: the cuts change nothing; what is found is one line, its place is in the text and
 * what stands there begins it; a message that is handed on whole is found again in itself.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/protocol/extract.h>

#include "must.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNTED = 20000 }; /* in longer texts lines are not counted at each find */

struct seen {
    struct amp_span text; /* that is read */
    unsigned n;
    uint64_t sum; /* of all that was found and where */
    struct amp_buf last;
};

static void add(uint64_t *sum, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        *sum = (*sum ^ p[i]) * UINT64_C(0x100000001b3);
}

static bool is_json(struct amp_span text)
{
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    bool json = !amp_tape_scan(&t, text.p, text.n, &fault);
    amp_tape_release(&t);
    return json;
}

static int found(void *ctx, struct amp_span text, const struct amp_found *at, struct amp_error *err)
{
    struct seen *s = ctx;
    MUST(text.n > 0 && (!memchr(text.p, '\n', text.n) || !is_json(text)));
    MUST(at->offset < s->text.n && at->line >= 1 && at->column >= 1);
    if (at->in != AMP_FOUND_STRING)
        MUST(s->text.p[at->offset] == text.p[0]);
    uint64_t lines = 1, start = 0;
    for (uint64_t i = 0; i < at->offset && s->text.n < COUNTED; i++)
        if (s->text.p[i] == '\n') {
            lines++;
            start = i + 1;
        }
    MUST(s->text.n >= COUNTED || (at->line == lines && at->column == at->offset - start + 1));
    s->n++;
    add(&s->sum, text.p, text.n);
    add(&s->sum, &at->offset, sizeof at->offset);
    add(&s->sum, &at->in, sizeof at->in);
    s->last.len = 0;
    MUST(!amp_buf_add(&s->last, text.p, text.n, err));
    return 0;
}

static void extract(struct seen *s, struct amp_span text, enum amp_protocol only, unsigned step)
{
    struct amp_json_limits limits = amp_json_limits_default;
    struct amp_error err;
    limits.max_bytes = 1 << 20;
    limits.max_depth = 20;
    *s = (struct seen){.text = text};
    amp_buf_init(&s->last, 2 << 20);
    struct amp_extract *x = amp_extract_new(&limits, only, found, s, &err);
    MUST(x);
    for (size_t at = 0; at < text.n; at += step) {
        size_t n = text.n - at < step ? text.n - at : step;
        /* A piece of its own on the heap: nothing may be read past it. */
        char *part = malloc(n);
        MUST(part);
        memcpy(part, text.p + at, n);
        MUST(!amp_extract_feed(x, (struct amp_span){part, n}, &err));
        free(part);
    }
    MUST(!amp_extract_end(x, &err));
    amp_extract_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum amp_protocol only = data[0] % AMP_PROTO_COUNT;
    struct amp_span text = {(const char *)data + 1, size - 1};
    struct seen whole, cut, again;
    extract(&whole, text, only, 1 << 20);
    extract(&cut, text, only, 1 + data[0] / 16);
    MUST(whole.n == cut.n && whole.sum == cut.sum);
    if (whole.n > 0 && is_json(amp_buf_span(&whole.last))) {
        extract(&again, amp_buf_span(&whole.last), only, 7);
        MUST(again.n > 0);
        amp_buf_release(&again.last);
    }
    amp_buf_release(&whole.last);
    amp_buf_release(&cut.last);
    return 0;
}
