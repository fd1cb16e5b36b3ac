/* amp.json. Alone in its file, so that programs without configuration do not link jansson. */
#include "cli/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <amp/base/file.h>

#define CONFIG_MAX (1 << 20)

static json_t *config;
static json_t *kept; /* numbers as texts */
static bool loaded;
static char config_path[PATH_MAX];

/* The amp.json to read: one that is named must exist, the others are taken where they do. */
static bool find_config(const char *explicit_path, const char *state_dir)
{
    const char *env = getenv("AMP_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const char *wanted = explicit_path && *explicit_path ? explicit_path : env;
    if (wanted && *wanted) {
        /* One that is cut is not found, which is the right answer too. */
        amp_span_copy(amp_span_str(wanted), config_path, sizeof config_path);
        return true;
    }
    int n = -1;
    if (xdg && xdg[0] == '/')
        n = snprintf(config_path, sizeof config_path, "%s/amp/amp.json", xdg);
    else if (home && home[0] == '/')
        n = snprintf(config_path, sizeof config_path, "%s/.config/amp/amp.json", home);
    if (n > 0 && (size_t)n < sizeof config_path && access(config_path, F_OK) == 0)
        return true;
    if (!state_dir || !*state_dir)
        return false;
    n = snprintf(config_path, sizeof config_path, "%s/amp.json", state_dir);
    return n > 0 && (size_t)n < sizeof config_path && access(config_path, F_OK) == 0;
}

int amp_config_load(const char *explicit_path, const char *state_dir, json_t **out,
                    struct amp_error *err)
{
    if (!loaded && find_config(explicit_path, state_dir)) {
        AMP_BUF struct amp_buf text;
        amp_buf_init(&text, CONFIG_MAX);
        struct amp_error why;
        if (amp_file_read(AT_FDCWD, config_path, CONFIG_MAX, &text, &why))
            return amp_fail(err, AMP_CONFIG, why.code, "%s", why.what);
        json_error_t at;
        struct amp_span s = amp_buf_span(&text);
        config = json_loadb(s.p, s.n, JSON_REJECT_DUPLICATES, &at);
        if (!config)
            return amp_fail(err, AMP_CONFIG, "bad_config", "%s:%d:%d: %s", config_path, at.line,
                            at.column, at.text);
        if (!json_is_object(config)) {
            json_decref(config);
            config = NULL;
            return amp_fail(err, AMP_CONFIG, "bad_config", "%s: not an object", config_path);
        }
        if (cli_check_config && cli_check_config(s, &why)) {
            json_decref(config);
            config = NULL;
            return amp_fail(err, AMP_CONFIG, "bad_config", "%s: %s", config_path, why.what);
        }
    }
    loaded = true;
    *out = config;
    return 0;
}

static json_t *look_up(json_t *at, const char *key)
{
    while (at && *key) {
        size_t n = strcspn(key, ".");
        char part[64];
        if (!amp_span_copy((struct amp_span){key, n}, part, sizeof part))
            return NULL;
        at = json_object_get(at, part);
        key += n + (key[n] == '.');
    }
    return at;
}

static int set_scalar(const json_t *v, const char *key,
                      int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                      struct amp_error *err)
{
    char num[64];
    if (json_is_string(v))
        return set(arg, json_string_value(v), err);
    if (json_is_boolean(v))
        return set(arg, json_is_true(v) ? "true" : "false", err);
    if (json_is_integer(v))
        snprintf(num, sizeof num, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        snprintf(num, sizeof num, "%.17g", json_real_value(v));
    else
        return amp_fail(err, AMP_CONFIG, "bad_config", "%s: %s has the wrong type", config_path,
                        key);
    /* Options of text keep the pointer: so the text lives as long as the configuration. */
    json_t *text = json_string(num);
    if (!kept)
        kept = json_array();
    if (!text || json_array_append_new(kept, text))
        return amp_fail(err, AMP_INTERNAL, "out_of_memory", "no memory for configuration");
    return set(arg, json_string_value(text), err);
}

int amp_config_reload(const char *explicit_path, const char *state_dir, struct amp_error *err)
{
    json_t *before = config, *now;
    config = NULL;
    loaded = false;
    if (amp_config_load(explicit_path, state_dir, &now, err)) {
        config = before;
        loaded = true;
        return -1;
    }
    /* Options of text point into it. */
    if (!kept)
        kept = json_array();
    if (before)
        json_array_append_new(kept, before);
    return 0;
}

int amp_config_values(const char *explicit_path, const char *state_dir, const char *key,
                      int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                      struct amp_error *err)
{
    json_t *root;
    if (amp_config_load(explicit_path, state_dir, &root, err))
        return -1;
    json_t *v = look_up(root, key);
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_array(v))
        return set_scalar(v, key, set, arg, err);
    size_t i;
    json_t *e;
    json_array_foreach(v, i, e) if (set_scalar(e, key, set, arg, err)) return -1;
    return 0;
}
