/* Which operation a message is an attempt at. Pure. */
#ifndef AMP_MESSAGE_RECORD_OPERATION_KEY_H
#define AMP_MESSAGE_RECORD_OPERATION_KEY_H

#include <amp/protocol/protocol.h>

/* Appends the id of the message's operation; nothing for messages that are not deduplicated:
 * acknowledgements, messages without a producer, all protocols but SW4RM and the Runtime Protocol,
 * of which tasks and messages are. */
int amp_operation_key(const struct amp_view *v, struct amp_buf *out, struct amp_error *err);

#endif
