/* Messages of handoffs: which step of which record they make, and which lines the step emits. */
#include "work/handoff/offer/handoff.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/sender/identity.h"
#include "message/protocol/answers.h"
#include "json/record.h"

#define SERVICE "coordinator"

#define ROUNDS_MAX 8 /* another process may make a step between the read and the commit */

/* ---- lines ---- */

static void says_of(struct amp_handoffs *h, const struct amp_handoff *r, struct amp_span to,
                    struct amp_handoff_says *s)
{
    *s = (struct amp_handoff_says){.by = amp_span_str(h->service),
                                   .to = to,
                                   .id = r->id,
                                   .from = r->from,
                                   .reason = r->reason,
                                   .task = r->task,
                                   .wanted = r->wanted,
                                   .n_wanted = r->n_wanted,
                                   .priority = r->priority,
                                   .timeout_ms = r->timeout_ms,
                                   .request = r->line,
                                   .attempt = (int64_t)r->n_tries + 1 + !amp_span_eq(to, r->to),
                                   .sequence = amp_id_number(h->now_ms),
                                   .now_ms = h->now_ms};
}

static const struct amp_handoff_terms *terms_of(const struct amp_handoff *r)
{
    return amp_answers_of(amp_protocol_find(r->protocol))->handoffs;
}

static void line_end(struct amp_buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] == '\n')
        out->len--;
}

int amp_handoff_offer_line(struct amp_handoffs *h, const struct amp_handoff *r, struct amp_span to,
                           struct amp_buf *out, char message[AMP_HANDOFF_MESSAGE_MAX],
                           struct amp_error *err)
{
    const struct amp_handoff_terms *t = terms_of(r);
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX + 1};
    AMP_BUF struct amp_buf value = {.max = (size_t)AMP_HANDOFF_LINE_MAX};
    struct amp_handoff_says says;

    message[0] = '\0';
    if (!t || !t->offer)
        return 1;
    says_of(h, r, to, &says);
    if (t->by_message) {
        memcpy(message, "evt_", 4);
        amp_uuid4(message + 4);
        says.message = message;
    }
    if (r->digest.n > 0) {
        if (amp_handoff_context_read(h->store, r, &bytes, err) < 0 ||
            amp_handoff_context_value(amp_buf_span(&bytes), r->content_type, false, &value, err) <
                0)
            return -1;
        says.context = amp_buf_span(&value);
    }
    if (t->offer(&says, out, err) < 0)
        return -1;
    line_end(out);
    return 0;
}

int amp_handoff_report_line(struct amp_handoffs *h, const struct amp_handoff *r, const char *status,
                            struct amp_span reason, struct amp_span to, struct amp_buf *out,
                            struct amp_error *err)
{
    const struct amp_handoff_terms *t = terms_of(r);
    struct amp_handoff_says says;

    if (!t || !t->report)
        return 1;
    says_of(h, r, to, &says);
    says.reason = reason;
    says.status = status;
    int rc = t->report(&says, out, err);
    if (rc == 0)
        line_end(out);
    return rc;
}

/* ---- offers ---- */

struct taking {
    struct amp_handoffs *h;
    const struct amp_view *v;
    struct amp_handoff_said said;
    struct amp_handoff rec; /* of an offer: the new one; else that of the state */
    struct amp_buf mem, context, line, kept;
    struct amp_span wanted[AMP_HANDOFF_WANTED_MAX];
    char candidate[256], message[AMP_HANDOFF_MESSAGE_MAX];
};

static void taking_release(struct taking *t)
{
    amp_buf_release(&t->mem);
    amp_buf_release(&t->context);
    amp_buf_release(&t->line);
    amp_buf_release(&t->kept);
}

/* An agent speaks for itself, and the coordinator for those whose words it passes on. */
static int speaker_check(const struct taking *t, struct amp_span agent, struct amp_error *err)
{
    const struct amp_handoffs *h = t->h;
    char name[256];

    if (!h->said)
        return 0;
    if (h->refusal && h->refusal->status) {
        *err = *h->refusal;
        return -1;
    }
    if (agent.n == 0 || amp_span_eq(agent, t->v->from) ||
        (amp_span_copy(agent, name, sizeof name) && amp_said_by(h->ids, h->said, name)) ||
        amp_said_by(h->ids, h->said, SERVICE))
        return 0;
    snprintf(name, sizeof name, "it speaks for %.*s", AMP_CLIP(agent, 100));
    amp_said_refuse(h->said, err, name);
    return -1;
}

static int64_t timeout_of(const struct amp_handoff_said *said)
{
    int64_t ms = said->timeout_ms;
    if (!said->timed)
        return 0;
    return ms <= 0                         ? AMP_HANDOFF_TIMEOUT_MS
           : ms < AMP_HANDOFF_TIMEOUT_MIN  ? AMP_HANDOFF_TIMEOUT_MIN
           : ms > AMP_HANDOFF_TIMEOUT_MOST ? AMP_HANDOFF_TIMEOUT_MOST
                                           : ms;
}

