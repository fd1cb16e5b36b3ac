/*
 * Identities in the tools: who said a message, and signing what a tool says itself.
 *
 * A message counts as said by its sender if it is signed by a key that may speak for the sender
 * (identity/trust.h). identity.require says what an unsigned message is worth: `local`: it counts
 * if it came from a trusted input; `all`: it does not count; `off`: nothing is verified or signed.
 */
#ifndef AMP_MESSAGE_DELIVERY_SENDER_IDENTITY_H
#define AMP_MESSAGE_DELIVERY_SENDER_IDENTITY_H

#include <amp/protocol/protocol.h>

#include "message/identity/state.h"
#include "message/identity/verify.h"
#include "message/store/store.h"

enum amp_identity_require {
    AMP_IDENTITY_LOCAL,
    AMP_IDENTITY_ALL,
    AMP_IDENTITY_OFF,
};

#define AMP_OPERATOR_ROLE "operator"

struct amp_identities_options {
    enum amp_identity_require require;
    const char *state;            /* the state directory, as long as the identities live; NULL: only
                                     allowed_signers counts */
    const char *allowed_signers;  /* keys from outside; NULL: none */
    const char *const *operators; /* principals that are operators, beside operator/NAME;
                                     NULL-terminated, or NULL */
    const char *principal;        /* of this tool's own messages; NULL: it signs nothing */
    const char *key;              /* a private key, or the .pub of a key in ssh-agent, that signs
                                     them; NULL: the principal's key in the state directory */
    const char *agent_socket;     /* the value of SSH_AUTH_SOCK; NULL: none */
    int64_t skew_ms, max_age_ms;  /* see identity/verify.h; 0: the defaults */
    volatile const int *stop;
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

/* NULL is the same as AMP_IDENTITY_OFF for all functions. */
struct amp_identities;
/* With AMP_IDENTITY_OFF *out is NULL. The key in the state directory is made if there is none. */
int amp_identities_open(const struct amp_identities_options *opt, struct amp_identities **out,
                        struct amp_error *err);
void amp_identities_close(struct amp_identities *ids);
/* Reads changed trust files and a rotated key again; before a batch of messages. */
int amp_identities_refresh(struct amp_identities *ids, struct amp_error *err);

/* The speaker of a message. */
struct amp_said {
    enum amp_said_how {
        AMP_SAID_UNCHECKED, /* identities are off */
        AMP_SAID_TRUSTED,   /* unsigned, from a trusted input: by whom the message names */
        AMP_SAID_SIGNED,
    } how;
    bool is_operator;
    struct amp_identity by; /* of a signed message */
    struct amp_span from;   /* the view's */
};

/* Finds who must have signed a message: its sender, or the operator whose answer it is (in `mem`),
 * if it keeps the sender of the question. */
enum { AMP_SPEAKER_MAX = 256 };
struct amp_span amp_speaker(const struct amp_view *v, char mem[AMP_SPEAKER_MAX]);

/* 1: the message counts as said by its sender; 0: it does not, and *why has the code: unsigned,
 * unknown_key, key_revoked, key_expired, bad_signature, bad_signature_time, bad_sender; -1: it
 * could not be verified. An operator may say what is from "admin". */
int amp_identities_who(struct amp_identities *ids, const struct amp_view *v, bool trusted,
                       struct amp_said *said, struct amp_error *why, struct amp_error *err);
/* Whether the sender has the role: its key has the principal ROLE or ROLE/NAME, or for a message
 * that was not signed, the message is from it. */
bool amp_said_by(const struct amp_identities *ids, const struct amp_said *said, const char *role);
/* Whether another message's sender has the name, too, as a rotated key has. false for a role
 * ("executor") or a pattern, which several agents may share. */
bool amp_identities_is_named(const struct amp_identities *ids, const struct amp_identity *by,
                             const char *name);
/* Whether the key may speak for an operator at a time. */
bool amp_identities_is_operator(const struct amp_identities *ids, struct amp_span key,
                                int64_t time_ms);

/* Whether the tool's own key is an operator's: 1, and the principal; 0: it is not. */
int amp_identities_signs_as(struct amp_identities *ids, char principal[AMP_PRINCIPAL_MAX]);

/* Whether the sender of an acknowledgement may send it: it is the addressee of the message, its own
 * sender, who calls it off, or one of our tools that reports about the delivery ("system"). 0: no,
 * *why is bad_sender. */
int amp_said_by_addressee(struct amp_store *s, const struct amp_view *ack,
                          const struct amp_said *said, struct amp_error *why,
                          struct amp_error *err);
/* Sets *why to bad_sender with the sender and `what`; returns 0. */
int amp_said_refuse(const struct amp_said *said, struct amp_error *why, const char *what);
/* Whether the unsigned messages of an input count, with AMP_IDENTITY_LOCAL: of standard input (NULL
 * or "-"), unless it is a FIFO with a name, which other processes can open. */
bool amp_input_is_trusted(const char *path);

/* Appends a line without LF, signed with the tool's key. Unchanged are lines that are signed, lines
 * from another sender (but for the decisions of an operator's tool), and the lines of a tool
 * without a key. The tool of executor/NAME or reviewer/NAME signs lines from NAME with the key of
 * this principal, which is made for the first of them. */
int amp_identities_sign(struct amp_identities *ids, struct amp_span line, struct amp_buf *out,
                        struct amp_error *err);
/* The agent's type: it signs lines from this name as well, such as the RESPONSE to a TASK for the
 * type. Borrowed. */
void amp_identities_type(struct amp_identities *ids, const char *type);

/* Signs as amp_identities_sign does. A further attempt that the sweep made of a sender's message is
 * signed as well: with the key in the state directory of the principal that signed the first
 * attempt, if this signature is valid and by a key of the state. Else only the sender can sign it,
 * and it stays as it is. */
int amp_identities_sign_again(struct amp_identities *ids, struct amp_store *s, struct amp_span line,
                              struct amp_buf *out, struct amp_error *err);

/* Writes a signature as a record has it: {"key":…,"alg":…,"time":…,"value":…}. */
int amp_signature_write(const struct amp_signature *sig, struct amp_buf *out,
                        struct amp_error *err);
/* Appends the line of a recorded message with its recorded signature ("": the message alone). */
int amp_signature_line(struct amp_span message, struct amp_span sig, struct amp_buf *out,
                       struct amp_error *err);

/* The verifier and the trust, for records and bundles; NULL if identities are off. */
struct amp_verifier *amp_identities_verifier(struct amp_identities *ids);
struct amp_trust *amp_identities_trust(struct amp_identities *ids);
struct amp_signer *amp_identities_signer(struct amp_identities *ids);

/* Reads the value of identity.require; -1: another word. */
int amp_identity_require_find(const char *word);

#endif
