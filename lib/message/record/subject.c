/* The subject engine: reading and changing the records of a kind. */
#include "message/record/subject.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/words.h"

static void *member_of(void *rec, uint32_t at)
{
    return (char *)rec + at - 1;
}

static const char *state_name(const struct amp_subject *u, uint8_t state)
{
    return u->machine ? u->machine->states[state].name : u->states[state];
}

/* -1: the subject has no such state. */
static int state_find(const struct amp_subject *u, struct amp_span word)
{
    return u->machine ? amp_fsm_state(u->machine, word) : amp_word_find(u->states, word);
}

static uint8_t state_of(const struct amp_subject *u, void *rec)
{
    return u->state ? *(uint8_t *)member_of(rec, u->state) : 0;
}

static void members_set(const struct amp_subject *u, void *rec, uint8_t state, uint64_t rev,
                        int64_t due_ms)
{
    if (u->state)
        *(uint8_t *)member_of(rec, u->state) = state;
    if (u->rev)
        *(uint64_t *)member_of(rec, u->rev) = rev;
    if (u->due)
        *(int64_t *)member_of(rec, u->due) = due_ms;
}

static int record_read(const struct amp_subject *u, const struct amp_store_rec *row,
                       struct amp_buf *mem, void *rec, struct amp_error *err)
{
    int state = row->found ? state_find(u, row->state) : u->machine ? u->machine->initial : 0;

    if (state < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "%s has the unknown state %.*s",
                        u->table->what, AMP_CLIP(row->state, 40));
    if (amp_rec_parse(u->table, row->found ? row->json : AMP_SPAN("{}"), mem, rec, err) < 0)
        return -1;
    members_set(u, rec, (uint8_t)state, row->rev, row->found ? row->due_ms : 0);
    return 0;
}

int amp_subject_find(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                     struct amp_buf *mem, void *rec, struct amp_error *err)
{
    struct amp_store_rec row;

    if (amp_store_get(s, key, &row, err) < 0 || record_read(u, &row, mem, rec, err) < 0)
        return -1;
    return row.found;
}

/* ---- reading many ---- */

struct walk {
    const struct amp_subject *subject;
    amp_subject_each_fn fn;
    void *ctx, *rec;
    struct amp_buf mem;
    const struct amp_span *part; /* the first of the keys; NULL: any */
    struct amp_span name;        /* of the part in keys */
};

static int walk_visit(void *ctx, struct amp_span id, const struct amp_store_rec *row,
                      struct amp_error *err)
{
    struct walk *w = ctx;

    if (w->part && !amp_span_eq(id, *w->part) && !amp_span_eq(id, w->name))
        return 0;
    if (record_read(w->subject, row, &w->mem, w->rec, err) < 0)
        return -1;
    if (w->subject->key)
        *(const struct amp_key **)member_of(w->rec, w->subject->key) = row->key;
    return w->fn(w->ctx, w->rec, err);
}

/* due_ms 0 and part NULL: all records. */
static int records_walk(const struct amp_subject *u, struct amp_store *s, const char *state,
                        int64_t due_ms, const struct amp_span *part, amp_subject_each_fn fn,
                        void *ctx, struct amp_error *err)
{
    char mem[AMP_KEY_PART_MAX + 1];
    const struct amp_span name = part ? amp_key_part_name(*part, mem) : (struct amp_span){0};
    const struct amp_span prefix = part ? amp_key_prefix(name) : (struct amp_span){0};
    struct walk w = {u, fn, ctx, calloc(1, u->table->size), {.max = AMP_REC_MAX}, part, name};
    int rc = !w.rec     ? amp_fail_memory(err)
             : due_ms   ? amp_store_due(s, u->kind, due_ms, walk_visit, &w, err)
             : prefix.n ? amp_store_each_of(s, u->kind, prefix, walk_visit, &w, err)
                        : amp_store_each(s, u->kind, state, walk_visit, &w, err);

    amp_buf_release(&w.mem);
    free(w.rec);
    return rc;
}

int amp_subject_each(const struct amp_subject *u, struct amp_store *s, const char *state,
                     amp_subject_each_fn fn, void *ctx, struct amp_error *err)
{
    return records_walk(u, s, state, 0, NULL, fn, ctx, err);
}

int amp_subject_of(const struct amp_subject *u, struct amp_store *s, struct amp_span part,
                   amp_subject_each_fn fn, void *ctx, struct amp_error *err)
{
    return records_walk(u, s, NULL, 0, &part, fn, ctx, err);
}

int amp_subject_due(const struct amp_subject *u, struct amp_store *s, int64_t now_ms,
                    amp_subject_each_fn fn, void *ctx, struct amp_error *err)
{
    return records_walk(u, s, NULL, now_ms, NULL, fn, ctx, err);
}

/* ---- steps ---- */

struct commit {
    const struct amp_subject *subject;
    const struct amp_subject_step *step;
    void *rec;
    uint8_t state; /* after the step */
    uint64_t rev;
    int64_t due_ms;
    struct amp_buf mem, json;
};

