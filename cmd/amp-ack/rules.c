/* How long is waited, and how often and when messages are sent again. */
#include "rules.h"

#include "message/ledger/stages.h"

struct amp_list ack_timeouts;
const char *ack_sla;

int ack_terms(struct amp_error *err)
{
    if (ack_timeouts.n > 0)
        amp_stages_reset_timeouts();
    for (int i = 0; i < ack_timeouts.n; i++)
        if (amp_stages_set_timeout(NULL, ack_timeouts.v[i], err) < 0)
            return -1;
    return ack_sla ? amp_stages_set_sla(NULL, ack_sla, err) : 0;
}

struct amp_list ack_retries, ack_backoff, ack_idempotent;

int ack_retry_rules(struct amp_retry_rules *out, struct amp_error *err)
{
    amp_retry_defaults(out);
    out->idempotent = ack_idempotent.n > 0 ? ack_idempotent.v : NULL;
    for (int i = 0; i < ack_retries.n; i++)
        if (amp_retry_set_budget(out, ack_retries.v[i], err) < 0)
            return -1;
    for (int i = 0; i < ack_backoff.n; i++)
        if (amp_retry_set_backoff(out, ack_backoff.v[i], err) < 0)
            return -1;
    return 0;
}
