/*
 * Putting a message into an inbox. The commits have the order that the header describes. After a
 * crash the log has the first ones, and putting the message again, from the router's outbox, makes
 * the rest.
 */
#include "message/delivery/inbox/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/settle/answer.h"

#define ORDER_MASK ((1ull << 53) - 1) /* the integers that every reader of JSON keeps */

int amp_inbox_agent_check(struct amp_span agent, struct amp_error *err)
{
    bool fine = agent.n > 0 && agent.n <= AMP_INBOX_AGENT_MAX;
    for (size_t i = 0; fine && i < agent.n; i++)
        fine = (unsigned char)agent.p[i] >= 0x20 && agent.p[i] != 0x7f;
    if (fine)
        return 0;
    return amp_fail(err, AMP_NO, bad_agent,
                    "an agent's name has 1 to %d bytes and no control characters",
                    AMP_INBOX_AGENT_MAX);
}

int amp_inbox_key_of(struct amp_span agent, struct amp_span id, struct amp_inbox_key *out,
                     struct amp_error *err)
{
    if (amp_inbox_agent_check(agent, err) < 0)
        return -1;
    if (id.n == 0)
        return amp_fail(err, AMP_NO, unknown_ref, "an inbox has no message of that id");
    out->key = AMP_KEY_NAMED(AMP_INBOX_KIND, agent, id);
    out->id = id;
    return 0;
}

/* ---- the place ---- */

struct placing {
    struct amp_inbox_place place;
    int64_t bound, urgent, credits, of_sender;
    bool fair;
};

/* The turn of a message: after the earlier ones of its sender and of its conversation, else with
 * the messages that are next. */
static int64_t round_of(const struct amp_inbox_buffer *b, const struct placing *p)
{
    int64_t round = b->round;
    for (uint32_t i = 0; i < b->n_waiting; i++) {
        const struct amp_inbox_place *w = &b->waiting[i];
        bool same = w->by == p->place.by && w->lane == p->place.lane;
        int64_t least = !p->fair                                            ? w->round
                        : same                                              ? w->round + 1
                        : p->place.order != 0 && w->order == p->place.order ? w->round
                                                                            : 0;
        round = least > round ? least : round;
    }
    return round;
}

static int place_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    struct placing *p = ctx;
    int64_t of_sender = 0;
    if (amp_inbox_buffer_find(b, p->place.id) < b->n_waiting)
        return 1;
    b->bound = p->bound;
    b->credits = p->credits;
    for (uint32_t i = 0; i < b->n_waiting; i++)
        of_sender += p->place.by != 0 && b->waiting[i].by == p->place.by;
    if (p->of_sender > 0 && of_sender >= p->of_sender)
        return amp_fail(err, AMP_NO, producer_full,
                        "%lld messages of its sender wait in the inbox of %.*s (the limit)",
                        (long long)of_sender, (int)b->agent.n, b->agent.p);
    p->place.round = round_of(b, p);
    bool urgent = p->place.lane == AMP_LANE_PRIVILEGED;
    int64_t most = p->bound + (urgent ? p->urgent : 0);
    if (b->n_waiting >= most)
        return amp_fail(err, AMP_NO, buffer_full,
                        "the inbox of %.*s is full: %u %s, the limit is %lld%s", (int)b->agent.n,
                        b->agent.p, b->n_waiting,
                        b->n_waiting == 1 ? "message waits" : "messages wait", (long long)most,
                        urgent ? " for urgent ones" : "");
    if (p->credits > 0 && b->n_waiting + b->n_open >= p->credits)
        return amp_fail(
            err, AMP_NO, buffer_full,
            "%.*s has no credit left: %u waiting and %u unfinished messages (limit %lld)",
            (int)b->agent.n, b->agent.p, b->n_waiting, b->n_open, (long long)p->credits);
    b->waiting[b->n_waiting++] = p->place;
    return 0;
}

/* The ledger has the ends of messages; credits are computed from it when they are needed. */
struct ended {
    bool *gone; /* whether the message in `ids` has ended */
    struct amp_span *ids;
    uint32_t n;
};

static int ended_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    const struct ended *e = ctx;
    uint32_t kept = 0;
    (void)err;
    for (uint32_t i = 0; i < b->n_open; i++) {
        bool gone = false;
        for (uint32_t k = 0; k < e->n && !gone; k++)
            gone = e->gone[k] && amp_span_eq(e->ids[k], b->open[i]);
        if (!gone)
            b->open[kept++] = b->open[i];
    }
    if (kept == b->n_open)
        return 1;
    b->n_open = kept;
    return 0;
}

