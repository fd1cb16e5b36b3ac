/* Judges a chunk of lines, with its own memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "cli/cli.h"
#include "message/protocol/spec.h"
#include "order.h"
#include "validate.h"

/* The findings of a line, and of its conversion or history, each with one for the rest. */
enum { FINDINGS_MOST = 2 * (AMP_FINDINGS_MOST + 1) };

struct judge {
    const struct validate_options *opt;
    struct amp_check_options check;
    struct amp_reader *reader;   /* of the protocols, or */
    struct user_check *user;     /* by a user's schema */
    struct amp_buf output;       /* --output, of one line */
    struct amp_convert *convert; /* --to */
    struct amp_buf converted;
    struct amp_finding findings[FINDINGS_MOST];
    unsigned n_findings;
    char rest[AMP_REST_MAX];                 /* the sentence for further findings */
    bool refused;                            /* one of the findings is an error */
    char number[24], least[40], pointer[40]; /* of its number */
    const struct line_number *ordered; /* of the next valid line with a number; NULL: not known */
};

enum { CONVERTED_EXTRA = 1024 * 1024, OUTPUT_MOST = 64 * 1024 * 1024 };

static unsigned waive_all(void *ctx, const struct amp_view *response)
{
    (void)ctx;
    (void)response;
    return AMP_WAIVES_REPORT | AMP_WAIVES_SIGNAL;
}

struct judge *judge_new(const struct validate_options *opt, struct amp_error *err)
{
    struct amp_json_limits limits = amp_json_limits_default;
    limits.max_bytes = (uint32_t)opt->max_line;
    limits.max_depth = (uint32_t)opt->max_depth;
    struct judge *j = calloc(1, sizeof *j);
    if (!j) {
        amp_fail_memory(err);
        return NULL;
    }
    j->opt = opt;
    amp_buf_init(&j->output, OUTPUT_MOST);
    j->check = (struct amp_check_options){.strict = opt->strict,
                                          .check_repo = opt->check_repo,
                                          .hlc = opt->hlc,
                                          .max_payload = opt->max_payload,
                                          .now_ms = opt->now_ms,
                                          .protected_ = opt->protect,
                                          .texts = true,
                                          .bare = opt->mode != MODE_NACK &&
                                                  opt->mode != MODE_EFFECTIVE && !opt->to};
    if (opt->state) /* the helper asks the TASK */
        j->check.waives = waive_all;
    if (opt->protocol)
        j->check.only = amp_protocol_find(amp_span_str(opt->protocol));
    if (opt->user)
        j->user = user_check_new(opt->user, &limits, err);
    else
        j->reader = amp_reader_new(&limits, err);
    amp_buf_init(&j->converted, (size_t)opt->max_line * 8 + CONVERTED_EXTRA);
    if (opt->to)
        j->convert = amp_convert_new(&limits, &j->check, err);
    if ((!j->reader && !j->user) || (opt->to && !j->convert)) {
        judge_free(j);
        return NULL;
    }
    return j;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    amp_reader_free(j->reader);
    user_check_free(j->user);
    amp_buf_release(&j->output);
    amp_convert_free(j->convert);
    amp_buf_release(&j->converted);
    free(j);
}

/* Adds a finding; its strings live until the next line. */
static void note_finding(void *ctx, const struct amp_finding *f)
{
    struct judge *j = ctx;
    struct amp_finding *last = &j->findings[FINDINGS_MOST - 1];
    if (j->n_findings < FINDINGS_MOST) {
        j->findings[j->n_findings++] = *f;
    } else {
        bool error = f->severity == AMP_SEV_ERROR || last->severity == AMP_SEV_ERROR;
        struct amp_finding rest = amp_finding_rest(
            last->more ? last->more + 1 : 2, error ? AMP_SEV_ERROR : AMP_SEV_WARNING, j->rest);
        rest.protocol = f->protocol;
        rest.type = f->type;
        rest.id = f->id;
        *last = rest;
    }
    j->refused = j->refused || f->severity == AMP_SEV_ERROR;
}

/* Notes a finding of the state; --strict is applied here. */
static void note_history(void *ctx, const struct amp_finding *f)
{
    struct judge *j = ctx;
    struct amp_finding copy = *f;
    if (j->opt->strict)
        copy.severity = AMP_SEV_ERROR;
    note_finding(j, &copy);
}

