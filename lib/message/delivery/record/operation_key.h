/* The operation that a message is an attempt at. Pure. */
#ifndef AMP_MESSAGE_DELIVERY_RECORD_OPERATION_KEY_H
#define AMP_MESSAGE_DELIVERY_RECORD_OPERATION_KEY_H

#include <amp/protocol/protocol.h>

#include "message/store/key.h"

#define AMP_IDEM_KIND "token" /* of the records of operations */

/* Must not be copied: the key's parts are in mem and in the view. */
struct amp_operation_key {
    struct amp_key key;
    char mem[AMP_KEY_NAME_MAX];
};

/* The key of the message's operation; without parts for messages that are not deduplicated:
 * acknowledgements, messages without a producer, all protocols but SW4RM and the Runtime Protocol,
 * of which tasks and messages are. */
int amp_operation_key(const struct amp_view *v, struct amp_operation_key *out,
                      struct amp_error *err);

#endif
