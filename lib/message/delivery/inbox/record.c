/* The two records of an inbox. */
#include "message/delivery/inbox/private.h"

#include <string.h>

#include "base/codes.h"

/* ---- the buffer ---- */

#define PLACE(as, key, member) AMP_REC(as, struct amp_inbox_place, key, member)
static const struct amp_rec_field place_fields[] = {
    PLACE(TEXT, "id", id),    PLACE(INT, "at_ms", at_ms), PLACE(INT, "expires_ms", expires_ms),
    PLACE(INT, "lane", lane), PLACE(INT, "order", order), PLACE(INT, "size", size),
    PLACE(INT, "by", by),     PLACE(INT, "round", round), PLACE(INT, "own", own),
};
AMP_REC_TABLE(place_rec, "a place in an inbox", struct amp_inbox_place, place_fields);

#define BUFFER(as, key, member) AMP_REC(as, struct amp_inbox_buffer, key, member)
static const struct amp_rec_field buffer_fields[] = {
    BUFFER(TEXT, "agent", agent),
    BUFFER(INT, "bound", bound),
    BUFFER(INT, "credits", credits),
    BUFFER(INT, "busy_ms", busy_ms),
    BUFFER(INT, "until_ms", until_ms),
    BUFFER(INT, "round", round),
    AMP_REC_MANY(struct amp_inbox_buffer, "waiting", waiting, &place_rec, true),
    AMP_REC_WORDS(struct amp_inbox_buffer, "open", open, false),
};
AMP_REC_TABLE(buffer_rec, "an inbox's record", struct amp_inbox_buffer, buffer_fields);

uint32_t amp_inbox_buffer_find(const struct amp_inbox_buffer *b, struct amp_span id)
{
    uint32_t i = 0;
    while (i < b->n_waiting && !amp_span_eq(b->waiting[i].id, id))
        i++;
    return i;
}

static void buffer_drop(struct amp_inbox_buffer *b, uint32_t index)
{
    b->n_waiting--;
    memmove(&b->waiting[index], &b->waiting[index + 1],
            (b->n_waiting - index) * sizeof(*b->waiting));
}

static int64_t next_expiry(const struct amp_inbox_buffer *b)
{
    int64_t due = 0;
    for (uint32_t i = 0; i < b->n_waiting; i++)
        if (b->waiting[i].expires_ms > 0 && (due == 0 || b->waiting[i].expires_ms < due))
            due = b->waiting[i].expires_ms;
    return due;
}

struct buffer_work {
    amp_inbox_buffer_fn fn;
    void *ctx;
    struct amp_span agent;
    const char *event;
};

static int buffer_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct buffer_work *w = t->step->with;
    struct amp_inbox_buffer *b = rec;
    b->agent = w->agent;
    t->change->event = w->event;
    int rc = w->fn(w->ctx, b, err);
    b->state = b->busy_ms > 0;
    b->due_ms = next_expiry(b);
    return rc;
}

static const char *const buffer_states[] = {"IDLE", "BUSY", NULL};
const struct amp_subject amp_inbox_buffers = {
    .kind = AMP_INBOX_BUFFERS,
    .table = &buffer_rec,
    .states = buffer_states,
    .state = AMP_SUBJECT_AT(struct amp_inbox_buffer, state),
    .due = AMP_SUBJECT_AT(struct amp_inbox_buffer, due_ms),
    .carry = buffer_carry};

int amp_inbox_buffer_update(struct amp_store *s, struct amp_span agent, const char *event,
                            amp_inbox_buffer_fn fn, void *ctx, struct amp_error *err)
{
    const struct buffer_work w = {fn, ctx, agent, event};
    const struct amp_subject_step step = {.key = AMP_KEY(AMP_INBOX_BUFFERS, agent), .with = &w};
    return amp_subject_step(&amp_inbox_buffers, s, &step, NULL, NULL, NULL, err);
}

int amp_inbox_buffer_get(struct amp_store *s, struct amp_span agent, struct amp_buf *mem,
                         struct amp_inbox_buffer *out, bool *found, struct amp_error *err)
{
    int rc =
        amp_subject_find(&amp_inbox_buffers, s, AMP_KEY(AMP_INBOX_BUFFERS, agent), mem, out, err);
    if (found)
        *found = rc > 0;
    return rc < 0 ? -1 : 0;
}

struct leaving {
    struct amp_span id;
    bool open;
};

static int leave_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    const struct leaving *l = ctx;
    (void)err;
    uint32_t i = amp_inbox_buffer_find(b, l->id);
    if (i == b->n_waiting)
        return 1;
    if (b->waiting[i].round > b->round)
        b->round = b->waiting[i].round;
    buffer_drop(b, i);
    if (l->open && b->credits > 0)
        b->open[b->n_open++] = l->id;
    return 0;
}

int amp_inbox_buffer_leave(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           bool open, struct amp_error *err)
{
    struct leaving l = {.id = id, .open = open};
    return amp_inbox_buffer_update(s, agent, open ? "read" : "drop", leave_fn, &l, err);
}

/* ---- the delivery ---- */

