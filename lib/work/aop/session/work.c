/*
 * The steps of the work on a TASK, in its record and among the entries of its session.
 *
 * The entry of the RESPONSE is the commit of the end: what follows it (the record of the TASK, the
 * abort of the session) is completed by the next admission if the process is killed in between.
 */
#include <stdio.h>
#include <string.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/work.h"
#include "work/aop/session/private.h"
#include "json/record.h"

static int batch_begin(const struct amp_session_voice *v, bool *own, struct amp_error *err)
{
    *own = !amp_store_in_batch(v->store);
    return *own ? amp_store_begin(v->store, err) : 0;
}

static void batch_end(const struct amp_session_voice *v, bool own)
{
    if (own)
        amp_store_end(v->store);
}

/* The record of this attempt. 1; 0: it is not recorded. */
static int attempt_find(const struct amp_session_voice *v, const struct amp_view *task,
                        struct amp_buf *mem, struct amp_session_task *t, struct amp_error *err)
{
    int64_t attempt = task->has_attempt ? task->attempt : 1;
    int found = amp_session_task_find(v->store, task->correlation, task->task, mem, t, err);

    return found <= 0 ? found : t->attempt == attempt;
}

/* ---- runs of models ---- */

static int route_write(const struct amp_session_task *t, struct amp_span model, const char *after,
                       struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;

    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "input_version", "V2");
    amp_jw_member_str(&w, "routed_to", t->agent);
    amp_jw_member_str(&w, "model_selected", model);
    amp_jw_member_bool(&w, "fallback_triggered", *after != '\0');
    if (*after)
        amp_jw_member_text(&w, "fallback_reason", after);
    else
        amp_jw_member_raw(&w, "fallback_reason", AMP_SPAN("null"));
    amp_jw_member_open(&w, "alternatives_tried", '[');
    for (uint32_t i = 0; i < t->n_tries; i++)
        if (t->tries[i].attempt == t->attempt)
            amp_jw_str(&w, t->tries[i].model);
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int route_note(const struct amp_session_voice *v, const struct amp_session_task *t,
                      struct amp_span provider, struct amp_span model, const char *after,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {.max = AMP_REC_MAX};
    char name[AMP_SESSION_NAME_MAX], n[24];

    if (route_write(t, model, after, &payload, err) < 0)
        return -1;
    const struct amp_session_audit audit = {.type = AMP_SESSION_ENTRY_ROUTING_DECISION,
                                            .session = t->session,
                                            .task = t->id,
                                            .parent = t->parent,
                                            .attempt = t->attempt,
                                            .role = "ROUTER",
                                            .actor = amp_span_str(v->actor),
                                            .provider = provider,
                                            .model = model,
                                            .payload = amp_buf_span(&payload),
                                            .access = "ALLOWED",
                                            .reason = amp_span_str(after)};
    snprintf(n, sizeof n, "%u", t->n_tries);
    amp_session_entry_label(name, t->attempt, "route", n);
    return amp_session_audit_add(v, &audit, name, NULL, 0, err);
}

int amp_session_begun(const struct amp_session_voice *v, const struct amp_view *task,
                      struct amp_span provider, struct amp_span model, const char *after,
                      const struct amp_session_usage *used, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task t;
    bool own;

    if (batch_begin(v, &own, err) < 0)
        return -1;
    int rc = attempt_find(v, task, &mem, &t, err);
    if (rc == 0)
        rc = amp_fail(err, AMP_NO, changed, "the attempt is not recorded");
    const struct amp_session_step step = {.event = AMP_SESSION_TASK_EV_BEGIN,
                                          .session = task->correlation,
                                          .task = task->task,
                                          .provider = provider,
                                          .model = model,
                                          .used = used,
                                          .code = amp_span_str(after)};
    if (rc > 0)
        rc = route_note(v, &t, provider, model, after, err) < 0 ||
                     amp_session_task_step(v, &step, NULL, NULL, err) < 0
                 ? -1
                 : 0;
    batch_end(v, own);
    return rc;
}

static int step_make(const struct amp_session_voice *v, const struct amp_view *task, uint8_t event,
                     const struct amp_session_usage *used, struct amp_error *err)
{
    const struct amp_session_step step = {.event = event,
                                          .session = task->correlation,
                                          .task = task->task,
                                          .attempt = task->has_attempt ? task->attempt : 1,
                                          .used = used};

    return amp_session_task_step(v, &step, NULL, NULL, err);
}

int amp_session_cost(const struct amp_session_voice *v, const struct amp_view *task,
                     const struct amp_session_usage *used, struct amp_error *err)
{
    return step_make(v, task, AMP_SESSION_TASK_EV_SPEND, used, err);
}

