/* The effective access of an AOP task as a confinement policy (AOP §11.2). */
#ifndef AMP_WORK_CONFINE_EFFECTIVE_H
#define AMP_WORK_CONFINE_EFFECTIVE_H

#include <amp/protocol/protocol.h>

#include "work/confine/confine.h"

/* Restricts a shallow copy of a policy to what `amp-validate --effective` computes for the message.
 * The message never grants: its paths in its workspace, which is the worktree here, are the only
 * ones of the worktree that may be read or written; its paths elsewhere are ignored, and the grants
 * of the policy stay. The network becomes the more restrictive one: NONE is DENY_ALL, RESTRICTED is
 * at most EGRESS_RESTRICTED. 1: the message has no such access, and the policy is unchanged; -1:
 * out of memory. The copy has to be released also then. */
int amp_access_restrict(const struct amp_view *v, struct amp_confine_policy *p,
                        struct amp_error *err);
/* Restricts the policy by text: the record of `amp-validate --effective`
 * (schemas/records/effective.json), or the AOP TASK. DATAERR bad_access: it is neither; a message
 * that is not valid has no access. */
int amp_access_restrict_text(struct amp_span text, struct amp_confine_policy *p,
                             struct amp_error *err);
/* Frees what the restriction added; the rest belongs to the original. */
void amp_access_release(struct amp_confine_policy *p);

#endif
