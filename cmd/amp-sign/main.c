/* amp-sign: signs lines, verifies signatures, and manages keys and trust. */
#include "sign.h"

#include "cli/config_schema.h"
#include "flow/config.h"
#include "identity/verify.h"

struct sign_options opt = {.signed_lines = "pass",
                           .skew_ms = AMP_IDENTITY_SKEW_MS,
                           .max_age_ms = AMP_IDENTITY_MAX_AGE_MS,
                           .grace_ms = 3600000,
                           .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS,
                           .namespaces = "amp,amp-*,git"};

static const char *const signed_choices[] = {"pass", "replace", "refuse", NULL};

static const struct amp_opt tool_opts[] = {
    AMP_OPT_STATE(opt.state),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_ALLOWED_SIGNERS(opt.allowed),
    AMP_OPT_LOCK_TIMEOUT(opt.lock_timeout_ms),
    AMP_OPT_END,
};

#define AS_ROW                                                                                     \
    AMP_OPT_ROW(0, "as", AMP_OPT_STRING, &opt.principal, "PRINCIPAL",                              \
                "whose key of the state directory: NAME or ROLE/NAME")

static const struct amp_opt sign_opts[] = {
    {0, "key", AMP_OPT_PATH, &opt.key, "FILE", .doc = "private key to sign with"},
    {0, "ssh-agent", AMP_OPT_STRING, &opt.agent, "KEY",
     .doc = "key of ssh-agent: a fingerprint, a public key or a .pub file"},
    AS_ROW,
    {0, "signed", AMP_OPT_CHOICE, &opt.signed_lines, "WORD",
     .doc = "what to do with lines that are signed already", .choices = signed_choices},
    AMP_OPT_END,
};
static const struct amp_opt verify_opts[] = {
    {0, "unwrap", AMP_OPT_FLAG, &opt.unwrap, NULL, .doc = "write the messages without signatures"},
    {0, "allow-unsigned", AMP_OPT_FLAG, &opt.allow_unsigned, NULL,
     .doc = "pass unsigned messages, too"},
    AMP_OPT_SKEW(opt.skew_ms),
    AMP_OPT_MAX_AGE(opt.max_age_ms),
    AMP_OPT_END,
};
static const struct amp_opt keygen_opts[] = {
    AS_ROW,
    {0, "comment", AMP_OPT_STRING, &opt.comment, "TEXT", .doc = "comment in the public key"},
    AMP_OPT_END,
};
static const struct amp_opt rotate_opts[] = {
    {0, "grace", AMP_OPT_DURATION, &opt.grace_ms, "TIME",
     .doc = "how long the old key stays valid (0: not at all)", .max = (int64_t)3650 * 86400000},
    AMP_OPT_END,
};
static const struct amp_opt revoke_opts[] = {
    {0, "from", AMP_OPT_STRING, &opt.from, "TIME",
     .doc = "signatures from this time on are invalid (default: now)"},
    {0, "reason", AMP_OPT_STRING, &opt.reason, "TEXT", .doc = "reason, for the record"},
    AMP_OPT_END,
};
static const struct amp_opt add_opts[] = {
    {0, "namespaces", AMP_OPT_STRING, &opt.namespaces, "LIST",
     .doc = "what the key may sign, patterns separated by commas"},
    {0, "valid-after", AMP_OPT_STRING, &opt.after, "TIME", .doc = "start of the key's validity"},
    {0, "valid-before", AMP_OPT_STRING, &opt.before, "TIME", .doc = "end of the key's validity"},
    {0, "comment", AMP_OPT_STRING, &opt.comment, "TEXT", .doc = "comment in the line"},
    AMP_OPT_END,
};
static const struct amp_opt list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &opt.json, NULL, .doc = "print one JSON object per line"},
    AMP_OPT_END,
};
static const struct amp_opt remove_opts[] = {
    {0, "principals", AMP_OPT_STRING, &opt.only, "LIST",
     .doc = "only the line with exactly these principals"},
    AMP_OPT_END,
};

static const struct amp_verb verbs[] = {
    {NULL, "", "sign each line of stdin", sign_opts, NULL, .old = verb_sign,
     .who = AMP_WHO_WITH("--as")},
    {"verify", "", "pass the lines that are signed by their sender", verify_opts, NULL,
     .old = verb_verify},
    {"keygen", "[FILE]", "make a key", keygen_opts, NULL, .old = verb_keygen,
     .who = AMP_WHO_WITH("--as")},
    {"trust add", "PRINCIPALS KEY", "trust a key to speak for principals", add_opts, NULL,
     .old = verb_trust_add, .who = AMP_WHO_PERSON},
    {"trust list", "", "list the trusted keys", list_opts, NULL, .old = verb_trust_list},
    {"trust remove", "KEY", "remove the lines of a key", remove_opts, NULL,
     .old = verb_trust_remove, .who = AMP_WHO_PERSON},
    {"rotate", "PRINCIPAL", "replace a key of the state directory", rotate_opts, NULL,
     .old = verb_rotate, .who = AMP_WHO_PERSON},
    {"revoke", "KEY", "make a key's signatures invalid from a point in time", revoke_opts, NULL,
     .old = verb_revoke, .who = AMP_WHO_PERSON},
    {"token make", "SUBJECT KEY", "admit the holder of a key for a time", token_make_opts, NULL,
     .old = verb_token_make, .who = AMP_WHO_WITH("--as")},
    {"token check", "", "check the tokens on stdin and print their claims", token_check_opts, NULL,
     .old = verb_token_check},
    {0},
};
static const struct amp_verb *const tables[] = {verbs, NULL};
AMP_CONFIG_TAKER;
static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 130, 0};

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {
        .name = "amp-sign",
        .doc = "sign messages, verify signatures, manage keys and trust",
        .opts = tool_opts,
        .verbs = tables,
        .statuses = statuses,
        AMP_CONFIG_OF_TAKER,
    };
    return amp_cli_main(&tool, argc, argv);
}
