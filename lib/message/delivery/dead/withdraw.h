/*
 * Withdrawing dead letters after a late acknowledgement or the success of another attempt at the
 * same operation. A fulfilled message has no open letter.
 */
#ifndef AMP_MESSAGE_DELIVERY_DEAD_WITHDRAW_H
#define AMP_MESSAGE_DELIVERY_DEAD_WITHDRAW_H

#include "message/delivery/ledger/ledger.h"

/* Whether the message, or another attempt at its operation, has an open letter. */
int amp_dead_chain_look(struct amp_store *s, struct amp_span id, bool *open, struct amp_error *err);

/* Closes the letters that the message's ledger record makes void: all if it is FULFILLED, those for
 * a timeout if the message arrived. */
int amp_dead_chain_withdraw(struct amp_store *s, struct amp_span id, const char *actor,
                            struct amp_error *err);

#endif
