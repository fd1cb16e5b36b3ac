/* Rows from frames. find.c selects the frames, because most frames of a large log do not belong to
 * the requested conversation. */
#include "message/delivery/history/history.h"

#include <stdlib.h>
#include <string.h>

#include "message/delivery/history/set.h"
#include "message/delivery/record/delivery.h"
#include "message/delivery/record/record.h"

struct amp_history {
    struct amp_history_filter f;
    char *copies[4]; /* of the filter's texts */
    struct amp_buf mem, state;
    struct amp_tape tape, inner;
    struct amp_reader *reader;
    struct amp_history_set ids;     /* of the conversation's messages */
    struct amp_history_places outs; /* of its lines in outboxes */
    /* Of the current frame. */
    amp_history_fn fn;
    void *ctx;
    struct amp_error *err;
};

const char *amp_history_word(enum amp_history_what w)
{
    static const char *const words[] = {"step", "emit", "left"};
    return words[w];
}

/* ---- the filter ---- */

static bool is_known(const struct amp_history *h, struct amp_span id)
{
    return id.n > 0 && amp_history_set_has(&h->ids, id);
}

static bool of_conversation(const struct amp_history *h, const struct amp_history_row *r)
{
    struct amp_span c = h->f.correlation;
    return amp_span_eq(r->correlation, c) || amp_span_eq(r->task, c) || amp_span_eq(r->id, c) ||
           is_known(h, r->id) || is_known(h, r->original) || is_known(h, r->correlation);
}

static bool of_session(const struct amp_history *h, const struct amp_history_row *r)
{
    return amp_span_eq(r->session, h->f.session) || is_known(h, r->id) || is_known(h, r->original);
}

static bool of_agent(const struct amp_history_row *r, struct amp_span a)
{
    return amp_span_eq(r->sender, a) || amp_span_eq(r->recipient, a) || amp_span_eq(r->by, a) ||
           amp_span_eq(r->actor, a) || amp_span_eq(r->agent, a);
}

static bool is_wanted(const struct amp_history *h, const struct amp_history_row *r)
{
    return (h->f.correlation.n == 0 || of_conversation(h, r)) &&
           (h->f.session.n == 0 || of_session(h, r)) &&
           (h->f.id.n == 0 || amp_span_eq(r->id, h->f.id) || amp_span_eq(r->original, h->f.id)) &&
           (h->f.agent.n == 0 || of_agent(r, h->f.agent));
}

/* Adds the message of a row to the conversation, also if the row is too old to be returned. */
static int row_remember(struct amp_history *h, const struct amp_history_row *r)
{
    bool adds = r->id.n > 0 && ((h->f.correlation.n > 0 && of_conversation(h, r)) ||
                                (h->f.session.n > 0 && of_session(h, r)));
    int rc = adds ? amp_history_set_add(&h->ids, r->id, h->err) : 0;
    return rc == 1 && h->f.learn ? h->f.learn(h->f.learn_ctx, r->id, 0, h->err) : rc < 0 ? -1 : 0;
}

static int row_give(struct amp_history *h, const struct amp_history_row *r)
{
    int64_t at;
    if (row_remember(h, r) < 0)
        return -1;
    if (!is_wanted(h, r))
        return 0;
    if (h->f.since_ms > 0 && (!amp_time_parse(r->at, &at) || at < h->f.since_ms))
        return 0;
    return h->fn(h->ctx, r, h->err);
}

/* ---- members ---- */

