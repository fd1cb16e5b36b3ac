/* SW4RM: the envelope of what we say ourselves. Apart from the answers, whose tokens need a digest
 * that the checker does not link. */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "protocol/sw4rm/answer.h"

void amp_sw4rm_envelope(struct amp_jw *w, const struct amp_sw4rm_said *said,
                        struct amp_span payload)
{
    char id[AMP_UUID_MAX], flow[AMP_UUID_MAX], time[AMP_TIME_MAX], hlc[128];
    uint16_t part;
    amp_uuid4(id);
    amp_uuid4(flow);
    amp_random(&part, sizeof part);
    amp_time_format(said->now_ms, time);
    snprintf(hlc, sizeof hlc, "%lld.%06u.%.64s", (long long)said->now_ms * 1000, (unsigned)part,
             said->from);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "message_id", id);
    amp_jw_member_text(w, "producer_id", said->from);
    amp_jw_member_str(w, "correlation_id",
                      said->correlation.n > 0 ? said->correlation : amp_span_str(flow));
    amp_jw_member_int(w, "sequence_number", said->sequence);
    amp_jw_member_int(w, "retry_count", 0);
    amp_jw_member_text(w, "message_type", said->type);
    amp_jw_member_text(w, "content_type", "application/json");
    amp_jw_member_int(w, "content_length", (int64_t)payload.n);
    amp_jw_member_text(w, "idempotency_token", said->token);
    /* Nobody has told whether such clocks are on; where they are, it is demanded. */
    amp_jw_member_text(w, "hlc_timestamp", hlc);
    amp_jw_member_text(w, "timestamp", time);
    amp_jw_key(w, "payload");
    amp_jw_raw(w, payload);
    amp_jw_close(w, '}');
}
