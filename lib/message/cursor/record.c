/* The record of a cursor, and the steps of its machine. */
#include "message/cursor/record.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "message/cursor/cursor_fsm.h"
#include "json/record.h"

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

int amp_cursor_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_cursor_rec *out,
                        struct amp_error *err)
{
    return amp_rec_parse(&cursor_rec, json, mem, out, err);
}

int amp_cursor_rec_write(const struct amp_cursor_rec *r, struct amp_buf *out, struct amp_error *err)
{
    amp_buf_reset(out);
    return amp_rec_write(&cursor_rec, r, out, err);
}

int64_t amp_cursor_rec_due(const struct amp_cursor_rec *r, uint8_t state)
{
    if (state == AMP_CURSOR_EXPIRED || state == AMP_CURSOR_RETIRED)
        return 0;
    if (state == AMP_CURSOR_GAP && r->holder.n == 0 && r->gap_due_ms < r->lease_until_ms)
        return r->gap_due_ms;
    return r->lease_until_ms;
}

static void hole_add(struct amp_cursor_rec *r, int64_t from, int64_t to, int64_t now_ms)
{
    if (r->n_holes == AMP_CURSOR_HOLES)
        memmove(r->hole, r->hole + 1, --r->n_holes * sizeof r->hole[0]);
    r->hole[r->n_holes++] = (struct amp_cursor_hole){from, to, now_ms};
}

/* Carries out the effects of a step on the record. The caller commits the event that is kept and
 * the line of an incident. */
static void cursor_carry(struct amp_cursor_rec *r, const struct amp_cursor_step *step,
                         const struct amp_fsm_result *res)
{
    if (res->effects & AMP_CURSOR_DO_HOLE)
        hole_add(r, r->last_seq + 1, step->seq, step->now_ms);
    if (res->effects & AMP_CURSOR_DO_ADVANCE)
        r->last_seq = step->seq;
    if (res->effects & AMP_CURSOR_DO_REWIND) {
        r->moves++;
        r->n_holes = 0;
    }
    if (res->effects & AMP_CURSOR_DO_LEASE)
        r->lease_until_ms = step->now_ms + step->lease_ms;
    if (res->effects & AMP_CURSOR_DO_LAPSE)
        r->lease_until_ms = 0;
    if (res->effects & AMP_CURSOR_DO_END_LEASE)
        r->holder = (struct amp_span){"", 0};
    if (res->effects & AMP_CURSOR_DO_HOLDER)
        r->holder = amp_span_str(step->holder);
    if (res->effects & AMP_CURSOR_DO_FENCE)
        r->epoch++;
    if (res->effects & AMP_CURSOR_DO_ARM) {
        r->gap_since_ms = step->now_ms;
        r->gap_due_ms = step->now_ms + step->gap_ms;
        r->reported = false;
    }
    if (res->effects & AMP_CURSOR_DO_INCIDENT)
        r->reported = true;
    if (res->to == AMP_CURSOR_GAP || res->to == AMP_CURSOR_OVERDUE)
        r->gap_to = step->gap_to;
    if (res->effects & AMP_CURSOR_DO_DISARM) {
        r->gap_since_ms = r->gap_due_ms = r->gap_to = 0;
        r->reported = false;
    }
}

int amp_cursor_apply(struct amp_cursor_rec *r, uint8_t *state, const struct amp_cursor_step *step,
                     uint32_t *effects, struct amp_error *err)
{
    struct amp_fsm_result res;
    uint32_t facts = step->facts | (r->reported ? AMP_CURSOR_IF_TOLD : 0);
    if (amp_fsm_step(&amp_cursor_fsm, *state, step->event, facts, &res, err) < 0)
        return -1;
    cursor_carry(r, step, &res);
    r->updated_ms = step->now_ms;
    *state = res.to;
    *effects = res.effects;
    return 0;
}
