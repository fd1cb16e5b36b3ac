/* Takes the lines that were read, one at a time, and reports invalid ones. */
#include "message/delivery/intake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/admit/access.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/routing.h"

enum { RECORD_MOST = 64 * 1024 };

/* The context of finding_report. */
struct intake_report {
    struct amp_intake *in;
    struct amp_line_place at;
    struct amp_error err;
    bool failed;
};

int amp_intake_init(struct amp_intake *in, struct amp_store *store, const char *tool,
                    struct amp_error *err)
{
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    *in = (struct amp_intake){.reader = reader, .store = store, .tool = tool};
    amp_span_copy(amp_span_str(tool), in->receiver, sizeof in->receiver);
    amp_lines_init(&in->lines, amp_json_limits_default.max_bytes);
    return 0;
}

/* Totals of the released intakes. */
static uint64_t total_accepted, total_rejected;

int amp_intake_summary(struct amp_buf *out, struct amp_error *err)
{
    uint64_t n = total_accepted + total_rejected;

    if (n == 0)
        return 0;
    return amp_buf_fmt(out, err, "%" PRIu64 " message%s, %" PRIu64 " rejected", n,
                       n == 1 ? "" : "s", total_rejected);
}

void amp_intake_release(struct amp_intake *in)
{
    total_accepted += in->accepted;
    total_rejected += in->rejected;
    amp_reader_free(in->reader);
    in->reader = NULL;
    amp_units_free(in->units);
    in->units = NULL;
    amp_lines_release(&in->lines);
}

static void finding_report(void *ctx, const struct amp_finding *f)
{
    struct intake_report *t = ctx;
    struct amp_intake *in = t->in;
    if (t->at.now_ms == 0)
        t->at.now_ms = amp_now_ms();
    if (f->severity == AMP_SEV_ERROR && in->bad_code[0] == '\0') {
        amp_span_copy(amp_span_str(f->code), in->bad_code, sizeof in->bad_code);
        amp_span_copy(amp_span_str(f->field), in->bad_field, sizeof in->bad_field);
        in->bad = *f;
    }
    if (in->say)
        in->say(in->say_ctx, f, &t->at);
    if (!in->store || t->failed)
        return;
    AMP_BUF struct amp_buf record = {0};
    amp_buf_init(&record, RECORD_MOST);
    if (amp_finding_record(f, &t->at, &record, &t->err) < 0 ||
        amp_store_error_log(in->store, amp_buf_span(&record), &t->err) < 0)
        t->failed = true;
}

static struct amp_finding message_finding(const struct amp_view *v, const char *code,
                                          const char *rule, const char *message)
{
    return (struct amp_finding){.severity = AMP_SEV_WARNING,
                                .protocol = v->protocol,
                                .type = v->type,
                                .id = v->id,
                                .from = v->from,
                                .key = v->sig.key,
                                .code = code,
                                .field = "",
                                .pointer = "",
                                .rule = rule,
                                .message = message,
                                .found = "",
                                .expected = ""};
}

/* Reports an error that no check of the protocol found. */
static void error_report(struct intake_report *t, const struct amp_view *v, const char *code,
                         const char *rule, const char *message)
{
    struct amp_finding f = message_finding(v, code, rule, message);
    f.severity = AMP_SEV_ERROR;
    finding_report(t, &f);
    t->in->bad.code = NULL;
}

static bool has_nul(struct amp_span s)
{
    return s.n && memchr(s.p, '\0', s.n);
}

/* Whether the ids of the message and its task can name keys, files and headers. In a C string an id
 * with a NUL would be another id. The length matters only with a state. */
