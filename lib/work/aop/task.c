/* The record of a TASK in a session: its delegation, the runs of its models, and its end. */
#include <string.h>

#include "base/codes.h"
#include "work/aop/private.h"
#include "json/record.h"

#define USED(as, key, member) AMP_REC(as, struct amp_session_usage, key, member)
static const struct amp_rec_field used_fields[] = {
    USED(INT, "tokens_in", tokens_in),
    USED(INT, "tokens_out", tokens_out),
    USED(INT, "cost_micros", micros),
    USED(INT, "estimated_micros", estimated),
};
AMP_REC_TABLE(used_rec, "what a model used", struct amp_session_usage, used_fields);

#define TRY(as, key, member) AMP_REC(as, struct amp_session_try, key, member)
static const struct amp_rec_field try_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_session_try, "provider", provider),
    AMP_REC_EVER(TEXT, struct amp_session_try, "model", model),
    TRY(TEXT, "code", code),
    AMP_REC_EVER(INT, struct amp_session_try, "attempt", attempt),
    AMP_REC_EVER(TIME, struct amp_session_try, "started", started_ms),
    TRY(TIME, "ended", ended_ms),
    AMP_REC_IN(struct amp_session_try, "used", used, &used_rec, false),
};
AMP_REC_TABLE(try_rec, "the run of a model", struct amp_session_try, try_fields);

static const struct amp_rec_field access_fields[] = {
    AMP_REC_WORDS(struct amp_session_access, "read", read, true),
    AMP_REC_WORDS(struct amp_session_access, "write", write, true),
    AMP_REC_EVER(INT, struct amp_session_access, "network", network),
};
AMP_REC_TABLE(access_rec, "the access of a TASK", struct amp_session_access, access_fields);

#define SOME(as, key, member) AMP_REC(as, struct amp_session_task, key, member)
#define EVER(as, key, member) AMP_REC_EVER(as, struct amp_session_task, key, member)
static const struct amp_rec_field fields[] = {
    EVER(TEXT, "session", session),
    EVER(TEXT, "id", id),
    SOME(TEXT, "parent", parent),
    SOME(TEXT, "after", after),
    EVER(INT, "seq", seq),
    EVER(INT, "depth", depth),
    EVER(INT, "attempt", attempt),
    SOME(TEXT, "agent", agent),
    SOME(TEXT, "role", role),
    SOME(TEXT, "provider", provider),
    SOME(TEXT, "model", model),
    SOME(TEXT, "category", category),
    SOME(TEXT, "complexity", complexity),
    SOME(TEXT, "priority", priority),
    SOME(TEXT, "objective", objective),
    SOME(BOOL, "delegates", delegates),
    SOME(BOOL, "aborts_session", aborts_session),
    AMP_REC_IN(struct amp_session_task, "access", access, &access_rec, true),
    SOME(TEXT, "signal", signal),
    SOME(TEXT, "code", code),
    SOME(TEXT, "message", message),
    EVER(TIME, "entered", entered_ms),
    SOME(TIME, "started", started_ms),
    SOME(TIME, "ended", ended_ms),
    AMP_REC_MANY(struct amp_session_task, "tries", tries, &try_rec, false),
};
AMP_REC_TABLE(task_rec, "the record of a TASK", struct amp_session_task, fields);

bool amp_session_task_ended(uint8_t state)
{
    return amp_session_task_fsm.terminal >> state & 1;
}

bool amp_session_task_lost(uint8_t state)
{
    return amp_session_task_ended(state) && state != AMP_SESSION_TASK_COMPLETED;
}

static void amount_add(int64_t *to, int64_t n)
{
    if (__builtin_add_overflow(*to, n, to))
        *to = INT64_MAX;
}

void amp_session_usage_add(struct amp_session_usage *to, const struct amp_session_usage *u)
{
    amount_add(&to->tokens_in, u->tokens_in);
    amount_add(&to->tokens_out, u->tokens_out);
    amount_add(&to->micros, u->micros);
    amount_add(&to->estimated, u->estimated);
}

int64_t amp_session_usage_cost(const struct amp_session_usage *of_run)
{
    return of_run->micros > 0 ? of_run->micros : of_run->estimated;
}

struct amp_session_usage amp_session_task_used(const struct amp_session_task *t)
{
    struct amp_session_usage sum = {0};

    for (uint32_t i = 0; i < t->n_tries; i++)
        amp_session_usage_add(&sum, &t->tries[i].used);
    return sum;
}

static struct amp_key key_of(struct amp_span session, struct amp_span id)
{
    return AMP_KEY(AMP_SESSION_TASK_KIND, session, id);
}

static int record_parse(struct amp_span json, struct amp_span word, uint64_t rev,
                        struct amp_buf *mem, struct amp_session_task *out, struct amp_error *err)
{
    int state = amp_fsm_state(&amp_session_task_fsm, word);

