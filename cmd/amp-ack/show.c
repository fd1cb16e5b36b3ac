/*
 * amp-ack show: a pass-through that prints one line for each message on stderr, for people; with
 * --words what happened to the task.
 *
 *   14:32:07  coordinator → executor   task_dispatch   T-2026-044  feature/breath, 3 criteria
 *   14:32:07  T-2026-044   queued: feature/breath, 3 criteria
 */
#include <inttypes.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/protocol/compose/json.h"
#include "pass.h"
#include "people/story/story.h"

static bool quiet_acks, last, words;

static const struct amp_opt show_opts[] = {
    {'q', "quiet", AMP_OPT_FLAG, &quiet_acks, NULL, .doc = "do not print acknowledgements"},
    {0, "words", AMP_OPT_FLAG, &words, NULL, .doc = "print what happened to the task"},
    {0, "last", AMP_OPT_FLAG, &last, NULL, .doc = "write nothing to stdout"},
    PASS_IN_OPT("read from PATH"),
    PASS_OUT_OPT,
    PASS_HOLD_OPT,
    PASS_OPEN_OPT,
    AMP_OPT_END,
};

enum { PLAIN, GOOD, BAD, CARE, DIM };
static const char *const colors[] = {"", "\033[32m", "\033[31m", "\033[33m", "\033[2m"};

struct line {
    struct amp_buf detail;
    int color;
};

#define SPAN(s) (int)((s).n < 120 ? (s).n : 120), (s).p ? (s).p : ""

static void dispatch_describe(struct line *l, const struct amp_view *v)
{
    amp_buf_fmt(&l->detail, NULL, "%.*s, %" PRIu32 " %s, risk %s", SPAN(v->body.dispatch.branch),
                v->body.dispatch.criteria.n,
                v->body.dispatch.criteria.n == 1 ? "criterion" : "criteria",
                amp_risk_name(v->body.dispatch.risk));
}

static void result_describe(struct line *l, const struct amp_view *v)
{
    enum amp_completion c = v->body.result.completion;
    l->color = c == AMP_COMPLETION_COMPLETE ? PLAIN : c == AMP_COMPLETION_FAILED ? BAD : CARE;
    amp_buf_fmt(&l->detail, NULL, "%.*s %s, +%" PRId64 " -%" PRId64 " in %" PRIu32 " %s",
                SPAN(v->body.result.subtask), amp_completion_name(c), v->body.result.lines_added,
                v->body.result.lines_removed, v->body.result.files_changed.n,
                v->body.result.files_changed.n == 1 ? "file" : "files");
}

static void review_describe(struct line *l, const struct amp_view *v)
{
    amp_buf_fmt(&l->detail, NULL, "%s", v->body.review.incremental ? "incremental" : "full");
    if (v->body.review.reject_count > 0)
        amp_buf_fmt(&l->detail, NULL, ", rejected %" PRId64 " %s so far",
                    v->body.review.reject_count,
                    v->body.review.reject_count == 1 ? "time" : "times");
}

static void decision_describe(struct line *l, const struct amp_view *v)
{
    struct amp_span word = v->body.decision.action;
    l->color = GOOD;
    if (word.n == 0)
        word = amp_span_str(amp_operator_word_name(v->body.decision.word));
    amp_buf_fmt(&l->detail, NULL, "%.*s by %.*s", SPAN(word), SPAN(v->body.decision.op));
}

static void verdict_describe(struct line *l, const struct amp_view *v)
{
    enum amp_decision_word d = v->body.verdict.decision;
    l->color = d == AMP_VERDICT_REJECTED ? BAD : GOOD;
    amp_buf_fmt(&l->detail, NULL, "%s", amp_verdict_name(d));
    if (v->body.verdict.n_issues > 0)
        amp_buf_fmt(&l->detail, NULL, ", %" PRIu32 " %s: %.*s", v->body.verdict.n_issues,
                    v->body.verdict.n_issues == 1 ? "issue" : "issues",
                    SPAN(v->body.verdict.issues[0].description));
}