static bool ids_are_usable(struct intake_report *t, const struct amp_view *v)
{
    char message[120];
    bool long_id = v->id.n > AMP_INTAKE_ID_MAX;
    if (has_nul(v->id) || has_nul(v->task)) {
        error_report(t, v, AMP_CODE(validation_error), "limit",
                     has_nul(v->id) ? "its id contains a NUL"
                                    : "the id of its task contains a NUL");
        return false;
    }
    if (!t->in->store || (!long_id && v->task.n <= AMP_INTAKE_ID_MAX))
        return true;
    snprintf(message, sizeof message, "%s has %zu bytes; the limit is %d",
             long_id ? "its id" : "its task", long_id ? v->id.n : v->task.n, AMP_INTAKE_ID_MAX);
    error_report(t, v, AMP_CODE(bad_id), "limit", message);
    return false;
}

/* Reports a decision of the access rules: one that denies as an error, one that allows only in the
 * error log. 1: allowed, 0: denied, -1 failure. */
static int access_admits(struct intake_report *t, const struct amp_view *v, struct amp_error *err)
{
    char text[AMP_ACCESS_TEXT_MAX];
    struct amp_error why = {0};
    int rc = amp_access_check(v, text, &why);
    if (rc < 0 && why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    if (rc < 0)
        error_report(t, v, why.code, "access.rules", why.what);
    if (rc == 0 && t->in->store && !t->failed) {
        AMP_BUF struct amp_buf record = {0};
        const struct amp_finding f =
            message_finding(v, AMP_CODE(access_allowed), "access.rules", text);
        amp_buf_init(&record, RECORD_MOST);
        t->at.now_ms = amp_now_ms();
        t->failed = amp_finding_record(&f, &t->at, &record, &t->err) < 0 ||
                    amp_store_error_log(t->in->store, amp_buf_span(&record), &t->err) < 0;
    }
    return rc >= 0;
}

/* ---- chunks and batches ---- */

/* Reports that a message in chunks was dropped; the view is about the message. */
static enum amp_intake_got dropped_report(struct intake_report *t, struct amp_view *view,
                                          struct amp_span line)
{
    struct amp_intake *in = t->in;
    *view = in->dropped.of;
    view->line = view->message = view->text = line;
    error_report(t, view, in->dropped.why.code, "transport", in->dropped.why.what);
    in->rejected++;
    return t->failed ? AMP_INTAKE_FAILED : AMP_INTAKE_BAD;
}

static enum amp_intake_got unit_take(struct intake_report *t, struct amp_view *view,
                                     struct amp_error *err)
{
    struct amp_intake *in = t->in;
    struct amp_span line = view->line;
    if (in->inside) {
        error_report(t, view, AMP_CODE(validation_error), "transport",
                     "is a chunk or batch inside of another");
        in->rejected++;
        return t->failed ? AMP_INTAKE_FAILED : AMP_INTAKE_BAD;
    }
    if (!in->units && amp_units_new(in->store, in->tool, in->receiver, &in->units, err) < 0)
        return AMP_INTAKE_FAILED;
    switch (amp_units_take(in->units, view, amp_now_ms(), &in->dropped, err)) {
    case AMP_UNIT_TAKEN:
        return AMP_INTAKE_PART;
    case AMP_UNIT_REFUSED:
        return dropped_report(t, view, line);
    default:
        return AMP_INTAKE_FAILED;
    }
}

int amp_intake_resume(struct amp_intake *in, const char *as, bool trusted, struct amp_error *err)
{
    char path[4096];
    snprintf(in->receiver, sizeof in->receiver, "%.140s%s", as, trusted ? "" : " (untrusted)");
    if (!in->store)
        return 0;
    int n = snprintf(path, sizeof path, "%s/transfers", amp_store_dir(in->store));
    if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) < 0)
        return 0; /* no message in chunks ever came */
    if (amp_units_new(in->store, in->tool, in->receiver, &in->units, err) < 0)
        return -1;
    int rc = amp_units_leftovers(in->units, err);
    if (rc <= 0) {
        amp_units_free(in->units);
        in->units = NULL;
    }
    return rc;
}