    if (state < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "a TASK has the unknown state %.*s",
                        AMP_CLIP(word, 40));
    if (amp_rec_parse(&task_rec, json, mem, out, err) < 0)
        return -1;
    out->state = (uint8_t)state;
    out->rev = rev;
    return 0;
}

static int record_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                       struct amp_session_task *out, struct amp_error *err)
{
    return record_parse(rec->json, rec->state, rec->rev, mem, out, err);
}

/* ---- reading ---- */

int amp_session_task_find(struct amp_store *s, struct amp_span session, struct amp_span task,
                          struct amp_buf *mem, struct amp_session_task *out, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (session.n == 0 || task.n == 0)
        return 0;
    if (amp_store_get(s, key_of(session, task), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return record_read(&rec, mem, out, err) < 0 ? -1 : 1;
}

int amp_session_each_part(struct amp_store *s, const char *kind, struct amp_span session,
                          amp_store_each_fn fn, void *ctx, struct amp_error *err)
{
    struct amp_span prefix = amp_key_prefix(session);

    return prefix.n > 0 ? amp_store_each_of(s, kind, prefix, fn, ctx, err)
                        : amp_store_each(s, kind, NULL, fn, ctx, err);
}

struct walk {
    struct amp_span session;
    amp_session_task_fn fn;
    void *ctx;
    struct amp_buf mem;
};

static int record_visit(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                        struct amp_error *err)
{
    struct walk *w = ctx;
    struct amp_session_task t;

    (void)id;
    if (record_read(rec, &w->mem, &t, err) < 0)
        return -1;
    return amp_span_eq(t.session, w->session) ? w->fn(w->ctx, &t, err) : 0;
}

int amp_session_each_task(struct amp_store *s, struct amp_span session, amp_session_task_fn fn,
                          void *ctx, struct amp_error *err)
{
    struct walk w = {session, fn, ctx, {.max = AMP_REC_MAX}};
    int rc = amp_session_each_part(s, AMP_SESSION_TASK_KIND, session, record_visit, &w, err);

    amp_buf_release(&w.mem);
    return rc;
}

/* ---- steps ---- */

struct update {
    const struct amp_session_voice *v;
    const struct amp_session_step *step;
    const struct amp_session_task *enters; /* ENTER */
    struct amp_span after;
    struct amp_session_task set;
    struct amp_buf mem, json;
    char written[16];
    uint64_t rev;
};

static void update_release(struct update *u)
{
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
}

static struct amp_span text_cut(struct amp_span s, size_t most)
{
    size_t n = s.n < most ? s.n : most;
    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return (struct amp_span){s.p, n};
}

static void member_set(struct amp_span *member, struct amp_span value)
{
    if (value.n > 0)
        *member = value;
}

/* A TASK that is new, or a later attempt at one that has ended: its runs remain. */
static void task_enter(struct update *u, const struct amp_store_rec *now)
{
    const struct amp_session_task was = u->set;
    struct amp_session_task *t = &u->set;

    *t = *u->enters;
    t->objective = text_cut(t->objective, AMP_SESSION_OBJECTIVE_MAX);
    t->entered_ms = u->v->now_ms;
    t->started_ms = t->ended_ms = 0;
    t->signal = t->code = t->message = AMP_SPAN("");
    t->seq = now->found ? was.seq : (int64_t)now->next;
    t->after = now->found ? was.after : u->after;
    t->tries = now->found ? was.tries : NULL;
    t->n_tries = now->found ? was.n_tries : 0;
}

static void try_close(struct update *u)
{
    struct amp_session_task *t = &u->set;
    struct amp_session_try *last = t->n_tries > 0 ? &t->tries[t->n_tries - 1] : NULL;

    if (!last || last->ended_ms > 0)
        return;
    if (u->step->used)
        last->used = *u->step->used;
    last->ended_ms = u->v->now_ms;
    last->code = u->step->code;
}

/* A list that was read has room for one more element. */
static void try_add(struct update *u)
{
    struct amp_session_task *t = &u->set;

    t->tries[t->n_tries++] = (struct amp_session_try){.provider = u->step->provider,
                                                      .model = u->step->model,
                                                      .attempt = t->attempt,
                                                      .started_ms = u->v->now_ms};
}

static void task_carry(struct update *u, uint32_t effects, const struct amp_store_rec *now)
{
    const struct amp_session_step *p = u->step;
    struct amp_session_task *t = &u->set;

    if (effects & AMP_SESSION_TASK_DO_ENTER)
        task_enter(u, now);
    if ((effects & AMP_SESSION_TASK_DO_START) && t->started_ms == 0)
        t->started_ms = u->v->now_ms;
    if (effects & AMP_SESSION_TASK_DO_CLOSE)
        try_close(u);
    if (effects & AMP_SESSION_TASK_DO_TRY)
        try_add(u);
    if ((effects & AMP_SESSION_TASK_DO_SPEND) && p->used && t->n_tries > 0)
        t->tries[t->n_tries - 1].used = *p->used;
    if (effects & AMP_SESSION_TASK_DO_RANK)
        t->priority = p->priority;
    if (effects & AMP_SESSION_TASK_DO_END) {
        t->ended_ms = u->v->now_ms;
        member_set(&t->signal, p->signal);
        member_set(&t->code, p->code);
        member_set(&t->message, text_cut(p->message, AMP_SESSION_TEXT_MAX));
    }
}

static int enter_check(const struct update *u, struct amp_error *err)
{
    const struct amp_session_task *was = &u->set, *t = u->enters;

    if (!amp_span_eq(was->parent, t->parent))
        return amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION,
                        "task.parent_task_id is not that of the earlier attempt at %.*s",
                        AMP_CLIP(t->id, 100));
    if (was->attempt >= t->attempt)
        return amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION,
                        "task.attempt is %lld, but %.*s has had attempt %lld",
                        (long long)t->attempt, AMP_CLIP(t->id, 100), (long long)was->attempt);
    return 0;
}

