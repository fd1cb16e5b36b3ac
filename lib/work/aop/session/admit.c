/*
 * The admission of a TASK to its session. The decisions here depend on records only, so a TASK that
 * waits is decided again after each change, and after a crash.
 */
#include "work/aop/session/admit.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "work/aop/session/private.h"
#include "json/record.h"

#define REFUSED(...) amp_fail(err, AMP_NO, __VA_ARGS__)

struct admission {
    const struct amp_session_voice *v;
    const struct amp_view *view;
    const struct amp_session_read *r;
    struct amp_session x;
    struct amp_session_task t;
    struct amp_buf x_mem, t_mem;
};

static void admission_release(struct admission *a)
{
    amp_buf_release(&a->x_mem);
    amp_buf_release(&a->t_mem);
}

/* ---- the parent ---- */

/* Whether the TASK is an ancestor of its parent. */
static int cycle_check(struct admission *a, const struct amp_session_task *parent,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, name = {.max = AMP_REC_MAX};
    struct amp_session_task up = *parent;

    for (int level = 0; level < AMP_SESSION_DEPTH_MOST && up.parent.n > 0; level++) {
        if (amp_span_eq(up.parent, a->t.id))
            return REFUSED(E_MAX_DEPTH_EXCEEDED, "it is its own ancestor");
        amp_buf_reset(&name);
        if (amp_buf_add(&name, up.parent.p, up.parent.n, err) < 0)
            return -1;
        int found =
            amp_session_task_find(a->v->store, a->x.id, amp_buf_span(&name), &mem, &up, err);
        if (found <= 0)
            return found;
    }
    return 0;
}

static int parent_check(struct admission *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_session_task *t = &a->t;
    struct amp_session_task p;

    if (t->parent.n == 0)
        return AMP_ADMIT_BEGINS;
    if (amp_span_eq(t->parent, t->id))
        return REFUSED(E_MAX_DEPTH_EXCEEDED, "it is its own parent");
    int found = amp_session_task_find(a->v->store, a->x.id, t->parent, &mem, &p, err);
    if (found < 0)
        return -1;
    if (!found)
        return REFUSED(E_DEPENDENCY_FAILED, "its parent %.*s is not known here",
                       AMP_CLIP(t->parent, 200));
    if (cycle_check(a, &p, err) < 0)
        return -1;
    if (t->depth > AMP_SESSION_DEPTH_MOST)
        return REFUSED(E_MAX_DEPTH_EXCEEDED, "it is on level %lld of the delegation (at most %d)",
                       (long long)t->depth, AMP_SESSION_DEPTH_MOST);
    if (amp_session_task_lost(p.state))
        return REFUSED(E_DEPENDENCY_FAILED, "its parent %.*s is %s", AMP_CLIP(t->parent, 200),
                       amp_session_task_fsm.states[p.state].name);
    if (!p.delegates)
        return REFUSED(E_PERMISSION_DENIED,
                       "its parent %.*s may not delegate: constraints.delegation_allowed",
                       AMP_CLIP(t->parent, 200));
    if (amp_session_access_check(&t->access, &p.access, err) < 0)
        return -1;
    return p.state == AMP_SESSION_TASK_PENDING ? AMP_ADMIT_WAITS : AMP_ADMIT_BEGINS;
}

/* ---- the order ---- */

static int chain_check(struct admission *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task before;

    if (a->t.after.n == 0)
        return AMP_ADMIT_BEGINS;
    int found = amp_session_task_find(a->v->store, a->x.id, a->t.after, &mem, &before, err);
    if (found < 0)
        return -1;
    if (!found || !amp_session_task_ended(before.state))
        return AMP_ADMIT_WAITS;
    bool breaks = before.state == AMP_SESSION_TASK_ABORTED ||
                  before.state == AMP_SESSION_TASK_SKIPPED ||
                  (before.state == AMP_SESSION_TASK_FAILED && before.aborts_session);
    return breaks
               ? REFUSED(E_DEPENDENCY_FAILED, "the TASK before it, %.*s, is %s",
                         AMP_CLIP(a->t.after, 200), amp_session_task_fsm.states[before.state].name)
               : AMP_ADMIT_BEGINS;
}