/* Sets the event and the record's state from the machine. */
static int machine_step(const struct amp_subject *u, void *rec, struct amp_subject_turn *t,
                        struct amp_error *err)
{
    struct amp_fsm_result r;
    uint8_t event = t->step->event;

    if (amp_fsm_step(u->machine, t->from, event, u->facts ? u->facts(rec, t) : 0, &r, err) < 0)
        return -1;
    t->effects = r.effects;
    t->code = r.code;
    t->change->event = u->machine->events[event].name;
    *(uint8_t *)member_of(rec, u->state) = r.to;
    return 0;
}

static int commit_make(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                       struct amp_error *err)
{
    struct commit *c = ctx;
    const struct amp_subject *u = c->subject;
    struct amp_subject_turn t = {.step = c->step, .now = now, .change = change};

    if (record_read(u, now, &c->mem, c->rec, err) < 0)
        return -1;
    t.from = state_of(u, c->rec);
    change->actor = c->step->actor;
    change->emits = c->step->emits;
    change->n_emits = c->step->n_emits;
    int rc = u->check ? u->check(c->rec, &t, err) : 0;
    if (rc == 0 && u->machine)
        rc = machine_step(u, c->rec, &t, err);
    if (rc == 0 && u->carry)
        rc = u->carry(c->rec, &t, err);
    if (rc)
        return rc;
    c->state = state_of(u, c->rec);
    c->rev = now->rev + 1;
    change->to = state_name(u, c->state);
    if (u->due)
        change->due_ms = *(int64_t *)member_of(c->rec, u->due);
    c->due_ms = change->due_ms;
    amp_buf_reset(&c->json);
    if (amp_rec_write(u->table, c->rec, &c->json, err) < 0)
        return -1;
    change->json = amp_buf_span(&c->json);
    return 0;
}

/* Reads what was committed, so that its texts are in mem. */
static int commit_read(const struct commit *c, struct amp_buf *mem, void *rec,
                       struct amp_error *err)
{
    if (amp_rec_parse(c->subject->table, amp_buf_span(&c->json), mem, rec, err) < 0)
        return -1;
    members_set(c->subject, rec, c->state, c->rev, c->due_ms);
    return 0;
}

int amp_subject_step(const struct amp_subject *u, struct amp_store *s,
                     const struct amp_subject_step *step, struct amp_buf *mem, void *rec,
                     enum amp_store_outcome *outcome, struct amp_error *err)
{
    struct commit c = {.subject = u, .step = step, .rec = calloc(1, u->table->size)};
    enum amp_store_outcome how;

    if (!c.rec)
        return amp_fail_memory(err);
    amp_buf_init(&c.mem, AMP_REC_MAX);
    amp_buf_init(&c.json, AMP_REC_MAX);
    int rc = amp_store_update(s, step->key, step->input, commit_make, &c, &how, err);
    if (rc == 0 && rec && how == AMP_STORE_COMMITTED)
        rc = commit_read(&c, mem, rec, err);
    else if (rc == 0 && rec)
        rc = amp_subject_find(u, s, step->key, mem, rec, err) < 0 ? -1 : 0;
    if (rc == 0 && outcome)
        *outcome = how;
    amp_buf_release(&c.mem);
    amp_buf_release(&c.json);
    free(c.rec);
    return rc;
}

struct put {
    const void *rec;
    size_t size;
    bool once;
    const char *event;
};

static int record_put(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct put *p = t->step->with;

    (void)err;
    if (p->once && t->now->found)
        return 1;
    memcpy(rec, p->rec, p->size);
    t->change->event = p->event;
    return 0;
}

int amp_subject_put(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                    const void *rec, bool once, const char *event, const char *actor,
                    struct amp_error *err)
{
    struct amp_subject as = *u;
    const struct put p = {rec, u->table->size, once, event};
    const struct amp_subject_step step = {.key = key, .with = &p, .actor = actor};

    as.check = record_put;
    as.machine = NULL;
    as.carry = NULL;
    return amp_subject_step(&as, s, &step, NULL, NULL, NULL, err);
}

/* ---- removal ---- */

struct removal {
    uint64_t rev;
    const char *event, *actor;
};

static int record_remove(void *ctx, const struct amp_store_rec *now,
                         struct amp_store_change *change, struct amp_error *err)
{
    const struct removal *r = ctx;

    (void)err;
    if (!now->found || (r->rev && now->rev != r->rev))
        return 1;
    change->event = r->event;
    change->to = "REMOVED";
    change->json = AMP_SPAN("{}");
    change->actor = r->actor;
    change->remove = true;
    return 0;
}

int amp_subject_remove(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                       uint64_t rev, const char *event, const char *actor, struct amp_error *err)
{
    struct removal r = {rev, event, actor};
    enum amp_store_outcome how;

    (void)u;
    return amp_store_update(s, key, NULL, record_remove, &r, &how, err) < 0
               ? -1
               : how == AMP_STORE_COMMITTED;
}

int amp_subject_forget(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                       uint64_t rev, const char *actor, struct amp_error *err)
{
    return amp_subject_remove(u, s, key, rev, "forget", actor, err);
}
