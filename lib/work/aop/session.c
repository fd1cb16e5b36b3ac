/*
 * The record of a session: its members, which are the same in each of its TASKs, the order of its
 * root TASKs, and how it ends.
 *
 * The order of arrival is recorded before the TASK itself. After a crash between the two the TASK
 * finds its place in `joins`, and a TASK that arrived later waits for it. In the same way `risk` is
 * recorded before a TASK fails whose failure aborts the session: so no other TASK is admitted
 * between its failure and the abort.
 */
#include "work/aop/session.h"

#include <string.h>

#include "base/codes.h"
#include "work/aop/private.h"
#include "json/record.h"

#define JOIN(as, key, member) AMP_REC_EVER(as, struct amp_session_join, key, member)
static const struct amp_rec_field join_fields[] = {
    JOIN(TEXT, "task", task),
    JOIN(TEXT, "after", after),
};
AMP_REC_TABLE(join_rec, "a TASK that arrives", struct amp_session_join, join_fields);

#define SOME(as, key, member) AMP_REC(as, struct amp_session, key, member)
#define EVER(as, key, member) AMP_REC_EVER(as, struct amp_session, key, member)
static const struct amp_rec_field fields[] = {
    EVER(TEXT, "id", id),
    EVER(TEXT, "created", created),
    EVER(TEXT, "orchestrator", orchestrator),
    SOME(TEXT, "origin", origin),
    SOME(TEXT, "pattern", pattern),
    SOME(TIME, "created_at", created_ms),
    SOME(TEXT, "root", root),
    SOME(TEXT, "last", last),
    AMP_REC_MANY(struct amp_session, "joins", joins, &join_rec, false),
    SOME(TEXT, "risk", risk),
    SOME(TEXT, "cause", cause),
    SOME(TEXT, "code", code),
    SOME(TEXT, "storage", storage),
    SOME(TEXT, "trail", trail),
    EVER(TIME, "opened", opened_ms),
    SOME(TIME, "aborted", aborted_ms),
    SOME(TIME, "reported", reported_ms),
    SOME(TIME, "active", active_ms),
    SOME(INT, "reports", reports),
};
AMP_REC_TABLE(session_rec, "a session's record", struct amp_session, fields);

static struct amp_key key_of(struct amp_span id)
{
    return AMP_KEY(AMP_SESSION_KIND, id);
}

int amp_session_read(const struct amp_store_rec *rec, struct amp_buf *mem, struct amp_session *out,
                     struct amp_error *err)
{
    int state = amp_fsm_state(&amp_session_fsm, rec->state);

    if (state < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "a session has the unknown state %.*s",
                        AMP_CLIP(rec->state, 40));
    if (amp_rec_parse(&session_rec, rec->json, mem, out, err) < 0)
        return -1;
    out->state = (uint8_t)state;
    out->rev = rec->rev;
    return 0;
}

/* ---- reading ---- */

int amp_session_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_session *out, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, key_of(id), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return amp_session_read(&rec, mem, out, err) < 0 ? -1 : 1;
}

struct walk {
    amp_session_fn fn;
    void *ctx;
};

static int record_visit(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                        struct amp_error *err)
{
    const struct walk *w = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session x;

    (void)id;
    return amp_session_read(rec, &mem, &x, err) < 0 ? -1 : w->fn(w->ctx, &x, err);
}

int amp_session_each(struct amp_store *s, const char *state, amp_session_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct walk w = {fn, ctx};
    return amp_store_each(s, AMP_SESSION_KIND, state, record_visit, &w, err);
}

int amp_session_is_aborted(struct amp_store *s, const struct amp_session *x, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task t;

    if (x->aborted_ms > 0)
        return 1;
    if (x->risk.n == 0)
        return 0;
    int found = amp_session_task_find(s, x->id, x->risk, &mem, &t, err);
    return found <= 0 ? found : t.aborts_session && amp_session_task_lost(t.state);
}

