/* The person who cancels or lands a task. */
#ifndef TASK_DISPATCH_PERSON_H
#define TASK_DISPATCH_PERSON_H

#include "../verbs.h"
#include "identity/signature.h"

extern const char *tasks_key; /* --key */
#define TASKS_OPT_KEY                                                                              \
    {                                                                                              \
        0, "key", AMP_OPT_PATH, &tasks_key, "FILE",                                                \
            "your SSH key, which signs this: a private key, or the .pub of a key in ssh-agent",    \
            .config = "identity.operator_key"                                                      \
    }

struct tasks_person {
    const char *name, *by;
    char principal[AMP_PRINCIPAL_MAX], key[AMP_FINGERPRINT_MAX]; /* key: "" without --key */
    struct amp_identities *ids; /* NULL: identities are off, or the key is not available */
};
/* Finds who runs the verb. NOPERM not_operator. Close p also after a failure. */
int tasks_person_open(struct tasks_person *p, struct amp_error *err);
void tasks_person_close(struct tasks_person *p);

/* Verbs need the state directory, and the person who runs them, to which c->own points.
 */
enum {
    TASK_OPENS_PERSON = AMP_OPENS_OWN,
    TASK_OPENS_ANYONE = AMP_OPENS_OWN << 1 /* also a person who is no operator */
};
int tasks_verb_open(struct amp_command *c, struct amp_error *err);
void tasks_verb_close(struct amp_command *c);

/* A signature of the person over a text. */
struct tasks_signature {
    char alg[64], key[AMP_FINGERPRINT_MAX], value[AMP_SSHSIG_BASE64_MAX];
};
/* 1: signed; 0: there is no key, and the reason was printed. */
int tasks_sign(const struct tasks_person *p, const char *namespace_, struct amp_span text,
               struct tasks_signature *out);

#endif
