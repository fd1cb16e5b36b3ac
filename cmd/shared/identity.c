/* Opens the identities by the options and amp.json. */
#include "shared/identity.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/num.h>

#include "base/codes.h"
#include "cli/config.h"

#define OPERATORS_MAX 256
#define DAY_MS        INT64_C(86400000)

/* The texts are those of the configuration, which lives as long as the process. */
static struct {
    const char *operators[OPERATORS_MAX + 1];
    size_t n;
    int64_t skew_ms, max_age_ms;
} settings;

static int operator_add(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    if (settings.n == OPERATORS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "identity.operators has more than %d names",
                        OPERATORS_MAX);
    settings.operators[settings.n++] = text;
    return 0;
}

static int time_set(void *arg, const char *text, struct amp_error *err)
{
    return amp_num_duration(amp_span_str(text), 0, 3650 * DAY_MS, arg, err);
}

/* An agent can write in a worktree, so the file with the trusted keys must not be in one. */
static int path_check(const char *path, struct amp_error *err)
{
    char dir[PATH_MAX], at[PATH_MAX + 8];
    if (!realpath(path, dir))
        return amp_fail_errno(err, AMP_CONFIG, "%s", path);
    for (char *slash; (slash = strrchr(dir, '/')) && slash != dir;) {
        *slash = '\0';
        snprintf(at, sizeof at, "%s/.git", dir);
        if (access(at, F_OK) == 0)
            return amp_fail(err, AMP_CONFIG, worktree_path,
                            "%s is in the git worktree %s, where agents could change it", path,
                            dir);
    }
    return 0;
}

int amp_identity_cli_open(const struct amp_identity_cli *o, const struct amp_identity_tool *tool,
                          struct amp_identities **out, struct amp_error *err)
{
    int require = o->require ? amp_identity_require_find(o->require) : AMP_IDENTITY_LOCAL;
    *out = NULL;
    if (require == AMP_IDENTITY_OFF) {
        if (!tool->quiet)
            amp_note("identities are off: messages are neither signed nor verified");
        return 0;
    }
    if (!tool->state && !o->allowed_signers)
        return amp_fail(err, AMP_USAGE, no_keys,
                        "signatures are checked by keys: give --state or --allowed-signers");
    settings.n = 0;
    if (amp_config_values(tool->config, tool->state, "identity.operators", operator_add, NULL,
                          err) < 0 ||
        amp_config_values(tool->config, tool->state, "identity.skew", time_set, &settings.skew_ms,
                          err) < 0 ||
        amp_config_values(tool->config, tool->state, "identity.max_age", time_set,
                          &settings.max_age_ms, err) < 0 ||
        (o->allowed_signers && path_check(o->allowed_signers, err) < 0))
        return -1;
    settings.operators[settings.n] = NULL;
    const struct amp_identities_options opt = {.require = (enum amp_identity_require)require,
                                               .state = tool->state,
                                               .allowed_signers = o->allowed_signers,
                                               .operators = settings.operators,
                                               .principal = tool->principal,
                                               .key = tool->key,
                                               .agent_socket = getenv("SSH_AUTH_SOCK"),
                                               .skew_ms = settings.skew_ms,
                                               .max_age_ms = settings.max_age_ms,
                                               .stop = &amp_stop,
                                               .warn = amp_warn};
    return amp_identities_open(&opt, out, err);
}