int amp_session_released(const struct amp_session_voice *v, const struct amp_view *task,
                         const struct amp_session_usage *used, struct amp_error *err)
{
    return step_make(v, task, AMP_SESSION_TASK_EV_RELEASE, used, err);
}

/* ---- entries ---- */

/* Scans a line that these tools composed or checked. */
static int line_scan(struct amp_tape *t, struct amp_span line, struct amp_error *err)
{
    return amp_rec_scan(t, line, "a message of a session", err);
}

/* The text of a member as it is in the message, decoded into mem. */
static struct amp_span text_at(const struct amp_tape *t, const char *pointer, struct amp_buf *mem)
{
    uint32_t tok = amp_tape_pointer(t, 0, amp_span_str(pointer));
    struct amp_span out;
    struct amp_error e;

    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(t, tok, mem, &out, &e) < 0)
        return AMP_SPAN("");
    return out;
}

int amp_session_event(const struct amp_session_voice *v, const struct amp_view *task,
                      struct amp_span line, const char *name, struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_store_emit emit = {.line = line, .role = AMP_ROLE_message};

    amp_rec_tape(&t);
    if (line_scan(&t, line, err) < 0)
        return -1;
    struct amp_span event = text_at(&t, "/event", &mem);
    const struct amp_session_entry e = {.type = amp_span_is(event, "ROLLBACK_INITIATED")
                                                    ? AMP_SESSION_ENTRY_ROLLBACK_EVENT
                                                    : AMP_SESSION_ENTRY_EVENT,
                                        .session = task->correlation,
                                        .task = task->task,
                                        .attempt = task->has_attempt ? task->attempt : 1,
                                        .event = event,
                                        .json = line};
    return amp_session_entry_add(v, &e, name, &emit, 1, err) < 0 ? -1 : 0;
}

int amp_session_guard(const struct amp_session_voice *v, const struct amp_view *task,
                      enum amp_session_check check, enum amp_session_verdict verdict,
                      const char *details, const char *code, struct amp_error *err)
{
    AMP_WORDS_OF_NAMES(checks, AMP_SESSION_CHECKS);
    static const char *const verdicts[] = {"PASS", "WARN", "FAIL"};
    AMP_BUF struct amp_buf payload = {.max = AMP_REC_MAX};
    AMP_SESSION_READ r = {0};
    char name[AMP_SESSION_NAME_MAX], more[100];
    struct amp_jw w;

    if (!code)
        code = "";
    if (amp_session_read_task(task, &r, err) < 0)
        return -1;
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "check_type", checks[check]);
    amp_jw_member_text(&w, "result", verdicts[verdict]);
    amp_jw_member_text(&w, "details", details);
    if (*code)
        amp_jw_member_text(&w, "error_code", code);
    else
        amp_jw_member_raw(&w, "error_code", AMP_SPAN("null"));
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    const struct amp_session_audit audit = {.type = AMP_SESSION_ENTRY_GUARD_RAIL_CHECK,
                                            .session = r.x.id,
                                            .task = r.t.id,
                                            .parent = r.t.parent,
                                            .attempt = r.t.attempt,
                                            .role = "GOVERNANCE",
                                            .actor = amp_span_str(v->actor),
                                            .payload = amp_buf_span(&payload),
                                            .guards = {checks[check]},
                                            .access =
                                                verdict == AMP_SESSION_FAIL ? "DENIED" : "ALLOWED",
                                            .reason = amp_span_str(code)};
    snprintf(more, sizeof more, "%s.%s.%.40s", checks[check], verdicts[verdict], code);
    amp_session_entry_label(name, r.t.attempt, "guard", more);
    return amp_session_audit_add(v, &audit, name, NULL, 0, err);
}

/* ---- the end ---- */

struct end {
    const struct amp_session_voice *v;
    const struct amp_view *task;
    struct amp_session_read r;
    struct amp_session_task t;
    struct amp_buf t_mem, mem;
    struct amp_tape tape; /* of the RESPONSE */
    struct amp_span line;
    struct amp_span state, signal, code, message, name, provider, model;
    struct amp_session_usage used; /* of the last run */
    bool has_used;
};

static void end_release(struct end *e)
{
    amp_session_read_release(&e->r);
    amp_buf_release(&e->t_mem);
    amp_buf_release(&e->mem);
    amp_tape_release(&e->tape);
}

/* Sums up this attempt, without the last run. *cost: the part that counts for a budget. */
static struct amp_session_usage spent_before(const struct end *e, int64_t *cost)
{
    const struct amp_session_task *t = &e->t;
    struct amp_session_usage sum = {0};