#define DELIVERY(as, key, member) AMP_REC(as, struct amp_inbox_delivery, key, member)
static const struct amp_rec_field delivery_fields[] = {
    DELIVERY(TEXT, "msg_id", msg_id),
    DELIVERY(INT, "at_ms", at_ms),
    DELIVERY(INT, "expires_ms", expires_ms),
    DELIVERY(INT, "lane", lane),
    DELIVERY(INT, "attempt", attempt),
    DELIVERY(INT, "offered_ms", offered_ms),
    DELIVERY(INT, "read_ms", read_ms),
    DELIVERY(INT, "read_frame", read_frame),
    DELIVERY(INT, "requeue", requeue),
    DELIVERY(INT, "early", early),
    DELIVERY(TEXT, "code", code),
    DELIVERY(LINE, "msg", line),
};
AMP_REC_TABLE(delivery_rec, "a delivery's record", struct amp_inbox_delivery, delivery_fields);

static int delivery_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                         struct amp_inbox_delivery *out, struct amp_error *err)
{
    int state = amp_fsm_state(&amp_inbox_fsm, rec->state);
    if (state < 0)
        return amp_fail(err, AMP_INTERNAL, bad_record, "unknown inbox state \"%.*s\"",
                        (int)rec->state.n, rec->state.p);
    if (amp_rec_parse(&delivery_rec, rec->json, mem, out, err) < 0)
        return -1;
    out->state = (uint8_t)state;
    return 0;
}

/* The state of a delivery without a record: it ended long ago, or there was none. */
static uint8_t state_without(const struct amp_store_rec *rec)
{
    return rec->forgotten ? AMP_INBOX_READ : AMP_INBOX_ABSENT;
}

int amp_inbox_delivery_get(struct amp_store *s, struct amp_key key, struct amp_buf *mem,
                           struct amp_inbox_delivery *out, struct amp_error *err)
{
    struct amp_store_rec rec;
    *out = (struct amp_inbox_delivery){.state = AMP_INBOX_ABSENT};
    if (amp_store_get(s, key, &rec, err) < 0)
        return -1;
    out->state = state_without(&rec);
    return rec.found ? delivery_read(&rec, mem, out, err) : 0;
}

bool amp_inbox_has_ended(const struct amp_inbox_delivery *d)
{
    return d->state == AMP_INBOX_READ || d->state == AMP_INBOX_FAILED;
}

int amp_inbox_delivery_find(struct amp_store *s, struct amp_span agent, struct amp_span id,
                            struct amp_inbox_key *k, struct amp_buf *mem,
                            struct amp_inbox_delivery *out, struct amp_error *err)
{
    return amp_inbox_key_of(agent, id, k, err) < 0
               ? -1
               : amp_inbox_delivery_get(s, k->key, mem, out, err);
}

struct step_work {
    struct amp_inbox_step *step;
    struct amp_buf *mem, *out;
};

static int step_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct step_work *w = ctx;
    struct amp_inbox_step *st = w->step;
    struct amp_inbox_delivery d = {.state = AMP_INBOX_ABSENT};
    struct amp_fsm_result r;
    if (now->found && delivery_read(now, w->mem, &d, err) < 0)
        return -1;
    if (!now->found && st->fresh)
        d = *st->fresh;
    d.state = now->found ? d.state : state_without(now);
    if (amp_fsm_step(&amp_inbox_fsm, d.state, st->event, 0, &r, err) < 0)
        return -1;
    st->effects = r.effects;
    st->from = d.state;
    st->to = r.to;
    st->attempt = d.attempt;
    if (r.to == d.state && st->event != AMP_INBOX_EV_OFFER && !st->emit)
        return 1;
    if (st->event == AMP_INBOX_EV_OFFER) {
        d.attempt++;
        d.offered_ms = st->now_ms;
    } else if (r.to == AMP_INBOX_READ && d.state != AMP_INBOX_READ) {
        d.read_ms = st->now_ms;
        d.read_frame = (int64_t)now->next;
    } else if (st->event == AMP_INBOX_EV_REQUEUE) {
        d.attempt = d.offered_ms = d.read_ms = d.read_frame = 0;
        d.at_ms = st->now_ms;
        d.requeue = st->requeue;
        d.code = (struct amp_span){"", 0};
    } else if (r.to == AMP_INBOX_FAILED && d.state != AMP_INBOX_FAILED) {
        d.code = amp_span_str(st->code ? st->code : r.code);
    }
    if (st->event == AMP_INBOX_EV_PUT || st->event == AMP_INBOX_EV_REQUEUE)
        d.early = 0;
    st->attempt = d.attempt;
    amp_buf_reset(w->out);
    if (amp_rec_write(&delivery_rec, &d, w->out, err) < 0)
        return -1;
    change->event = amp_inbox_fsm.events[st->event].name;
    change->to = amp_inbox_fsm.states[r.to].name;
    change->json = amp_buf_span(w->out);
    change->actor = st->actor;
    change->emits = st->emit;
    change->n_emits = st->emit != NULL;
    st->committed = true;
    return 0;
}

int amp_inbox_step(struct amp_store *s, struct amp_key key, struct amp_inbox_step *step,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX}, out = {.max = AMP_RECORD_MAX};
    struct step_work w = {.step = step, .mem = &mem, .out = &out};
    step->committed = false;
    return amp_store_update(s, key, NULL, step_fn, &w, NULL, err);
}

int amp_inbox_carry(struct amp_store *s, struct amp_span agent, const struct amp_inbox_key *k,
                    const struct amp_inbox_step *step, struct amp_error *err)
{
    return step->effects & AMP_INBOX_DO_DROP
               ? amp_inbox_buffer_leave(s, agent, k->id, step->to == AMP_INBOX_READ, err)
               : 0;
}