/* A member of this type of an object; AMP_TOK_NONE: there is none. */
static uint32_t member_find(const struct amp_tape *t, uint32_t object, const char *key, int type)
{
    uint32_t tok = object == AMP_TOK_NONE || t->tok[object].type != AMP_JSON_OBJECT
                       ? AMP_TOK_NONE
                       : amp_tape_get(t, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && t->tok[tok].type == type ? tok : AMP_TOK_NONE;
}

static struct amp_span member_text(struct amp_history *h, const struct amp_tape *t, uint32_t object,
                                   const char *key)
{
    uint32_t tok = member_find(t, object, key, AMP_JSON_STRING);
    struct amp_span out = {"", 0};
    /* blob_read made room for all texts of the frame, so none moves. */
    if (tok == AMP_TOK_NONE || amp_tok_text(t, tok, &h->mem, &out, NULL) < 0)
        return (struct amp_span){"", 0};
    return out;
}

static int64_t member_int(const struct amp_tape *t, uint32_t object, const char *key)
{
    int64_t n = 0;
    uint32_t tok = member_find(t, object, key, AMP_JSON_NUMBER);
    return tok != AMP_TOK_NONE && amp_tok_int(t, tok, &n) ? n : 0;
}

/* An inbox's record is named by the agent and the message, others of several parts by the text of
 * their key. */
static int key_read(struct amp_history *h, struct amp_span text, struct amp_history_row *r)
{
    struct amp_key key;
    AMP_BUF struct amp_buf parts = {.max = SIZE_MAX / 2};
    if (amp_key_split(text, &parts, &key, h->err) < 0)
        return -1;
    size_t at = h->mem.len, kind = strlen(key.kind);
    bool delivery = key.n == 2 && strcmp(key.kind, "inbox") == 0;
    if (amp_buf_add(&h->mem, parts.data, parts.len, h->err) < 0)
        return -1;
    const char *mem = h->mem.data + at;
    r->kind = (struct amp_span){mem, kind};
    struct amp_span id = key.part[delivery];
    r->id = (struct amp_span){mem + (id.p - parts.data), id.n};
    if (delivery)
        r->agent = (struct amp_span){mem + (key.part[0].p - parts.data), key.part[0].n};
    else if (key.n > 1)
        r->id = (struct amp_span){text.p + kind + 1, text.n - kind - 1};
    return 0;
}

/* The acknowledgement of this event: the last one. */
static void ack_read(struct amp_history *h, const struct amp_tape *t, uint32_t state,
                     struct amp_history_row *r)
{
    uint32_t acks = member_find(t, state, "acks", AMP_JSON_ARRAY), last = AMP_TOK_NONE;
    if (acks == AMP_TOK_NONE ||
        !(amp_span_starts(r->event, "ack_") || amp_span_starts(r->event, "nack_")))
        return;
    for (uint32_t i = acks + 1; i < t->tok[acks].next; i = t->tok[i].next)
        last = i;
    r->stage = member_text(h, t, last, "stage");
    r->by = member_text(h, t, last, "by");
    r->code = member_text(h, t, last, "code");
    r->late = last != AMP_TOK_NONE && amp_tape_get(t, last, AMP_SPAN("late")) != AMP_TOK_NONE;
    if (r->late) {
        r->acked_ms = member_int(t, last, "at_ms");
        r->timed_out_ms = member_int(t, state, "timed_out_ms");
    }
}

static void first_of(struct amp_span *to, struct amp_span or)
{
    if (to->n == 0)
        *to = or ;
}

static void finding_ignore(void *ctx, const struct amp_finding *f)
{
}

/* The session of the message that a record has. */
static struct amp_span session_read(struct amp_history *h, const struct amp_tape *t, uint32_t state)
{
    static const struct amp_check_options quick = {.most = 1};
    struct amp_view v = {0};
    uint32_t msg = member_find(t, state, "msg", AMP_JSON_OBJECT);
    if (msg == AMP_TOK_NONE || amp_reader_line(h->reader, amp_tok_source(t, msg), &quick, &v,
                                               finding_ignore, NULL, h->err) < 0)
        return (struct amp_span){"", 0};
    return v.session;
}

static void state_read(struct amp_history *h, const struct amp_tape *t, uint32_t state,
                       struct amp_history_row *r)
{
    r->correlation = member_text(h, t, state, "correlation");
    r->task = member_text(h, t, state, "task");
    if (r->task.n == 0)
        r->task = member_text(h, t, state, "task_id");
    r->protocol = member_text(h, t, state, "protocol");
    r->type = member_text(h, t, state, "type");
    r->sender = member_text(h, t, state, "from");
    r->recipient = member_text(h, t, state, "to");
    r->code = member_text(h, t, state, "code");
    r->why = member_text(h, t, state, "why");
    r->original = member_text(h, t, state, "original");
    r->attempt = member_int(t, state, "attempt");
    if (r->attempt == 0)
        r->attempt = member_int(t, state, "attempts");
    if (h->f.session.n > 0)
        r->session = session_read(h, t, state);
    ack_read(h, t, state, r);
    /* An operation's row has the last decision, about the message that asked. */
    uint32_t last = member_find(t, state, "last", AMP_JSON_OBJECT);
    if (last != AMP_TOK_NONE && amp_span_is(r->kind, "token")) {
        r->id = member_text(h, t, last, "id");
        r->correlation = member_text(h, t, last, "correlation");
        r->decision = member_text(h, t, last, "decision");
        r->sender = member_text(h, t, state, "producer");
    }
    if (amp_span_is(r->kind, "task"))
        r->task = r->id;
    if (amp_span_is(r->kind, "escalation")) {
        r->decision = member_text(h, t, state, "decision");
        r->by = member_text(h, t, state, "operator");
        struct amp_span note = member_text(h, t, state, "note");
        if (note.n > 0)
            r->why = note;
    }
    if (amp_span_is(r->kind, "spent")) {
        r->agent = member_text(h, t, state, "agent");
        r->tokens = member_int(t, state, "tokens_in") + member_int(t, state, "tokens_out");
        r->cost_micros = member_int(t, state, "micros");
    }
    uint32_t msg = member_find(t, state, "msg", AMP_JSON_OBJECT);
    if (h->f.messages && msg != AMP_TOK_NONE && r->from.n == 0)
        r->message = amp_tok_source(t, msg);
    if (amp_span_is(r->kind, "agent")) {
        uint32_t work = member_find(t, state, "work", AMP_JSON_OBJECT);
        r->agent = r->id;
        r->task = member_text(h, t, work, "task");
        r->code = member_text(h, t, work, "code");
    }
    /* Without an actor in the frame, the acknowledging agent or the sender. */
    first_of(&r->actor, r->by.n > 0 ? r->by : r->sender);
}

/* Gives a row for each stage that the acknowledgement of this frame implies, before its own row. */
static int implied_give(struct amp_history *h, const struct amp_tape *t, uint32_t state,
                        struct amp_history_row *r)
{
    static const uint8_t events[] = {AMP_DELIVERY_EV_ACK_RECEIVED, AMP_DELIVERY_EV_ACK_READ};
    uint32_t acks = member_find(t, state, "acks", AMP_JSON_ARRAY), run[2];
    uint32_t n = 0;
    for (uint32_t i = acks + 1; i < t->tok[acks].next; i = t->tok[i].next) {
        bool implied = amp_tape_get(t, i, AMP_SPAN("implied")) != AMP_TOK_NONE;
        bool last = t->tok[i].next >= t->tok[acks].next;
        if (implied && n < 2)
            run[n++] = i;
        else if (!last)
            n = 0; /* of an earlier frame */
    }
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct amp_history_row step = *r;
        step.stage = step.to = member_text(h, t, run[i], "stage");
        step.event =
            amp_span_str(amp_delivery_fsm.events[events[amp_span_is(step.stage, "READ")]].name);
        step.code = (struct amp_span){"", 0};
        step.implied = true;
        rc = row_give(h, &step);
        r->from = step.to;
    }
    return rc;
}

