/* The output of each mode for a line. */
#include <string.h>

#include <amp/json/writer.h>

#include "cli/cli.h"
#include "message/protocol/spec.h"
#include "stats.h"

enum { SHOWN_OF_LONG_LINE = 200 };

static const struct amp_finding *first_error(const struct line_verdict *v)
{
    for (unsigned i = 0; i < v->n_findings; i++)
        if (v->findings[i].severity == AMP_SEV_ERROR)
            return &v->findings[i];
    return NULL;
}

static void write_found(struct amp_jw *w, const struct amp_found *at)
{
    amp_jw_open(w, '{');
    amp_jw_member_uint(w, "line", at->line);
    amp_jw_member_uint(w, "column", at->column);
    amp_jw_member_uint(w, "offset", at->offset);
    amp_jw_member_text(w, "in", amp_found_name(at->in));
    amp_jw_close(w, '}');
}

/* The members that verdicts and wrapped lines begin with. */
static void write_line(struct amp_jw *w, const struct validate_options *opt,
                       const struct line_verdict *v, struct line_place at)
{
    static const struct amp_span none = {"", 0};
    if (opt->name_files)
        amp_jw_member_text(w, "file", v->chunk->file);
    amp_jw_member_uint(w, "line", at.line);
    amp_jw_member_uint(w, "offset", at.offset);
    amp_jw_member_bool(w, "valid", v->answer == LINE_VALID);
    amp_jw_member_text(w, "protocol", v->view ? amp_protocol_name(v->view->protocol) : "");
    amp_jw_member_str(w, "type", v->view ? v->view->type : none);
    amp_jw_member_str(w, "id", v->view ? v->view->id : none);
    if (v->chunk->found) {
        amp_jw_key(w, "found");
        write_found(w, v->chunk->found);
    }
}

/* --output: the standard output of the schema. */
static void write_output(struct amp_jw *w, const struct line_verdict *v)
{
    if (v->output.n == 0)
        return;
    amp_jw_member_raw(w, "output", v->output);
}

