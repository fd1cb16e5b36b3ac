/* An agent's record: one table for both parts, reading and updating it. */
#include "work/agent/record.h"

#include <stdio.h>

#include "message/delivery/record/record.h"
#include "json/record.h"

#define KIND AMP_AGENT_KIND

static const struct amp_rec_words reach_states = {.machine = &amp_reach_fsm},
                                  work_states = {.machine = &amp_agent_fsm};

#define ASKED(as, key, member) AMP_REC_EVER(as, struct amp_agent_asked, key, member)
static const struct amp_rec_field asked_fields[] = {
    ASKED(CSTR, "id", id), ASKED(CSTR, "correlation", correlation), ASKED(INT, "at", at_ms)};
AMP_REC_TABLE(asked_rec, "an unanswered heartbeat", struct amp_agent_asked, asked_fields);

#define REACH(as, key, member) AMP_REC(as, struct amp_agent_reach, key, member)
static const struct amp_rec_field reach_fields[] = {
    AMP_REC_ENUM(struct amp_agent_reach, "state", state, &reach_states),
    REACH(INT, "rev", rev),
    REACH(RAW, "descriptor", descriptor),
    REACH(CSTR, "role", role),
    REACH(CSTR, "node", node),
    REACH(CSTR, "reason", reason),
    REACH(INT, "joined", joined_ms),
    REACH(INT, "left", left_ms),
    REACH(INT, "seen", seen_ms),
    REACH(INT, "missed", missed),
    REACH(CSTR, "said", reported),
    REACH(RAW, "health", health),
    AMP_REC_IN(struct amp_agent_reach, "asked", asked, &asked_rec, false),
    REACH(INT, "answer", answer_ms),
    REACH(INT, "answers", answers),
    REACH(INT, "answer_most", answer_most_ms),
    REACH(INT, "due", due_ms),
};
AMP_REC_TABLE(reach_rec, "an agent's registration", struct amp_agent_reach, reach_fields);

#define SUSPENDED(as, key, member) AMP_REC_EVER(as, struct amp_agent_suspended, key, member)
static const struct amp_rec_field suspended_fields[] = {
    SUSPENDED(TEXT, "ref", ref), SUSPENDED(TEXT, "task", task), SUSPENDED(INT, "since", since_ms)};
AMP_REC_TABLE(suspended_rec, "an agent's suspension", struct amp_agent_suspended, suspended_fields);

#define WORK(as, key, member) AMP_REC(as, struct amp_agent_work, key, member)
static const struct amp_rec_field work_fields[] = {
    AMP_REC_ENUM(struct amp_agent_work, "state", state, &work_states),
    AMP_REC_EVER(CSTR, struct amp_agent_work, "role", role),
    AMP_REC_EVER(CSTR, struct amp_agent_work, "task", task),
    AMP_REC_EVER(CSTR, struct amp_agent_work, "last_task", last_task),
    AMP_REC_IN(struct amp_agent_work, "suspended", suspended, &suspended_rec, true),
    WORK(INT, "pid", pid),
    WORK(INT, "last_seen", last_seen_ms),
    WORK(INT, "limit_ms", limit_ms),
    WORK(INT, "silent_since", silent_since_ms),
    WORK(CSTR, "code", code),
};
AMP_REC_TABLE(work_rec, "an agent's work", struct amp_agent_work, work_fields);

static const struct amp_rec_field fields[] = {
    AMP_REC_IN(struct amp_agent_rec, "reach", reach, &reach_rec, true),
    AMP_REC_IN(struct amp_agent_rec, "work", work, &work_rec, true),
};
AMP_REC_TABLE(agent_rec, "an agent's record", struct amp_agent_rec, fields);

bool amp_agent_has_work(const struct amp_agent_rec *r)
{
    return r->work.state != AMP_AGENT_INITIALIZING || r->work.last_seen_ms > 0 ||
           amp_agent_is_suspended(r);
}

