/* Finds and reads amp.json, and its values. The user's file may have every setting. The state
 * directory's file may have only those that the tool's state_may_set allows, because every writer
 * of the state could change it; the others are reported. */
#include "cli/config.h"
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

#include "base/codes.h"

#define CONFIG_MAX (1 << 20)
#define KEY_MAX    256

struct config {
    char path[PATH_MAX]; /* also of a file that does not exist; "": unknown */
    struct amp_buf text;
    struct amp_tape tape; /* n is 0 without a file */
};
static struct config config; /* the user's */
static struct config local;  /* the state directory's */
static bool loaded;
static struct amp_buf ignored;
static struct amp_list kept; /* texts that options point to */

/* Finds the user's amp.json. A file that is given must exist; the default one may be absent. */
static bool find_config(struct config *c, const char *explicit_path)
{
    const char *env = getenv("AMP_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const char *wanted = explicit_path && *explicit_path ? explicit_path : env;
    if (wanted && *wanted) {
        /* A truncated path is reported as not found. */
        amp_span_copy(amp_span_str(wanted), c->path, sizeof c->path);
        return true;
    }
    int n = 0;
    if (xdg && xdg[0] == '/')
        n = snprintf(c->path, sizeof c->path, "%s/amp/amp.json", xdg);
    else if (home && home[0] == '/')
        n = snprintf(c->path, sizeof c->path, "%s/.config/amp/amp.json", home);
    if (n <= 0 || (size_t)n >= sizeof c->path)
        c->path[0] = '\0';
    return c->path[0] && access(c->path, F_OK) == 0;
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* The state directory's amp.json, unless the user named that file. */
static bool find_local(struct config *c, const char *state_dir, const struct config *user)
{
    if (!state_dir || !*state_dir)
        return false;
    int n = snprintf(c->path, sizeof c->path, "%s/amp.json", state_dir);
    return n > 0 && (size_t)n < sizeof c->path && access(c->path, F_OK) == 0 &&
           !(user->tape.n > 0 && same_file(c->path, user->path));
}

static int not_json(const struct config *c, const struct amp_json_fault *fault,
                    struct amp_error *err)
{
    struct amp_span text = amp_buf_span(&c->text);
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < text.n && i < fault->offset; i++) {
        column = text.p[i] == '\n' ? 1 : column + 1;
        line += text.p[i] == '\n';
    }
    return amp_fail(err, AMP_CONFIG, bad_config, "%s:%u:%u: %s", c->path, line, column,
                    fault->what);
}

/* given: the user named the file, so it may be a pipe; otherwise it must be a regular file. */
static int read_config(struct config *c, bool given, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_error why;
    int got = given ? amp_file_read_any(c->path, CONFIG_MAX, &c->text, &why)
                    : amp_file_read(AT_FDCWD, c->path, CONFIG_MAX, &c->text, &why);
    if (got < 0)
        return amp_fail_text(err, AMP_CONFIG, why.code, "%s", why.what);
    struct amp_span text = amp_buf_span(&c->text);
    if (amp_tape_scan(&c->tape, text.p, text.n, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err) : not_json(c, &fault, err);
    if (c->tape.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_CONFIG, bad_config, "%s: not an object", c->path);
    return 0;
}

/* text: the settings of c's file that are used. */
static int check_config(const struct config *c, struct amp_span text, struct amp_error *err)
{
    struct amp_error why;
    if (cli_tool->check_config && cli_tool->check_config(text, &why))
        return amp_fail_text(err, AMP_CONFIG,
                             why.status == AMP_TEMPFAIL ? why.code : AMP_CODE(bad_config), "%s: %s",
                             c->path, why.what);
    return 0;
}

/* The settings of the store are read only from the state directory's file. */
static void warn_misplaced(const struct config *c, const char *state_dir)
{
    char path[PATH_MAX];
    if (!state_dir || !*state_dir || c->tape.n == 0 ||
        amp_tape_get(&c->tape, 0, AMP_SPAN("store")) == AMP_TOK_NONE)
        return;
    int n = snprintf(path, sizeof path, "%s/amp.json", state_dir);
    if (n > 0 && (size_t)n < sizeof path && same_file(path, c->path))
        return;
    amp_warn("%s: ignored: store (it belongs in the amp.json of the state directory)", c->path);
}

/* Appends the members of tok that the state directory may set to `counted`, as JSON, and the names
 * of the others to `names`. */
static int sort_members(const struct amp_tape *t, uint32_t tok, struct amp_span key,
                        struct amp_buf *counted, struct amp_buf *names, struct amp_error *err)
{
    for (uint32_t k = tok + 1; k < t->tok[tok].next; k = t->tok[k + 1].next) {
        char path[KEY_MAX];
        struct amp_span name = amp_tok_raw(t, k), value = amp_tok_source(t, k + 1);
        int n = snprintf(path, sizeof path, "%.*s%s%.*s", (int)key.n, key.p, key.n ? "." : "",
                         (int)(name.n < KEY_MAX ? name.n : KEY_MAX), name.p);
        struct amp_span sub = {path, n < KEY_MAX ? (size_t)n : KEY_MAX - 1};
        bool section = t->tok[k + 1].type == AMP_JSON_OBJECT && t->tok[k + 1].next > k + 2;
        if (!section && !(cli_tool->state_may_set && cli_tool->state_may_set(sub))) {
            if (amp_buf_fmt(names, err, "%s%s", names->len ? ", " : "", path) < 0)
                return -1;
            continue;
        }
        size_t before = counted->len;
        if (amp_buf_fmt(counted, err, "%s\"%.*s\":", counted->data[before - 1] == '{' ? "" : ",",
                        (int)name.n, name.p) < 0)
            return -1;
        if (!section) {
            if (amp_buf_add(counted, value.p, value.n, err) < 0)
                return -1;
            continue;
        }
        size_t open = counted->len;
        if (amp_buf_add(counted, "{", 1, err) < 0 ||
            sort_members(t, k + 1, sub, counted, names, err) ||
            amp_buf_add(counted, "}", 1, err) < 0)
            return -1;
        if (counted->len == open + 2)
            counted->len = before;
    }
    return 0;
}

/* Reads the state directory's file. Settings that are ignored there are listed, not checked. */
static int read_state_config(struct config *c, struct amp_buf *names, struct amp_error *err)
{
    AMP_BUF struct amp_buf counted = {0};
    amp_buf_init(&counted, CONFIG_MAX + 2);
    if (read_config(c, false, err) || amp_buf_add(&counted, "{", 1, err) < 0 ||
        sort_members(&c->tape, 0, (struct amp_span){"", 0}, &counted, names, err) ||
        amp_buf_add(&counted, "}", 1, err) < 0)
        return -1;
    return check_config(c, amp_buf_span(&counted), err);
}

static void warn_ignored(struct amp_span names)
{
    if (names.n > 0)
        amp_warn("%s: ignored: %.*s; a state directory may set only store and redact; move other "
                 "settings to %s or to a file given with --config",
                 local.path, (int)names.n, names.p,
                 config.path[0] ? config.path : "$XDG_CONFIG_HOME/amp/amp.json");
}

static void config_begin(struct config *c)
{
    c->path[0] = '\0';
    amp_buf_init(&c->text, CONFIG_MAX);
    amp_tape_init(&c->tape, NULL);
}

static void config_release(struct config *c)
{
    amp_tape_release(&c->tape);
    amp_buf_release(&c->text);
}

/* Reads the state directory's file again. user: the user's file. */
static int read_local(const char *state_dir, const struct config *user, struct amp_error *err)
{
    static struct config now;
    struct amp_buf names = {0};
    config_begin(&now);
    amp_buf_init(&names, CONFIG_MAX);
    if (find_local(&now, state_dir, user) && read_state_config(&now, &names, err)) {
        config_release(&now);
        amp_buf_release(&names);
        return -1;
    }
    config_release(&local);
    local = now;
    amp_buf_release(&ignored);
    ignored = names;
    return 0;
}

int cli_config_local(const char *state_dir, struct amp_error *err)
{
    if (read_local(state_dir, &config, err))
        return -1;
    warn_ignored(amp_buf_span(&ignored));
    return 0;
}

int amp_config_reload(const char *explicit_path, const char *state_dir, struct amp_error *err)
{
    static struct config now;
    bool given = !loaded && explicit_path && *explicit_path;
    config_begin(&now);
    if ((find_config(&now, explicit_path) &&
         (read_config(&now, given, err) || check_config(&now, amp_buf_span(&now.text), err))) ||
        read_local(state_dir, &now, err)) {
        config_release(&now);
        return -1;
    }
    config_release(&config);
    config = now;
    loaded = true;
    warn_misplaced(&config, state_dir);
    warn_ignored(amp_buf_span(&ignored));
    return 0;
}

struct amp_config_files amp_config_files(void)
{
    return (struct amp_config_files){.user_path = config.path,
                                     .state_path = local.path,
                                     .user = amp_buf_span(&config.text),
                                     .state = amp_buf_span(&local.text),
                                     .ignored = amp_buf_span(&ignored)};
}

int cli_config_text(const char *explicit_path, const char *state_dir, struct amp_span *text,
                    struct amp_error *err)
{
    if (!loaded && amp_config_reload(explicit_path, state_dir, err))
        return -1;
    *text = amp_buf_span(&config.text);
    return 0;
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

/* The value as text; false for arrays and null. An object is its JSON, if it may be one. */
static bool scalar_text(const struct amp_tape *t, uint32_t tok, bool objects, struct amp_buf *arena,
                        char number[64], struct amp_span *out)
{
    int64_t n;
    double real;
    switch (t->tok[tok].type) {
    case AMP_JSON_STRING:
        return !(t->tok[tok].flags & AMP_TOK_NUL) && amp_tok_text(t, tok, arena, out, NULL) == 0;
    case AMP_JSON_TRUE:
    case AMP_JSON_FALSE:
        *out = amp_tok_source(t, tok);
        return true;
    case AMP_JSON_OBJECT:
        *out = amp_tok_source(t, tok);
        return objects;
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

/* objects: the value is an element of a list, which may be an object. */
static int set_scalar(const struct config *c, uint32_t tok, bool objects, const char *key,
                      int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf arena = {0};
    struct amp_span text;
    char number[64];
    amp_buf_init(&arena, CONFIG_MAX);
    if (!scalar_text(&c->tape, tok, objects, &arena, number, &text))
        return amp_fail(err, AMP_CONFIG, bad_config, "%s: %s has the wrong type", c->path, key);
    char *copy = amp_span_dup(text);
    if (!copy)
        return amp_fail_memory(err);
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
    const struct config *c = &config;
    uint32_t v = look_up(&c->tape, key);
    if (v == AMP_TOK_NONE && local.tape.n > 0 && cli_tool->state_may_set &&
        cli_tool->state_may_set(amp_span_str(key))) {
        c = &local;
        v = look_up(&c->tape, key);
    }
    const struct amp_tape *t = &c->tape;
    if (v == AMP_TOK_NONE || t->tok[v].type == AMP_JSON_NULL)
        return 0;
    if (t->tok[v].type != AMP_JSON_ARRAY)
        return set_scalar(c, v, false, key, set, arg, err);
    for (uint32_t e = v + 1; e < t->tok[v].next; e = t->tok[e].next)
        if (set_scalar(c, e, true, key, set, arg, err))
            return -1;
    return 0;
}
