/* The record of a handoff and its steps. */
#include "work/handoff/handoff.h"

#include <string.h>

#include "base/codes.h"

static const struct amp_rec_field try_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_handoff_try, "agent", agent),
    AMP_REC_EVER(TEXT, struct amp_handoff_try, "how", how),
    AMP_REC(TEXT, struct amp_handoff_try, "reason", reason),
    AMP_REC_EVER(TIME, struct amp_handoff_try, "at", at_ms),
};
AMP_REC_TABLE(try_rec, "a candidate of a handoff", struct amp_handoff_try, try_fields);

#define MEMBER(as, key, member) AMP_REC(as, struct amp_handoff, key, member)
#define ALWAYS(as, key, member) AMP_REC_EVER(as, struct amp_handoff, key, member)
static const struct amp_rec_field fields[] = {
    ALWAYS(TEXT, "id", id),
    ALWAYS(TEXT, "protocol", protocol),
    ALWAYS(TEXT, "from", from),
    ALWAYS(TEXT, "to", to),
    MEMBER(TEXT, "task", task),
    MEMBER(TEXT, "parent", parent),
    MEMBER(TEXT, "reason", reason),
    AMP_REC_WORDS(struct amp_handoff, "wanted", wanted, false),
    MEMBER(INT, "priority", priority),
    ALWAYS(INT, "timeout", timeout_ms),
    ALWAYS(INT, "depth", depth),
    ALWAYS(TIME, "requested", requested_ms),
    MEMBER(TIME, "due", due_ms),
    MEMBER(TIME, "deadline", deadline_ms),
    MEMBER(TIME, "accepted", accepted_ms),
    MEMBER(TIME, "ended", ended_ms),
    MEMBER(TEXT, "content_type", content_type),
    MEMBER(TEXT, "digest", digest),
    MEMBER(INT, "bytes", bytes),
    AMP_REC_MANY(struct amp_handoff, "tries", tries, &try_rec, false),
    AMP_REC_WORDS(struct amp_handoff, "offers", offers, false),
    MEMBER(TEXT, "answer", answer),
    MEMBER(TEXT, "completion", completion),
    ALWAYS(LINE, "msg", line),
};
AMP_REC_TABLE(handoff_rec, "a handoff's record", struct amp_handoff, fields);

/* ---- steps ---- */

/* The lists that a step makes longer. */
struct room {
    struct amp_handoff_try tries[AMP_HANDOFF_TRIES_MAX];
    struct amp_span offers[AMP_HANDOFF_TRIES_MAX];
};
struct with {
    const struct amp_handoff_step *step;
    struct room *room;
};

static int sender_check(const struct amp_handoff_step *p, const struct amp_handoff *h,
                        struct amp_error *err)
{
    bool is_candidate = amp_span_eq(p->by, h->to), is_origin = amp_span_eq(p->by, h->from);

    if (p->event == AMP_HANDOFF_EV_EXPIRE || is_candidate ||
        (p->event == AMP_HANDOFF_EV_COMPLETE && is_origin))
        return 0;
    return amp_fail(err, AMP_NO, bad_sender, "the handoff %.*s is offered to %.*s, not to %.*s",
                    AMP_CLIP(h->id, 100), AMP_CLIP(h->to, 100), AMP_CLIP(p->by, 100));
}

/* The protocol's wording for an answer that comes too late is "not in PENDING". */
static int state_check(const struct amp_handoff_step *p, const struct amp_handoff *h,
                       struct amp_error *err)
{
    const char *name = amp_handoff_fsm.states[h->state].name;
    bool completes = p->event == AMP_HANDOFF_EV_COMPLETE;
    uint8_t wanted = completes ? AMP_HANDOFF_ACCEPTED : AMP_HANDOFF_PENDING;

    if (h->state != wanted)
        return amp_fail_text(err, AMP_NO,
                             completes ? AMP_CODE(not_accepted) : AMP_CODE(not_pending),
                             "the handoff %.*s is %s%s%.*s, not in %s", AMP_CLIP(h->id, 100), name,
                             h->state == AMP_HANDOFF_ACCEPTED ? " by " : "",
                             h->state == AMP_HANDOFF_ACCEPTED ? (int)h->to.n : 0, h->to.p,
                             amp_handoff_fsm.states[wanted].name);
    if (!completes && p->event != AMP_HANDOFF_EV_EXPIRE && h->due_ms > 0 && p->now_ms >= h->due_ms)
        return amp_fail(err, AMP_NO, handoff_expired,
                        "the time for the answer of %.*s to the handoff %.*s has passed",
                        AMP_CLIP(h->to, 100), AMP_CLIP(h->id, 100));
    if (p->event == AMP_HANDOFF_EV_EXPIRE && p->now_ms < h->due_ms)
        return amp_fail(err, AMP_NO, changed, "it is not due");
    return 0;
}