static struct amp_span text_cut(struct amp_span s, size_t most)
{
    size_t n = s.n < most ? s.n : most;
    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return (struct amp_span){s.p, n};
}

/* The request that the record keeps: without a large snapshot. */
static int request_keep(struct taking *t, struct amp_error *err)
{
    const struct amp_handoff_terms *terms = terms_of(&t->rec);
    AMP_BUF struct amp_buf value = {.max = 4096};
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX + 1};
    struct amp_handoff_says says;

    if (t->v->message.n <= 32768 || !terms->offer || t->rec.digest.n == 0) {
        t->rec.line = t->v->message;
        return t->v->message.n <= AMP_HANDOFF_KEPT_MAX
                   ? 0
                   : amp_fail(err, AMP_NO, payload_too_large,
                              "the request is larger than %d bytes without its context snapshot",
                              AMP_HANDOFF_KEPT_MAX);
    }
    says_of(t->h, &t->rec, t->rec.to, &says);
    says.by = t->v->from;
    says.correlation = t->v->correlation;
    if (amp_handoff_context_read(t->h->store, &t->rec, &bytes, err) < 0 ||
        amp_handoff_context_value(amp_buf_span(&bytes), t->rec.content_type, true, &value, err) < 0)
        return -1;
    says.context = amp_buf_span(&value);
    if (terms->offer(&says, &t->kept, err) < 0)
        return -1;
    line_end(&t->kept);
    t->rec.line = amp_buf_span(&t->kept);
    return 0;
}

static int offer_check(struct taking *t, struct amp_error *err)
{
    const struct amp_handoff_terms *terms = terms_of(&t->rec);
    char owner[256];

    int given = amp_handoff_given(t->h->store, t->rec.from, t->rec.task, owner, err);
    if (given != 0)
        return given < 0 ? -1
                         : amp_fail(err, AMP_NO, handed_over, "%.*s handed the task over to %s",
                                    AMP_CLIP(t->rec.from, 100), owner);
    if (*owner && !amp_span_is(t->rec.from, owner) && t->rec.task.n > 0 &&
        !amp_span_eq(t->rec.task, t->rec.id))
        return amp_fail(err, AMP_NO, bad_sender, "%s has the task, not %.*s", owner,
                        AMP_CLIP(t->rec.from, 100));
    if (amp_handoff_depth(t->h->store, t->rec.from, t->rec.task, t->rec.parent, &t->rec.depth,
                          err) < 0)
        return -1;
    t->rec.depth++;
    return t->rec.depth <= terms->depth
               ? 0
               : amp_fail(err, AMP_NO, nested_delegation,
                          "the work was handed over %lld times (the limit is %lld)",
                          (long long)t->rec.depth - 1, (long long)terms->depth);
}

/* Finds the candidate. The line goes to the named agent as it is; another candidate gets an offer
 * of its own. */
static int offer_address(struct taking *t, struct amp_error *err)
{
    struct amp_handoff *r = &t->rec;

    if (r->to.n > 0)
        return amp_handoff_candidate_check(t->h, r, err);
    int found = amp_handoff_candidate(t->h, r, false, t->candidate, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, capability_unavailable,
                                    "no active agent has the capabilities that the handoff "
                                    "requires");
    r->to = amp_span_str(t->candidate);
    r->line = t->v->message;
    return amp_handoff_offer_line(t->h, r, r->to, &t->line, t->message, err) < 0 ? -1 : 0;
}