/* ---- steps ---- */

struct update {
    const struct amp_session_voice *v;
    uint8_t event;
    /* JOIN */
    const struct amp_session *x;
    struct amp_span task;
    bool is_root, is_new;
    bool keeps[AMP_SESSION_JOINS_MOST]; /* the joins whose TASK has no record yet */
    struct amp_span after;              /* out; in mem */
    /* others */
    const struct amp_session_change *change;
    struct amp_session set;
    struct amp_session_join joins[AMP_SESSION_JOINS_MOST + 1];
    struct amp_buf mem, json;
};

static void update_release(struct update *u)
{
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
}

/* The place of a root TASK. A TASK whose own record a crash prevented has its place. */
static int order_note(struct update *u, struct amp_error *err)
{
    struct amp_session *x = &u->set;
    uint32_t n = 0;
    bool has = false;

    for (uint32_t i = 0; i < x->n_joins; i++) {
        if (!u->keeps[i])
            continue;
        u->joins[n++] = x->joins[i];
        if (amp_span_eq(x->joins[i].task, u->task)) {
            u->after = x->joins[i].after;
            has = true;
        }
    }
    if (!has) {
        if (n >= AMP_SESSION_JOINS_MOST)
            return amp_fail(err, AMP_TEMPFAIL, session_busy,
                            "session %.*s: %d TASKs have arrived and are not recorded yet",
                            AMP_CLIP(x->id, 100), AMP_SESSION_JOINS_MOST);
        u->after = x->last;
        u->joins[n++] = (struct amp_session_join){u->task, x->last};
        x->last = u->task;
    }
    if (x->root.n == 0)
        x->root = u->task;
    x->joins = u->joins;
    x->n_joins = n;
    return 0;
}

static int session_carry(struct update *u, uint32_t effects, struct amp_error *err)
{
    struct amp_session *x = &u->set;
    const struct amp_session_change *c = u->change;

    if (effects & AMP_SESSION_DO_ORDER) {
        x->active_ms = u->v->now_ms;
        if (x->pattern.n == 0)
            x->pattern = u->x->pattern;
        if (u->is_root && u->is_new && order_note(u, err) < 0)
            return -1;
    }
    if (effects & AMP_SESSION_DO_PLACE) {
        x->storage = c->storage;
        x->trail = c->trail;
    }
    if (effects & AMP_SESSION_DO_MARK)
        x->risk = c->task;
    if (effects & AMP_SESSION_DO_STOP) {
        x->aborted_ms = u->v->now_ms;
        x->cause = c->task;
        x->code = c->code;
    }
    if (effects & AMP_SESSION_DO_SUM) {
        x->reported_ms = u->v->now_ms;
        x->reports++;
    }
    if (effects & AMP_SESSION_DO_KEEP)
        x->active_ms = u->v->now_ms;
    return 0;
}

/* Whether the session is past the step: then nothing changes. */
static bool is_past(const struct update *u, bool found)
{
    const struct amp_session *x = &u->set;

    switch (u->event) {
    case AMP_SESSION_EV_JOIN:
        return found && x->state != AMP_SESSION_REPORTED && !(u->is_root && u->is_new) &&
               (x->pattern.n > 0 || u->x->pattern.n == 0);
    case AMP_SESSION_EV_PLACE:
        return x->trail.n > 0 || x->state == AMP_SESSION_REPORTED;
    case AMP_SESSION_EV_RISK:
        return x->aborted_ms > 0 || amp_span_eq(x->risk, u->change->task);
    case AMP_SESSION_EV_ABORT:
        return x->aborted_ms > 0;
    default:
        return false;
    }
}

