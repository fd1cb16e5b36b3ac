/*
 * Messages without an id of their own that the ledger keeps all the same: a TASK of AOP is known by
 * its session, task and attempt ("SESSION/TASK/1"), a handoff.request of AOF/1 by its task and the
 * time of sending.
 */
#ifndef AMP_MESSAGE_RECORD_NAMED_H
#define AMP_MESSAGE_RECORD_NAMED_H

#include "protocol/amp/compose.h"

/* Gives the view its id, which lives in mem, where it has none. False: it has none now either. */
bool amp_message_name(struct amp_view *v, char mem[AMP_MSG_ID_MAX]);
/* Whether the id that such a view has is one of these. */
bool amp_message_is_named(const struct amp_view *v);

#endif
