/* Handoffs whose candidate did not answer in time, and records that are no longer needed. */
#include "work/handoff/offer/handoff.h"

#include <string.h>

#include "base/codes.h"
#include "message/delivery/deadline.h"
#include "message/protocol/answers.h"
#include "json/record.h"

struct due {
    struct amp_handoffs h;
    uint32_t done;
};

static int expire(struct due *d, const struct amp_handoff *r, struct amp_error *err)
{
    const struct amp_handoff_terms *terms =
        amp_answers_of(amp_protocol_find(r->protocol))->handoffs;
    AMP_BUF struct amp_buf line = {.max = AMP_HANDOFF_LINE_MAX};
    struct amp_handoff_step step = {
        .event = AMP_HANDOFF_EV_EXPIRE, .now = r, .now_ms = d->h.now_ms, .actor = d->h.box};
    char next[256] = "", message[AMP_HANDOFF_MESSAGE_MAX] = "";
    uint8_t state;
    enum amp_store_outcome how;

    int rc = terms && terms->offer ? amp_handoff_candidate(&d->h, r, true, next, err) : 0;
    if (rc < 0)
        return -1;
    step.next = amp_span_str(next);
    rc = 1;
    if (step.next.n > 0) {
        rc = amp_handoff_offer_line(&d->h, r, step.next, &line, message, err);
        /* Without its snapshot it cannot be offered to another agent. */
        if (rc < 0 && amp_code_is(err->code, context_changed))
            step.next.n = 0;
        else if (rc < 0)
            return -1;
    }
    if (step.next.n == 0)
        rc = amp_handoff_report_line(&d->h, r, "EXPIRED", AMP_SPAN("no candidate answered in time"),
                                     r->from, &line, err);
    if (rc < 0)
        return -1;
    const struct amp_store_emit emit = {
        .id = r->id, .line = amp_buf_span(&line), .role = AMP_ROLE_answer};
    step.offer = amp_span_str(step.next.n > 0 ? message : "");
    step.emits = &emit;
    step.n_emits = rc == 0;
    if (amp_handoff_step(d->h.store, &step, &state, &how, err) < 0)
        return err->status == AMP_NO ? 0 : -1; /* it was answered meanwhile */
    d->done++;
    return 0;
}

static int record_due(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *r = rec;
    struct due *d = ctx;

    if (r->state == AMP_HANDOFF_PENDING)
        return expire(d, r, err);
    int removed = amp_handoff_remove(d->h.store, r, d->h.box, err);
    if (removed > 0)
        amp_handoff_context_drop(d->h.store, r);
    d->done += removed > 0;
    return removed < 0 ? -1 : 0;
}

int amp_handoffs_due_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                         uint32_t *done, struct amp_error *err)
{
    struct due d = {.h = {.store = s, .box = c->actor, .service = c->from, .now_ms = now_ms}};
    int rc = amp_subject_due(&amp_handoff_subject, s, now_ms, record_due, &d, err);
    *done += d.done;
    return rc;
}