static int on_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct update *u = ctx;
    struct amp_fsm_result r;

    if (now->found) {
        if (amp_session_read(now, &u->mem, &u->set, err) < 0)
            return -1;
    } else if (u->event != AMP_SESSION_EV_JOIN) {
        return amp_fail(err, AMP_NO, unknown_ref, "there is no session %.*s",
                        AMP_CLIP(u->change->session, 200));
    } else {
        u->set = *u->x;
        u->set.state = amp_session_fsm.initial;
        u->set.opened_ms = u->v->now_ms;
    }
    if (is_past(u, now->found))
        return 1;
    if (amp_fsm_step(&amp_session_fsm, u->set.state, u->event,
                     u->set.aborted_ms > 0 ? AMP_SESSION_IF_ABORTED : 0, &r, err) < 0 ||
        session_carry(u, r.effects, err) < 0)
        return -1;
    u->set.state = r.to;
    amp_buf_reset(&u->json);
    if (amp_rec_write(&session_rec, &u->set, &u->json, err) < 0)
        return -1;
    c->event = amp_session_fsm.events[u->event].name;
    c->to = amp_session_fsm.states[r.to].name;
    c->json = amp_buf_span(&u->json);
    int64_t last = u->set.reported_ms > u->set.active_ms ? u->set.reported_ms : u->set.active_ms;
    c->due_ms = last + AMP_SESSION_KEEP_MS;
    c->actor = u->v->actor;
    return 0;
}

int amp_session_step(const struct amp_session_voice *v, const struct amp_session_change *c,
                     struct amp_error *err)
{
    struct update u = {.v = v, .event = c->event, .change = c};
    enum amp_store_outcome how;

    amp_buf_init(&u.mem, AMP_REC_MAX);
    amp_buf_init(&u.json, AMP_REC_MAX);
    int rc = amp_store_update(v->store, key_of(c->session), NULL, on_step, &u, &how, err);
    update_release(&u);
    return rc < 0 ? -1 : how == AMP_STORE_UNCHANGED;
}

/* ---- a TASK arrives ---- */

static int same_check(const struct amp_session *was, const struct amp_session *x,
                      struct amp_error *err)
{
    const char *what =
        !amp_span_eq(was->orchestrator, x->orchestrator) ? "orchestrator"
        : was->created_ms != x->created_ms               ? "created_at"
        : was->pattern.n > 0 && x->pattern.n > 0 && !amp_span_eq(was->pattern, x->pattern)
            ? "workflow_pattern"
            : NULL;

    return what ? amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION,
                           "session.%s is not that of the earlier TASKs of session %.*s", what,
                           AMP_CLIP(x->id, 100))
                : 0;
}

/* Finds the joins that are still without a record. */
static int joins_check(struct update *u, const struct amp_session *was, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task t;

    for (uint32_t i = 0; i < was->n_joins && i < AMP_SESSION_JOINS_MOST; i++) {
        int found = amp_session_task_find(u->v->store, was->id, was->joins[i].task, &mem, &t, err);
        if (found < 0)
            return -1;
        u->keeps[i] = !found;
    }
    return 0;
}

int amp_session_join(const struct amp_session_voice *v, const struct amp_session *x,
                     const struct amp_session_task *t, bool is_new, struct amp_buf *after,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session was;
    struct update u = {.v = v,
                       .event = AMP_SESSION_EV_JOIN,
                       .x = x,
                       .task = t->id,
                       .is_root = t->parent.n == 0,
                       .is_new = is_new};

    int found = amp_session_find(v->store, x->id, &mem, &was, err);
    if (found < 0 || (found && (same_check(&was, x, err) < 0 || joins_check(&u, &was, err) < 0)))
        return -1;
    amp_buf_init(&u.mem, AMP_REC_MAX);
    amp_buf_init(&u.json, AMP_REC_MAX);
    int rc = amp_store_update(v->store, key_of(x->id), NULL, on_step, &u, NULL, err);
    if (rc == 0) {
        amp_buf_reset(after);
        rc = amp_buf_add(after, u.after.p, u.after.n, err);
    }
    update_release(&u);
    return rc;
}