    *cost = 0;
    for (uint32_t i = 0; i + 1 < t->n_tries; i++) {
        if (t->tries[i].attempt != t->attempt)
            continue;
        amp_session_usage_add(&sum, &t->tries[i].used);
        *cost += amp_session_usage_cost(&t->tries[i].used);
    }
    return sum;
}

static bool has_run(const struct end *e)
{
    return e->t.n_tries > 0 && e->t.tries[e->t.n_tries - 1].attempt == e->t.attempt;
}

/* The RESPONSE has the cost of all runs of the attempt; the caller knows that of the last one. */
static void used_read(struct end *e, const struct amp_session_usage *used)
{
    const struct amp_tape *t = &e->tape;
    int64_t cost;
    const struct amp_session_usage before = spent_before(e, &cost);

    if (used) {
        e->used = *used;
        e->has_used = true;
        return;
    }
    if (amp_tape_pointer(t, 0, AMP_SPAN("/cost_tracking")) == AMP_TOK_NONE) {
        if (has_run(e))
            e->used = e->t.tries[e->t.n_tries - 1].used;
        return;
    }
    const struct amp_session_usage said = {
        .tokens_in = amp_usage_at(t, "/cost_tracking/tokens_input", 1),
        .tokens_out = amp_usage_at(t, "/cost_tracking/tokens_output", 1),
        .micros = amp_usage_at(t, "/cost_tracking/actual_cost_usd", 1e6),
        .estimated = amp_usage_at(t, "/cost_tracking/estimated_cost_usd", 1e6)};
#define REST(m) e->used.m = said.m > before.m ? said.m - before.m : 0
    REST(tokens_in);
    REST(tokens_out);
    REST(micros);
    REST(estimated);
#undef REST
    e->has_used = true;
}

static int end_read(struct end *e, const struct amp_session_usage *used, struct amp_error *err)
{
    amp_rec_tape(&e->tape);
    if (line_scan(&e->tape, e->line, err) < 0 || amp_buf_reserve(&e->mem, e->line.n, err) < 0)
        return -1;
    e->state = text_at(&e->tape, "/task_status/state", &e->mem);
    e->signal = text_at(&e->tape, "/task_status/final_signal", &e->mem);
    e->message = text_at(&e->tape, "/task_status/message", &e->mem);
    e->code = text_at(&e->tape, "/error_details/error_code", &e->mem);
    e->name = text_at(&e->tape, "/agent/name", &e->mem);
    e->provider = text_at(&e->tape, "/agent/provider", &e->mem);
    e->model = text_at(&e->tape, "/agent/model", &e->mem);
    used_read(e, used);
    return 0;
}

static uint8_t event_of(const struct end *e)
{
    bool began = e->t.state == AMP_SESSION_TASK_IN_PROGRESS;

    if (amp_span_is(e->state, "COMPLETED"))
        return AMP_SESSION_TASK_EV_COMPLETE;
    if (amp_span_is(e->state, "ABORTED"))
        return AMP_SESSION_TASK_EV_ABORT;
    if (amp_span_is(e->state, "SKIPPED"))
        return began ? AMP_SESSION_TASK_EV_ABORT : AMP_SESSION_TASK_EV_SKIP;
    if (amp_span_is(e->state, "FAILED"))
        return AMP_SESSION_TASK_EV_FAIL;
    /* Guard rails may waive the state. */
    return amp_span_is(e->signal, "SUCCESS") || amp_span_is(e->signal, "PARTIAL_SUCCESS")
               ? AMP_SESSION_TASK_EV_COMPLETE
           : amp_span_is(e->signal, "ABORTED") ? AMP_SESSION_TASK_EV_ABORT
                                               : AMP_SESSION_TASK_EV_FAIL;
}

static int budget_note(struct end *e, struct amp_session_audit *audit, struct amp_error *err)
{
    const struct amp_aop_budget *usd = &e->r.policy.cost_usd, *most = &e->r.policy.tokens;
    int64_t cost;
    struct amp_session_usage sum = spent_before(e, &cost);
    char details[200];

    amp_session_usage_add(&sum, &e->used);
    cost += amp_session_usage_cost(&e->used);
    int64_t tokens = sum.tokens_in + sum.tokens_out;
    bool within = !amp_span_is(e->code, AMP_CODE(E_COST_LIMIT_EXCEEDED)) &&
                  amp_aop_within(usd, (double)cost / 1e6) && amp_aop_within(most, (double)tokens);
    audit->budgeted = usd->limited || most->limited;
    audit->max_cost = usd->limited ? amp_tok_source(e->task->tape, usd->tok) : AMP_SPAN("");
    audit->spent_micros = cost;
    audit->within = within;
    if (!audit->budgeted)
        return 0;
    snprintf(details, sizeof details, "%lld tokens and %lld.%06lld USD were spent",
             (long long)tokens, (long long)(cost / 1000000), (long long)(cost % 1000000));
    return amp_session_guard(e->v, e->task, AMP_SESSION_CHECK_BUDGET,
                             within ? AMP_SESSION_PASS : AMP_SESSION_FAIL, details,
                             within ? NULL : AMP_CODE(E_COST_LIMIT_EXCEEDED), err);
}

