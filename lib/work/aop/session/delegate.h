/* Checks what an agent may delegate (AOP §10, §11.2, §12), before its child TASK is sent. The
 * executor of the child checks the same again (admit.h). */
#ifndef AMP_WORK_AOP_SESSION_DELEGATE_H
#define AMP_WORK_AOP_SESSION_DELEGATE_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

/* Whether the agent of `parent` may send `child`, both valid TASKs of one session; the parent has
 * its record. 0. NO E_PERMISSION_DENIED: delegation_allowed is false, or the child's effective
 * access (files, network) is not within its parent's; E_MAX_DEPTH_EXCEEDED: it would be more than 3
 * levels deep. */
int amp_session_delegates(struct amp_store *s, const struct amp_view *parent,
                          const struct amp_view *child, struct amp_error *err);

#endif