static int write_verdict(const struct validate_options *opt, const struct line_verdict *v,
                         struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    unsigned errors = 0, all = 0;
    for (unsigned i = 0; i < v->n_findings; i++) {
        unsigned n = v->findings[i].more ? v->findings[i].more : 1;
        errors += v->findings[i].severity == AMP_SEV_ERROR ? n : 0;
        all += n;
    }
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    const struct amp_finding *f = first_error(v);
    if (!f && v->n_findings > 0)
        f = &v->findings[0];
    write_line(&w, opt, v, place_of(v, f));
    if (f) {
        amp_jw_member_text(&w, "code", f->code);
        amp_jw_member_text(&w, "field", f->field);
        amp_jw_member_text(&w, "pointer", f->pointer);
        amp_jw_member_text(&w, "message", f->message);
        if (f->expected[0])
            amp_jw_member_text(&w, "expected", f->expected);
        amp_jw_member_uint(&w, "errors", errors);
        amp_jw_member_int(&w, "warnings", (int64_t)all - (int64_t)errors);
    }
    write_output(&w, v);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* The members of a record, without those of the wrapper. */
static void write_finding(struct amp_jw *w, const struct line_verdict *v,
                          const struct amp_finding *f)
{
    amp_jw_open(w, '{');
    amp_finding_members(w, f);
    if (v->chunk->document)
        amp_jw_member_uint(w, "line", place_of(v, f).line);
    amp_jw_member_uint(w, "offset", v->offset + f->offset);
    amp_jw_close(w, '}');
}

/* The line's bytes as a JSON value. The line ends of a document are only between its tokens; they
 * become spaces, so that a record is one line. */
static int write_own(struct amp_jw *w, struct amp_span text, struct amp_error *err)
{
    if (!memchr(text.p, '\n', text.n) && !memchr(text.p, '\r', text.n)) {
        amp_jw_raw(w, text);
        return 0;
    }
    AMP_BUF struct amp_buf flat = {0};
    amp_buf_init(&flat, text.n + 1);
    if (amp_buf_add(&flat, text.p, text.n, err) < 0)
        return -1;
    for (size_t i = 0; i < flat.len; i++)
        if (flat.data[i] == '\n' || flat.data[i] == '\r')
            flat.data[i] = ' ';
    amp_jw_raw(w, amp_buf_span(&flat));
    return 0;
}

static int write_annotated(const struct validate_options *opt, const struct line_verdict *v,
                           struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    write_line(&w, opt, v, place_of(v, NULL));
    amp_jw_member_open(&w, "findings", '[');
    for (unsigned i = 0; i < v->n_findings; i++)
        write_finding(&w, v, &v->findings[i]);
    amp_jw_close(&w, ']');
    write_output(&w, v);
    amp_jw_key(&w, "message");
    struct amp_span text =
        v->converted.n ? (struct amp_span){v->converted.p, v->converted.n - 1} : v->bytes;
    if (!v->view && text.n > SHOWN_OF_LONG_LINE)
        text.n = SHOWN_OF_LONG_LINE;
    if (!v->json)
        amp_jw_str(&w, text);
    else if (write_own(&w, text, err) < 0)
        return -1;
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* --effective: the policy that applies to a valid message, if it has one. */
static int write_effective(const struct line_verdict *v, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_spec *s = v->view ? amp_spec_of(v->view->protocol) : NULL;
    struct amp_jw w;
    size_t before = out->len;
    if (v->answer != LINE_VALID || !s || !s->effective)
        return 0;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "line", v->line);
    int got = s->effective(v->view, &w, err);
    amp_jw_close(&w, '}');
    if (got == 0)
        return amp_jw_end_line(&w, err);
    out->len = before;
    return got < 0 ? -1 : 0;
}

/* The refusal of a line, if its protocol has one. */
static int write_refusal(const struct line_verdict *v, struct amp_buf *out, struct amp_error *err)
{
    static const struct amp_view unread = {.payload = AMP_TOK_NONE};
    const struct amp_finding *f = first_error(v);
    const struct amp_view *of = v->view ? v->view : &unread;
    return f && amp_refuse(of, f, amp_now_ms(), out, err) == AMP_REFUSE_FAILED ? -1 : 0;
}

static int compose_line(const struct validate_options *opt, const struct line_verdict *v,
                        struct chunk_result *r, struct amp_error *err)
{
    size_t begun = r->text.len;
    int got = 0;
    switch (opt->mode) {
    case MODE_PASS:
        break;
    case MODE_CHECK:
        got = write_verdict(opt, v, &r->text, err);
        break;
    case MODE_ANNOTATE:
        got = write_annotated(opt, v, &r->text, err);
        break;
    case MODE_NACK:
        got = write_refusal(v, &r->text, err);
        break;
    case MODE_EFFECTIVE:
        got = write_effective(v, &r->text, err);
        break;
    }
    return got < 0 ? -1 : result_end(r, begun, err);
}

/* Passes the line, or its conversion. */
static int pass_line(const struct validate_options *opt, const struct line_verdict *v,
                     struct chunk_result *r, struct amp_error *err)
{
    if (v->chunk->found && report_found(opt, v, &r->reports, err) < 0)
        return -1;
    if (v->converted.n == 0)
        return result_pass(r, v->chunk, v->whole, err);
    size_t begun = r->text.len;
    return amp_buf_add(&r->text, v->converted.p, v->converted.n, err) < 0
               ? -1
               : result_end(r, begun, err);
}

int emit_line(const struct validate_options *opt, const struct line_verdict *v,
              struct chunk_result *r, struct amp_error *err)
{
    bool passes = opt->mode == MODE_PASS || opt->mode == MODE_NACK;
    bool reports = opt->mode == MODE_CHECK || opt->mode == MODE_ANNOTATE;
    /* A verdict contains the findings; with -e, records are written too. */
    if (!reports || opt->errors)
        for (unsigned i = 0; i < v->n_findings; i++)
            if (report_add(opt, v, &v->findings[i], &r->reports, err) < 0)
                return -1;
    const struct amp_finding *error = first_error(v);
    if (r->stats)
        stats_line(r->stats, v);
    else if (!reports && v->answer == LINE_REFUSED && opt->errors && strcmp(opt->errors, "-") != 0)
        result_count(r, error ? error->code : "");
    if (passes && v->answer != LINE_REFUSED)
        return pass_line(opt, v, r, err);
    return v->answer == LINE_UNCHECKED ? 0 : compose_line(opt, v, r, err);
}
