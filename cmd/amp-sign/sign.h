/* The options of amp-sign, and what several of its verbs open. */
#ifndef AMP_SIGN_SIGN_H
#define AMP_SIGN_SIGN_H

#include <amp/base/clock.h>

#include "message/identity/state.h"
#include "shared/state.h"

struct sign_options {
    const char *state, *config, *principal, *key, *agent, *allowed;
    const char *signed_lines; /* pass, replace or refuse */
    bool unwrap, allow_unsigned;
    int64_t skew_ms, max_age_ms, grace_ms, lock_timeout_ms;
    const char *comment, *namespaces, *after, *before, *reason, *from, *only;
};
extern struct sign_options opt;

#define SIGNER_OPT_AS                                                                              \
    AMP_OPT_ROW(0, "as", AMP_OPT_STRING, &opt.principal, "PRINCIPAL",                              \
                "whose key of the state directory: NAME or ROLE/NAME")
#define SIGNER_OPTS                                                                                \
    AMP_OPT_ROW(0, "key", AMP_OPT_PATH, &opt.key, "FILE", "private key to sign with"),             \
        AMP_OPT_ROW(0, "ssh-agent", AMP_OPT_STRING, &opt.agent, "KEY",                             \
                    "key of ssh-agent: a fingerprint, a public key or a .pub file"),               \
        SIGNER_OPT_AS

/* The check of a verb that signs: one of --key, --ssh-agent and --as is given; the last one needs a
 * state directory and a person. */
int signer_check(struct amp_command *c, struct amp_error *err);
/* The signer that they name. */
int signer_open(struct amp_signer **out, struct amp_error *err);
/* Trust in the keys of the state and of --allowed-signers; findings are printed. */
int trust_open(struct amp_trust **out, struct amp_error *err);

/* A key as a person names it: a fingerprint, a public key, or the path of a .pub file. The key's
 * blob is known unless it is a fingerprint (key->n 0). */
int key_named(const char *text, struct amp_pubkey *key, struct amp_error *err);
/* The instant that an option names: RFC 3339, "now", or a duration before now with a minus. */
int time_named(const char *option, const char *text, int64_t *ms, struct amp_error *err);

/* Records a change of keys or trust in the error log of the state s (NULL: no state); all codes are
 * in amp-codes(7). */
int change_record(struct amp_store *s, const char *code, struct amp_span fingerprint,
                  const char *what, struct amp_error *err);

#endif
