/* How long is waited, and how often and when messages are sent again. */
#include "rules.h"

#include <string.h>

#include <amp/base/num.h>

struct amp_list ack_timeouts;
int64_t ack_sla_ms = 120000;

/* Of protocols that acknowledge. */
static int read_timeout(const char *text, struct amp_message_terms *out, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    struct amp_span name = {text, eq ? (size_t)(eq - text) : strlen(text)};
    enum amp_protocol p = amp_protocol_find(name);
    if (!eq || !amp_stages_of(p))
        return amp_fail(err, AMP_USAGE, "bad_protocol",
                        "--ack-timeout takes amp=TIME, sw4rm=TIME or rtp=TIME, not %s", text);
    return amp_num_duration(amp_span_str(eq + 1), 1, INT64_C(31536000000), &out->ack_timeout_ms[p],
                            err);
}

int ack_terms(struct amp_message_terms *out, struct amp_error *err)
{
    out->sla_ms = ack_sla_ms > 0 ? ack_sla_ms : -1;
    for (int i = 0; i < ack_timeouts.n; i++)
        if (read_timeout(ack_timeouts.v[i], out, err) < 0)
            return -1;
    return 0;
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
