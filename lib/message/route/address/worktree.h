/*
 * Work that needs a worktree (SW4RM §16): a call of a tool that needs one, by an agent that is not
 * bound, fails with worktree_not_bound, and an agent that is not bound, or whose bind failed, gets
 * no work that is about a worktree.
 */
#ifndef AMP_MESSAGE_ROUTE_ADDRESS_WORKTREE_H
#define AMP_MESSAGE_ROUTE_ADDRESS_WORKTREE_H

#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "message/store/store.h"

#define AMP_NOT_BOUND AMP_CODE(worktree_not_bound)

/* 1: the message is a call of a tool that needs a worktree, and its sender is an agent without one.
 * The tool needs one if the call's policy or a registered description of the tool says so. */
int amp_worktree_caller_lacks(struct amp_store *s, const struct amp_view *v, struct amp_error *err);
/* Whether the message is work about a worktree: a dispatch or the offer of a task that names one.
 */
bool amp_worktree_is_work(const struct amp_view *v);
/* Whether the agent has a worktree to work in. */
int amp_worktree_has(struct amp_store *s, struct amp_span agent, bool *yes, struct amp_error *err);

#endif
