/* Holders of work, and the refusal of other agents. */
#include "message/delivery/ledger/holder.h"
#include "message/delivery/facts.h"

#include <string.h>

#include "message/delivery/ledger/delivery.h"
#include "message/protocol/delivery.h"
#include "message/protocol/work.h"

bool amp_holder_named(const struct amp_message_rec *r)
{
    return r->to.n > 0 && amp_work_of(amp_protocol_find(r->protocol))->to_holds;
}

bool amp_holder_accepts(const struct amp_message_rec *r)
{
    return amp_terms_has(amp_work_of(amp_protocol_find(r->protocol))->accepted, r->type);
}

static bool is_called(struct amp_span name, const struct amp_holder_claim *c)
{
    return name.n > 0 &&
           (amp_span_is(name, c->by) || (c->role && *c->role && amp_span_is(name, c->role)));
}

static bool is_addressee(const struct amp_message_rec *r, const struct amp_holder_claim *c)
{
    const struct amp_work_terms *t = amp_work_of(amp_protocol_find(r->protocol));
    if (r->to.n == 0 || is_called(r->to, c) || is_called(r->holder, c))
        return true;
    return r->for_many && (!t->is_for || t->is_for(r->line, c->by) ||
                           (c->role && *c->role && t->is_for(r->line, c->role)));
}

static struct amp_work_claim claim_of(const struct amp_message_rec *r,
                                      const struct amp_holder_claim *c)
{
    bool is_claimed = r->holder.n > 0 && !amp_holder_named(r);
    return (struct amp_work_claim){
        .begins = c->takes_up,
        .must_accept = c->worded && amp_holder_accepts(r),
        .is_claimed = is_claimed,
        .is_claimant = is_called(r->holder, c),
        .is_addressee = !is_claimed && is_addressee(r, c),
    };
}

bool amp_holder_is(const struct amp_message_rec *r, const struct amp_holder_claim *c)
{
    struct amp_work_claim claim = claim_of(r, c);
    return claim.is_claimed ? claim.is_claimant : claim.is_addressee;
}

int amp_holder_check(const struct amp_message_rec *r, struct amp_span id,
                     const struct amp_holder_claim *c, struct amp_error *err)
{
    bool ends = c->stage == AMP_STAGE_FULFILLED || c->stage == AMP_STAGE_FAILED ||
                c->stage == AMP_STAGE_REJECTED || c->takes_up;
    bool named = amp_holder_named(r);
    if (!ends || (r->claim.n == 0 && !named))
        return 0;
    /* Any program on the way may refuse work that has not begun. */
    if (c->stage == AMP_STAGE_REJECTED && r->holder.n == 0 && !named)
        return 0;
    const struct amp_work_claim claim = claim_of(r, c);
    enum amp_work_verdict verdict = amp_work_judge(&claim);
    if (verdict == AMP_WORK_ALLOWED)
        return 0;
    const char *code = amp_terms_denial(amp_work_of(amp_protocol_find(r->protocol)), verdict);
    struct amp_span owner = claim.is_claimed ? r->holder : r->to;
    if (verdict == AMP_WORK_NOT_ACCEPTED)
        return amp_fail_text(err, AMP_NO, code,
                             "no agent has accepted %.*s: its end reported by %s is refused",
                             AMP_CLIP(id, 200), c->by);
    return amp_fail_text(err, AMP_NO, code, "%.*s holds the work, not %s: outcome of %.*s refused",
                         AMP_CLIP(owner, 100), c->by, AMP_CLIP(id, 200));
}

bool amp_holder_denied(const struct amp_error *e)
{
    for (enum amp_protocol p = 0; e->status == AMP_NO && p < AMP_PROTO_COUNT; p++)
        for (enum amp_work_verdict v = AMP_WORK_ALLOWED + 1; v < AMP_WORK_VERDICTS; v++)
            if (strcmp(e->code, amp_terms_denial(amp_work_of(p), v)) == 0)
                return true;
    return false;
}

int amp_holder_role(struct amp_store *s, const char *agent, char role[128], struct amp_error *err)
{
    const struct amp_message_facts *facts = amp_store_facts(s);
    role[0] = '\0';
    return facts ? facts->role(s, agent, role, err) : 0;
}

bool amp_work_is(const struct amp_message_rec *r)
{
    const struct amp_watched *work = amp_work_of(amp_protocol_find(r->protocol))->watched;
    while (work && work->type && !amp_span_is(r->type, work->type))
        work++;
    return work && work->type && !amp_span_is(r->to, "coordinator");
}

/* AMP's messages name the role of their sender; the ledger has the name of the agent that READ. */
bool amp_work_holds(const struct amp_message_rec *r, const char *by)
{
    return amp_span_is(r->holder, by) || amp_span_is(r->to, by) ||
           (r->for_many && !amp_span_is(r->from, by));
}
