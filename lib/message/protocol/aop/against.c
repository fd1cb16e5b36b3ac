/* AOP: a RESPONSE against its TASK: see against.h. */
#include "message/protocol/aop/against.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <amp/protocol/aop_policy.h>

#include "base/codes.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/aop/policy/reach.h"
#include "message/protocol/check/check.h"
#include "message/protocol/view/object.h"

enum { TEXTS_MOST = 16 * 1024 * 1024, CHECKPOINTS_MOST = 8192 };

/* A pair of messages, and what was read of them. */
struct pair {
    const struct amp_view *task, *response;
    struct amp_aop_policy policy;
    bool strict;
    bool completed, succeeded; /* of the RESPONSE */
    struct amp_result_fault *fault;
    struct amp_error *err;
};

/* Each check returns 1 and fills the fault, 0, or -1. */
static int fault_set(struct pair *p, const char *code, const char *pointer, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int fault_set(struct pair *p, const char *code, const char *pointer, const char *fmt, ...)
{
    va_list args;
    p->fault->code = code;
    p->fault->ends = !amp_code_is(code, E_MALFORMED_RESPONSE);
    p->fault->pointer = pointer;
    va_start(args, fmt);
    vsnprintf(p->fault->what, sizeof p->fault->what, fmt, args);
    va_end(args);
    return 1;
}

static uint32_t token_at(const struct amp_view *v, const char *pointer)
{
    return amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
}

/* A list at a pointer: its first token, and its end; both 0 if it is not there. */
static uint32_t list_begin(const struct amp_tape *t, uint32_t list, uint32_t *end)
{
    bool is = list != AMP_TOK_NONE && t->tok[list].type == AMP_JSON_ARRAY;
    *end = is ? t->tok[list].next : 0;
    return is ? list + 1 : 0;
}

/* The decoded text of a string; empty if it is not one. */
static int text_read(const struct amp_tape *t, uint32_t tok, struct amp_buf *room,
                     struct amp_span *out, struct amp_error *err)
{
    *out = (struct amp_span){"", 0};
    amp_buf_init(room, TEXTS_MOST);
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
        return 0;
    return amp_tok_text(t, tok, room, out, err);
}

/* ---- who answered ---- */

static int names_check(struct pair *p)
{
    const struct amp_view *t = p->task, *r = p->response;
    if (!amp_span_eq(r->correlation, t->correlation))
        return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/session_id",
                         "is not the TASK's session, '%.*s'", AMP_CLIP(t->correlation, 100));
    if (!amp_span_eq(r->task, t->task))
        return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/task_id",
                         "is not the TASK's id, '%.*s'", AMP_CLIP(t->task, 100));
    if (p->strict && t->n_to > 0 && !amp_span_eq(r->from, t->to[0]))
        return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/agent/name",
                         "is not the TASK's agent, '%.*s'", AMP_CLIP(t->to[0], 100));
    return 0;
}

/* Whether the RESPONSE's provider and model are those of an object of the TASK. */
static bool model_matches(const struct pair *p, uint32_t of)
{
    static const char *const keys[] = {"provider", "model"};
    const struct amp_tape *t = p->task->tape, *r = p->response->tape;
    uint32_t agent = token_at(p->response, "/agent");
    for (unsigned i = 0; i < 2; i++) {
        uint32_t want = amp_object_get(t, of, keys[i], AMP_JSON_STRING);
        uint32_t given = amp_object_get(r, agent, keys[i], AMP_JSON_STRING);
        if (want == AMP_TOK_NONE || t->tok[want].len == 0)
            continue; /* the TASK asks for none */
        if (given == AMP_TOK_NONE || !amp_tape_equal(t, want, r, given))
            return false;
    }
    return true;
}

static int model_check(struct pair *p)
{
    const struct amp_tape *t = p->task->tape;
    uint32_t end,
        i = list_begin(t, token_at(p->task, "/execution_policy/alternative_models"), &end);
    if (model_matches(p, token_at(p->task, "/target")))
        return 0;
    for (; i < end; i = t->tok[i].next)
        if (model_matches(p, i))
            return 0;
    return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/agent/model",
                     "is neither the TASK's model nor one of its alternative_models");
}

