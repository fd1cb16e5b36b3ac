/*
 * Dead letters of what was done after all: a late acknowledgement, or another attempt at the same
 * operation, came through. No fulfilled message has an open letter.
 */
#ifndef AMP_MESSAGE_DEAD_LETTERS_H
#define AMP_MESSAGE_DEAD_LETTERS_H

#include "message/ledger/ledger.h"

/* Whether the message, or another attempt at its operation, has an open letter. */
int amp_letters_look(struct amp_store *s, struct amp_span id, bool *open, struct amp_error *err);

/* Closes those that are void by what the ledger says of the message: all of them where it was
 * FULFILLED, those that a timeout made where it arrived. */
int amp_letters_withdraw(struct amp_store *s, struct amp_span id, const char *actor,
                         struct amp_error *err);

#endif