/* Notes a finding of the conversion: with --strict a lost field is an error. */
static void note_lost(void *ctx, const struct amp_finding *f)
{
    struct judge *j = ctx;
    struct amp_finding copy = *f;
    if (j->opt->strict && amp_code_is(f->code, not_carried))
        copy.severity = AMP_SEV_ERROR;
    note_finding(j, &copy);
}

/* --to, for a valid line. */
static int convert_line(struct judge *j, struct line_verdict *v, struct amp_error *err)
{
    amp_buf_reset(&j->converted);
    enum amp_convert_result got = amp_convert_message(j->convert, v->view, j->opt->to, j->opt->fill,
                                                      &j->converted, note_lost, j, err);
    if (j->refused) { /* a refused line has no warnings */
        unsigned n = 0;
        for (unsigned i = 0; i < j->n_findings; i++)
            if (j->findings[i].severity == AMP_SEV_ERROR)
                j->findings[n++] = j->findings[i];
        j->n_findings = n;
    }
    if (got == AMP_CONVERT_DONE)
        v->converted = amp_buf_span(&j->converted);
    return got == AMP_CONVERT_FAILED ? -1 : 0;
}

/* A finding of this tool, not of a rule. */
static void note_own(struct judge *j, const char *code, const char *rule, const char *message,
                     const char *expected)
{
    struct amp_finding f = {.severity = AMP_SEV_ERROR,
                            .code = code,
                            .field = "",
                            .pointer = "",
                            .rule = rule,
                            .message = message,
                            .found = "",
                            .expected = expected};
    note_finding(j, &f);
}

static int add_ask(struct chunk_result *r, struct amp_span line, struct amp_error *err)
{
    if (amp_grow(&r->asks, &r->cap_asks, r->n_asks, sizeof *r->asks, err) < 0)
        return -1;
    r->asks[r->n_asks++] = line;
    return 0;
}

/* Adds the findings of the history to a line that is valid by itself, with the names of its view.
 */
static int note_answer(struct judge *j, struct history *h, size_t n, const struct amp_view *v,
                       struct chunk_result *r, struct amp_error *err)
{
    const char *why = "";
    unsigned before = j->n_findings;
    int got = history_answer(h, n, note_history, j, &why, err);
    if (got < 0)
        return -1;
    if (got == 1) {
        r->undecided = true;
        note_own(j, AMP_CODE(undecided), "history", why, "the same line again later");
    }
    for (unsigned i = before; i < j->n_findings; i++) {
        j->findings[i].protocol = v->protocol;
        j->findings[i].type = v->type;
        j->findings[i].id = v->id;
    }
    return 0;
}

void judge_order(struct judge *j, const struct line_number *numbers)
{
    j->ordered = numbers;
}

/* Notes the number of a valid line, or, if its order is known, adds a finding if it falls. */
static int note_number(struct judge *j, const struct amp_view *v, struct chunk_result *r,
                       struct amp_error *err)
{
    struct line_number n;
    const char *member = amp_spec_of(v->protocol) ? amp_spec_of(v->protocol)->rises : NULL;
    if (!order_number(v, &n))
        return 0;
    if (!j->ordered) {
        if (amp_grow(&r->numbers, &r->cap_numbers, r->n_numbers, sizeof *r->numbers, err) < 0)
            return -1;
        r->numbers[r->n_numbers++] = n;
        return 0;
    }
    n = *j->ordered++;
    snprintf(j->number, sizeof j->number, "%lld", (long long)n.n);
    snprintf(j->least, sizeof j->least, "at least %lld", (long long)n.last);
    snprintf(j->pointer, sizeof j->pointer, "/%s", member);
    const struct amp_finding f = {.severity = j->opt->strict ? AMP_SEV_ERROR : AMP_SEV_WARNING,
                                  .code = AMP_CODE(validation_error),
                                  .field = member,
                                  .pointer = j->pointer,
                                  .rule = "sequence",
                                  .message = "is lower than the last number of its sender",
                                  .found = j->number,
                                  .expected = j->least,
                                  .protocol = v->protocol,
                                  .type = v->type,
                                  .id = v->id};
    if (n.falls)
        note_finding(j, &f);
    return 0;
}