/* ---- checkpoints ---- */

/* Finds a checkpoint of the TASK by its id; *at is its number among all. */
static uint32_t checkpoint_find(const struct pair *p, uint32_t id, unsigned *at)
{
    const struct amp_tape *t = p->task->tape, *r = p->response->tape;
    uint32_t phases_end, ph = list_begin(t, token_at(p->task, "/phases"), &phases_end);
    *at = 0;
    for (; ph < phases_end; ph = t->tok[ph].next) {
        uint32_t end, c = list_begin(t, amp_tape_get(t, ph, AMP_SPAN("checkpoints")), &end);
        for (; c < end; c = t->tok[c].next, ++*at) {
            uint32_t own = amp_object_get(t, c, "checkpoint_id", AMP_JSON_STRING);
            if (own != AMP_TOK_NONE && amp_tape_equal(t, own, r, id))
                return c;
        }
    }
    return AMP_TOK_NONE;
}

static int result_check(struct pair *p, uint32_t result, unsigned char seen[CHECKPOINTS_MOST / 8])
{
    const struct amp_tape *r = p->response->tape;
    uint32_t id = amp_object_get(r, result, "checkpoint_id", AMP_JSON_STRING);
    unsigned at;
    if (id == AMP_TOK_NONE)
        return 0;
    struct amp_span name = amp_tok_raw(r, id);
    uint32_t checkpoint = checkpoint_find(p, id, &at);
    if (checkpoint == AMP_TOK_NONE)
        return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/checkpoint_results",
                         "has '%.*s', which is not a checkpoint of the TASK", AMP_CLIP(name, 100));
    if (at < CHECKPOINTS_MOST) {
        if (seen[at / 8] & 1u << at % 8)
            return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/checkpoint_results",
                             "has '%.*s' more than once", AMP_CLIP(name, 100));
        seen[at / 8] |= (unsigned char)(1u << at % 8);
    }
    if (p->completed && amp_object_is(r, result, "status", "PENDING"))
        return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/checkpoint_results",
                         "has '%.*s' as PENDING, but the TASK is COMPLETED", AMP_CLIP(name, 100));
    bool must = amp_object_is(p->task->tape, checkpoint, "recovery_strategy", "RETRY") ||
                amp_object_is(p->task->tape, checkpoint, "recovery_strategy", "ABORT");
    if (p->succeeded && must && amp_object_is(r, result, "status", "FAIL"))
        return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/checkpoint_results",
                         "has '%.*s' as FAIL, but final_signal is SUCCESS", AMP_CLIP(name, 100));
    return 0;
}

static int checkpoints_check(struct pair *p)
{
    const struct amp_tape *r = p->response->tape;
    unsigned char seen[CHECKPOINTS_MOST / 8] = {0};
    uint32_t phases = token_at(p->task, "/phases");
    uint32_t end, i = list_begin(r, token_at(p->response, "/checkpoint_results"), &end);
    int rc = 0;
    if (phases == AMP_TOK_NONE || p->task->tape->tok[phases].count == 0)
        return 0;
    for (; i < end && rc == 0; i = r->tok[i].next)
        rc = result_check(p, i, seen);
    return rc;
}

/* ---- the guard rails of the report ---- */

static int signal_check(struct pair *p)
{
    uint32_t status = token_at(p->response, "/task_status");
    if (!p->policy.final_signal.value ||
        (amp_object_has(p->response->tape, status, "state") &&
         amp_object_has(p->response->tape, status, "final_signal")))
        return 0;
    return fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/task_status",
                     "has no state or no final_signal, which the TASK requires");
}

/* 1: the text is there and says something; 0: not; -1: out of memory. */
static int text_says(struct pair *p, uint32_t tok)
{
    AMP_BUF struct amp_buf room = {0};
    struct amp_span text;
    if (text_read(p->response->tape, tok, &room, &text, p->err) < 0)
        return -1;
    return text.n > 0 && !amp_check_blank(text);
}

