/* AOF/1: rules, events and refusals. */
#ifndef AMP_MESSAGE_PROTOCOL_AOF_AOF_H
#define AMP_MESSAGE_PROTOCOL_AOF_AOF_H

#include "message/protocol/check/check.h"

void amp_aof_rules(struct amp_check *c);

/* A line of the event log about a message; empty members are left out. */
struct amp_aof_event {
    const char *type, *actor, *reason, *field, *what;
    struct amp_span to;
};
int amp_aof_event(const struct amp_aof_event *e, const struct amp_view *v, int64_t now_ms,
                  struct amp_buf *out, struct amp_error *err);

/* An event record "protocol.message.rejected" (or unknown). */
enum amp_refuse_result amp_aof_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#endif
