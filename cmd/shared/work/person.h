/* The person who runs a verb that changes the course of work: an operator, by login or key. */
#ifndef CLI_WORK_PERSON_H
#define CLI_WORK_PERSON_H

#include "message/identity/signature.h"
#include "shared/work/tool.h"

extern const char *amp_tool_key; /* --key */
#define AMP_TOOL_OPT_KEY                                                                           \
    {                                                                                              \
        0, "key", AMP_OPT_PATH, &amp_tool_key, "FILE",                                             \
            "your SSH key, which signs this: a private key, or the .pub of a key in ssh-agent",    \
            .config = "identity.operator_key"                                                      \
    }

struct amp_tool_person {
    const char *name, *by;
    char principal[AMP_PRINCIPAL_MAX], key[AMP_FINGERPRINT_MAX]; /* key: "" without --key */
    struct amp_identities *ids; /* NULL: identities are off, or the key is not available */
};
/* Verbs need the state directory, and the person who runs them, to which c->own points: NOPERM
 * not_operator. */
enum {
    AMP_TOOL_OPENS_PERSON = AMP_OPENS_OWN,
    AMP_TOOL_OPENS_ANYONE = AMP_OPENS_OWN << 1 /* also a person who is no operator */
};
int amp_tool_verb_open(struct amp_command *c, struct amp_error *err);
void amp_tool_verb_close(struct amp_command *c);

/* Members of struct amp_tool that the tools of work have in common; include
 * message/delivery/intake.h and cmd/shared/values.h. */
#define AMP_TOOL_OF_WORK                                                                           \
    .opts = amp_tool_opts, .statuses = amp_tool_statuses, .values = amp_values,                    \
    .refuse = amp_state_refuse, .open = amp_tool_verb_open, .close = amp_tool_verb_close,          \
    .summary = amp_intake_summary

/* A signature of the person over a text. */
struct amp_tool_signature {
    char alg[64], key[AMP_FINGERPRINT_MAX], value[AMP_SSHSIG_BASE64_MAX];
};
/* 1: signed; 0: there is no key, and the reason was printed. */
int amp_tool_sign(const struct amp_tool_person *p, const char *namespace_, struct amp_span text,
                  struct amp_tool_signature *out);

#endif