static int report_check(struct pair *p)
{
    const struct amp_tape *r = p->response->tape;
    if (!p->policy.minimal_report.value)
        return 0;
    int says = text_says(p, token_at(p->response, "/execution_summary/summary"));
    if (says <= 0)
        return says < 0 ? -1
                        : fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/execution_summary/summary",
                                    "says nothing, but the TASK requires a report");
    uint32_t end, i = list_begin(r, token_at(p->response, "/execution_summary/actions"), &end);
    for (says = 0; i < end && says == 0; i = r->tok[i].next)
        says = text_says(p, i);
    return says == 0  ? fault_set(p, AMP_CODE(E_MALFORMED_RESPONSE), "/execution_summary/actions",
                                  "say nothing, but the TASK requires a report")
           : says < 0 ? -1
                      : 0;
}

/* ---- artifacts ---- */

/* Whether the RESPONSE itself says that it ended with this error. */
static bool reports(const struct pair *p, const char *code)
{
    const struct amp_tape *r = p->response->tape;
    uint32_t details = token_at(p->response, "/error_details");
    return !p->completed && details != AMP_TOK_NONE && r->tok[details].type == AMP_JSON_OBJECT &&
           (amp_object_is(r, details, "error_code", code) ||
            amp_object_is(r, details, "error_code", AMP_CODE(E_ALL_MODELS_EXHAUSTED)));
}

/* Appends the canonical paths of a list of the TASK, each with a NUL; of inputs only those that are
 * read-only. */
static int paths_read(struct pair *p, const char *pointer, bool inputs, struct amp_span root,
                      struct amp_buf *out)
{
    const struct amp_tape *t = p->task->tape;
    uint32_t end, i = list_begin(t, token_at(p->task, pointer), &end);
    amp_buf_init(out, TEXTS_MOST);
    for (; i < end; i = t->tok[i].next) {
        AMP_BUF struct amp_buf room = {0};
        struct amp_span path;
        struct amp_error why;
        if (inputs && amp_object_get(t, i, "read_only", AMP_JSON_FALSE) != AMP_TOK_NONE)
            continue;
        if (text_read(t, amp_tape_get(t, i, AMP_SPAN("path")), &room, &path, p->err) < 0)
            return -1;
        if (path.n == 0)
            continue;
        if (amp_aop_resolve(root, path, out, &why) == 0) {
            if (amp_buf_add(out, "", 1, p->err) < 0)
                return -1;
        } else if (why.status != AMP_NOPERM) {
            *p->err = why;
            return -1;
        }
    }
    return 0;
}

/* Whether a canonical path is one of the list's, or below it. */
static bool is_below(const struct amp_buf *list, struct amp_span path)
{
    for (size_t at = 0; at < list->len;) {
        struct amp_span dir = amp_span_str(list->data + at);
        if (amp_aop_is_within(dir, path))
            return true;
        at += dir.n + 1;
    }
    return false;
}

/* The TASK's paths, for its RESPONSE's artifacts. */
struct places {
    struct amp_span root;
    struct amp_aop_reach reach;
    struct amp_buf kept, expected; /* read-only inputs; outputs */
};