static void offer_note(struct amp_handoff *h, struct room *room, struct amp_span offer)
{
    if (offer.n == 0 || h->n_offers >= AMP_HANDOFF_TRIES_MAX)
        return;
    if (h->n_offers > 0)
        memmove(room->offers, h->offers, h->n_offers * sizeof *room->offers);
    room->offers[h->n_offers++] = offer;
    h->offers = room->offers;
}

/* Carries out the effects of a step on the record. */
static int handoff_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct with *with = t->step->with;
    const struct amp_handoff_step *p = with->step;
    struct amp_handoff *h = rec;

    if (t->effects & AMP_HANDOFF_DO_PASS) {
        struct amp_handoff_try *tries = with->room->tries;
        if (h->n_tries >= AMP_HANDOFF_TRIES_MAX)
            return amp_fail(err, AMP_INTERNAL, machine_unsound, "handoff: too many candidates");
        if (h->n_tries > 0)
            memcpy(tries, h->tries, h->n_tries * sizeof *tries);
        bool expired = p->event == AMP_HANDOFF_EV_EXPIRE;
        tries[h->n_tries++] = (struct amp_handoff_try){
            h->to, expired ? AMP_SPAN("expired") : AMP_SPAN("rejected"), p->reason, p->now_ms};
        h->tries = tries;
    }
    if (t->effects & AMP_HANDOFF_DO_OFFER) {
        h->to = p->event == AMP_HANDOFF_EV_REQUEST ? h->to : p->next;
        h->due_ms = h->timeout_ms > 0 ? p->now_ms + h->timeout_ms : h->deadline_ms;
        if (h->deadline_ms > 0 && h->due_ms > h->deadline_ms)
            h->due_ms = h->deadline_ms;
        t->change->due_ms = h->due_ms;
        offer_note(h, with->room, p->offer);
    }
    if (t->effects & AMP_HANDOFF_DO_OWN) {
        h->accepted_ms = p->now_ms;
        h->due_ms = 0;
    }
    if (t->effects & AMP_HANDOFF_DO_END) {
        h->ended_ms = p->now_ms;
        h->due_ms = 0;
        t->change->due_ms = p->now_ms + AMP_HANDOFF_KEEP_MS;
    }
    if (p->input && p->event == AMP_HANDOFF_EV_COMPLETE)
        h->completion = p->input->id;
    else if (p->input && p->event != AMP_HANDOFF_EV_REQUEST)
        h->answer = p->input->id;
    return 0;
}

static bool is_same_request(const struct amp_handoff *a, const struct amp_handoff *b)
{
    return amp_span_eq(a->from, b->from) && amp_span_eq(a->task, b->task) &&
           amp_span_eq(a->digest, b->digest) && amp_span_eq(a->reason, b->reason);
}

static int handoff_check(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_handoff_step *p = ((const struct with *)t->step->with)->step;
    struct amp_handoff *h = rec;
    bool asks = p->event == AMP_HANDOFF_EV_REQUEST;

    if (!t->now->found) {
        *h = *p->now;
        return asks ? 0 : amp_fail(err, AMP_NO, changed, "the record is gone");
    }
    if (asks)
        return is_same_request(p->now, h)
                   ? 1
                   : amp_fail(err, AMP_NO, duplicate_request, "another handoff has the id %.*s",
                              AMP_CLIP(p->now->id, 100));
    if (state_check(p, h, err) < 0 || sender_check(p, h, err) < 0)
        return -1;
    return h->rev == p->now->rev
               ? 0
               : amp_fail(err, AMP_NO, changed, "another process changed the handoff");
}

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    (void)rec;
    return ((const struct with *)t->step->with)->step->next.n ? AMP_HANDOFF_IF_NEXT : 0;
}

