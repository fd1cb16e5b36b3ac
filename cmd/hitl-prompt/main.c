/* hitl-prompt: agents' questions to people, and the answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "cli/config.h"
#include "hitl.h"
#include "message/delivery/intake.h"
#include "message/pause/pause.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/finding.h"
#include "shared/identity.h"
#include "shared/state.h"
#include "shared/values.h"

const char *hitl_state, *hitl_operator, *hitl_as, *hitl_key;
static const char *config;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS;
static struct amp_identity_cli identity = AMP_IDENTITY_CLI;

static const struct amp_opt options[] = {
    AMP_OPT_STATE(hitl_state),
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    {0, "operator", AMP_OPT_STRING, &hitl_operator, "NAME",
     "person who decides (default: the login)"},
    {0, "key", AMP_OPT_PATH, &hitl_key, "FILE",
     "SSH key that signs decisions: a private key, or the .pub of a key in ssh-agent",
     .config = "identity.operator_key"},
    {0, "as", AMP_OPT_STRING, &hitl_as, "NAME", "name in the state directory"},
    AMP_OPT_IDENTITIES(identity),
    AMP_OPT_CONFIG(config),
    AMP_OPT_END,
};

/* clang-format off */
#define VERBS(X) \
    X(ask) X(list) X(show) X(answer) X(receive) X(sign) X(suspend) X(audit) X(hook)
/* clang-format on */
AMP_VERBS(VERBS);
static const int statuses[] = {AMP_OK,          AMP_NO,       AMP_USAGE,       AMP_DATAERR,
                               AMP_UNAVAILABLE, AMP_IOERR,    AMP_TEMPFAIL,    AMP_NOPERM,
                               AMP_CONFIG,      AMP_TIMEDOUT, AMP_INTERRUPTED, 0};
static const struct amp_fsm *const machines[] = {&amp_escalation_fsm, &amp_pause_fsm, NULL};
AMP_CONFIG_SUSPENDER;

/* ---- what the verbs share ---- */

const char *hitl_config_path(void)
{
    return config;
}

struct amp_decider_people hitl_people;
static struct amp_operators *operators;

static int others_set(void *arg, const char *text, struct amp_error *err)
{
    hitl_people.others = strcmp(text, "true") == 0;
    return 0;
}

static int people_read(struct amp_error *err)
{
    hitl_people.login = amp_cli_login("operator");
    if (!(operators = amp_operators_new(err)) ||
        amp_config_values(config, hitl_state, "hitl.operators", amp_operators_add, operators, err) <
            0 ||
        amp_config_values(config, hitl_state, "hitl.approvals", amp_approvals_add, operators, err) <
            0 ||
        amp_config_values(config, hitl_state, "hitl.allow_operator", others_set, NULL, err) < 0)
        return -1;
    hitl_people.operators = operators;
    if (!hitl_operator)
        hitl_operator = hitl_people.login;
    if (!hitl_as)
        hitl_as = amp_cli_name();
    if (!hitl_people.others && strcmp(hitl_operator, hitl_people.login) != 0)
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "--operator %s: the login is \"%s\", and amp.json does not set "
                        "hitl.allow_operator",
                        hitl_operator, hitl_people.login);
    return 0;
}

static int token_answers_set(void *arg, const char *text, struct amp_error *err)
{
    int found = amp_token_answers_find(text);

    if (found < 0)
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "hitl.token_answers is not all, deny_and_defer or none");
    *(enum amp_token_answers *)arg = (enum amp_token_answers)found;
    return 0;
}

int hitl_token_answers(enum amp_token_answers *out, struct amp_error *err)
{
    *out = AMP_TOKEN_ANSWERS_ALL;
    return amp_config_values(config, hitl_state, "hitl.token_answers", token_answers_set, out, err);
}

int hitl_config(json_t **out, struct amp_error *err)
{
    json_t *all = NULL;

    if (amp_config_load(config, hitl_state, &all, err) < 0)
        return -1;
    *out = json_object_get(all, "hitl");
    return 0;
}

static int fallback_set(void *arg, const char *text, struct amp_error *err)
{
    int found = amp_fallback_find(amp_span_str(text));

    if (found < 0)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.fallback: \"%.100s\" is unknown", text);
    *(int8_t *)arg = (int8_t)found;
    return 0;
}

static int threshold_set(void *arg, const char *text, struct amp_error *err)
{
    *(double *)arg = strtod(text, NULL); /* the schema has checked it */
    return 0;
}