static int artifact_check(struct pair *p, struct places *at, uint32_t artifact)
{
    const struct amp_tape *r = p->response->tape;
    AMP_BUF struct amp_buf room = {0}, real = {0};
    struct amp_error why;
    struct amp_span path;
    if (amp_object_is(r, artifact, "status", "UNCHANGED"))
        return 0;
    if (text_read(r, amp_tape_get(r, artifact, AMP_SPAN("path")), &room, &path, p->err) < 0)
        return -1;
    const char *denial = amp_aop_reach_denies(&at->reach, path);
    if (denial)
        return fault_set(p, AMP_CODE(E_PERMISSION_DENIED), "/execution_summary/output_artifacts",
                         "'%.*s' %s", AMP_CLIP(path, 120), denial);
    amp_buf_init(&real, TEXTS_MOST);
    if (amp_aop_resolve(at->root, path, &real, &why) < 0) {
        if (why.status == AMP_NOPERM)
            return 0; /* absolute, and the workspace has no canonical form */
        *p->err = why;
        return -1;
    }
    if (is_below(&at->kept, amp_buf_span(&real)) && !is_below(&at->expected, amp_buf_span(&real)))
        return fault_set(p, AMP_CODE(E_PERMISSION_DENIED), "/execution_summary/output_artifacts",
                         "'%.*s' is an input with read_only", AMP_CLIP(path, 120));
    return 0;
}

static int artifacts_check(struct pair *p)
{
    const struct amp_tape *r = p->response->tape;
    struct places at = {0};
    AMP_BUF struct amp_buf room = {0};
    uint32_t end,
        i = list_begin(r, token_at(p->response, "/execution_summary/output_artifacts"), &end);
    if (i == end || reports(p, AMP_CODE(E_PERMISSION_DENIED)))
        return 0;
    if (text_read(p->task->tape, token_at(p->task, "/task/environment/workspace_root"), &room,
                  &at.root, p->err) < 0)
        return -1;
    amp_aop_reach_init(&at.reach, p->task, &p->policy.write, at.root);
    int rc = paths_read(p, "/task/inputs", true, at.root, &at.kept);
    if (rc == 0)
        rc = paths_read(p, "/task/expected_outputs", false, at.root, &at.expected);
    for (; i < end && rc == 0; i = r->tok[i].next)
        rc = artifact_check(p, &at, i);
    amp_aop_reach_release(&at.reach);
    amp_buf_release(&at.kept);
    amp_buf_release(&at.expected);
    return rc;
}

/* ---- limits ---- */

static int time_check(struct pair *p)
{
    const struct amp_tape *t = p->task->tape;
    uint32_t tok = token_at(p->response, "/timing/duration_seconds");
    uint32_t list = token_at(p->task, "/execution_policy/alternative_models");
    unsigned models = 1;
    double seconds;
    if (!p->strict || !p->completed || !p->policy.auto_terminate_on_timeout.value ||
        tok == AMP_TOK_NONE || !amp_tok_real(p->response->tape, tok, &seconds))
        return 0;
    if (list != AMP_TOK_NONE && t->tok[list].type == AMP_JSON_ARRAY)
        models += t->tok[list].count;
    if (seconds <= (double)p->policy.timeout_seconds.value * models)
        return 0;
    return fault_set(p, AMP_CODE(E_TIMEOUT), "/timing/duration_seconds",
                     "exceeds the TASK's time limit (%lld s for each of %u models)",
                     (long long)p->policy.timeout_seconds.value, models);
}

static int cost_check(struct pair *p)
{
    const char *code = amp_aop_response_fault(&p->policy, p->response);
    if (!code || reports(p, code))
        return 0;
    return fault_set(p, code, "/cost_tracking", "exceeds a budget of the TASK");
}

int amp_aop_against(const struct amp_view *task, const struct amp_view *response, bool strict,
                    struct amp_result_fault *fault, struct amp_error *err)
{
    static int (*const checks[])(struct pair * p) = {
        names_check,  model_check,     checkpoints_check, signal_check,
        report_check, artifacts_check, time_check,        cost_check,
    };
    struct pair p = {
        .task = task, .response = response, .strict = strict, .fault = fault, .err = err};
    uint32_t status = token_at(response, "/task_status");
    int rc = 0;
    amp_aop_policy(task, &p.policy);
    p.completed =
        status != AMP_TOK_NONE && amp_object_is(response->tape, status, "state", "COMPLETED");
    p.succeeded =
        status != AMP_TOK_NONE && amp_object_is(response->tape, status, "final_signal", "SUCCESS");
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && rc == 0; i++)
        rc = checks[i](&p);
    return rc;
}
