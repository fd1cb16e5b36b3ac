/* The parts of amp-sign: the options that verbs share, and a function for each verb. */
#ifndef AMP_SIGN_SIGN_H
#define AMP_SIGN_SIGN_H

#include <amp/base/clock.h>

#include "cli/rows.h"
#include "identity/state.h"

struct sign_options {
    const char *state, *config, *principal, *key, *agent, *allowed;
    const char *signed_lines; /* pass, replace or refuse */
    bool unwrap, allow_unsigned, json;
    int64_t skew_ms, max_age_ms, grace_ms, lock_timeout_ms;
    const char *comment, *namespaces, *after, *before, *reason, *from, *only;
};
extern struct sign_options opt;

int verb_sign(int argc, char **argv);
int verb_verify(int argc, char **argv);
int verb_keygen(int argc, char **argv);
int verb_rotate(int argc, char **argv);
int verb_revoke(int argc, char **argv);
int verb_trust_add(int argc, char **argv);
int verb_trust_list(int argc, char **argv);
int verb_trust_remove(int argc, char **argv);
extern const struct amp_opt token_make_opts[], token_check_opts[];
int verb_token_make(int argc, char **argv);
int verb_token_check(int argc, char **argv);

/* The signer that --key, --ssh-agent or --state and --as name. */
int signer_open(struct amp_signer **out, struct amp_error *err);
/* Trust in the keys of the state and of --allowed-signers; findings are printed. */
int trust_open(struct amp_trust **out, struct amp_error *err);

/* A key as a person names it: a fingerprint, a public key, or the path of a .pub file. The key's
 * blob is known unless it is a fingerprint (key->n 0). */
int key_named(const char *text, struct amp_pubkey *key, struct amp_error *err);
/* The instant that an option names: RFC 3339, "now", or a duration before now with a minus. */
int time_named(const char *option, const char *text, int64_t *ms, struct amp_error *err);

/* Records a change of keys or trust in the state's error log, if there is a state; all codes are in
 * amp-codes(7). */
int change_record(const char *code, struct amp_span fingerprint, const char *what,
                  struct amp_error *err);

#endif
