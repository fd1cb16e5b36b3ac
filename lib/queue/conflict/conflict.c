/* The records of pairs of jobs whose scopes overlap. */
#include "queue/conflict/conflict.h"

#include <stdio.h>
#include <string.h>

#include "json/record.h"

#define RECORD_MAX ((size_t)128 << 10)

#define EVER(as, key, member) AMP_REC_EVER(as, struct amp_conflict, key, member)
#define SOME(as, key, member) AMP_REC(as, struct amp_conflict, key, member)
static const struct amp_rec_field fields[] = {
    EVER(TEXT, "a", a),
    EVER(TEXT, "b", b),
    SOME(TEXT, "running", running),
    SOME(TEXT, "waiting", waiting),
    SOME(RAW, "overlap", overlap),
    SOME(TIME, "met", met_ms),
    SOME(TEXT, "worker", worker),
    SOME(TIME, "until", until_ms),
    SOME(BOOL, "judged", judged),
    SOME(INT, "confidence_ppm", confidence),
    SOME(TEXT, "reason", reason),
    SOME(TEXT, "code", code),
    SOME(TEXT, "question", question),
    SOME(TEXT, "message", message),
    SOME(TEXT, "first", first),
    SOME(TEXT, "decision", decision),
    SOME(TEXT, "person", person),
    SOME(TEXT, "by", by),
    SOME(TEXT, "why", why),
    SOME(TEXT, "override", waiver),
    SOME(TIME, "decided", decided_ms),
};
AMP_REC_TABLE(conflict_rec, "two jobs in conflict", struct amp_conflict, fields);

void amp_conflict_id(struct amp_span x, struct amp_span y, char out[AMP_CONFLICT_ID_MAX])
{
    char a[AMP_QUEUE_ID_MAX], b[AMP_QUEUE_ID_MAX];

    amp_span_copy(x, a, sizeof a);
    amp_span_copy(y, b, sizeof b);
    bool sorted = strcmp(a, b) < 0;
    snprintf(out, AMP_CONFLICT_ID_MAX, "%s-%s", sorted ? a : b, sorted ? b : a);
}

static int conflict_parse(const struct amp_store_rec *rec, struct amp_buf *mem,
                          struct amp_conflict *out, struct amp_error *err)
{
    int at = amp_fsm_state(&amp_conflict_fsm, rec->state);

    if (at < 0)
        return amp_fail(err, AMP_DATAERR, "bad_record", "a conflict has an unknown state");
    if (amp_rec_parse(&conflict_rec, rec->json, mem, out, err) < 0)
        return -1;
    out->state = (uint8_t)at;
    return 0;
}

static void conflict_new(struct amp_span x, struct amp_span y, struct amp_conflict *out)
{
    size_t n = x.n < y.n ? x.n : y.n;
    int by = n ? memcmp(x.p, y.p, n) : 0;
    bool sorted = by < 0 || (by == 0 && x.n < y.n);

    *out =
        (struct amp_conflict){.state = AMP_CONFLICT_NEW, .a = sorted ? x : y, .b = sorted ? y : x};
}

int amp_conflict_read(struct amp_store *s, struct amp_span x, struct amp_span y,
                      struct amp_buf *mem, struct amp_conflict *out, struct amp_error *err)
{
    char id[AMP_CONFLICT_ID_MAX];
    struct amp_store_rec rec;

    amp_conflict_id(x, y, id);
    if (amp_store_get(s, AMP_KEY(AMP_CONFLICT_KIND, amp_span_str(id)), &rec, err) < 0)
        return -1;
    if (!rec.found) {
        conflict_new(x, y, out);
        return 0;
    }
    return conflict_parse(&rec, mem, out, err) < 0 ? -1 : 1;
}

int amp_conflict_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                      struct amp_conflict *out, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, AMP_KEY(AMP_CONFLICT_KIND, id), &rec, err) < 0)
        return -1;
    return !rec.found ? 0 : conflict_parse(&rec, mem, out, err) < 0 ? -1 : 1;
}

struct each {
    amp_conflict_fn fn;
    void *ctx;
    struct amp_buf mem;
};

static int on_record(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_conflict c;

    (void)id;
    return conflict_parse(rec, &e->mem, &c, err) < 0 ? -1 : e->fn(e->ctx, &c, err);
}

int amp_conflict_each(struct amp_store *s, const char *state, amp_conflict_fn fn, void *ctx,
                      struct amp_error *err)
{
    struct each e = {fn, ctx, {.max = AMP_REC_MAX}};
    int rc = amp_store_each(s, AMP_CONFLICT_KIND, state, on_record, &e, err);

    amp_buf_release(&e.mem);
    return rc;
}

/* ---- steps ---- */

