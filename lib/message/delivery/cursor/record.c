/* The record of a cursor, and the steps of its machine. */
#include "message/delivery/cursor/record.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "message/delivery/cursor/cursor_fsm.h"

/* [from, to, at_ms] each. */
static int holes_read(void *rec, const struct amp_tape *t, uint32_t list, struct amp_error *err)
{
    struct amp_cursor_rec *r = rec;
    (void)err;
    if (t->tok[list].type != AMP_JSON_ARRAY)
        return 1;
    for (uint32_t i = list + 1; i < t->tok[list].next && r->n_holes < AMP_CURSOR_HOLES;
         i = t->tok[i].next) {
        struct amp_cursor_hole *h = &r->hole[r->n_holes++];
        if (t->tok[i].type != AMP_JSON_ARRAY || t->tok[i].count != 3 ||
            !amp_tok_int(t, i + 1, &h->from) || !amp_tok_int(t, i + 2, &h->to) ||
            !amp_tok_int(t, i + 3, &h->at_ms))
            return 1;
    }
    return 0;
}

static int holes_write(const void *rec, struct amp_jw *w, struct amp_error *err)
{
    const struct amp_cursor_rec *r = rec;
    (void)err;
    amp_jw_open(w, '[');
    for (uint32_t i = 0; i < r->n_holes; i++) {
        amp_jw_open(w, '[');
        amp_jw_int(w, r->hole[i].from);
        amp_jw_int(w, r->hole[i].to);
        amp_jw_int(w, r->hole[i].at_ms);
        amp_jw_close(w, ']');
    }
    amp_jw_close(w, ']');
    return 0;
}

static const struct amp_rec_ops holes_ops = {NULL, NULL, holes_read, holes_write};

#define MEMBER(as, key, member) AMP_REC(as, struct amp_cursor_rec, key, member)
#define ALWAYS(as, key, member) AMP_REC_EVER(as, struct amp_cursor_rec, key, member)
static const struct amp_rec_field fields[] = {
    ALWAYS(TEXT, "consumer", consumer),
    ALWAYS(TEXT, "source", source),
    ALWAYS(INT, "last_seq", last_seq),
    ALWAYS(INT, "epoch", epoch),
    MEMBER(TEXT, "holder", holder),
    ALWAYS(INT, "lease_until_ms", lease_until_ms),
    ALWAYS(INT, "updated_ms", updated_ms),
    MEMBER(INT, "gap_since_ms", gap_since_ms),
    MEMBER(INT, "gap_due_ms", gap_due_ms),
    MEMBER(INT, "gap_to", gap_to),
    MEMBER(INT, "held", held),
    MEMBER(INT, "moves", moves),
    MEMBER(BOOL, "told", reported),
    AMP_REC_WHOLE("given_up", &holes_ops),
};
AMP_REC_TABLE(cursor_rec, "a cursor's record", struct amp_cursor_rec, fields);

static int64_t due_of(const struct amp_cursor_rec *r)
{
    if (r->state == AMP_CURSOR_EXPIRED || r->state == AMP_CURSOR_RETIRED)
        return 0;
    if (r->state == AMP_CURSOR_GAP && r->holder.n == 0 && r->gap_due_ms < r->lease_until_ms)
        return r->gap_due_ms;
    return r->lease_until_ms;
}

static void hole_add(struct amp_cursor_rec *r, int64_t from, int64_t to, int64_t now_ms)
{
    if (r->n_holes == AMP_CURSOR_HOLES)
        memmove(r->hole, r->hole + 1, --r->n_holes * sizeof r->hole[0]);
    r->hole[r->n_holes++] = (struct amp_cursor_hole){from, to, now_ms};
}

static struct amp_cursor_step *step_of(const struct amp_subject_turn *t)
{
    return *(struct amp_cursor_step *const *)t->step->with;
}

static int cursor_check(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_cursor_step *step = step_of(t);

    return step->check(step->ctx, rec, t->now, err);
}

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    const struct amp_cursor_rec *r = rec;

    return step_of(t)->facts | (r->reported ? AMP_CURSOR_IF_TOLD : 0);
}

/* Carries out the effects of a step on the record. The caller commits the event that is kept and
 * the line of an incident. */
static int cursor_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_cursor_step *step = step_of(t);
    struct amp_cursor_rec *r = rec;

    (void)err;
    if (t->effects & AMP_CURSOR_DO_HOLE)
        hole_add(r, r->last_seq + 1, step->seq, step->now_ms);
    if (t->effects & AMP_CURSOR_DO_ADVANCE)
        r->last_seq = step->seq;
    if (t->effects & AMP_CURSOR_DO_REWIND) {
        r->moves++;
        r->n_holes = 0;
    }
    if (t->effects & AMP_CURSOR_DO_LEASE)
        r->lease_until_ms = step->now_ms + step->lease_ms;
    if (t->effects & AMP_CURSOR_DO_LAPSE)
        r->lease_until_ms = 0;
    if (t->effects & AMP_CURSOR_DO_END_LEASE)
        r->holder = (struct amp_span){"", 0};
    if (t->effects & AMP_CURSOR_DO_HOLDER)
        r->holder = amp_span_str(step->holder);
    if (t->effects & AMP_CURSOR_DO_FENCE)
        r->epoch++;
    if (t->effects & AMP_CURSOR_DO_ARM) {
        r->gap_since_ms = step->now_ms;
        r->gap_due_ms = step->now_ms + step->gap_ms;
        r->reported = false;
    }
    if (t->effects & AMP_CURSOR_DO_INCIDENT)
        r->reported = true;
    if (r->state == AMP_CURSOR_GAP || r->state == AMP_CURSOR_OVERDUE)
        r->gap_to = step->gap_to;
    if (t->effects & AMP_CURSOR_DO_DISARM) {
        r->gap_since_ms = r->gap_due_ms = r->gap_to = 0;
        r->reported = false;
    }
    if (step->held >= 0)
        r->held = step->held + ((t->effects & AMP_CURSOR_DO_KEEP) != 0);
    r->updated_ms = step->now_ms;
    r->due_ms = due_of(r);
    return 0;
}

const struct amp_subject amp_cursor_subject = {.kind = "cursor",
                                               .table = &cursor_rec,
                                               .machine = &amp_cursor_fsm,
                                               .state =
                                                   AMP_SUBJECT_AT(struct amp_cursor_rec, state),
                                               .key = AMP_SUBJECT_AT(struct amp_cursor_rec, key),
                                               .due = AMP_SUBJECT_AT(struct amp_cursor_rec, due_ms),
                                               .check = cursor_check,
                                               .facts = facts_of,
                                               .carry = cursor_carry};

int amp_cursor_apply(struct amp_store *s, struct amp_cursor_step *step, struct amp_buf *mem,
                     struct amp_cursor_rec *rec, enum amp_store_outcome *how, struct amp_error *err)
{
    step->commit.event = step->event;
    step->commit.with = &step;
    return amp_subject_step(&amp_cursor_subject, s, &step->commit, mem, rec, how, err);
}