static void escalation_describe(struct line *l, const struct amp_view *v)
{
    enum amp_level s = v->body.escalation.severity;
    l->color = s == AMP_LEVEL_CRITICAL ? BAD : s == AMP_LEVEL_WARNING ? CARE : PLAIN;
    amp_buf_fmt(&l->detail, NULL, "%s %.*s: %.*s", amp_level_name(s), SPAN(v->body.escalation.type),
                SPAN(v->body.escalation.description));
}

static void ack_describe(struct line *l, const struct amp_view *v)
{
    l->color = DIM;
    amp_buf_fmt(&l->detail, NULL, "%s %.*s", amp_ack_stage_name(v->body.ack.stage),
                SPAN(v->body.ack.ref));
}

static void nack_describe(struct line *l, const struct amp_view *v)
{
    l->color = BAD;
    amp_buf_fmt(&l->detail, NULL, "%.*s %.*s", SPAN(v->body.ack.code), SPAN(v->body.ack.ref));
}

static void ci_describe(struct line *l, const struct amp_view *v)
{
    l->color = v->body.ci.failed ? BAD : PLAIN;
    amp_buf_str(&l->detail,
                v->body.ci.failed    ? "failed"
                : v->body.ci.pending ? "running"
                                     : "passed",
                NULL);
}

static void (*const describe[AMP_KIND_COUNT])(struct line *l, const struct amp_view *v) = {
    [AMP_KIND_DISPATCH] = dispatch_describe,
    [AMP_KIND_RESULT] = result_describe,
    [AMP_KIND_REVIEW] = review_describe,
    [AMP_KIND_VERDICT] = verdict_describe,
    [AMP_KIND_ESCALATION] = escalation_describe,
    [AMP_KIND_DECISION] = decision_describe,
    [AMP_KIND_ACK] = ack_describe,
    [AMP_KIND_NACK] = nack_describe,
    [AMP_KIND_CI_STATUS] = ci_describe,
};

/* ---- what happened to the task ---- */

static void dispatch_tell(struct line *l, const struct amp_view *v)
{
    struct amp_error err;
    json_auto_t *c =
        v->body.dispatch.constraints.n ? amp_json_load(v->body.dispatch.constraints, &err) : NULL;
    int64_t attempt = json_integer_value(json_object_get(c, "attempt"));
    if (attempt > 1)
        amp_buf_fmt(&l->detail, NULL, "reworking: attempt %" PRId64, attempt);
    else
        amp_buf_fmt(&l->detail, NULL, "queued: %.*s, %" PRIu32 " %s", SPAN(v->body.dispatch.branch),
                    v->body.dispatch.criteria.n,
                    v->body.dispatch.criteria.n == 1 ? "criterion" : "criteria");
}

static void result_tell(struct line *l, const struct amp_view *v)
{
    enum amp_completion c = v->body.result.completion;
    struct amp_span why =
        v->body.result.blockers.n ? amp_story_reason(v->body.result.blockers.v[0]) : AMP_SPAN("");
    l->color = c == AMP_COMPLETION_COMPLETE ? PLAIN : c == AMP_COMPLETION_FAILED ? BAD : CARE;
    if (c != AMP_COMPLETION_COMPLETE) {
        amp_buf_fmt(&l->detail, NULL, "%s%s%.*s",
                    c == AMP_COMPLETION_FAILED ? "failed" : "not complete", why.n ? ": " : "",
                    SPAN(why));
        return;
    }
    amp_buf_fmt(&l->detail, NULL, "worked: +%" PRId64 " -%" PRId64 " in %" PRIu32 " %s",
                v->body.result.lines_added, v->body.result.lines_removed,
                v->body.result.files_changed.n,
                v->body.result.files_changed.n == 1 ? "file" : "files");
}

static void review_tell(struct line *l, const struct amp_view *v)
{
    (void)v;
    amp_buf_str(&l->detail, "in review", NULL);
}

