/*
 * Tokens of external agents (rtp.level 3). A message of a protocol with tokens that is neither
 * signed by a key of this state nor from a trusted input needs a token for its sender and key, and
 * a nonce that was not used with this token before. A used nonce is a record of the state until the
 * token expires.
 */
#ifndef AMP_MESSAGE_DELIVERY_ADMIT_TOKENS_H
#define AMP_MESSAGE_DELIVERY_ADMIT_TOKENS_H

#include "message/delivery/sender/identity.h"

/* rtp.level (1 to 3) and rtp.audience (of tokens for us; default "amp"). arg is ignored. */
int amp_tokens_level_set(void *arg, const char *text, struct amp_error *err);
int amp_tokens_audience_set(void *arg, const char *text, struct amp_error *err);
#define AMP_TOKENS_SETTINGS                                                                        \
    {"rtp.level", amp_tokens_level_set},                                                           \
    {                                                                                              \
        "rtp.audience", amp_tokens_audience_set                                                    \
    }

/* Whether tokens are needed at all. */
bool amp_tokens_are_needed(void);
/* 1: the message needs no token or has a valid one, whose nonce is recorded; 0: *why has the code:
 * a code of amp_pop_check and amp_identities_who, token_missing, token_malformed, token_replayed;
 * -1: failure. trusted: the message is from a trusted input. ids and s must not be NULL if tokens
 * are needed (CONFIG token_unverifiable). taker: the name of a caller that does not recognize
 * duplicates; the same message again is token_replayed for it. NULL: it passes again. The caller
 * syncs. */
int amp_tokens_admit(struct amp_identities *ids, struct amp_store *s, const struct amp_view *v,
                     bool trusted, const char *taker, struct amp_error *why, struct amp_error *err);

/* A deadline: removes the records of expired tokens. */
#define AMP_NONCE_KIND "nonce"

#endif