static int offer_take(struct taking *t, struct amp_error *err)
{
    const struct amp_handoff_said *said = &t->said;
    const struct amp_store_input in = {t->h->box, t->v->id, t->v->message};
    enum amp_store_outcome how;
    uint8_t state;

    t->rec = (struct amp_handoff){.id = said->id,
                                  .protocol = amp_span_str(amp_protocol_name(t->v->protocol)),
                                  .from = said->from.n > 0 ? said->from : t->v->from,
                                  .to = said->to,
                                  .task = said->task,
                                  .parent = said->parent,
                                  .reason = text_cut(said->reason, AMP_HANDOFF_REASON_MAX),
                                  .wanted = t->wanted,
                                  .priority = said->priority,
                                  .timeout_ms = timeout_of(said),
                                  .requested_ms = t->h->now_ms,
                                  .deadline_ms = said->due_ms};
    if (said->wanted.n > sizeof t->wanted / sizeof *t->wanted || said->id.n > AMP_HANDOFF_ID_MAX ||
        said->to.n > 255 || t->rec.from.n > 255)
        return amp_fail(err, AMP_NO, bad_value,
                        "more than 64 capabilities, or a name of more than 255 bytes");
    for (uint32_t i = 0; i < said->wanted.n; i++)
        t->wanted[i] = said->wanted.v[i];
    t->rec.n_wanted = said->wanted.n;
    if (speaker_check(t, t->rec.from, err) < 0 || offer_check(t, err) < 0 ||
        amp_handoff_context_keep(t->h, said->context, &t->rec, &t->context, err) < 0 ||
        offer_address(t, err) < 0 || request_keep(t, err) < 0)
        return -1;
    const struct amp_store_emit emit = {.id = t->line.len > 0 ? said->id : t->v->id,
                                        .line =
                                            t->line.len > 0 ? amp_buf_span(&t->line) : t->v->line,
                                        .role = AMP_ROLE_message};
    const struct amp_handoff_step step = {.event = AMP_HANDOFF_EV_REQUEST,
                                          .now = &t->rec,
                                          .by = t->rec.from,
                                          .now_ms = t->h->now_ms,
                                          .actor = t->h->box,
                                          .emits = &emit,
                                          .n_emits = 1,
                                          .offer = *t->message ? amp_span_str(t->message)
                                                   : terms_of(&t->rec)->by_message ? t->v->id
                                                                                   : AMP_SPAN(""),
                                          .input = t->v->id.n > 0 ? &in : NULL};
    if (said->due_ms > 0 && said->due_ms <= t->h->now_ms)
        return amp_fail(err, AMP_NO, handoff_expired, "the time for an answer has passed");
    if (amp_handoff_step(t->h->store, &step, &state, &how, err) < 0)
        return -1;
    return how == AMP_STORE_UNCHANGED; /* a verb made it */
}

/* ---- answers ---- */

static uint8_t event_of(enum amp_handoff_act act)
{
    return act == AMP_HANDOFF_TAKES      ? AMP_HANDOFF_EV_ACCEPT
           : act == AMP_HANDOFF_DECLINES ? AMP_HANDOFF_EV_REJECT
                                         : AMP_HANDOFF_EV_COMPLETE;
}

/* Emits the step's line: the answer for the origin, or the offer for another candidate, or the
 * origin's own completion as a report to the owner. */
static int answer_emit(struct taking *t, struct amp_handoff_step *step, struct amp_store_emit *emit,
                       struct amp_error *err)
{
    int rc = 1;

    amp_buf_reset(&t->line);
    if (step->next.n > 0)
        rc = amp_handoff_offer_line(t->h, &t->rec, step->next, &t->line, t->message, err);
    else if (step->event == AMP_HANDOFF_EV_COMPLETE && amp_span_eq(step->by, t->rec.from) &&
             !(t->v->n_to == 1 && amp_span_eq(t->v->to[0], t->rec.to)))
        rc = amp_handoff_report_line(t->h, &t->rec, "COMPLETED", (struct amp_span){0}, t->rec.to,
                                     &t->line, err);
    step->offer = amp_span_str(step->next.n > 0 ? t->message : "");
    *emit = (struct amp_store_emit){.id = t->v->id,
                                    .line = rc == 0 ? amp_buf_span(&t->line) : t->v->line,
                                    .role = AMP_ROLE_message};
    return rc < 0 ? -1 : 0;
}

static int next_find(struct taking *t, struct amp_handoff_step *step, struct amp_error *err)
{
    const struct amp_handoff_terms *terms = terms_of(&t->rec);

    step->next = (struct amp_span){0};
    if (step->event != AMP_HANDOFF_EV_REJECT || !terms->offer ||
        t->rec.state != AMP_HANDOFF_PENDING)
        return 0;
    int found = amp_handoff_candidate(t->h, &t->rec, true, t->candidate, err);
    if (found > 0)
        step->next = amp_span_str(t->candidate);
    return found < 0 ? -1 : 0;
}

/* An acceptance is refused if the snapshot has changed: the new owner could not go on. */
static int context_check(struct taking *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX + 1};
    return t->rec.state == AMP_HANDOFF_PENDING && t->said.act == AMP_HANDOFF_TAKES
               ? amp_handoff_context_read(t->h->store, &t->rec, &bytes, err)
               : 0;
}

struct named {
    char id[AMP_HANDOFF_ID_MAX + 1];
};

static int named_note(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *r = rec;
    struct named *n = ctx;

    (void)err;
    amp_span_copy(r->id, n->id, sizeof n->id);
    return 1;
}

/* Reads the handoff that the answer names by its id, or by the message with the offer. */
static int answered_find(struct taking *t, struct amp_error *err)
{
    struct named n = {""};

    if (t->said.ref.n == 0)
        return amp_handoff_find(t->h->store, t->said.id, &t->mem, &t->rec, err);
    if (amp_handoff_each_of(t->h->store, t->said.ref, named_note, &n, err) < 0)
        return -1;
    return *n.id ? amp_handoff_find(t->h->store, amp_span_str(n.id), &t->mem, &t->rec, err) : 0;
}

