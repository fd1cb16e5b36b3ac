/*
 * Two attempts at one operation in one inbox: the first was held up on its way, its sender gave it
 * up and sent another, and then both came. The agent gets one of them.
 */
#include "message/idempotency.h"
#include "message/inbox_int.h"

/* Whether what the agent had of an attempt ended without success, so that the next one is due. */
static int failed(struct amp_store *s, struct amp_span id, bool *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem;
    struct amp_message_rec r;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_find(s, id, &mem, &r, err) < 0)
        return -1;
    *out = r.found &&
           (r.state == AMP_DELIVERY_FAILED || r.state == AMP_DELIVERY_REJECTED || r.failure.n > 0);
    return 0;
}

/* The operation that the message is an attempt at; empty where it is none, or it is over. */
static int operation_of(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                        struct amp_span *out, struct amp_error *err)
{
    struct amp_message_rec r;
    if (amp_message_find(s, id, mem, &r, err) < 0)
        return -1;
    *out = r.found ? r.claim : (struct amp_span){"", 0};
    return 0;
}

static int stands_for(struct amp_store *s, struct amp_span agent, struct amp_span id, bool newer,
                      struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    AMP_BUF struct amp_buf mem;
    bool over;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (id.n == 0 || id.n > AMP_INBOX_ID_MAX)
        return 0;
    if (amp_inbox_key_of(agent, id, &k, err) < 0 ||
        amp_inbox_delivery_get(s, k.key, &mem, &d, err) < 0)
        return -1;
    switch (d.state) {
    case AMP_INBOX_WAITING:
        return newer;
    case AMP_INBOX_OFFERED:
        return 1;
    case AMP_INBOX_READ:
        return failed(s, id, &over, err) < 0 ? -1 : !over;
    default:
        return 0;
    }
}

int amp_inbox_superseded(struct amp_store *s, struct amp_span agent, const struct amp_inbox_key *k,
                         const struct amp_inbox_delivery *d, struct amp_error *err)
{
    AMP_BUF struct amp_buf own, mem;
    struct amp_span operation, ids[AMP_IDEM_ATTEMPTS];
    uint32_t n;
    amp_buf_init(&own, AMP_RECORD_MAX);
    amp_buf_init(&mem, AMP_RECORD_MAX);
    /* It may be there already; or a person wants it there. */
    if (d->state == AMP_INBOX_OFFERED || d->requeue > 0)
        return 0;
    if (operation_of(s, k->id, &own, &operation, err) < 0)
        return -1;
    if (operation.n == 0)
        return 0;
    if (amp_idem_attempts(s, operation, &mem, ids, &n, err) < 0)
        return -1;
    bool newer = false;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        if (amp_span_eq(ids[i], k->id))
            newer = true;
        else
            rc = stands_for(s, agent, ids[i], newer, err);
    }
    return rc;
}