static void escalation_tell(struct line *l, const struct amp_view *v)
{
    enum amp_level s = v->body.escalation.severity;
    l->color = s == AMP_LEVEL_CRITICAL ? BAD : s == AMP_LEVEL_WARNING ? CARE : PLAIN;
    amp_buf_fmt(&l->detail, NULL, "%s: %.*s", s == AMP_LEVEL_INFO ? "reports" : "asks you",
                SPAN(v->body.escalation.description));
}

static void decision_tell(struct line *l, const struct amp_view *v)
{
    amp_buf_str(&l->detail, "decided: ", NULL);
    decision_describe(l, v);
}

static void nack_tell(struct line *l, const struct amp_view *v)
{
    l->color = BAD;
    amp_buf_fmt(&l->detail, NULL, "refused by %.*s: %.*s%s%.*s", SPAN(v->from),
                SPAN(v->body.ack.code), v->body.ack.note.n ? ": " : "", SPAN(v->body.ack.note));
}

static void (*const tell[AMP_KIND_COUNT])(struct line *l, const struct amp_view *v) = {
    [AMP_KIND_DISPATCH] = dispatch_tell,
    [AMP_KIND_RESULT] = result_tell,
    [AMP_KIND_REVIEW] = review_tell,
    [AMP_KIND_VERDICT] = verdict_describe,
    [AMP_KIND_ESCALATION] = escalation_tell,
    [AMP_KIND_DECISION] = decision_tell,
    [AMP_KIND_NACK] = nack_tell,
};

/* "coordinator → executor", at least 25 columns wide. */
static void add_way(struct amp_buf *b, const struct amp_view *v)
{
    struct amp_span to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0};
    int pad = 25 - (int)v->from.n - (int)to.n - (to.n > 0 ? 3 : 0);
    amp_buf_fmt(b, NULL, "%.*s%s%.*s%*s", SPAN(v->from), to.n > 0 ? " → " : "", SPAN(to),
                pad > 1 ? pad : 1, "");
}

static void message_print(const struct amp_view *v)
{
    static int color = -1;
    struct line l = {.color = PLAIN};
    char t[AMP_TIME_MAX];
    if (color < 0)
        color = amp_color(stderr);
    if (quiet_acks && v->kind == AMP_KIND_ACK)
        return;
    AMP_BUF struct amp_buf plain = {0};
    AMP_BUF struct amp_buf safe = {0};
    amp_buf_init(&l.detail, 4096);
    amp_buf_init(&plain, 8192);
    amp_buf_init(&safe, 1 << 16);
    bool told = words && tell[v->kind] && v->task.n;
    if (told)
        tell[v->kind](&l, v);
    else if (describe[v->kind])
        describe[v->kind](&l, v);
    amp_time_format(v->created_ms > 0 ? v->created_ms : amp_now_ms(), t);
    amp_buf_fmt(&plain, NULL, "%.8s  ", t + 11);
    if (told) {
        amp_buf_fmt(&plain, NULL, "%-12.*s ", SPAN(v->task));
    } else {
        struct amp_span type = v->type.n > 0 ? v->type : amp_span_str(amp_kind_name(v->kind));
        add_way(&plain, v);
        amp_buf_fmt(&plain, NULL, "%-15.*s %-12.*s ", SPAN(type), SPAN(v->task));
    }
    if (l.detail.len > 0)
        amp_buf_add(&plain, l.detail.data, l.detail.len, NULL);
    if (amp_text_safe(amp_buf_span(&plain), 160, &safe, NULL) == 0)
        fprintf(stderr, "%s%.*s%s\n", color ? colors[l.color] : "", (int)safe.len, safe.data,
                color && l.color != PLAIN ? "\033[0m" : "");
    amp_buf_release(&l.detail);
}

static int message_take(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    message_print(v);
    return last ? 0 : pass_emit(p, v->line, err);
}

static int ack_show(struct amp_command *c, struct amp_error *err)
{
    struct pass p = {.take = message_take};
    (void)c;
    return pass_run(&p, err);
}

const struct amp_verb show_verbs[] = {
    {
        "show",
        "",
        "pass messages on and print a line about each",
        show_opts,
        ack_show,
        .signals = true,
    },
    {0},
};