/* Two requests may offer one task; the first acceptance is the only one. The check and the step are
 * one turn of the store. */
static int answer_step(struct taking *t, const struct amp_handoff_step *step, struct amp_error *err)
{
    char owner[256];
    enum amp_store_outcome how;
    uint8_t state;
    int given = 0;

    if (amp_store_begin(t->h->store, err) < 0)
        return -1;
    if (step->event == AMP_HANDOFF_EV_ACCEPT && t->rec.state == AMP_HANDOFF_PENDING)
        given = amp_handoff_given(t->h->store, t->rec.from, t->rec.task, owner, err);
    if (given > 0)
        amp_fail(err, AMP_NO, handed_over, "%.*s handed the task over to %s",
                 AMP_CLIP(t->rec.from, 100), owner);
    int rc = given ? -1 : amp_handoff_step(t->h->store, step, &state, &how, err);
    amp_store_end(t->h->store);
    return rc;
}

/* 1: the message is not about a handoff, or its step was made before. */
static int answer_once(struct taking *t, struct amp_error *err)
{
    const struct amp_store_input in = {t->h->box, t->v->id, t->v->message};
    struct amp_handoff_step step = {.event = event_of(t->said.act),
                                    .now = &t->rec,
                                    .by = t->said.by,
                                    .reason = text_cut(t->said.why, AMP_HANDOFF_REASON_MAX),
                                    .now_ms = t->h->now_ms,
                                    .actor = t->h->box,
                                    .input = t->v->id.n > 0 ? &in : NULL};
    struct amp_store_emit emit;

    int found = answered_find(t, err);
    if (found < 0)
        return -1;
    uint8_t needs =
        step.event == AMP_HANDOFF_EV_COMPLETE ? AMP_HANDOFF_ACCEPTED : AMP_HANDOFF_PENDING;
    /* A verb made the step, and the line passes here on its way. */
    if (found && t->v->id.n > 0 &&
        (amp_span_eq(t->rec.answer, t->v->id) || amp_span_eq(t->rec.completion, t->v->id)))
        return 1;
    if (t->said.elsewhere && (!found || t->rec.state != needs))
        return 1;
    if (speaker_check(t, t->said.by, err) < 0)
        return -1;
    if (!found)
        return amp_fail(err, AMP_NO, unknown_ref, "there is no handoff %.*s",
                        AMP_CLIP(t->said.id, 200));
    if (context_check(t, err) < 0 || next_find(t, &step, err) < 0 ||
        answer_emit(t, &step, &emit, err) < 0)
        return -1;
    step.emits = &emit;
    step.n_emits = 1;
    return answer_step(t, &step, err);
}

static int answer_take(struct taking *t, struct amp_error *err)
{
    int rc = -1;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        rc = answer_once(t, err);
        if (rc >= 0 || !amp_code_is(err->code, changed))
            return rc;
    }
    return rc;
}

/* 1: this outbox took the message before. */
static int message_is_known(const struct taking *t, struct amp_error *err)
{
    const struct amp_store_input in = {t->h->box, t->v->id, t->v->message};
    if (t->v->id.n == 0)
        return 0;
    int seen = amp_store_seen(t->h->store, &in, err);
    return seen < 0 ? -1 : seen == AMP_STORE_SEEN;
}

enum amp_handoff_got amp_handoffs_take(struct amp_handoffs *h, const struct amp_view *v,
                                       struct amp_error *why, struct amp_error *err)
{
    const struct amp_handoff_terms *terms = amp_answers_of(v->protocol)->handoffs;
    struct amp_error e = {0};
    struct taking t = {.h = h, .v = v};

    if (!terms || !terms->read(v, &t.said))
        return AMP_HANDOFF_PASSES;
    amp_buf_init(&t.mem, AMP_REC_MAX);
    amp_buf_init(&t.context, 4096);
    amp_buf_init(&t.line, AMP_HANDOFF_LINE_MAX);
    amp_buf_init(&t.kept, AMP_HANDOFF_KEPT_MAX);
    int rc = message_is_known(&t, &e);
    if (rc == 0)
        rc = t.said.act == AMP_HANDOFF_OFFERS ? offer_take(&t, &e) : answer_take(&t, &e);
    else if (rc > 0)
        rc = 0;
    taking_release(&t);
    if (rc >= 0)
        return rc > 0 ? AMP_HANDOFF_PASSES : AMP_HANDOFF_TAKEN;
    if (e.status != AMP_NO) {
        *err = e;
        return AMP_HANDOFF_FAILED;
    }
    *why = e;
    return AMP_HANDOFF_REFUSED;
}
