/* The members of a task_create that its executor honours (Runtime Protocol v1 §1, §4, §7). */
#ifndef AMP_MESSAGE_PROTOCOL_RTP_TASK_H
#define AMP_MESSAGE_PROTOCOL_RTP_TASK_H

#include <amp/protocol/protocol.h>

#define AMP_RTP_CAPABILITIES_MAX 16

/* Texts are raw JSON strings of the view's tape; empty: not given. */
struct amp_rtp_task {
    struct amp_span capability[AMP_RTP_CAPABILITIES_MAX];
    uint32_t n_capabilities;
    bool skill;              /* it distributes a skill, */
    struct amp_span version; /* of this version */
    int64_t deadline_ms;     /* deadlineAt, or requiredBy of a skill; 0: none */
    struct amp_span routing; /* trace.routingPolicyVersion */
};
/* Whether the message is a task_create; then *out is filled. */
bool amp_rtp_task_read(const struct amp_view *v, struct amp_rtp_task *out);
/* Whether the message completes such a task; then *version is what it confirms, or empty. */
bool amp_rtp_task_confirms(const struct amp_view *v, struct amp_span *version);

#endif
