/* The records of pairs of jobs whose scopes overlap. */
#include "work/item/conflict/conflict.h"

#include <stdio.h>
#include <string.h>

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
    SOME(TEXT, "override", permit),
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

static void conflict_new(struct amp_span x, struct amp_span y, struct amp_conflict *out)
{
    size_t n = x.n < y.n ? x.n : y.n;
    int by = n ? memcmp(x.p, y.p, n) : 0;
    bool sorted = by < 0 || (by == 0 && x.n < y.n);

    *out =
        (struct amp_conflict){.state = AMP_CONFLICT_NEW, .a = sorted ? x : y, .b = sorted ? y : x};
}

static int conflict_check(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_conflict_step *st = t->step->with;

    (void)err;
    if (!t->now->found)
        conflict_new(st->x, st->y, rec);
    return 0;
}

/* The answer of a command counts only while its worker has the check; another worker ends a check
 * whose time is over. */
static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    const struct amp_conflict_step *st = t->step->with;
    const struct amp_conflict *now = rec;
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
    c->permit = set->permit;
    c->first = set->first;
    c->until_ms = set->until_ms;
    c->decided_ms = now_ms;
}

/* The record's part of the effects; `set` has the values. */
static int conflict_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    static const struct amp_conflict none;
    const struct amp_conflict_step *st = t->step->with;
    const struct amp_conflict *set = st->set ? st->set : &none;
    struct amp_conflict *c = rec;

    (void)err;
    c->until_ms = 0;
    if (!c->met_ms) {
        c->running = set->running;
        c->waiting = set->waiting;
        c->overlap = set->overlap;
        c->met_ms = st->now_ms;
    }
    c->worker = AMP_SPAN("");
    if (t->effects & AMP_CONFLICT_DO_TAKE) {
        c->worker = amp_span_str(st->worker);
        c->until_ms = set->until_ms;
    }
    if (t->effects & AMP_CONFLICT_DO_JUDGE) {
        c->judged = true;
        c->confidence = set->confidence;
        c->reason = text_cut(set->reason);
        c->code = AMP_SPAN("");
    }
    if (t->effects & AMP_CONFLICT_DO_MISS) {
        c->code = set->code;
        c->reason = text_cut(set->reason);
        c->until_ms = set->until_ms;
    }
    if (t->effects & AMP_CONFLICT_DO_ASK) {
        c->question = set->question;
        c->message = set->message;
    }
    if (t->effects & AMP_CONFLICT_DO_FORGET)
        decision_set(c, &none, 0);
    if (t->effects & AMP_CONFLICT_DO_DECIDE)
        decision_set(c, set, st->now_ms);
    /* A try that nothing needs any more is not due. */
    t->change->due_ms = c->state == AMP_CONFLICT_UNJUDGED ? 0 : c->until_ms;
    t->change->remove = t->effects & AMP_CONFLICT_DO_REMOVE;
    return 0;
}

const struct amp_subject amp_conflict_subject = {.kind = AMP_CONFLICT_KIND,
                                                 .table = &conflict_rec,
                                                 .machine = &amp_conflict_fsm,
                                                 .state =
                                                     AMP_SUBJECT_AT(struct amp_conflict, state),
                                                 .check = conflict_check,
                                                 .facts = facts_of,
                                                 .carry = conflict_carry};

int amp_conflict_read(struct amp_store *s, struct amp_span x, struct amp_span y,
                      struct amp_buf *mem, struct amp_conflict *out, struct amp_error *err)
{
    char id[AMP_CONFLICT_ID_MAX];

    amp_conflict_id(x, y, id);
    int found = amp_conflict_find(s, amp_span_str(id), mem, out, err);
    if (found == 0)
        conflict_new(x, y, out);
    return found;
}

int amp_conflict_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                      struct amp_conflict *out, struct amp_error *err)
{
    return amp_subject_find(&amp_conflict_subject, s, AMP_KEY(AMP_CONFLICT_KIND, id), mem, out,
                            err);
}

int amp_conflict_step(struct amp_store *s, const struct amp_conflict_step *st, struct amp_buf *mem,
                      struct amp_conflict *out, struct amp_error *err)
{
    char id[AMP_CONFLICT_ID_MAX];

    amp_conflict_id(st->x, st->y, id);
    const struct amp_subject_step step = {.key = AMP_KEY(AMP_CONFLICT_KIND, amp_span_str(id)),
                                          .event = st->event,
                                          .with = st,
                                          .actor = st->actor};

    return amp_subject_step(&amp_conflict_subject, s, &step, mem, out, NULL, err);
}
