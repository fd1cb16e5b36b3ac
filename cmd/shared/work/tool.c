/* The values of the options that the tools of work share, and lists of their configuration. */
#include "shared/work/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/file/repository.h"

const char *amp_tool_state, *amp_tool_config;
int64_t amp_tool_lock_timeout = AMP_LOCK_TIMEOUT_MS;
struct amp_identity_cli amp_tool_identity = AMP_IDENTITY_CLI;

const struct amp_opt amp_tool_opts[] = {
    AMP_OPT_STATE(amp_tool_state),
    AMP_OPT_CONFIG(amp_tool_config),
    AMP_OPT_LOCK_TIMEOUT(amp_tool_lock_timeout),
    AMP_OPT_IDENTITIES(amp_tool_identity),
    AMP_OPT_END,
};
const int amp_tool_statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 130, 0};

int amp_tool_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                      const char *const **out, struct amp_error *err)
{
    const json_t *list = json_object_get(json_object_get(config, section), key), *p;
    const char **v;
    size_t i;

    if (inner)
        list = json_object_get(list, inner);
    if (!list)
        return 0;
    if (!json_is_array(list))
        return amp_fail(err, AMP_CONFIG, bad_value, "%s in the configuration: expected a list",
                        key);
    if (!(v = calloc(json_array_size(list) + 1, sizeof *v)))
        return amp_fail_memory(err);
    json_array_foreach (list, i, p) {
        if (!(v[i] = json_string_value(p)))
            return amp_fail(err, AMP_CONFIG, bad_value,
                            "%s in the configuration: expected a list of patterns", key);
    }
    *out = v;
    return 0;
}

void amp_tool_patterns_free(const char *const *v)
{
    void *p;

    memcpy(&p, &v, sizeof p);
    free(p);
}

int amp_tool_here(char out[PATH_MAX], struct amp_error *err)
{
    struct amp_repository repo = {0};
    struct amp_error no;

    if (!getcwd(out, PATH_MAX))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    if (amp_repository_find(out, &repo, &no) == 0 && repo.found && *repo.top)
        snprintf(out, PATH_MAX, "%s", repo.top);
    return 0;
}
