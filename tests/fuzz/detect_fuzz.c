/*
 * Lines of any protocol through one reader, as amp-validate has it. The first byte chooses the
 * options. What must hold: a verdict has its findings, each with a code that --explain knows and
 * with text that may go to a terminal; the record of a finding is JSON; the refusal of a line is a
 * valid message; filling less of the view changes no verdict.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/protocol/meaning.h>

#include "must.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
    unsigned errors, warnings;
    size_t line;
    struct amp_finding first;
    uint64_t sum; /* of what was told */
};

static void add(uint64_t *sum, const char *text)
{
    for (; *text; text++)
        *sum = (*sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
}

static bool known(enum amp_protocol p, const struct amp_finding *f)
{
    for (const struct amp_meaning *m = amp_meanings(p); m->code; m++)
        if (!strcmp(m->code, f->code))
            return true;
    return false;
}

/* No control characters, whatever stood in the line. */
static void presentable(const char *text)
{
    for (; *text; text++)
        MUST((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void is_json(struct amp_span text)
{
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    MUST(text.n > 0 && text.p[text.n - 1] == '\n' && !memchr(text.p, '\n', text.n - 1));
    MUST(!amp_tape_scan(&t, text.p, text.n, &fault));
    amp_tape_release(&t);
}

static void tell(void *ctx, const struct amp_finding *f)
{
    struct told *t = ctx;
    struct amp_line_place at = {.tool = "fuzz", .line = 1, .now_ms = 1772116327000};
    struct amp_buf record;
    struct amp_error err;
    MUST(f->code[0] && f->message[0] && f->offset <= t->line);
    MUST(known(f->protocol, f) || known(AMP_PROTO_NONE, f));
    presentable(f->message);
    presentable(f->field);
    presentable(f->pointer);
    presentable(f->found);
    presentable(f->expected);
    amp_buf_init(&record, 1 << 20);
    MUST(!amp_finding_record(f, &at, &record, &err));
    is_json(amp_buf_span(&record));
    amp_buf_release(&record);
    if (f->severity == AMP_SEV_ERROR && t->errors++ == 0)
        t->first = *f;
    t->warnings += f->severity == AMP_SEV_WARNING;
    add(&t->sum, f->code);
    add(&t->sum, f->field);
}

/* What we answer to a line that we refused has to be right itself. */
static void refusal(const struct amp_view *v, const struct told *t)
{
    static struct amp_reader *reader;
    static const struct amp_check_options opt;
    struct amp_buf out;
    struct amp_error err;
    struct amp_view view;
    amp_buf_init(&out, 8 << 20);
    enum amp_refuse_result said = amp_refuse(v, &t->first, 1772116327000, &out, &err);
    MUST(said != AMP_REFUSE_FAILED);
    if (said == AMP_REFUSE_WRITTEN) {
        struct amp_span line = amp_buf_span(&out);
        is_json(line);
        line.n--;
        if (!reader)
            MUST(reader = amp_reader_new(NULL, &err));
        MUST(amp_reader_line(reader, line, &opt, &view, NULL, NULL, &err) == 1);
    }
    amp_buf_release(&out);
}

static void check(struct amp_span line, const struct amp_check_options *opt)
{
    static struct amp_reader *reader;
    struct amp_check_options less = *opt;
    struct amp_error err;
    struct amp_view v;
    struct told full = {.line = line.n}, bare = {.line = line.n};
    if (!reader)
        MUST(reader = amp_reader_new(NULL, &err));
    int got = amp_reader_line(reader, line, opt, &v, tell, &full, &err);
    MUST(got == 0 || got == 1);
    MUST(got == (full.errors == 0));
    MUST(!(full.errors && full.warnings) && !(opt->strict && full.warnings));
    if (got == 0)
        refusal(&v, &full);
    less.bare = true;
    MUST(amp_reader_line(reader, line, &less, &v, tell, &bare, &err) == got);
    MUST(bare.sum == full.sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct amp_check_options opt = {
        .only = data[0] % AMP_PROTO_COUNT, .strict = data[0] & 0x40, .hlc = data[0] & 0x80};
    /* Each line in a block of its own: reading past it is seen. */
    const uint8_t *p = data + 1, *end = data + size;
    while (p < end) {
        const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((lf ? lf : end) - p);
        char *line = malloc(n + 1);
        MUST(line);
        memcpy(line + 1, p, n);
        if (n > 0)
            check((struct amp_span){line + 1, n}, &opt);
        free(line);
        p += n + 1;
    }
    return 0;
}