const struct amp_subject amp_handoff_subject = {.kind = AMP_HANDOFF_KIND,
                                                .table = &handoff_rec,
                                                .machine = &amp_handoff_fsm,
                                                .state = AMP_SUBJECT_AT(struct amp_handoff, state),
                                                .rev = AMP_SUBJECT_AT(struct amp_handoff, rev),
                                                .check = handoff_check,
                                                .facts = facts_of,
                                                .carry = handoff_carry};

static struct amp_key key_of(struct amp_span id)
{
    return AMP_KEY(AMP_HANDOFF_KIND, id);
}

int amp_handoff_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_handoff *out, struct amp_error *err)
{
    return amp_subject_find(&amp_handoff_subject, s, key_of(id), mem, out, err);
}

int amp_handoff_step(struct amp_store *s, const struct amp_handoff_step *p, uint8_t *state,
                     enum amp_store_outcome *outcome, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct room room;
    const struct with with = {p, &room};
    const struct amp_subject_step step = {.key = key_of(p->now->id),
                                          .event = p->event,
                                          .with = &with,
                                          .actor = p->actor,
                                          .input = p->input,
                                          .emits = p->emits,
                                          .n_emits = p->n_emits};
    struct amp_handoff h;

    if ((p->event == AMP_HANDOFF_EV_REQUEST &&
         amp_handoff_refer(s, p->now->task, p->now->id, err) < 0) ||
        amp_handoff_refer(s, p->offer, p->now->id, err) < 0 ||
        amp_subject_step(&amp_handoff_subject, s, &step, &mem, &h, outcome, err) < 0)
        return -1;
    *state = h.state;
    return 0;
}

int amp_handoff_remove(struct amp_store *s, const struct amp_handoff *h, const char *actor,
                       struct amp_error *err)
{
    return amp_handoff_unrefer(s, h, err) < 0
               ? -1
               : amp_subject_forget(&amp_handoff_subject, s, key_of(h->id), h->rev, actor, err);
}

/* ---- writing ---- */

static void wanted_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_handoff *h = row;

    amp_jw_member_open(w, key, '[');
    for (uint32_t i = 0; i < h->n_wanted; i++)
        amp_jw_str(w, h->wanted[i]);
    amp_jw_close(w, ']');
}

static void context_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_handoff *h = row;

    if (h->digest.n == 0)
        return;
    amp_jw_member_open(w, key, '{');
    amp_jw_member_str(w, "content_type", h->content_type);
    amp_jw_member_str(w, "sha256", h->digest);
    amp_jw_member_int(w, "bytes", h->bytes);
    amp_jw_close(w, '}');
}

static const struct amp_column try_columns[] = {
    AMP_COLUMN_EVER(TEXT, struct amp_handoff_try, "agent", NULL, agent),
    AMP_COLUMN_EVER(TEXT, struct amp_handoff_try, "outcome", NULL, how),
    AMP_COLUMN(TEXT, struct amp_handoff_try, "reason", NULL, reason),
    AMP_COLUMN_EVER(TIME, struct amp_handoff_try, "at", NULL, at_ms),
    {0},
};

#define IT(form, key, head, member)  AMP_COLUMN_EVER(form, struct amp_handoff, key, head, member)
#define HAS(form, key, head, member) AMP_COLUMN(form, struct amp_handoff, key, head, member)
const struct amp_column amp_handoff_columns[] = {
    IT(TEXT, "request_id", "ID", id),
    AMP_COLUMN_STATE(struct amp_handoff, "status", "STATE", state, &amp_handoff_fsm),
    IT(TEXT, "protocol", NULL, protocol),
    IT(TEXT, "from_agent", "FROM", from),
    IT(TEXT, "to_agent", "TO", to),
    IT(AGE, "requested", "AGE", requested_ms),
    HAS(LEFT, "due", "LEFT", due_ms),
    HAS(TEXT, "task_id", "TASK", task),
    HAS(TEXT, "parent_task_id", NULL, parent),
    HAS(TEXT, "reason", "REASON", reason),
    IT(INT, "priority", NULL, priority),
    IT(INT, "timeout_ms", NULL, timeout_ms),
    IT(INT, "depth", NULL, depth),
    HAS(TIME, "accepted", NULL, accepted_ms),
    HAS(TIME, "ended", NULL, ended_ms),
    AMP_COLUMN_PUT("capabilities_required", wanted_put, .ever = true),
    AMP_COLUMN_PUT("context", context_put),
    AMP_COLUMN_ROWS(struct amp_handoff, "tried", tries, n_tries, try_columns, .ever = true),
    {0},
};