static int has_ended(struct amp_store *s, struct amp_span id, bool *ended, struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_message_find(s, id, &mem, &rec, err) < 0)
        return -1;
    *ended = !rec.found || amp_delivery_fsm.terminal >> rec.state & 1;
    return 0;
}

static int credits_return(struct amp_store *s, struct amp_span agent, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_inbox_buffer b;
    if (amp_inbox_buffer_get(s, agent, &mem, &b, NULL, err) < 0)
        return -1;
    AMP_FREE bool *gone = calloc(b.n_open + 1, sizeof(bool));
    if (!gone)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < b.n_open; i++)
        if (has_ended(s, b.open[i], &gone[i], err) < 0)
            return -1;
    struct ended e = {.ids = b.open, .n = b.n_open, .gone = gone};
    return e.n > 0 ? amp_inbox_buffer_update(s, agent, "credit", ended_fn, &e, err) : 0;
}

static int place_take(struct amp_store *s, struct amp_span agent, struct placing *p,
                      struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_inbox_buffer_update(s, agent, "put", place_fn, p, &e) == 0)
        return 0;
    if (p->credits > 0 && amp_code_is(e.code, buffer_full)) {
        if (credits_return(s, agent, err) < 0)
            return -1;
        return amp_inbox_buffer_update(s, agent, "put", place_fn, p, err);
    }
    if (err)
        *err = e;
    return -1;
}

/* ---- requeued by a person ---- */

/* The revision of the dead letter that a person requeued to this recipient; 0: there is none, or it
 * is older than the delivery, which ended. */
static int letter_requeued(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           const struct amp_inbox_delivery *d, int64_t *rev, struct amp_error *err)
{
    bool read = d->state == AMP_INBOX_READ; /* otherwise the agent never had the message */
    struct amp_span route;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    uint64_t at;
    *rev = 0;
    int rc = amp_dead_find_requeued(s, id, read ? d->read_ms : 0,
                                    read ? (uint64_t)d->read_frame : 0, &mem, &route, &at, err);
    if (rc <= 0)
        return rc;
    /* A letter of another inbox is requeued to that inbox. */
    bool other = route.n > 6 && amp_span_starts(route, "inbox:") &&
                 !amp_span_eq((struct amp_span){route.p + 6, route.n - 6}, agent);
    *rev = other ? 0 : (int64_t)at;
    return 0;
}

/* ---- putting ---- */

struct putting {
    struct amp_span agent;
    const struct amp_view *v;
    const struct amp_view *known; /* the message with its id in the ledger */
    const struct amp_inbox_options *opt;
    int64_t now_ms;
    const struct amp_inbox_answer *answer;
    struct amp_inbox_key key;
    struct amp_buf *mem, *said; /* of had; the answer */
    struct amp_inbox_delivery had;
};

/* Selects the event, and whether it needs a place in the buffer. */
static int event_decide(struct amp_store *s, struct putting *p, struct amp_inbox_step *step,
                        bool *place, struct amp_error *err)
{
    if (amp_inbox_delivery_get(s, p->key.key, p->mem, &p->had, err) < 0)
        return -1;
    struct amp_fsm_result r;
    int64_t rev = 0;
    step->event = AMP_INBOX_EV_PUT;
    if (amp_inbox_has_ended(&p->had) && p->v->id.n > 0 &&
        letter_requeued(s, p->agent, p->v->id, &p->had, &rev, err) < 0)
        return -1;
    if (rev > 0 && rev != p->had.requeue) {
        step->event = AMP_INBOX_EV_REQUEUE;
        step->requeue = rev;
    }
    if (amp_fsm_step(&amp_inbox_fsm, p->had.state, step->event, 0, &r, err) < 0)
        return -1;
    *place = (r.effects & AMP_INBOX_DO_PLACE) != 0;
    return 0;
}

