/* The messages that a registry sends: SW4RM envelopes with their recipient, and events of the
 * Runtime Protocol. The store numbers them, so the numbers increase across runs, crashes and a
 * clock that is set back. Two processes with one name share the numbers. */
#ifndef AMP_WORK_AGENT_VOICE_H
#define AMP_WORK_AGENT_VOICE_H

#include <amp/base/id.h>

#include "message/protocol/compose/json.h"
#include "message/protocol/rtp/rtp.h"
#include "message/store/store.h"

struct amp_voice {
    const char *name;  /* producer_id, sourceAgentId */
    const char *node;  /* sourceNodeId */
    int64_t event;     /* the number of the next event; 0: from the clock */
    int64_t next, end; /* reserved SW4RM numbers; if none are left: from the clock */
};

/* Reserves numbers for the next n SW4RM messages. Must not be called in a callback of the store. */
int amp_voice_numbers(struct amp_voice *v, struct amp_store *s, uint32_t n, int64_t now_ms,
                      struct amp_error *err);

/* Composes one line without LF, {"to":…,"msg":{…}}, or the bare envelope if `to` is empty. Takes
 * the payload's reference, also on failure. correlation NULL: a new one. */
struct amp_sw4rm_say {
    const char *type; /* "NOTIFICATION" */
    struct amp_span to;
    const char *correlation;
    int64_t now_ms;
};
int amp_voice_sw4rm(struct amp_voice *v, const struct amp_sw4rm_say *s, json_t *payload,
                    struct amp_buf *out, char id[AMP_UUID_MAX], struct amp_error *err);

/* An event that an agent says, and its id. routing and policy are the routingPolicyVersion and the
 * capabilityPolicyVersion, or NULL. */
struct amp_rtp_say {
    const char *kind;
    struct amp_span to;
    const char *corr, *routing, *policy;
    int64_t now_ms;
};
int amp_voice_rtp(struct amp_voice *v, const struct amp_rtp_say *s, json_t *payload,
                  struct amp_buf *out, char id[AMP_RTP_ID_MAX], struct amp_error *err);

/* The lines that one commit emits. */
struct amp_voice_lines {
    struct amp_buf text;
    struct amp_store_emit *emits;
    char (*ids)[192];
    uint32_t n;
};
/* Room for `most` lines. The caller releases it, also after a failure. */
int amp_voice_lines_init(struct amp_voice_lines *l, size_t most, struct amp_error *err);
void amp_voice_lines_release(struct amp_voice_lines *l);
void amp_voice_lines_reset(struct amp_voice_lines *l);
/* Makes the text from byte `from` on a line. Returns its copy of the id. */
const char *amp_voice_lines_add(struct amp_voice_lines *l, size_t from, const char *id);
/* Adds the lines to a commit. */
void amp_voice_lines_commit(struct amp_voice_lines *l, struct amp_store_change *c);

#endif
