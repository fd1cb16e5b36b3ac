/* Deadlines of bindings (SW4RM §16), and the messages to the admin about them. */
#ifndef AMP_WORK_GIT_BINDINGS_H
#define AMP_WORK_GIT_BINDINGS_H

#include "work/git/prepare.h"
#include "work/git/switch.h"

/* Ends switches whose time is over. With an actor, also repeats failed binds (three times, with
 * exponential back-off), and reports each agent that is in BIND_FAILED for longer than the recovery
 * time, once, by a NOTIFICATION of `from` to the admin in the actor's outbox. prepare: what the
 * worktree of a repeated bind gets; NULL: nothing. *done counts all of them; it
 * may be NULL. */
int amp_binding_expire(struct amp_store *s, int64_t now_ms, const char *actor, const char *from,
                       const struct amp_prepare *prepare, uint32_t *done, struct amp_error *err);

/* Asks the admin to allow a pending switch: appends a HITL_INVOCATION with the binding's invocation
 * id as one line with LF. The same binding always has the same token. */
int amp_binding_ask(const struct amp_binding *b, const char *from, int64_t now_ms,
                    struct amp_buf *out, struct amp_error *err);

#endif
