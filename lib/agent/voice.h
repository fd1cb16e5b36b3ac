/* Messages that a registry sends: SW4RM's envelope with its recipient around it, and events of the
 * Runtime Protocol. What a voice says is numbered by the store, so that numbers rise over runs,
 * crashes and a clock that is set back; two processes with one name take turns. */
#ifndef AMP_AGENT_VOICE_H
#define AMP_AGENT_VOICE_H

#include <amp/base/id.h>

#include "protocol/amp/compose.h"
#include "store/store.h"

struct amp_voice {
    const char *name;  /* producer_id, sourceAgentId */
    const char *node;  /* sourceNodeId */
    int64_t event;     /* the next event's; 0: by the clock */
    int64_t next, end; /* of SW4RM's numbers that were taken; none left: by the clock */
};

/* Takes numbers for the next n messages of SW4RM. Not inside a callback of the store. */
int amp_voice_numbers(struct amp_voice *v, struct amp_store *s, uint32_t n, int64_t now_ms,
                      struct amp_error *err);

/* One line without LF, {"to":…,"msg":{…}}, or the bare envelope where `to` is empty. The payload's
 * reference is stolen, also on failure. correlation NULL: a new one. id_out may be NULL. */
struct amp_sw4rm_say {
    const char *type; /* "NOTIFICATION" */
    struct amp_span to;
    const char *correlation;
    int64_t now_ms;
};
int amp_voice_sw4rm(struct amp_voice *v, const struct amp_sw4rm_say *s, json_t *payload,
                    struct amp_buf *out, char id_out[AMP_UUID_MAX], struct amp_error *err);

/* The same for an event. The payload's reference is stolen. policy: capabilityPolicyVersion, or
 * NULL. */
struct amp_rtp_say {
    const char *kind;
    struct amp_span to;
    const char *corr, *policy;
    int64_t now_ms;
};
int amp_voice_rtp(struct amp_voice *v, const struct amp_rtp_say *s, json_t *payload,
                  struct amp_buf *out, char id_out[AMP_UUID_MAX], struct amp_error *err);

#endif