static int delivery_put(struct amp_store *s, struct putting *p, struct amp_store_entry_id *entry,
                        enum amp_inbox_put *how, struct amp_error *err)
{
    const struct amp_view *v = p->v;
    struct amp_span known = p->known->id;
    struct amp_store_emit emit = {.id = p->key.id, .role = AMP_ROLE_answer};
    struct amp_span line = p->opt->line.n > 0 ? p->opt->line : v->line;
    /* The ledger may have the message of a signed line without its signature: it records what a
     * tool composed, and tools sign what they emit. It may have a call of a tool without the id
     * that the router assigned. */
    bool of_ledger = v->id.n > 0 && v->sig.key.n == 0 && v->kind != AMP_KIND_TOOL_CALL &&
                     amp_span_eq(line, v->line);
    struct amp_inbox_delivery fresh = {.msg_id = known,
                                       .at_ms = p->now_ms,
                                       .expires_ms = v->expires_ms,
                                       .lane = p->opt->lane,
                                       .line = of_ledger ? (struct amp_span){"", 0} : line};
    struct placing place = {
        .place = {.id = p->key.id,
                  .at_ms = p->now_ms,
                  .expires_ms = v->expires_ms,
                  .lane = p->opt->lane,
                  .order = (int64_t)(p->opt->order & ORDER_MASK),
                  .size = (int64_t)line.n,
                  .own = !of_ledger},
        .bound = p->opt->bound > 0 ? p->opt->bound : AMP_INBOX_BOUND,
        .urgent = p->opt->urgent,
        .credits = p->opt->credits,
        .of_sender = p->opt->producer_most,
        .fair = p->opt->fair,
    };
    if (place.fair || place.of_sender > 0)
        place.place.by = (int64_t)(amp_lane_key_of(v->from) & ORDER_MASK);
    struct amp_inbox_step step = {.now_ms = p->now_ms, .fresh = &fresh, .actor = p->opt->actor};
    bool needs_place;
    if (known.n > 0 && amp_message_record(s, p->known, p->now_ms, NULL, err) < 0)
        return -1;
    if (event_decide(s, p, &step, &needs_place, err) < 0 ||
        (needs_place && place_take(s, p->agent, &place, err) < 0))
        return -1;
    /* After a crash behind the place the inbox may have handed it over, but nobody was answered. */
    bool unanswered = needs_place || (p->had.early && step.event == AMP_INBOX_EV_PUT);
    if (p->answer && unanswered && p->answer->compose(p->answer->ctx, p->said, err) < 0)
        return -1;
    emit.line = amp_buf_span(p->said);
    step.emit = emit.line.n > 0 ? &emit : NULL;
    if (amp_inbox_step(s, p->key.key, &step, err) < 0)
        return -1;
    *how = step.effects & AMP_INBOX_DO_PLACE ? AMP_INBOX_PLACED : AMP_INBOX_KNOWN;
    if (entry && step.committed && step.emit)
        entry->n = amp_store_last_frame(s);
    if (known.n == 0 || step.to == AMP_INBOX_READ || step.to == AMP_INBOX_FAILED)
        return 0;
    char by[AMP_INBOX_AGENT_MAX + 1];
    struct amp_error e = {0};
    amp_span_copy(p->agent, by, sizeof(by));
    struct amp_message_answer a = {.stage = AMP_STAGE_RECEIVED, .by = by, .waits = true};
    if (amp_settle_answer(s, known, &a, p->now_ms, NULL, &e) == 0)
        return 0;
    return amp_fail_unless_no(err, &e); /* NO: the ledger has a later stage */
}

/* Work without an id is in the ledger under an id that its protocol makes. 1: *v has it; 0: there
 * is none, or another message has it. */
static int message_name(struct amp_store *s, struct amp_view *v, char name[AMP_MSG_ID_MAX],
                        struct amp_error *err)
{
    struct amp_error e = {0};
    if (v->id.n > 0 || !amp_message_name(v, name))
        return 0;
    if (amp_message_check(s, v, &e) == 0)
        return 1;
    return amp_fail_unless_no(err, &e);
}

int amp_inbox_put(struct amp_store *s, struct amp_span agent, const struct amp_view *v,
                  const struct amp_inbox_options *opt, int64_t now_ms,
                  const struct amp_inbox_answer *answer, struct amp_store_entry_id *entry,
                  enum amp_inbox_put *how, struct amp_error *err)
{
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *v;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX}, said = {.max = AMP_RECORD_MAX};
    struct putting p = {.agent = agent,
                        .v = v,
                        .opt = opt,
                        .now_ms = now_ms,
                        .answer = answer,
                        .mem = &mem,
                        .said = &said};
    struct amp_store_entry_id made = {0};
    enum amp_inbox_put did = AMP_INBOX_KNOWN;
    int known = message_name(s, &named, name, err);
    if (known < 0)
        return -1;
    p.known = known ? &named : v;
    struct amp_span id = amp_key_message_name(v->id, v->message, p.key.digest);
    if (amp_inbox_key_of(agent, id, &p.key, err) < 0 || amp_store_begin(s, err) < 0)
        return -1;
    int rc = delivery_put(s, &p, &made, &did, err);
    amp_store_end(s);
    if (rc < 0)
        return -1;
    if (entry)
        *entry = made;
    if (how)
        *how = did;
    return 0;
}
