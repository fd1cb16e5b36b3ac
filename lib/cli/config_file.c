/* amp.json: which one counts, and what it says in the place of options. */
#include "cli/private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/tape.h>

#define CONFIG_MAX (1 << 20)

struct config {
    struct amp_buf text;
    struct amp_tape tape; /* n is 0 where there is no file */
};
static struct config config;
static bool loaded;
static char config_path[PATH_MAX];
static struct amp_list kept; /* options of text keep the pointer */

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

static int not_json(struct amp_span text, const struct amp_json_fault *fault, struct amp_error *err)
{
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < text.n && i < fault->offset; i++) {
        column = text.p[i] == '\n' ? 1 : column + 1;
        line += text.p[i] == '\n';
    }
    return amp_fail(err, AMP_CONFIG, "bad_config", "%s:%u:%u: %s", config_path, line, column,
                    fault->what);
}

static int read_config(struct config *c, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_error why;
    if (amp_file_read(AT_FDCWD, config_path, CONFIG_MAX, &c->text, &why))
        return amp_fail(err, AMP_CONFIG, why.code, "%s", why.what);
    struct amp_span text = amp_buf_span(&c->text);
    if (amp_tape_scan(&c->tape, text.p, text.n, &fault))
        return not_json(text, &fault, err);
    if (c->tape.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_CONFIG, "bad_config", "%s: not an object", config_path);
    if (cli_check_config && cli_check_config(text, &why))
        return amp_fail(err, AMP_CONFIG, "bad_config", "%s: %s", config_path, why.what);
    return 0;
}

/* What belongs to a state directory is read from the file that lies in it, by whoever opens it. */
static void warn_misplaced(const struct config *c, const char *state_dir)
{
    char path[PATH_MAX];
    struct stat ours, its;
    if (!state_dir || !*state_dir || c->tape.n == 0 ||
        amp_tape_get(&c->tape, 0, AMP_SPAN("store")) == AMP_TOK_NONE)
        return;
    int n = snprintf(path, sizeof path, "%s/amp.json", state_dir);
    if (n > 0 && (size_t)n < sizeof path && stat(path, &its) == 0 &&
        stat(config_path, &ours) == 0 && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino)
        return;
    amp_warn("%s: store counts in the amp.json of the state directory only", config_path);
}

static void release(struct config *c)
{
    amp_tape_release(&c->tape);
    amp_buf_release(&c->text);
}

int amp_config_reload(const char *explicit_path, const char *state_dir, struct amp_error *err)
{
    struct config now = {0};
    amp_buf_init(&now.text, CONFIG_MAX);
    amp_tape_init(&now.tape, NULL);
    if (find_config(explicit_path, state_dir) && read_config(&now, err)) {
        release(&now);
        return -1;
    }
    warn_misplaced(&now, state_dir);
    release(&config);
    config = now;
    loaded = true;
    return 0;
}

int cli_config_text(const char *explicit_path, const char *state_dir, struct amp_span *text,
                    struct amp_error *err)
{
    if (!loaded && amp_config_reload(explicit_path, state_dir, err))
        return -1;
    *text = amp_buf_span(&config.text);
    return 0;
}

bool cli_config_found(void)
{
    return config.tape.n > 0;
}

/* The value under a dotted key, or AMP_TOK_NONE. */
static uint32_t look_up(const struct amp_tape *t, const char *key)
{
    uint32_t at = t->n > 0 ? 0 : AMP_TOK_NONE;
    while (at != AMP_TOK_NONE && *key) {
        size_t n = strcspn(key, ".");
        if (t->tok[at].type != AMP_JSON_OBJECT)
            return AMP_TOK_NONE;
        at = amp_tape_get(t, at, (struct amp_span){key, n});
        key += n + (key[n] == '.');
    }
    return at;
}

/* The value as it would be typed; false for what cannot be. */
static bool scalar_text(uint32_t tok, struct amp_buf *arena, char number[64], struct amp_span *out)
{
    const struct amp_tape *t = &config.tape;
    int64_t n;
    double real;
    switch (t->tok[tok].type) {
    case AMP_JSON_STRING:
        return !(t->tok[tok].flags & AMP_TOK_NUL) && amp_tok_text(t, tok, arena, out, NULL) == 0;
    case AMP_JSON_TRUE:
    case AMP_JSON_FALSE:
        *out = amp_tok_source(t, tok);
        return true;
    case AMP_JSON_NUMBER:
        if (amp_tok_int(t, tok, &n))
            snprintf(number, 64, "%" PRId64, n);
        else if (amp_tok_real(t, tok, &real))
            snprintf(number, 64, "%.17g", real);
        else
            return false;
        *out = amp_span_str(number);
        return true;
    default:
        return false;
    }
}

static int set_scalar(uint32_t tok, const char *key,
                      int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf arena = {0};
    struct amp_span text;
    char number[64];
    amp_buf_init(&arena, CONFIG_MAX);
    if (!scalar_text(tok, &arena, number, &text))
        return amp_fail(err, AMP_CONFIG, "bad_config", "%s: %s has the wrong type", config_path,
                        key);
    char *copy = amp_span_dup(text);
    if (!copy)
        return amp_fail(err, AMP_INTERNAL, "out_of_memory", "no memory for configuration");
    if (cli_list_add(&kept, copy, err)) {
        free(copy);
        return -1;
    }
    return set(arg, copy, err);
}

int amp_config_values(const char *explicit_path, const char *state_dir, const char *key,
                      int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                      struct amp_error *err)
{
    struct amp_span text;
    if (cli_config_text(explicit_path, state_dir, &text, err))
        return -1;
    const struct amp_tape *t = &config.tape;
    uint32_t v = look_up(t, key);
    if (v == AMP_TOK_NONE || t->tok[v].type == AMP_JSON_NULL)
        return 0;
    if (t->tok[v].type != AMP_JSON_ARRAY)
        return set_scalar(v, key, set, arg, err);
    for (uint32_t e = v + 1; e < t->tok[v].next; e = t->tok[e].next)
        if (set_scalar(e, key, set, arg, err))
            return -1;
    return 0;
}