static int on_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_session_step *p = u->step;
    uint8_t state = amp_session_task_fsm.initial;
    struct amp_fsm_result r;

    if (now->found) {
        if (record_read(now, &u->mem, &u->set, err) < 0 || (u->enters && enter_check(u, err) < 0))
            return -1;
        state = u->set.state;
    } else if (!u->enters) {
        return amp_fail(err, AMP_NO, unknown_ref, "session %.*s has no TASK %.*s",
                        AMP_CLIP(p->session, 100), AMP_CLIP(p->task, 100));
    }
    if (p->attempt > 0 && u->set.attempt != p->attempt && !u->enters)
        return amp_fail(err, AMP_NO, changed, "attempt %lld at %.*s is the current one, not %lld",
                        (long long)u->set.attempt, AMP_CLIP(p->task, 100), (long long)p->attempt);
    if (amp_fsm_step(&amp_session_task_fsm, state, p->event,
                     u->enters && now->found ? AMP_SESSION_TASK_IF_LATER : 0, &r, err) < 0)
        return -1;
    task_carry(u, r.effects, now);
    u->set.state = r.to;
    amp_buf_reset(&u->json);
    if (amp_rec_write(&task_rec, &u->set, &u->json, err) < 0)
        return -1;
    c->event = amp_session_task_fsm.events[p->event].name;
    c->to = amp_session_task_fsm.states[r.to].name;
    c->json = amp_buf_span(&u->json);
    c->actor = u->v->actor;
    u->rev = now->rev + 1;
    amp_span_copy(amp_span_str(c->to), u->written, sizeof u->written);
    return 0;
}

static int update_run(struct update *u, struct amp_buf *mem, struct amp_session_task *out,
                      struct amp_error *err)
{
    amp_buf_init(&u->mem, AMP_REC_MAX);
    amp_buf_init(&u->json, AMP_REC_MAX);
    int rc = amp_store_update(u->v->store, key_of(u->step->session, u->step->task), NULL, on_step,
                              u, NULL, err);
    if (rc == 0 && out)
        rc = record_parse(amp_buf_span(&u->json), amp_span_str(u->written), u->rev, mem, out, err);
    update_release(u);
    return rc;
}

int amp_session_task_step(const struct amp_session_voice *v, const struct amp_session_step *step,
                          struct amp_buf *mem, struct amp_session_task *out, struct amp_error *err)
{
    struct update u = {.v = v, .step = step};

    return update_run(&u, mem, out, err);
}

int amp_session_enter(const struct amp_session_voice *v, const struct amp_session *x,
                      const struct amp_session_task *t, struct amp_buf *mem,
                      struct amp_session_task *out, struct amp_error *err)
{
    const struct amp_session_step step = {
        .event = AMP_SESSION_TASK_EV_ENTER, .session = x->id, .task = t->id};
    struct update u = {.v = v, .step = &step, .enters = t};
    AMP_BUF struct amp_buf after = {.max = AMP_REC_MAX};
    struct amp_session_task was;

    int found = amp_session_task_find(v->store, x->id, t->id, mem, &was, err);
    if (found < 0)
        return -1;
    if (found) {
        u.set = was;
        if (enter_check(&u, err) < 0)
            return -1;
    }
    if (amp_session_join(v, x, t, !found, &after, err) < 0)
        return -1;
    u.after = amp_buf_span(&after);
    return update_run(&u, mem, out, err);
}