/* Drops a message whose time limit passed, or at the end an unfinished one. */
static enum amp_intake_got units_expire(struct amp_intake *in, bool end, struct amp_view *view,
                                        struct amp_error *err)
{
    struct intake_report t = {
        .in = in,
        .at = {
            .tool = in->tool, .line = in->lines.number, .now_ms = amp_now_ms(), .file = in->file}};
    in->bad_code[0] = in->bad_field[0] = '\0';
    in->dropped.why.code[0] = '\0';
    switch (amp_units_expire(in->units, amp_now_ms(), end, &in->dropped, err)) {
    case AMP_UNIT_TAKEN:
        return AMP_INTAKE_NONE;
    case AMP_UNIT_REFUSED: {
        enum amp_intake_got got = dropped_report(&t, view, (struct amp_span){"", 0});
        if (got == AMP_INTAKE_FAILED && err)
            *err = t.err;
        return got;
    }
    default:
        return AMP_INTAKE_FAILED;
    }
}

enum amp_intake_got amp_intake_more(struct amp_intake *in, struct amp_view *view,
                                    struct amp_error *err)
{
    struct amp_line line = {.number = in->lines.number};
    if (!in->units)
        return AMP_INTAKE_NONE;
    int rc = amp_units_next(in->units, amp_now_ms(), &line.bytes, err);
    if (rc < 0)
        return AMP_INTAKE_FAILED;
    if (rc == 0)
        return units_expire(in, false, view, err);
    in->inside = true;
    enum amp_intake_got got = amp_intake_line(
        in, line.bytes.n > in->lines.max_line ? AMP_LINE_TOO_LONG : AMP_LINE, &line, view, err);
    in->inside = false;
    return got;
}

enum amp_intake_got amp_intake_unfinished(struct amp_intake *in, struct amp_view *view,
                                          struct amp_error *err)
{
    return in->units ? units_expire(in, true, view, err) : AMP_INTAKE_NONE;
}

enum amp_intake_got amp_intake_next(struct amp_intake *in, struct amp_view *view,
                                    struct amp_error *err)
{
    struct amp_line line;
    enum amp_intake_got rc;
    do {
        if (in->units && (rc = amp_intake_more(in, view, err)) != AMP_INTAKE_NONE)
            return rc;
        enum amp_line_result got = amp_lines_next(&in->lines, &line);
        if (got == AMP_LINE_MORE)
            return AMP_INTAKE_NONE;
        if (got == AMP_LINE_END)
            return amp_intake_unfinished(in, view, err);
        rc = amp_intake_line(in, got, &line, view, err);
    } while (rc == AMP_INTAKE_PART);
    return rc;
}

enum amp_intake_got amp_intake_line(struct amp_intake *in, enum amp_line_result got,
                                    const struct amp_line *read, struct amp_view *view,
                                    struct amp_error *err)
{
    struct amp_line line = *read;
    struct intake_report t; /* not cleared: this is the per-message path */
    t.in = in;
    t.at = (struct amp_line_place){
        .tool = in->tool, .line = line.number, .offset = line.offset, .file = in->file};
    t.failed = false;
    in->bad_code[0] = in->bad_field[0] = '\0';
    in->dropped.why.code[0] = '\0';
    int good = 0;
    if (got == AMP_LINE_TOO_LONG) {
        char message[80];
        *view = (struct amp_view){
            .line = line.bytes, .message = line.bytes, .text = line.bytes, .payload = AMP_TOK_NONE};
        snprintf(message, sizeof message, "is longer than %zu bytes", in->lines.max_line);
        error_report(&t, view, AMP_CODE(line_too_long), "limit", message);
    } else {
        in->rails = (struct amp_rails){.store = in->store};
        in->check.waives = in->store ? amp_rails_waives : NULL;
        in->check.waives_ctx = &in->rails;
        good = amp_reader_line(in->reader, line.bytes, &in->check, view, finding_report, &t, err);
        if (good < 0)
            return AMP_INTAKE_FAILED;
        if (in->rails.failed) {
            *err = in->rails.err;
            return AMP_INTAKE_FAILED;
        }
        good = good && ids_are_usable(&t, view);
        if (good && (view->kind == AMP_KIND_CHUNK || view->kind == AMP_KIND_BATCH)) {
            enum amp_intake_got took = unit_take(&t, view, err);
            if (took == AMP_INTAKE_FAILED && t.failed && err)
                *err = t.err;
            return took;
        }
        if (good && amp_access_is_set()) {
            good = access_admits(&t, view, err);
            if (good < 0)
                return AMP_INTAKE_FAILED;
        }
    }
    if (t.failed) {
        if (err)
            *err = t.err;
        return AMP_INTAKE_FAILED;
    }
    if (good) {
        in->accepted++;
        return AMP_INTAKE_MESSAGE;
    }
    in->rejected++;
    return AMP_INTAKE_BAD;
}

