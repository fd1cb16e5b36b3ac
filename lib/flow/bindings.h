/* What the times of bindings bring (SW4RM §16), and what is said to people about them. */
#ifndef AMP_FLOW_BINDINGS_H
#define AMP_FLOW_BINDINGS_H

#include "worktree/worktree.h"

/* Ends switches whose time is over. With an actor also reports, into its outbox, each agent that is
 * in BIND_FAILED for longer than the recovery time, once: a NOTIFICATION to the admin. *done counts
 * both; may be NULL. */
int amp_binding_expire(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                       struct amp_error *err);

/* The question whether a pending switch is allowed: a HITL_INVOCATION to the admin with the
 * binding's invocation id, as one line with LF. The same binding gives the same token. */
int amp_binding_ask(const struct amp_binding *b, const char *from, int64_t now_ms,
                    struct amp_buf *out, struct amp_error *err);

/* A message of SW4RM for the admin, as one line with LF: {"to":"admin","msg":…}, because the
 * envelope names no recipient. */
struct amp_sw4rm_said;
int amp_binding_to_admin(const struct amp_sw4rm_said *said, const struct amp_buf *payload,
                         struct amp_buf *out, struct amp_error *err);

#endif
