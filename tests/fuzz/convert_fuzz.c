/*
 * A valid message of any protocol into every other one and back. The first byte chooses the options
 * of the reader. What must hold: the same message converts to the same bytes; what comes out is one
 * line that is valid in its protocol; what comes back is valid again, and where nothing was left
 * behind on the way it says what it said.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/protocol/convert.h>

#include "must.h"
#include "mutate.h"
#include "json/equal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct amp_reader *first, *second, *third;
static struct amp_convert *convert;

struct told {
    unsigned refused, kept, lost;
};

static void tell(void *ctx, const struct amp_finding *f)
{
    struct told *t = ctx;
    MUST(f->message[0]);
    if (!strcmp(f->code, "cannot_convert"))
        t->refused++;
    else if (!strcmp(f->code, "not_carried"))
        t->lost++;
    else if (!strcmp(f->code, "kept_in_extension"))
        t->kept++;
    else
        MUST(!"an unknown code");
}

/* Reads what was converted; it has to be valid. */
static void read_back(struct amp_reader *r, const struct amp_buf *out, enum amp_protocol only,
                      struct amp_view *v)
{
    const struct amp_check_options opt = {.only = only};
    struct amp_error err;
    struct amp_span line = amp_buf_span(out);
    MUST(line.n > 0 && line.p[line.n - 1] == '\n' && !memchr(line.p, '\n', line.n - 1));
    line.n--;
    MUST(amp_reader_line(r, line, &opt, v, NULL, NULL, &err) == 1);
    MUST(v->protocol == only);
}

static void there_and_back(const struct amp_view *v, enum amp_protocol to)
{
    struct amp_buf there, again, back;
    struct amp_error err;
    struct amp_view at, home;
    struct told told = {0}, same = {0}, way_back = {0};
    amp_buf_init(&there, 64 << 20);
    amp_buf_init(&again, 64 << 20);
    amp_buf_init(&back, 64 << 20);
    enum amp_convert_result got =
        amp_convert_message(convert, v, to, NULL, &there, tell, &told, &err);
    MUST(got != AMP_CONVERT_FAILED);
    MUST((got == AMP_CONVERT_REFUSED) == (told.refused > 0));
    MUST((got == AMP_CONVERT_SAME) == (to == v->protocol));
    MUST(got == AMP_CONVERT_DONE || there.len == 0);
    MUST(amp_convert_message(convert, v, to, NULL, &again, tell, &same, &err) == got);
    MUST(amp_span_eq(amp_buf_span(&there), amp_buf_span(&again)));
    if (got == AMP_CONVERT_DONE) {
        read_back(second, &there, to, &at);
        got = amp_convert_message(convert, &at, v->protocol, NULL, &back, tell, &way_back, &err);
        MUST(got == AMP_CONVERT_DONE || got == AMP_CONVERT_REFUSED);
        if (got == AMP_CONVERT_DONE) {
            read_back(third, &back, v->protocol, &home);
            if (told.lost + way_back.lost == 0)
                MUST(amp_tape_equal(home.tape, 0, v->tape, 0));
        }
    }
    amp_buf_release(&there);
    amp_buf_release(&again);
    amp_buf_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct amp_error err;
    struct amp_view v;
    if (!first) {
        MUST((first = amp_reader_new(NULL, &err)));
        MUST((second = amp_reader_new(NULL, &err)));
        MUST((third = amp_reader_new(NULL, &err)));
        MUST((convert = amp_convert_new(NULL, NULL, &err)));
    }
    if (size < 2)
        return 0;
    struct amp_check_options opt = {
        .only = data[0] % AMP_PROTO_COUNT, .strict = data[0] & 0x40, .hlc = data[0] & 0x80};
    const uint8_t *p = data + 1, *end = data + size;
    while (p < end) {
        const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
        struct amp_span line = {(const char *)p, (size_t)((lf ? lf : end) - p)};
        if (line.n > 0 && amp_reader_line(first, line, &opt, &v, NULL, NULL, &err) == 1)
            for (int to = AMP_PROTO_NONE + 1; to < AMP_PROTO_COUNT; to++)
                there_and_back(&v, (enum amp_protocol)to);
        p += line.n + 1;
    }
    return 0;
}