/* ---- lines ---- */

/* Gives the row of a line that was emitted or taken. */
static int line_give(struct amp_history *h, const struct amp_history_row *frame, struct amp_span id,
                     struct amp_span line)
{
    static const struct amp_check_options quick = {.texts = true, .most = 1};
    struct amp_history_row r = {.n = frame->n,
                                .what = AMP_HISTORY_EMIT,
                                .at = frame->at,
                                .kind = frame->kind,
                                .id = id,
                                .actor = frame->actor,
                                .event = AMP_SPAN("emit")};
    struct amp_view v = {0};
    if (amp_reader_line(h->reader, line, &quick, &v, finding_ignore, NULL, h->err) < 0)
        return -1;
    if (v.id.n > 0)
        r.id = v.id;
    if (amp_span_starts(id, "unnamed") && v.id.n == 0)
        r.id = (struct amp_span){"", 0};
    r.correlation = v.correlation;
    r.session = v.session;
    r.task = v.task;
    r.protocol = amp_span_str(amp_protocol_name(v.protocol));
    r.type = v.type;
    r.sender = v.from;
    r.recipient = v.n_to > 0 ? v.to[0] : (struct amp_span){"", 0};
    if (v.kind == AMP_KIND_ACK || v.kind == AMP_KIND_NACK) {
        r.stage = amp_span_str(amp_ack_stage_name(v.body.ack.stage));
        r.code = v.body.ack.code;
        r.original = v.body.ack.ref;
        /* An answer without a recipient is for the sender of the message. */
        if (r.recipient.n == 0)
            r.recipient = frame->sender;
    }
    if (r.protocol.n == 0)
        r.correlation = frame->correlation;
    return row_give(h, &r);
}