int hitl_policy(struct amp_hitl_policy *out, struct amp_error *err)
{
    char name[64];

    *out = (struct amp_hitl_policy)AMP_HITL_POLICY_NONE;
    if (amp_config_values(config, hitl_state, "hitl.fallback.default", fallback_set, &out->fallback,
                          err) < 0 ||
        amp_config_values(config, hitl_state, "hitl.threshold", threshold_set, &out->threshold,
                          err) < 0)
        return -1;
    for (int i = 0; i < AMP_REASON_COUNT; i++) {
        snprintf(name, sizeof name, "hitl.fallback.%s", amp_reason_name((enum amp_reason)i));
        if (amp_config_values(config, hitl_state, name, fallback_set, &out->by_reason[i], err) < 0)
            return -1;
    }
    return 0;
}

int hitl_trust(struct amp_identities **out, struct amp_error *err)
{
    const struct amp_identity_tool who = {.state = hitl_state, .config = config};
    return amp_identity_cli_open(&identity, &who, out, err);
}

struct hitl_author hitl_author;

/* A key that is not an operator's signs for the login, as the state's key does. */
static int author_find(struct amp_identities *ids, struct amp_error *err)
{
    static const char role[] = AMP_OPERATOR_ROLE "/";
    char principal[AMP_PRINCIPAL_MAX];

    if (!amp_identities_signs_as(ids, principal))
        return 0;
    hitl_author.how = AMP_KNOWN_BY_KEY;
    snprintf(hitl_author.key, sizeof hitl_author.key, "%s",
             amp_signer_public(amp_identities_signer(ids))->fingerprint);
    snprintf(hitl_author.principal, sizeof hitl_author.principal, "%s", principal);
    bool ours = strncmp(principal, role, sizeof role - 1) == 0;
    const char *name = hitl_author.principal + (ours ? sizeof role - 1 : 0);
    if (strcmp(hitl_operator, hitl_people.login) != 0 && strcmp(hitl_operator, name) != 0)
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "--operator %s: the key of --key belongs to %s", hitl_operator, principal);
    hitl_operator = name;
    return 0;
}

int hitl_identities(struct amp_identities **out, struct amp_error *err)
{
    static char principal[AMP_PRINCIPAL_MAX];
    const struct amp_identity_tool who = {
        .state = hitl_state, .config = config, .principal = principal, .key = hitl_key};

    snprintf(principal, sizeof principal, AMP_OPERATOR_ROLE "/%.100s", hitl_operator);
    if (amp_identity_cli_open(&identity, &who, out, err) < 0)
        return -1;
    return hitl_key && *out ? author_find(*out, err) : 0;
}

static int decider_open(struct hitl *h, struct amp_error *err)
{
    *h = (struct hitl){.store = h->store,
                       .opt = {.tool = amp_cli_name(),
                               .stop = &amp_stop,
                               .note = amp_note,
                               .say = amp_finding_print,
                               .consumer = hitl_as}};
    if (hitl_identities(&h->opt.ids, err) < 0)
        return -1;
    h->opt.operator_name = hitl_operator;
    if (amp_decider_open_bare(&h->d, h->store, &h->opt, err) < 0)
        return -1;
    h->d.people = hitl_people;
    return 0;
}

static int verb_open(struct amp_command *c, struct amp_error *err)
{
    static struct hitl h;

    if ((c->opens & HITL_OPENS_PEOPLE && people_read(err) < 0) || amp_state_open(c, err) < 0)
        return -1;
    if (!(c->opens & HITL_OPENS_DECIDER))
        return 0;
    h.store = c->store;
    c->own = &h;
    return decider_open(&h, err);
}

static void verb_close(struct amp_command *c)
{
    struct hitl *h = c->own;

    if (h) {
        amp_decider_close(&h->d);
        amp_identities_close(h->opt.ids);
    }
    amp_state_close(c);
    amp_operators_free(operators);
}

static const struct amp_tool tool = {
    .name = "hitl-prompt",
    .doc = "ask people agents' questions and write the decisions",
    .opts = options,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_values,
    .refuse = amp_state_refuse,
    .open = verb_open,
    .close = verb_close,
    .summary = amp_intake_summary,
};

/* Whether the first argument that is a verb is this one. */
static bool verb_is(char **args, const char *name)
{
    for (; *args; args++)
        for (const struct amp_verb *const *table = verbs; *table; table++)
            for (const struct amp_verb *v = *table; v->run; v++)
                if (v->name && strcmp(v->name, *args) == 0)
                    return strcmp(*args, name) == 0;
    return false;
}

int main(int argc, char **argv)
{
    if (argc > 0 && verb_is(argv + 1, "hook"))
        hitl_hook_prepare(argv + 1);
    return amp_cli_main(&tool, argc, argv);
}
