/* amp-sign: signs lines, verifies signatures, and manages keys and trust. */
#include "sign.h"

#include "message/identity/verify.h"
#include "shared/config.h"
#include "shared/config_schema.h"

struct sign_options opt = {.signed_lines = "pass",
                           .skew_ms = AMP_IDENTITY_SKEW_MS,
                           .max_age_ms = AMP_IDENTITY_MAX_AGE_MS,
                           .grace_ms = 3600000,
                           .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS,
                           .namespaces = "amp,amp-*,git"};

static const struct amp_opt tool_opts[] = {
    AMP_OPT_STATE(opt.state),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_ALLOWED_SIGNERS(opt.allowed),
    AMP_OPT_LOCK_TIMEOUT(opt.lock_timeout_ms),
    AMP_OPT_END,
};

#define VERBS(X) X(filter) X(keys) X(trust) X(token)
AMP_VERBS(VERBS);
AMP_CONFIG_TAKER;
static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 130, 0};

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {
        .name = "amp-sign",
        .doc = "sign messages, verify signatures, manage keys and trust",
        .opts = tool_opts,
        .verbs = verbs,
        .statuses = statuses,
        AMP_CONFIG_OF_TAKER,
        AMP_STATE_OF_TOOL,
    };
    return amp_cli_main(&tool, argc, argv);
}