static int aborted_check(struct admission *a, struct amp_error *err)
{
    int aborted = amp_session_is_aborted(a->v->store, &a->x, err);

    if (aborted <= 0)
        return aborted;
    struct amp_span cause = a->x.cause.n > 0 ? a->x.cause : a->x.risk;
    return REFUSED(E_DEPENDENCY_FAILED, "the session was aborted by the failure of %.*s",
                   AMP_CLIP(cause, 200));
}

static int task_decide(struct admission *a, struct amp_error *err)
{
    if (a->t.state == AMP_SESSION_TASK_IN_PROGRESS) /* before a crash */
        return AMP_ADMIT_BEGINS;
    bool is_root = a->t.parent.n == 0;
    if (is_root && amp_span_is(a->x.pattern, "SINGLE") && !amp_span_eq(a->x.root, a->t.id))
        return REFUSED(E_SCHEMA_VALIDATION,
                       "workflow_pattern is SINGLE, and the session has the TASK %.*s",
                       AMP_CLIP(a->x.root, 200));
    if (aborted_check(a, err) < 0)
        return -1;
    return is_root && amp_span_is(a->x.pattern, "CHAIN") ? chain_check(a, err)
                                                         : parent_check(a, err);
}

/* ---- the record ---- */

/* 1: it is entered, or was; 0: an earlier attempt goes on. */
static int task_enter(struct admission *a, struct amp_error *err)
{
    struct amp_session_task t = a->r->t;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task p;

    int found = amp_session_task_find(a->v->store, a->r->x.id, t.id, &a->t_mem, &a->t, err);
    if (found < 0 || (found && a->t.attempt == t.attempt))
        return found;
    if (found && a->t.attempt < t.attempt && !amp_session_task_ended(a->t.state))
        return 0;
    t.depth = 1;
    if (t.parent.n > 0) {
        int has = amp_session_task_find(a->v->store, a->r->x.id, t.parent, &mem, &p, err);
        if (has < 0)
            return -1;
        t.depth = has ? p.depth + 1 : 2;
    }
    return amp_session_enter(a->v, &a->r->x, &t, &a->t_mem, &a->t, err) < 0 ? -1 : 1;
}

static int dispatched_note(struct admission *a, struct amp_error *err)
{
    char name[AMP_SESSION_NAME_MAX];
    const struct amp_aop_budget *b = &a->r->policy.cost_usd;
    const struct amp_session_audit audit = {
        .type = AMP_SESSION_ENTRY_TASK_DISPATCHED,
        .session = a->x.id,
        .task = a->t.id,
        .parent = a->t.parent,
        .attempt = a->t.attempt,
        .role = "ORCHESTRATOR",
        .actor = a->x.orchestrator,
        .payload = a->view->text,
        .access = "N/A",
        .budgeted = b->limited,
        .max_cost = b->limited ? amp_tok_source(a->view->tape, b->tok) : AMP_SPAN(""),
        .within = true};

    amp_session_entry_label(name, a->t.attempt, "dispatched", NULL);
    return amp_session_audit_add(a->v, &audit, name, NULL, 0, err);
}

static int size_note(struct admission *a, enum amp_session_size size, struct amp_error *err)
{
    bool warns = size == AMP_SIZE_WARNS;

    return size == AMP_SIZE_UNKNOWN
               ? 0
               : amp_session_guard(a->v, a->view, AMP_SESSION_CHECK_PAYLOAD_LIMIT,
                                   warns ? AMP_SESSION_WARN : AMP_SESSION_PASS,
                                   warns ? "a part of the TASK is above a soft limit"
                                         : "the TASK is within the limits",
                                   warns ? AMP_CODE(E_PAYLOAD_SIZE_WARNING) : NULL, err);
}