int64_t amp_agent_heard_ms(const struct amp_agent_rec *r)
{
    uint8_t state = r->work.state;
    bool works = state == AMP_AGENT_SCHEDULED || state == AMP_AGENT_RUNNING ||
                 state == AMP_AGENT_WAITING || state == AMP_AGENT_COMPLETED;
    return works && r->work.limit_ms == 0 ? r->work.last_seen_ms : 0;
}

/* ---- reading */

/* A record that is not in the store is empty. */
static int record_read(const struct amp_store_rec *now, struct amp_buf *mem,
                       struct amp_agent_rec *rec, struct amp_error *err)
{
    return amp_rec_parse(&agent_rec, now->found ? now->json : AMP_SPAN("{}"), mem, rec, err);
}

int amp_agent_find(struct amp_store *s, struct amp_span name, struct amp_buf *mem,
                   struct amp_agent_rec *rec, struct amp_error *err)
{
    struct amp_store_rec now;
    return amp_store_get(s, AMP_KEY(KIND, name), &now, err) < 0 ? -1
                                                                : record_read(&now, mem, rec, err);
}

struct each {
    amp_agent_rec_fn fn;
    void *ctx;
    struct amp_buf *mem;
};

static int on_record(void *ctx, struct amp_span name, const struct amp_store_rec *now,
                     struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_agent_rec rec;
    return record_read(now, e->mem, &rec, err) < 0 ? -1 : e->fn(e->ctx, name, &rec, err);
}

int amp_agent_records(struct amp_store *s, amp_agent_rec_fn fn, void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    return amp_store_each(s, KIND, NULL, on_record, &(struct each){fn, ctx, &mem}, err);
}

int amp_agent_records_due(struct amp_store *s, int64_t until_ms, amp_agent_rec_fn fn, void *ctx,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    return amp_store_due(s, KIND, until_ms, on_record, &(struct each){fn, ctx, &mem}, err);
}

/* ---- writing */

struct update {
    amp_agent_change_fn fn;
    void *ctx;
    struct amp_buf *mem, *json;
    char state[64];
};

static void due_lower(int64_t *due_ms, int64_t ms)
{
    if (ms > 0 && (*due_ms == 0 || ms < *due_ms))
        *due_ms = ms;
}

int64_t amp_agent_due_ms(const struct amp_agent_rec *r)
{
    int64_t due = r->reach.due_ms, heard = amp_agent_heard_ms(r);
    due_lower(&due, r->work.limit_ms);
    if (heard > r->work.silent_since_ms)
        due_lower(&due, heard + AMP_SILENCE_MS);
    return due;
}

static void state_name(const struct amp_agent_rec *r, char *out, size_t size)
{
    const char *reach = amp_reach_fsm.states[r->reach.state].name;
    const char *work = amp_agent_fsm.states[r->work.state].name;
    if (r->reach.state == AMP_REACH_ABSENT)
        snprintf(out, size, "%s", work);
    else if (amp_agent_has_work(r))
        snprintf(out, size, "%s/%s", reach, work);
    else
        snprintf(out, size, "%s", reach);
}

static int record_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                         struct amp_error *err)
{
    struct update *u = ctx;
    struct amp_agent_rec rec;
    if (record_read(now, u->mem, &rec, err) < 0)
        return -1;
    int rc = u->fn(u->ctx, &rec, c, err);
    if (rc != 0)
        return rc;
    amp_buf_reset(u->json);
    if (amp_rec_write(&agent_rec, &rec, u->json, err) < 0)
        return -1;
    state_name(&rec, u->state, sizeof u->state);
    c->to = u->state;
    c->json = amp_buf_span(u->json);
    c->due_ms = amp_agent_due_ms(&rec);
    return 0;
}

int amp_agent_update(struct amp_store *s, struct amp_span name, const struct amp_store_input *input,
                     amp_agent_change_fn fn, void *ctx, enum amp_store_outcome *how,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0}, json = {0};
    struct update u = {.fn = fn, .ctx = ctx, .mem = &mem, .json = &json};
    amp_buf_init(&mem, AMP_REC_MAX);
    amp_buf_init(&json, AMP_REC_MAX);
    return amp_store_update(s, AMP_KEY(KIND, name), input, record_change, &u, how, err);
}
