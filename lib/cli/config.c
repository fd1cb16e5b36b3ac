/* amp.json as a document of jansson. A file of its own, so that programs that need only the
 * settings of their options do not link jansson. */
#include "cli/config.h"
#include "cli/private.h"

#include <errno.h>
#include <jansson.h>

#include "base/codes.h"

int amp_config_load(const char *explicit_path, const char *state_dir, json_t **out,
                    struct amp_error *err)
{
    static json_t *config;
    struct amp_span text;
    json_error_t at;
    if (cli_config_text(explicit_path, state_dir, &text, err))
        return -1;
    errno = 0;
    if (text.n > 0 && !config &&
        !(config = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &at)))
        return errno == ENOMEM ? amp_fail_memory(err)
                               : amp_fail(err, AMP_CONFIG, bad_config, "amp.json:%d:%d: %s",
                                          at.line, at.column, at.text);
    *out = config;
    return 0;
}
