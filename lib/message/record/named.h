/* Messages without an id of their own that the ledger keeps under one that their protocol makes. */
#ifndef AMP_MESSAGE_RECORD_NAMED_H
#define AMP_MESSAGE_RECORD_NAMED_H

#include "protocol/amp/compose.h"

/* Gives the view its id, which lives in mem, where it has none. False: it has none now either. */
bool amp_message_name(struct amp_view *v, char mem[AMP_MSG_ID_MAX]);

#endif
