/*
 * Messages for all agents (Runtime Protocol §3.2): `all` in toAgents becomes the agents of the
 * registry when the message is published, so that no later attempt has other recipients.
 */
#ifndef AMP_WORK_AGENT_PUBLISH_H
#define AMP_WORK_AGENT_PUBLISH_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

/* 1: appends the message with its recipients, without LF, in place of ["all"]: the recipients of
 * the record, if the message is recorded, else the active agents but the sender. 0: the message
 * stays as it is; so does a signed one, which only its sender can change, and one for which there
 * is no agent. Call it before the message is recorded. */
int amp_publish_line(struct amp_store *s, const struct amp_view *v, struct amp_buf *out,
                     struct amp_error *err);

#endif