int amp_intake_refuse(struct amp_intake *in, const struct amp_view *view,
                      const struct amp_error *why, struct amp_error *err)
{
    struct intake_report t = {
        .in = in,
        .at = {
            .tool = in->tool, .line = in->lines.number, .now_ms = amp_now_ms(), .file = in->file}};
    error_report(&t, view, why->code, why->code, why->what);
    if (t.failed && err)
        *err = t.err;
    return t.failed ? -1 : 0;
}

/* The sender of a message in chunks hears that it was dropped (SW4RM §5.4). */
static int dropped_answer(const struct amp_intake *in, const struct amp_view *view, int64_t now_ms,
                          struct amp_buf *out, struct amp_error *err)
{
    struct amp_answer a = {.stage = AMP_STAGE_FAILED,
                           .by = in->tool,
                           .node = in->tool,
                           .code = in->dropped.why.code,
                           .note = in->dropped.why.what,
                           .retryable = true,
                           .now_ms = now_ms};
    size_t before = out->len;
    char note[sizeof in->dropped.why.what + sizeof in->dropped.why.code + 4];
    /* Protocols have a code for a part, but none for each way in which it can be wrong. */
    if (strncmp(a.code, "chunk_", 6) == 0 || strncmp(a.code, "batch_", 6) == 0) {
        snprintf(note, sizeof note, "%s: %s", a.code, a.note);
        a.code = AMP_CODE(partial_delivery);
        a.note = note;
    }
    if (view->id.n == 0 || view->from.n == 0 || memchr(view->id.p, '\0', view->id.n))
        return 0;
    if ((in->store && amp_sequence_answer(in->store, view, in->tool, &a, err) < 0) ||
        amp_answer_line(view, &a, out, err) < 0)
        return -1;
    return out->len > before;
}

int amp_intake_answer(const struct amp_intake *in, const struct amp_view *view, int64_t now_ms,
                      struct amp_buf *out, struct amp_error *err)
{
    if (in->dropped.why.code[0])
        return dropped_answer(in, view, now_ms, out, err);
    if (!in->bad.code || view->protocol == AMP_PROTO_NONE ||
        !amp_routing_of(view->protocol)->falls_back)
        return 0;
    enum amp_refuse_result said = amp_refuse(view, &in->bad, now_ms, out, err);
    return said == AMP_REFUSE_FAILED ? -1 : said == AMP_REFUSE_WRITTEN;
}

int amp_intake_holds(struct amp_intake *in, const struct amp_view *view, struct amp_error *err)
{
    struct amp_error why = {0};
    json_auto_t *j = amp_json_load(
        view->message.n && *view->message.p == '{' ? view->message : view->text, &why);
    if (j)
        return 1;
    amp_span_copy(AMP_SPAN("bad_value"), why.code, sizeof why.code);
    in->bad_code[0] = in->bad_field[0] = '\0';
    in->accepted--;
    in->rejected++;
    return amp_intake_refuse(in, view, &why, err);
}

bool amp_intake_is_to(const struct amp_view *v, const char *role)
{
    for (uint32_t i = 0; i < v->n_to; i++)
        if (amp_span_is(v->to[i], role))
            return true;
    return false;
}