/* The entry of the RESPONSE: 0: added; 1: it is there. */
static int response_note(struct end *e, const struct amp_store_emit *emits, uint32_t n_emits,
                         struct amp_error *err)
{
    char name[AMP_SESSION_NAME_MAX];
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_entry there;
    bool denied = amp_span_is(e->code, AMP_CODE(E_PERMISSION_DENIED));
    struct amp_session_audit audit = {.type = AMP_SESSION_ENTRY_RESPONSE_RECEIVED,
                                      .session = e->t.session,
                                      .task = e->t.id,
                                      .parent = e->t.parent,
                                      .attempt = e->t.attempt,
                                      .role = "EXECUTOR",
                                      .actor = e->name,
                                      .provider = e->provider,
                                      .model = e->model,
                                      .payload = e->line,
                                      .guards = {"FINAL_SIGNAL", "MINIMAL_REPORT"},
                                      .access = denied ? "DENIED" : "ALLOWED",
                                      .reason = e->code};

    amp_session_entry_label(name, e->t.attempt, "response", NULL);
    int has = amp_session_entry_get(e->v->store, e->t.session, e->t.id, name, &mem, &there, err);
    if (has != 0)
        return has;
    if (has_run(e) && budget_note(e, &audit, err) < 0)
        return -1;
    return amp_session_audit_add(e->v, &audit, name, emits, n_emits, err);
}

static int end_make(struct end *e, struct amp_error *err)
{
    struct amp_session_step step = {.event = event_of(e),
                                    .session = e->t.session,
                                    .task = e->t.id,
                                    .used = e->has_used ? &e->used : NULL,
                                    .code = e->code,
                                    .signal = e->signal,
                                    .message = e->message};
    struct amp_session_change change = {.session = e->t.session, .task = e->t.id, .code = e->code};
    bool aborts = e->t.aborts_session && step.event != AMP_SESSION_TASK_EV_COMPLETE &&
                  step.event != AMP_SESSION_TASK_EV_SKIP;

    change.event = AMP_SESSION_EV_RISK;
    if (aborts && amp_session_step(e->v, &change, err) < 0)
        return -1;
    if (amp_session_task_step(e->v, &step, NULL, NULL, err) < 0)
        return -1;
    change.event = AMP_SESSION_EV_ABORT;
    return aborts && amp_session_step(e->v, &change, err) < 0 ? -1 : 0;
}

int amp_session_ended(const struct amp_session_voice *v, const struct amp_view *task,
                      struct amp_span response, const struct amp_session_usage *used,
                      const struct amp_store_emit *emits, uint32_t n_emits, struct amp_error *err)
{
    struct end e = {.v = v, .task = task, .line = response};
    bool own;

    amp_buf_init(&e.t_mem, AMP_REC_MAX);
    amp_buf_init(&e.mem, AMP_REC_MAX);
    if (amp_session_read_task(task, &e.r, err) < 0 || batch_begin(v, &own, err) < 0) {
        end_release(&e);
        return -1;
    }
    int rc = attempt_find(v, task, &e.t_mem, &e.t, err);
    if (rc > 0 && amp_session_task_ended(e.t.state))
        rc = 0;
    else if (rc > 0)
        rc = end_read(&e, used, err) < 0 || response_note(&e, emits, n_emits, err) < 0
                 ? -1
                 : end_make(&e, err);
    batch_end(v, own);
    end_release(&e);
    return rc;
}

int amp_session_response(struct amp_store *s, const struct amp_view *task, struct amp_buf *out,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_session_entry e;
    char name[AMP_SESSION_NAME_MAX];

    amp_session_entry_label(name, task->has_attempt ? task->attempt : 1, "response", NULL);
    int has = amp_session_entry_get(s, task->correlation, task->task, name, &mem, &e, err);
    if (has <= 0)
        return has;
    amp_rec_tape(&t);
    if (line_scan(&t, e.json, err) < 0)
        return -1;
    uint32_t payload = amp_tape_get(&t, 0, AMP_SPAN("payload"));
    struct amp_span line = amp_tok_source(&t, payload);
    return payload == AMP_TOK_NONE ? 0 : amp_buf_add(out, line.p, line.n, err) < 0 ? -1 : 1;
}
