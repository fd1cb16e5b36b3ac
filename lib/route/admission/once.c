/*
 * Routes each operation of SW4RM once (§11.2). A repeated operation gets an answer instead. A
 * message that a tracker of the same state passed is not decided again. Acknowledgements and
 * outcomes that pass through update the message that they answer, so that a duplicate learns the
 * progress of the first attempt. An outcome from an agent that does not hold the work is refused
 * and not delivered.
 */
#include "route/admission/once.h"

#include <amp/base/clock.h>

#include "message/ledger/ledger.h"
#include "message/record/record.h"
#include "message/settle/acknowledge.h"
#include "message/settle/outcome.h"
#include "message/settle/rails.h"

static int settled(struct router *r, const struct job *j, const struct amp_view *v, int rc,
                   struct amp_error *e, struct amp_error *err)
{
    if (rc != 0 && amp_rails_refused(e))
        return amp_keeper_denied(r, j, v, e, err) < 0 ? -1 : STEP_DROP;
    if (rc == 0 || e->status == AMP_NO)
        return STEP_GO; /* it answers nothing that we know, or out of turn: it goes its way */
    *err = *e;
    return -1;
}

static int tell(struct router *r, const struct amp_view *v, const struct amp_idem_answer *a,
                struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, (size_t)64 << 20);
    if (amp_idem_tell(r->store, v, a, r->consumer, amp_now_ms(), &line, err) < 0)
        return -1;
    amp_keeper_answer(r, amp_buf_span(&line), (struct amp_store_entry_id){0});
    return STEP_DROP;
}

static int claim(struct router *r, const struct amp_view *v, struct amp_error *err)
{
    struct amp_idem_answer a;
    struct amp_idem_options opt = {
        .now_ms = amp_now_ms(), .window_ms = r->window_ms, .actor = r->consumer};
    enum amp_store_outcome how;
    amp_idem_answer_init(&a);
    int rc = amp_idem_claim(r->store, v, &opt, &a, err);
    if (rc == 0 && a.verdict >= AMP_IDEM_RUNNING)
        rc = tell(r, v, &a, err);
    else if (rc == 0)
        rc = amp_message_record(r->store, v, opt.now_ms, &how, err);
    amp_idem_answer_release(&a);
    return rc;
}

static int is_known(struct router *r, const struct amp_view *v, struct amp_error *err)
{
    struct amp_store_rec rec;
    if (v->id.n == 0)
        return 0;
    return amp_store_get(r->store, AMP_MESSAGE_KIND, v->id, &rec, err) < 0 ? -1 : rec.found;
}

/* Work of the other protocols, which an inbox recorded: only its outcome counts here. */
static int admit_outcome(struct router *r, struct job *j, const struct amp_view *v,
                         struct amp_error *err)
{
    struct amp_error e = {0};
    if (!amp_outcome_is(v))
        return STEP_GO;
    int known = is_known(r, v, err);
    if (known != 0)
        return known < 0 ? -1 : STEP_GO;
    return settled(r, j, v, amp_rails_apply(r->store, v, amp_now_ms(), &e), &e, err);
}

int amp_once_admit(struct router *r, struct job *j, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error e = {0};
    if (!r->store)
        return STEP_GO;
    bool answers = v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK;
    if (answers && (v->protocol == AMP_PROTO_SW4RM || v->protocol == AMP_PROTO_AMP))
        return settled(r, j, v, amp_message_acknowledge(r->store, v, amp_now_ms(), &e), &e, err);
    if (v->protocol != AMP_PROTO_SW4RM)
        return admit_outcome(r, j, v, err);
    if (v->id.n == 0 || amp_span_is(v->type, "HEARTBEAT"))
        return STEP_GO;
    int known = is_known(r, v, err);
    if (known != 0)
        return known < 0 ? -1 : STEP_GO;
    /* Whether it is refused is decided before anything is recorded. */
    if (amp_outcome_check(r->store, v, &e) < 0)
        return settled(r, j, v, -1, &e, err);
    int rc = claim(r, v, &e);
    if (rc == STEP_GO)
        return settled(r, j, v, amp_rails_apply(r->store, v, amp_now_ms(), &e), &e, err);
    return rc > 0 ? rc : settled(r, j, v, rc, &e, err);
}
