/* The dead letters of the attempts at an operation. */
#include "message/delivery/dead/withdraw.h"

#include "message/delivery/dead/dead.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/record/record.h"

#define CHAIN_MAX 1001 /* the largest budget, and the first attempt */

struct letters {
    struct amp_store *s;
    const char *actor; /* NULL: only look */
    bool done, open;
    struct amp_error *err;
};

/* A letter of another recipient, or for another failure than a timeout, is only void when the work
 * is done. */
static int letter_visit(struct letters *l, struct amp_span id, const struct amp_message_rec *r)
{
    bool silence = r->failure.n == 0 && r->state != AMP_DELIVERY_FAILED;
    if (l->actor && !l->done && !silence)
        return 0;
    if (l->actor)
        return amp_dead_withdraw(l->s, id, !l->done || r->for_many, l->actor, l->err);
    bool open;
    if (amp_dead_is_open(l->s, id, 0, &open, l->err) < 0)
        return -1;
    l->open |= open;
    return 0;
}

/* The attempts that the sweep sent: each record has the id of the next one. */
static int chain_visit(struct letters *l, struct amp_span id)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX}, name = {.max = 1 << 16};
    struct amp_message_rec r;
    for (int i = 0; i < CHAIN_MAX && id.n > 0; i++) {
        if (amp_message_find(l->s, id, &mem, &r, l->err) < 0)
            return -1;
        if (!r.found)
            return 0;
        if (letter_visit(l, id, &r) < 0)
            return -1;
        amp_buf_reset(&name);
        if (amp_buf_add(&name, r.next.p, r.next.n, l->err) < 0)
            return -1;
        id = amp_buf_span(&name);
    }
    return 0;
}

/* The messages with the same token. */
static int siblings_visit(struct letters *l, struct amp_span operation)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX}, names = {.max = AMP_RECORD_MAX};
    struct amp_span ids[AMP_IDEM_ATTEMPTS];
    struct amp_message_rec r;
    uint32_t n;
    if (amp_idem_attempts(l->s, operation, &names, ids, &n, l->err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (amp_message_find(l->s, ids[i], &mem, &r, l->err) < 0 ||
            (r.found && letter_visit(l, ids[i], &r) < 0))
            return -1;
    return 0;
}

static int operation_visit(struct letters *l, struct amp_span id)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_message_rec r;
    if (amp_message_find(l->s, id, &mem, &r, l->err) < 0)
        return -1;
    if (!r.found)
        return 0;
    l->done = amp_record_has_stage(&r, "FULFILLED");
    if (r.claim.n > 0 && siblings_visit(l, r.claim) < 0)
        return -1;
    return chain_visit(l, id);
}

int amp_dead_chain_look(struct amp_store *s, struct amp_span id, bool *open, struct amp_error *err)
{
    struct letters l = {.s = s, .err = err};
    int rc = operation_visit(&l, id);
    *open = l.open;
    return rc;
}

int amp_dead_chain_withdraw(struct amp_store *s, struct amp_span id, const char *actor,
                            struct amp_error *err)
{
    struct letters l = {.s = s, .actor = actor, .err = err};
    return operation_visit(&l, id);
}