/* A line of the conversation is in an outbox: the frame that closes it belongs to it, too. */
static int place_learn(struct amp_history *h, uint64_t n, int64_t i, struct amp_span id)
{
    if (amp_history_places_add(&h->outs, n, i, id, h->err) < 0)
        return -1;
    return h->f.learn ? h->f.learn(h->f.learn_ctx, (struct amp_span){"", 0}, n, h->err) : 0;
}

static int lines_give(struct amp_history *h, const struct amp_history_row *frame)
{
    const struct amp_tape *t = &h->tape;
    uint32_t out = member_find(t, 0, "out", AMP_JSON_ARRAY);
    int64_t i = 0;
    if (out == AMP_TOK_NONE)
        return 0;
    for (uint32_t k = out + 1; k < t->tok[out].next; k = t->tok[k].next, i++) {
        struct amp_span id = member_text(h, t, k, "id"), line = member_text(h, t, k, "line");
        if (line.n == 0 || amp_span_is(member_text(h, t, k, "role"), "recipient"))
            continue; /* a blob, or a recipient */
        int rc = line_give(h, frame, id, line);
        if (rc == 0 && is_known(h, id))
            rc = place_learn(h, frame->n, i, id);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Gives a row for each closed entry of the conversation; without one, one row. */
static int close_give(struct amp_history *h, struct amp_history_row *r)
{
    const struct amp_tape *t = &h->tape;
    uint32_t list = member_find(t, 0, "close", AMP_JSON_ARRAY);
    r->what = AMP_HISTORY_LEFT;
    r->kind = AMP_SPAN("outbox");
    r->event = AMP_SPAN("close");
    r->id = member_text(h, t, 0, "acked");
    if (r->id.n > 0 || h->ids.n == 0)
        return row_give(h, r);
    for (uint32_t k = list == AMP_TOK_NONE ? 0 : list + 1;
         list != AMP_TOK_NONE && k < t->tok[list].next; k = t->tok[k].next) {
        int64_t n = 0, i = 0;
        if (t->tok[k].type != AMP_JSON_ARRAY || t->tok[k].count != 2 ||
            !amp_tok_int(t, k + 1, &n) || !amp_tok_int(t, k + 2, &i) ||
            !amp_history_places_get(&h->outs, (uint64_t)n, i, &r->id))
            continue;
        int rc = row_give(h, r);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- frames ---- */

/* Reads the record if it is in a blob, and makes room for all texts of the frame. */
static int blob_read(struct amp_history *h, struct amp_span frame)
{
    struct amp_span blob = member_text(h, &h->tape, 0, "state_blob");
    amp_buf_reset(&h->state);
    if (blob.n > 0 && h->f.blob &&
        (h->f.blob(h->f.blob_ctx, blob, &h->state, h->err) < 0 ||
         amp_rec_scan(&h->inner, amp_buf_span(&h->state), "a record", h->err) < 0))
        return -1;
    amp_buf_reset(&h->mem);
    return amp_buf_reserve(&h->mem, 2 * frame.n + h->state.len + AMP_KEY_MAX, h->err);
}

static int frame_read(struct amp_history *h, uint64_t n, struct amp_span frame)
{
    struct amp_history_row r = {.n = n};
    if (amp_rec_scan(&h->tape, frame, "a frame of the log", h->err) < 0 || blob_read(h, frame) < 0)
        return -1;
    r.at = member_text(h, &h->tape, 0, "at");
    r.actor = member_text(h, &h->tape, 0, "actor");
    struct amp_span log = member_text(h, &h->tape, 0, "log");
    if (amp_span_is(log, "close"))
        return close_give(h, &r);
    if (log.n > 0) {
        if (amp_span_is(log, "stand"))
            return 0; /* a copy of an earlier record */
        r.kind = AMP_SPAN("log");
        r.event = log;
        return row_give(h, &r);
    }
    if (r.actor.n == 0)
        r.actor = member_text(h, &h->tape, member_find(&h->tape, 0, "in", AMP_JSON_OBJECT), "c");
    r.event = member_text(h, &h->tape, 0, "event");
    r.from = member_text(h, &h->tape, 0, "from");
    r.to = member_text(h, &h->tape, 0, "to");
    struct amp_span full = member_text(h, &h->tape, 0, "full");
    if (key_read(h, full.n ? full : member_text(h, &h->tape, 0, "key"), &r) < 0)
        return -1;
    const struct amp_tape *t = h->state.len > 0 ? &h->inner : &h->tape;
    uint32_t state = h->state.len > 0 ? 0 : member_find(t, 0, "state", AMP_JSON_OBJECT);
    state_read(h, t, state, &r);
    int rc = r.stage.n > 0 ? implied_give(h, t, state, &r) : 0;
    if (rc == 0)
        rc = row_give(h, &r);
    return rc == 0 ? lines_give(h, &r) : rc;
}

int amp_history_frame(struct amp_history *h, uint64_t n, struct amp_span frame, amp_history_fn fn,
                      void *ctx, struct amp_error *err)
{
    h->fn = fn;
    h->ctx = ctx;
    h->err = err;
    return frame_read(h, n, frame);
}

static int filter_copy(struct amp_history *h, const struct amp_history_filter *f,
                       struct amp_error *err)
{
    struct amp_span in[] = {f->correlation, f->agent, f->id, f->session};
    struct amp_span *out[] = {&h->f.correlation, &h->f.agent, &h->f.id, &h->f.session};
    h->f = *f;
    for (int i = 0; i < 4; i++) {
        char *copy = h->copies[i] = amp_span_dup(in[i]);
        if (!copy)
            return amp_fail_memory(err);
        *out[i] = (struct amp_span){copy, in[i].n};
    }
    return 0;
}

struct amp_history *amp_history_new(const struct amp_history_filter *f, struct amp_error *err)
{
    struct amp_history *h = calloc(1, sizeof(*h));
    if (!h) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_buf_init(&h->mem, AMP_RECORD_MAX);
    amp_buf_init(&h->state, AMP_RECORD_MAX);
    amp_rec_tape(&h->tape);
    amp_rec_tape(&h->inner);
    h->reader = amp_reader_new(NULL, err);
    /* An id in the filter is also searched for in keys. */
    if (!h->reader || filter_copy(h, f, err) < 0 ||
        (f->correlation.n > 0 && amp_history_set_add(&h->ids, f->correlation, err) < 0) ||
        (f->id.n > 0 && amp_history_set_add(&h->ids, f->id, err) < 0)) {
        amp_history_free(h);
        return NULL;
    }
    return h;
}

void amp_history_free(struct amp_history *h)
{
    if (!h)
        return;
    for (int i = 0; i < 4; i++)
        free(h->copies[i]);
    amp_history_set_release(&h->ids);
    amp_history_places_release(&h->outs);
    amp_reader_free(h->reader);
    amp_buf_release(&h->mem);
    amp_buf_release(&h->state);
    amp_tape_release(&h->tape);
    amp_tape_release(&h->inner);
    free(h);
}
