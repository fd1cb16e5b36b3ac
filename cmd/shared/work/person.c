/* The person who runs a verb, never an agent: by login or key, an operator where some are named. */
#include "shared/work/person.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "cli/config.h"
#include "people/question/operators/operators.h"

const char *amp_tool_key;

/* The principal of the person's own key. */
static void key_read(struct amp_tool_person *p)
{
    static const char role[] = AMP_OPERATOR_ROLE "/";
    char principal[AMP_PRINCIPAL_MAX];

    if (!amp_tool_key || amp_identities_signs_as(p->ids, principal) != 1)
        return;
    snprintf(p->principal, sizeof p->principal, "%s", principal);
    snprintf(p->key, sizeof p->key, "%s",
             amp_signer_public(amp_identities_signer(p->ids))->fingerprint);
    bool ours = strncmp(principal, role, sizeof role - 1) == 0;
    p->name = p->principal + (ours ? sizeof role - 1 : 0);
    p->by = amp_known_by_name(AMP_KNOWN_BY_KEY);
}

static int operators_check(const struct amp_tool_person *p, const char *login,
                           struct amp_error *err)
{
    struct amp_operators *o = amp_operators_new(err);
    const struct amp_answerer who = {.name = p->name,
                                     .principal = p->principal,
                                     .key = p->key,
                                     .login = login,
                                     .by = *p->key ? AMP_KNOWN_BY_KEY : AMP_KNOWN_BY_LOGIN};
    int rc = !o ? -1
                : amp_config_values(amp_tool_config, amp_tool_state, "hitl.operators",
                                    amp_operators_add, o, err);

    if (rc == 0 && !amp_operators_is(o, &who, err))
        rc = -1;
    amp_operators_free(o);
    return rc;
}

static int person_open(struct amp_tool_person *p, struct amp_error *err)
{
    struct amp_error why;

    *p = (struct amp_tool_person){.by = amp_known_by_name(AMP_KNOWN_BY_LOGIN)};
    const char *login = p->name = amp_cli_login("operator");
    snprintf(p->principal, sizeof p->principal, AMP_OPERATOR_ROLE "/%.100s", login);
    const struct amp_identity_tool who = {.state = amp_tool_state,
                                          .config = amp_tool_config,
                                          .principal = p->principal,
                                          .key = amp_tool_key};
    if (amp_tool_state && access(amp_tool_state, F_OK) == 0 &&
        amp_identity_cli_open(&amp_tool_identity, &who, &p->ids, &why) < 0) {
        if (amp_tool_key) { /* asked for, so it is not left out */
            *err = why;
            return -1;
        }
        amp_warn("this is not signed: %s", why.what);
        p->ids = NULL;
    }
    if (p->ids)
        key_read(p);
    return operators_check(p, login, err);
}

int amp_tool_verb_open(struct amp_command *c, struct amp_error *err)
{
    static struct amp_tool_person person;

    if (c->opens & AMP_TOOL_OPENS_PERSON) {
        c->own = &person;
        if (person_open(&person, err) < 0 &&
            !(c->opens & AMP_TOOL_OPENS_ANYONE && amp_code_is(err->code, not_operator)))
            return -1;
    }
    return amp_state_open(c, err);
}

void amp_tool_verb_close(struct amp_command *c)
{
    struct amp_tool_person *p = c->own;

    if (p) {
        amp_identities_close(p->ids);
        p->ids = NULL;
    }
    amp_state_close(c);
}

int amp_tool_sign(const struct amp_tool_person *p, const char *namespace_, struct amp_span text,
                  struct amp_tool_signature *out)
{
    struct amp_signer *by = amp_identities_signer(p->ids);
    struct amp_error why;

    if (!by)
        return 0;
    if (amp_signer_sign(by, namespace_, text, out->value, &why) < 0) {
        amp_warn("this is not signed: %s", why.what);
        return 0;
    }
    snprintf(out->alg, sizeof out->alg, "%s", amp_signer_alg(by));
    snprintf(out->key, sizeof out->key, "%s", amp_signer_public(by)->fingerprint);
    return 1;
}