/* The standard output goes with the verdict, and with the first record of a refused line. */
static int add_output(struct judge *j, struct line_verdict *v, struct amp_error *err)
{
    if (j->opt->output == AMP_OUTPUT_FLAG || (!j->refused && j->opt->mode == MODE_PASS))
        return 0;
    amp_buf_reset(&j->output);
    int got = j->user ? user_check_output(j->user, j->opt->output, &j->output, err)
                      : amp_reader_output(j->reader, j->opt->output, &j->output, err);
    if (got < 0)
        return -1;
    v->output = amp_buf_span(&j->output);
    if (j->n_findings > 0)
        j->findings[0].output = v->output;
    return 0;
}

/* One line; *asked counts the lines that have a history. */
static int judge_line(struct judge *j, struct line_verdict *v, bool asking, struct history *h,
                      size_t *asked, struct chunk_result *r, struct amp_error *err)
{
    struct amp_view view;
    char expected[64];
    bool read = j->opt->sample <= 1 || (v->line - 1) % (uint64_t)j->opt->sample == 0;
    j->n_findings = 0;
    j->refused = false;
    v->view = NULL;
    v->json = false;
    if (v->chunk->too_long || v->bytes.n > (size_t)j->opt->max_line) {
        snprintf(expected, sizeof expected, "at most %lld bytes (--max-line)",
                 (long long)j->opt->max_line);
        note_own(j, AMP_CODE(line_too_long), "limit", "the line is too long", expected);
    } else if (read) {
        int good =
            j->user ? user_check_text(j->user, v->bytes, v->chunk->document, &j->check, &view,
                                      note_finding, j, err)
                    : amp_reader_line(j->reader, v->bytes, &j->check, &view, note_finding, j, err);
        if (good < 0 || add_output(j, v, err) < 0)
            return -1;
        v->view = &view;
        v->json = view.json;
        const struct amp_spec *spec = amp_spec_of(view.protocol);
        bool has_history = good && spec && (spec->history & 1u << view.kind);
        if (asking)
            return has_history ? add_ask(r, v->bytes, err) : 0;
        if (good && note_number(j, &view, r, err) < 0)
            return -1;
        if (h && has_history && note_answer(j, h, (*asked)++, &view, r, err) < 0)
            return -1;
        if (j->convert && !asking && !j->refused && convert_line(j, v, err) < 0)
            return -1;
    }
    v->answer = !read && !j->refused ? LINE_UNCHECKED : j->refused ? LINE_REFUSED : LINE_VALID;
    v->findings = j->findings;
    v->n_findings = j->n_findings;
    if (v->answer == LINE_REFUSED && r->refused++ == 0) {
        r->refused_line = v->line;
        r->refused_offset = v->offset;
    }
    return asking ? 0 : emit_line(j->opt, v, r, err);
}

int judge_chunk(struct judge *j, const struct chunk *c, bool asking, struct history *h, size_t most,
                struct chunk_result *r, struct amp_error *err)
{
    const char *p = c->bytes.p, *end = p + c->bytes.n;
    size_t asked = 0;
    result_reset(r);
    bool empty = c->document && p == end; /* an empty document is an invalid text */
    while ((p < end || empty) && !r->stop) {
        bool whole_text = c->too_long || c->document;
        const char *lf = whole_text ? NULL : memchr(p, '\n', (size_t)(end - p));
        size_t whole = lf ? (size_t)(lf - p) + 1 : (size_t)(end - p), n = lf ? whole - 1 : whole;
        if (n > 0 && p[n - 1] == '\r' && !c->document)
            n--;
        struct line_verdict v = {.chunk = c,
                                 .bytes = {p, n},
                                 .whole = {p, whole},
                                 .line = c->line + r->lines,
                                 .offset = c->offset + (uint64_t)(p - c->bytes.p)};
        if ((n > 0 || empty) && judge_line(j, &v, asking, h, &asked, r, err) < 0)
            return -1;
        empty = false;
        p += whole;
        r->lines++;
        r->stop = j->opt->fail_fast && r->refused > 0;
        if (most > 0 && r->text.len + r->reports.len > most)
            break;
    }
    r->used = (size_t)(p - c->bytes.p);
    return 0;
}