struct change {
    const struct amp_conflict_step *st;
    struct amp_conflict now;
    struct amp_buf mem, json;
    bool removed;
};

/* The answer of a command counts only while its worker has the check; another worker ends a check
 * whose time is over. */
static uint32_t facts_of(const struct amp_conflict_step *st, const struct amp_conflict *now)
{
    bool holds = st->worker ? amp_span_is(now->worker, st->worker) : now->until_ms <= st->now_ms;

    return holds ? AMP_CONFLICT_IF_HOLDS : 0;
}

static struct amp_span text_cut(struct amp_span t)
{
    if (t.n <= AMP_CONFLICT_TEXT_MAX)
        return t;
    t.n = AMP_CONFLICT_TEXT_MAX;
    while (t.n && ((unsigned char)t.p[t.n] & 0xc0) == 0x80)
        t.n--;
    return t;
}

static void decision_set(struct amp_conflict *c, const struct amp_conflict *set, int64_t now_ms)
{
    c->decision = set->decision;
    c->person = set->person;
    c->by = set->by;
    c->why = text_cut(set->why);
    c->waiver = set->waiver;
    c->first = set->first;
    c->until_ms = set->until_ms;
    c->decided_ms = now_ms;
}

/* The record's part of the effects; `set` has the values. */
static void conflict_carry(const struct amp_conflict_step *st, const struct amp_fsm_result *r,
                           struct amp_conflict *c)
{
    static const struct amp_conflict none;
    const struct amp_conflict *set = st->set ? st->set : &none;

    c->state = r->to;
    c->until_ms = 0;
    if (!c->met_ms) {
        c->running = set->running;
        c->waiting = set->waiting;
        c->overlap = set->overlap;
        c->met_ms = st->now_ms;
    }
    c->worker = AMP_SPAN("");
    if (r->effects & AMP_CONFLICT_DO_TAKE) {
        c->worker = amp_span_str(st->worker);
        c->until_ms = set->until_ms;
    }
    if (r->effects & AMP_CONFLICT_DO_JUDGE) {
        c->judged = true;
        c->confidence = set->confidence;
        c->reason = text_cut(set->reason);
        c->code = AMP_SPAN("");
    }
    if (r->effects & AMP_CONFLICT_DO_MISS) {
        c->code = set->code;
        c->reason = text_cut(set->reason);
        c->until_ms = set->until_ms;
    }
    if (r->effects & AMP_CONFLICT_DO_ASK) {
        c->question = set->question;
        c->message = set->message;
    }
    if (r->effects & AMP_CONFLICT_DO_FORGET)
        decision_set(c, &none, 0);
    if (r->effects & AMP_CONFLICT_DO_DECIDE)
        decision_set(c, set, st->now_ms);
}

static int on_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct change *u = ctx;
    const struct amp_conflict_step *st = u->st;
    struct amp_fsm_result r;

    if (!now->found)
        conflict_new(st->x, st->y, &u->now);
    else if (conflict_parse(now, &u->mem, &u->now, err) < 0)
        return -1;
    if (amp_fsm_step(&amp_conflict_fsm, u->now.state, st->event, facts_of(st, &u->now), &r, err) <
        0)
        return -1;
    conflict_carry(st, &r, &u->now);
    amp_buf_reset(&u->json);
    if (amp_rec_write(&conflict_rec, &u->now, &u->json, err) < 0)
        return -1;
    c->event = amp_conflict_fsm.events[st->event].name;
    c->to = amp_conflict_fsm.states[r.to].name;
    c->json = amp_buf_span(&u->json);
    /* A try that nothing needs any more is not due. */
    c->due_ms = r.to == AMP_CONFLICT_UNJUDGED ? 0 : u->now.until_ms;
    c->actor = st->actor;
    c->remove = u->removed = r.effects & AMP_CONFLICT_DO_REMOVE;
    return 0;
}

int amp_conflict_step(struct amp_store *s, const struct amp_conflict_step *st, struct amp_buf *mem,
                      struct amp_conflict *out, struct amp_error *err)
{
    char id[AMP_CONFLICT_ID_MAX];
    struct change u = {.st = st};

    amp_conflict_id(st->x, st->y, id);
    amp_buf_init(&u.mem, AMP_REC_MAX);
    amp_buf_init(&u.json, RECORD_MAX);
    int rc = amp_store_update(s, AMP_KEY(AMP_CONFLICT_KIND, amp_span_str(id)), NULL, on_step, &u,
                              NULL, err);
    if (rc == 0 && out) {
        uint8_t state = u.now.state;
        rc = amp_rec_parse(&conflict_rec, amp_buf_span(&u.json), mem, out, err);
        out->state = state;
    }
    amp_buf_release(&u.mem);
    amp_buf_release(&u.json);
    return rc;
}
