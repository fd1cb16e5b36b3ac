/* The record, and what a step of the machine does to it. */
#include "message/cursor/record.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "message/cursor/cursor_fsm.h"
#include "message/record/record.h"

static void holes_read(const struct amp_tape *t, struct amp_cursor_rec *r)
{
    uint32_t list = amp_tape_get(t, 0, AMP_SPAN("given_up"));
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY)
        return;
    for (uint32_t i = list + 1; i < t->tok[list].next && r->n_holes < AMP_CURSOR_HOLES;
         i = t->tok[i].next) {
        struct amp_cursor_hole *h = &r->hole[r->n_holes];
        uint32_t a = amp_tape_at(t, i, 0), b = amp_tape_at(t, i, 1), c = amp_tape_at(t, i, 2);
        if (a != AMP_TOK_NONE && b != AMP_TOK_NONE && c != AMP_TOK_NONE &&
            amp_tok_int(t, a, &h->from) && amp_tok_int(t, b, &h->to) &&
            amp_tok_int(t, c, &h->at_ms))
            r->n_holes++;
    }
}

int amp_cursor_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_cursor_rec *out,
                        struct amp_error *err)
{
    struct amp_tape t;
    struct amp_cursor_rec r = {0};
    amp_buf_reset(mem);
    amp_record_tape(&t);
    int rc = -1;
    if (amp_buf_reserve(mem, json.n, err) == 0 && amp_record_scan(&t, json, err) == 0 &&
        amp_record_text(&t, "consumer", mem, &r.consumer, err) == 0 &&
        amp_record_text(&t, "source", mem, &r.source, err) == 0 &&
        amp_record_text(&t, "holder", mem, &r.holder, err) == 0) {
        r.last_seq = amp_record_int(&t, "last_seq");
        r.epoch = amp_record_int(&t, "epoch");
        r.lease_until_ms = amp_record_int(&t, "lease_until_ms");
        r.updated_ms = amp_record_int(&t, "updated_ms");
        r.gap_since_ms = amp_record_int(&t, "gap_since_ms");
        r.gap_due_ms = amp_record_int(&t, "gap_due_ms");
        r.gap_to = amp_record_int(&t, "gap_to");
        r.moves = amp_record_int(&t, "moves");
        r.held = (uint32_t)amp_record_int(&t, "held");
        uint32_t told = amp_tape_get(&t, 0, AMP_SPAN("told"));
        r.told = told != AMP_TOK_NONE && t.tok[told].type == AMP_JSON_TRUE;
        holes_read(&t, &r);
        *out = r;
        rc = 0;
    }
    amp_tape_release(&t);
    return rc;
}

int amp_cursor_rec_write(const struct amp_cursor_rec *r, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_buf_reset(out);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "consumer", r->consumer);
    amp_jw_member_str(&w, "source", r->source);
    amp_jw_member_int(&w, "last_seq", r->last_seq);
    amp_jw_member_int(&w, "epoch", r->epoch);
    if (r->holder.n > 0)
        amp_jw_member_str(&w, "holder", r->holder);
    amp_jw_member_int(&w, "lease_until_ms", r->lease_until_ms);
    amp_jw_member_int(&w, "updated_ms", r->updated_ms);
    if (r->gap_since_ms > 0) {
        amp_jw_member_int(&w, "gap_since_ms", r->gap_since_ms);
        amp_jw_member_int(&w, "gap_due_ms", r->gap_due_ms);
        amp_jw_member_int(&w, "gap_to", r->gap_to);
    }
    if (r->held > 0)
        amp_jw_member_int(&w, "held", r->held);
    if (r->moves > 0)
        amp_jw_member_int(&w, "moves", r->moves);
    if (r->told) {
        amp_jw_key(&w, "told");
        amp_jw_bool(&w, true);
    }
    if (r->n_holes > 0) {
        amp_jw_key(&w, "given_up");
        amp_jw_open(&w, '[');
        for (uint32_t i = 0; i < r->n_holes; i++) {
            amp_jw_open(&w, '[');
            amp_jw_int(&w, r->hole[i].from);
            amp_jw_int(&w, r->hole[i].to);
            amp_jw_int(&w, r->hole[i].at_ms);
            amp_jw_close(&w, ']');
        }
        amp_jw_close(&w, ']');
    }
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
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

/* Carries out the effects of a step on the record; an event that is kept, and the line of an
 * incident, are committed by who makes the step. */
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
        r->told = false;
    }
    if (res->effects & AMP_CURSOR_DO_INCIDENT)
        r->told = true;
    if (res->to == AMP_CURSOR_GAP || res->to == AMP_CURSOR_OVERDUE)
        r->gap_to = step->gap_to;
    if (res->effects & AMP_CURSOR_DO_DISARM) {
        r->gap_since_ms = r->gap_due_ms = r->gap_to = 0;
        r->told = false;
    }
}

int amp_cursor_apply(struct amp_cursor_rec *r, uint8_t *state, const struct amp_cursor_step *step,
                     uint32_t *effects, struct amp_error *err)
{
    struct amp_fsm_result res;
    uint32_t facts = step->facts | (r->told ? AMP_CURSOR_IF_TOLD : 0);
    if (amp_fsm_step(&amp_cursor_fsm, *state, step->event, facts, &res, err) < 0)
        return -1;
    cursor_carry(r, step, &res);
    r->updated_ms = step->now_ms;
    *state = res.to;
    *effects = res.effects;
    return 0;
}
