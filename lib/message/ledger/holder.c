/* Holders of work, and the words for everybody else. */
#include "message/ledger/holder.h"

#include <string.h>

#include "message/record/record.h"
#include "protocol/terms.h"

bool amp_holder_named(const struct amp_message_rec *r)
{
    return r->to.n > 0 && amp_terms_of(amp_protocol_find(r->protocol))->to_holds;
}

static struct amp_span owner_of(const struct amp_message_rec *r)
{
    return r->holder.n > 0 || r->for_many ? r->holder : r->to;
}

bool amp_holder_is(const struct amp_message_rec *r, const struct amp_holder_claim *c)
{
    struct amp_span owner = amp_holder_named(r) ? r->to : owner_of(r);
    return owner.n == 0 || amp_span_is(owner, c->by) || amp_span_is(r->holder, c->by) ||
           (c->role && *c->role && amp_span_is(owner, c->role));
}

static const char *code_of(const struct amp_message_rec *r)
{
    const struct amp_terms *t = amp_terms_of(amp_protocol_find(r->protocol));
    return r->holder.n == 0 && t->not_addressee ? t->not_addressee : t->not_holder;
}

int amp_holder_check(const struct amp_message_rec *r, struct amp_span id,
                     const struct amp_holder_claim *c, struct amp_error *err)
{
    bool ends = c->stage == AMP_STAGE_FULFILLED || c->stage == AMP_STAGE_FAILED ||
                c->stage == AMP_STAGE_REJECTED || c->takes_up;
    bool named = amp_holder_named(r);
    if (!ends || (r->claim.n == 0 && !named))
        return 0;
    /* Refusals before any work may come from anybody on the way. */
    if (c->stage == AMP_STAGE_REJECTED && r->holder.n == 0 && !named)
        return 0;
    if (amp_holder_is(r, c))
        return 0;
    struct amp_span owner = owner_of(r);
    return amp_fail(
        err, AMP_NO, code_of(r), "%.*s holds the work, not %s: the outcome is not taken of %.*s",
        (int)(owner.n < 100 ? owner.n : 100), owner.p, c->by, (int)(id.n < 200 ? id.n : 200), id.p);
}

bool amp_holder_denied(const struct amp_error *e)
{
    for (enum amp_protocol p = 0; e->status == AMP_NO && p < AMP_PROTO_COUNT; p++) {
        const struct amp_terms *t = amp_terms_of(p);
        if (strcmp(e->code, t->not_holder) == 0 ||
            (t->not_addressee && strcmp(e->code, t->not_addressee) == 0))
            return true;
    }
    return false;
}

struct role {
    struct amp_span role;
};
static const struct amp_rec_field role_fields[] = {AMP_REC(TEXT, struct role, "role", role)};
AMP_REC_TABLE(role_rec, "an agent's record", struct role, role_fields);

int amp_holder_role(struct amp_store *s, const char *agent, char role[128], struct amp_error *err)
{
    struct amp_store_rec rec;
    struct role r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    role[0] = '\0';
    if (!*agent)
        return 0;
    if (amp_store_get(s, "directory", amp_span_str(agent), &rec, err) < 0)
        return -1;
    if (rec.found && amp_rec_parse(&role_rec, rec.json, &mem, &r, err) < 0)
        return -1;
    if (rec.found && !amp_span_copy(r.role, role, 128))
        role[0] = '\0';
    return 0;
}
