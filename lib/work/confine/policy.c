/* Confinement policies: defaults, files, single grants, and the variables that pass. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include <amp/base/file.h>
#include <amp/schema/schema.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/compose/json.h"
#include "net/host.h"
#include "work/confine/confine.h"

#define SCHEMA     "config/confinement.json"
#define POLICY_MAX ((size_t)1 << 20)
#define GRANTS_MAX 400

AMP_WORDS_OF_NAMES(network_names, AMP_NETWORK_LIST);

const char *amp_network_name(enum amp_network n)
{
    return network_names[n];
}

bool amp_network_find(struct amp_span name, enum amp_network *out)
{
    int i = amp_word_find(network_names, name);
    if (i >= 0)
        *out = (enum amp_network)i;
    return i >= 0;
}

void amp_confine_policy_init(struct amp_confine_policy *p)
{
    *p = (struct amp_confine_policy){.limits = {.processes = 1024,
                                                .memory_bytes = (int64_t)8 << 30,
                                                .file_bytes = (int64_t)4 << 30,
                                                .open_files = 4096}};
}

static void list_free(char ***list)
{
    for (char **g = *list; g && *g; g++)
        free(*g);
    free(*list);
    *list = NULL;
}

void amp_confine_policy_release(struct amp_confine_policy *p)
{
    for (int kind = 0; kind < AMP_GRANT_COUNT; kind++)
        list_free(&p->grants[kind]);
    list_free(&p->only_read);
    list_free(&p->only_write);
}

static bool is_variable(struct amp_span text)
{
    size_t n = text.n && text.p[text.n - 1] == '*' ? text.n - 1 : text.n;
    for (size_t i = 0; i < n; i++) {
        char c = text.p[i];
        if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return n > 0;
}

static bool is_glob(struct amp_span text)
{
    return text.n && text.n < PATH_MAX && !memchr(text.p, '\0', text.n) &&
           !amp_span_is(text, "..") && !amp_span_starts(text, "../") &&
           !amp_span_ends(text, "/..") && !memmem(text.p, text.n, "/../", 4);
}

static int grant_check(enum amp_confine_grant kind, struct amp_span text, struct amp_error *err)
{
    struct amp_net_rule rule;
    struct amp_error why;
    switch (kind) {
    case AMP_GRANT_ENVIRONMENT:
        if (!is_variable(text))
            return amp_fail(err, AMP_CONFIG, bad_policy, "'%.*s' is not the name of a variable",
                            AMP_CLIP(text, 100));
        return 0;
    case AMP_GRANT_HOST:
        if (amp_net_rule_parse(text, &rule, &why) < 0)
            return amp_fail(err, AMP_CONFIG, bad_policy, "hosts: %s", why.what);
        return 0;
    default:
        if (!is_glob(text))
            return amp_fail(err, AMP_CONFIG, bad_policy,
                            "'%.*s' is not a path that can be granted (empty, or with '..')",
                            AMP_CLIP(text, 100));
        return 0;
    }
}

int amp_confine_policy_add(struct amp_confine_policy *p, enum amp_confine_grant kind,
                           struct amp_span text, struct amp_error *err)
{
    size_t n = 0;
    if (grant_check(kind, text, err) < 0)
        return -1;
    while (p->grants[kind] && p->grants[kind][n])
        n++;
    if (n >= GRANTS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_policy, "more than %d entries of one kind",
                        GRANTS_MAX);
    char **more = realloc(p->grants[kind], (n + 2) * sizeof *more);
    if (!more)
        return amp_fail_memory(err);
    p->grants[kind] = more;
    more[n] = amp_span_dup(text);
    more[n + 1] = NULL;
    return more[n] ? 0 : amp_fail_memory(err);
}

static int grants_read(struct amp_confine_policy *p, enum amp_confine_grant kind,
                       const json_t *list, struct amp_error *err)
{
    size_t i;
    json_t *text;
    json_array_foreach (list, i, text)
        if (amp_confine_policy_add(
                p, kind, (struct amp_span){json_string_value(text), json_string_length(text)},
                err) < 0)
            return -1;
    return 0;
}

static int members_read(struct amp_confine_policy *p, const json_t *j, struct amp_error *err)
{
    static const char *const kinds[AMP_GRANT_COUNT] = {"read", "write", "hosts", "environment"};
    const json_t *limits = json_object_get(j, "limits");
    const char *network = json_string_value(json_object_get(j, "network"));
    const struct {
        const char *name;
        int64_t *value;
    } rows[] = {{"processes", &p->limits.processes},
                {"memory_bytes", &p->limits.memory_bytes},
                {"file_bytes", &p->limits.file_bytes},
                {"open_files", &p->limits.open_files},
                {"cpu_seconds", &p->limits.cpu_seconds}};
    for (int kind = 0; kind < AMP_GRANT_COUNT; kind++)
        if (grants_read(p, (enum amp_confine_grant)kind, json_object_get(j, kinds[kind]), err) < 0)
            return -1;
    if (network)
        amp_network_find(amp_span_str(network), &p->network);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *value = json_object_get(limits, rows[i].name);
        if (value)
            *rows[i].value = json_integer_value(value);
    }
    p->limits_processes = json_object_get(limits, "processes") != NULL;
    return 0;
}

/* A linked worktree has a file .git; an agent could replace a policy in it. */
static bool in_worktree(const char *path)
{
    char dir[PATH_MAX], git[PATH_MAX + 8];
    struct stat st;
    if (!realpath(path, dir))
        return false;
    for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
        *slash = '\0';
        snprintf(git, sizeof git, "%s/.git", dir);
        if (lstat(git, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

int amp_confine_policy_read(const char *path, struct amp_confine_policy *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    json_auto_t *j = NULL;
    struct amp_error why;
    struct amp_confine_policy p;
    amp_buf_init(&text, POLICY_MAX + 1);
    if (in_worktree(path))
        return amp_fail(err, AMP_CONFIG, bad_policy,
                        "%s is in a worktree, where agents could change it", path);
    if (amp_file_read(AT_FDCWD, path, POLICY_MAX, &text, &why) < 0 ||
        amp_schema_check_text(SCHEMA, amp_buf_span(&text), &why) < 0 ||
        !(j = amp_json_load(amp_buf_span(&text), &why)))
        return amp_code_is(why.code, no_memory)
                   ? amp_fail_memory(err)
                   : amp_fail(err, AMP_CONFIG, bad_policy, "%s: %s", path, why.what);
    amp_confine_policy_init(&p);
    if (members_read(&p, j, &why) < 0) {
        amp_confine_policy_release(&p);
        return amp_fail_again(err, why.status, path, &why);
    }
    *out = p;
    return 0;
}

bool amp_confine_env_passes(const struct amp_confine_policy *p, const char *variable)
{
    static const char *const usual[] = {"PATH", "LANG", "LANGUAGE", "LC_*",     "TZ",
                                        "TERM", "USER", "LOGNAME",  "NO_COLOR", "COLORTERM",
                                        "HOME", "CI",   NULL};
    struct amp_span name = {variable, strcspn(variable, "=")};
    for (size_t i = 0; usual[i]; i++)
        if (amp_span_glob(name, amp_span_str(usual[i])))
            return true;
    for (char **g = p->grants[AMP_GRANT_ENVIRONMENT]; g && *g; g++)
        if (amp_span_glob(name, amp_span_str(*g)))
            return true;
    return false;
}