static int decision_note(struct admission *a, int decided, enum amp_session_size size,
                         const struct amp_error *why, struct amp_error *err)
{
    bool denied = decided < 0 && amp_code_is(why->code, E_PERMISSION_DENIED);

    if (a->t.state != AMP_SESSION_TASK_PENDING || decided == AMP_ADMIT_WAITS)
        return 0;
    if (size_note(a, size, err) < 0)
        return -1;
    return decided < 0 && !denied
               ? 0
               : amp_session_guard(a->v, a->view, AMP_SESSION_CHECK_ACCESS,
                                   denied ? AMP_SESSION_FAIL : AMP_SESSION_PASS,
                                   denied ? why->what : "the access is within what may be granted",
                                   denied ? why->code : NULL, err);
}

/* A crash after the failure that aborts the session: the abort is completed. */
static int abort_complete(struct admission *a, struct amp_error *err)
{
    const struct amp_session_change change = {
        .event = AMP_SESSION_EV_ABORT, .session = a->r->x.id, .task = a->t.id, .code = a->t.code};

    int found = amp_session_find(a->v->store, a->r->x.id, &a->x_mem, &a->x, err);
    if (found <= 0 || a->x.aborted_ms > 0 || !amp_span_eq(a->x.risk, a->t.id))
        return found < 0 ? -1 : 0;
    int aborted = amp_session_is_aborted(a->v->store, &a->x, err);
    return aborted <= 0 ? aborted : amp_session_step(a->v, &change, err) < 0 ? -1 : 0;
}

/* A crash after the RESPONSE was recorded: the end is completed. 1: it has ended. */
static int end_complete(struct admission *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};

    if (amp_session_task_ended(a->t.state))
        return abort_complete(a, err) < 0 ? -1 : 1;
    int has = amp_session_response(a->v->store, a->view, &line, err);
    if (has <= 0)
        return has;
    return amp_session_ended(a->v, a->view, amp_buf_span(&line), NULL, NULL, 0, err) < 0 ? -1 : 1;
}

static int admit(struct admission *a, enum amp_session_size size, struct amp_error *err)
{
    struct amp_error why = {0};

    int rc = task_enter(a, err);
    if (rc <= 0)
        return rc < 0 ? AMP_ADMIT_FAILED : AMP_ADMIT_WAITS;
    rc = end_complete(a, err);
    if (rc != 0)
        return rc < 0 ? AMP_ADMIT_FAILED : AMP_ADMIT_ENDED;
    int found = amp_session_find(a->v->store, a->r->x.id, &a->x_mem, &a->x, err);
    if (found <= 0)
        return found < 0 ? AMP_ADMIT_FAILED
                         : amp_fail(err, AMP_DATAERR, bad_record, "a TASK without its session");
    int decided = task_decide(a, &why);
    if (decided < 0 && why.status != AMP_NO) {
        *err = why;
        return AMP_ADMIT_FAILED;
    }
    if (dispatched_note(a, err) < 0 || decision_note(a, decided, size, &why, err) < 0)
        return AMP_ADMIT_FAILED;
    if (decided < 0)
        *err = why;
    return decided;
}

enum amp_session_admission amp_session_admit(const struct amp_session_voice *v,
                                             const struct amp_view *task,
                                             enum amp_session_size size, struct amp_error *err)
{
    AMP_SESSION_READ r = {0};
    struct admission a = {.v = v, .view = task, .r = &r};
    bool own = !amp_store_in_batch(v->store);

    if (amp_session_read_task(task, &r, err) < 0 || (own && amp_store_begin(v->store, err) < 0))
        return AMP_ADMIT_FAILED;
    amp_buf_init(&a.x_mem, AMP_REC_MAX);
    amp_buf_init(&a.t_mem, AMP_REC_MAX);
    int rc = admit(&a, size, err);
    if (own)
        amp_store_end(v->store);
    admission_release(&a);
    return (enum amp_session_admission)rc;
}

const char *amp_session_refused_state(const char *code)
{
    return amp_code_is(code, E_DEPENDENCY_FAILED) ? "SKIPPED" : "FAILED";
}

int amp_session_aborted(struct amp_store *s, const struct amp_view *task, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session x;
    int found = amp_session_find(s, task->correlation, &mem, &x, err);

    return found <= 0 ? found : amp_session_is_aborted(s, &x, err);
}
