/* Decides about a git command from its words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "worktree/call/private.h"

struct git {
    struct call_state *s;
    struct call_repo repo;
    const char *verb;
    const struct amp_shell_word *w; /* after the verb */
    size_t n;
};

typedef int (*verb_fn)(struct git *g);

static bool in_list(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

/* Whether an option is given: its long name, or its letter in a cluster ("-am"). */
static bool has_flag(const struct git *g, const char *name, char letter)
{
    size_t len = name ? strlen(name) : 0;
    for (size_t i = 0; i < g->n; i++) {
        const char *t = g->w[i].text;
        if (strcmp(t, "--") == 0)
            return false;
        if (t[0] != '-' || !t[1])
            continue;
        if (t[1] == '-') {
            if (name && strncmp(t + 2, name, len) == 0 && (!t[2 + len] || t[2 + len] == '='))
                return true;
        } else if (letter && strchr(t + 1, letter)) {
            return true;
        }
    }
    return false;
}

/* The i-th operand; options that take a separate value are given as letters and long names. */
static const struct amp_shell_word *operand_at(const struct git *g, size_t which,
                                               const char *letters, const char *const *names)
{
    bool rest = false;
    for (size_t i = 0; i < g->n; i++) {
        const char *t = g->w[i].text;
        if (!rest && strcmp(t, "--") == 0) {
            rest = true;
        } else if (!rest && t[0] == '-' && t[1] == '-') {
            if (names && in_list(names, t + 2))
                i++;
        } else if (!rest && t[0] == '-' && t[1]) {
            /* The last letter of a cluster may take the next word. */
            if (letters && strchr(letters, t[strlen(t) - 1]))
                i++;
        } else if (which-- == 0) {
            return &g->w[i];
        }
    }
    return NULL;
}

static int no_verify(struct git *g, char letter)
{
    if (has_flag(g, "no-verify", letter))
        return call_refuse(g->s, "guard_bypass", "git %s --no-verify skips the guard's hooks",
                           g->verb);
    return 0;
}

/* ---- verbs ---- */

static int on_commit(struct git *g)
{
    /* The value of -m and the like may be attached and have any letter. */
    for (size_t i = 0; i < g->n; i++) {
        const char *t = g->w[i].text;
        if (t[0] != '-' || t[1] == '-' || !t[1])
            continue;
        size_t end = strcspn(t + 1, "mFCctSu");
        if (memchr(t + 1, 'n', end))
            return call_refuse(g->s, "guard_bypass", "git commit -n skips the guard's hooks");
    }
    return no_verify(g, '\0') ? 1 : call_head(g->s, &g->repo, g->verb);
}

static int on_head(struct git *g)
{
    return no_verify(g, '\0') ? 1 : call_head(g->s, &g->repo, g->verb);
}

static int on_rebase(struct git *g)
{
    static const char *const valued[] = {"onto", "exec", "strategy", "strategy-option", NULL};
    for (size_t i = 0; i < g->n; i++) {
        const char *t = g->w[i].text, *command = NULL;
        if ((strcmp(t, "-x") == 0 || strcmp(t, "--exec") == 0) && i + 1 < g->n)
            command = g->w[i + 1].text;
        else if (strncmp(t, "--exec=", 7) == 0)
            command = t + 7;
        if (command && call_line(g->s, amp_span_str(command)))
            return 1;
    }
    const struct amp_shell_word *branch = operand_at(g, 1, "xsX", valued);
    if (no_verify(g, '\0'))
        return 1;
    return branch ? call_branch(g->s, &g->repo, branch) : call_head(g->s, &g->repo, g->verb);
}

static int on_branch(struct git *g)
{
    static const char *const valued[] = {"contains", "no-contains", "merged", "no-merged",
                                         "sort",     "points-at",   "format", "set-upstream-to",
                                         NULL};
    static const char *const reads[] = {
        "list",      "contains",     "no-contains",     "merged",         "no-merged",
        "points-at", "show-current", "set-upstream-to", "unset-upstream", "edit-description",
        NULL};
    bool moves = has_flag(g, "move", 'm') || has_flag(g, NULL, 'M');
    bool deletes = has_flag(g, "delete", 'd') || has_flag(g, NULL, 'D');
    bool copies = has_flag(g, "copy", 'c') || has_flag(g, NULL, 'C');
    const struct amp_shell_word *first = operand_at(g, 0, "u", valued), *w;
    for (int i = 0; reads[i] && !moves && !deletes && !copies; i++)
        if (has_flag(g, reads[i], '\0'))
            return 0;
    if (!first || has_flag(g, NULL, 'u') || (has_flag(g, NULL, 'l') && !moves && !deletes))
        return 0;
    if (moves && !operand_at(g, 1, "u", valued) && call_head(g->s, &g->repo, g->verb))
        return 1;
    if (!moves && !deletes && !copies)
        return call_branch(g->s, &g->repo, first);
    for (size_t i = copies ? 1 : 0; (w = operand_at(g, i, "u", valued)); i++)
        if (call_branch(g->s, &g->repo, w))
            return 1;
    return copies && !operand_at(g, 1, "u", valued) ? call_branch(g->s, &g->repo, first) : 0;
}

static void head_set(struct git *g, const char *name, bool certain)
{
    struct call_state *s = g->s;
    const char *had = g->repo.head;
    if (!s->heads_set || certain) {
        s->n_heads = 0;
        if (!certain && had[0])
            snprintf(s->heads[s->n_heads++], sizeof s->heads[0], "%s", had);
        s->heads_set = true;
    }
    if (!name || s->n_heads < 0 || s->n_heads == CALL_HEADS)
        s->n_heads = name ? -1 : s->n_heads;
    else
        snprintf(s->heads[s->n_heads++], sizeof s->heads[0], "%s%.200s",
                 strncmp(name, "refs/", 5) == 0 ? "" : "refs/heads/", name);
}

/* checkout and switch: -b, -B, -c, -C and --orphan make a branch, another operand is one. */
static int on_checkout(struct git *g)
{
    bool is_switch = strcmp(g->verb, "switch") == 0;
    const char *letters = is_switch ? "cC" : "bB";
    for (size_t i = 0; i < g->n; i++) {
        const char *t = g->w[i].text;
        struct amp_shell_word attached = {NULL, g->w[i].opaque};
        const struct amp_shell_word *name = NULL;
        if (strcmp(t, "--") == 0)
            break;
        const char *at = t[0] == '-' && t[1] != '-' ? strpbrk(t, letters) : NULL;
        if (at && at[1]) {
            attached.text = g->w[i].text + (at + 1 - t);
            name = &attached;
        } else if (at || strcmp(t, "--orphan") == 0 || strcmp(t, "--create") == 0 ||
                   strcmp(t, "--force-create") == 0) {
            name = i + 1 < g->n ? &g->w[i + 1] : NULL;
        } else if (strncmp(t, "--orphan=", 9) == 0 || strncmp(t, "--create=", 9) == 0 ||
                   strncmp(t, "--force-create=", 15) == 0) {
            attached.text = g->w[i].text + (strchr(t, '=') + 1 - t);
            name = &attached;
        } else {
            continue;
        }
        if (!name)
            return 0; /* git refuses it */
        if (call_branch(g->s, &g->repo, name))
            return 1;
        head_set(g, name->text, true);
        return 0;
    }
    const struct amp_shell_word *to = operand_at(g, 0, NULL, NULL);
    if (has_flag(g, "detach", 'd')) {
        g->s->heads_set = true;
        g->s->n_heads = 0;
    } else if (to &&
               (to->opaque || strcmp(to->text, "-") == 0 || strncmp(to->text, "@{-", 3) == 0)) {
        g->s->heads_set = true;
        g->s->n_heads = -1;
    } else if (to) {
        head_set(g, to->text, is_switch || call_repo_has_branch(&g->repo, to->text));
    }
    return 0;
}

static int on_symbolic_ref(struct git *g)
{
    static const char *const valued[] = {NULL};
    const struct amp_shell_word *ref = operand_at(g, 0, "m", valued),
                                *to = operand_at(g, 1, "m", valued);
    bool deletes = has_flag(g, "delete", 'd');
    if (!ref || (!to && !deletes))
        return 0;
    if (strcmp(ref->text, "HEAD") != 0 || ref->opaque)
        return call_branch(g->s, &g->repo, ref);
    if (!to || to->opaque)
        return call_unreadable(g->s, "git symbolic-ref HEAD");
    head_set(g, to->text, true);
    return 0;
}

static int on_update_ref(struct git *g)
{
    if (has_flag(g, "stdin", '\0'))
        return call_refuse(g->s, "command_unreadable",
                           "git update-ref --stdin: its input cannot be seen");
    const struct amp_shell_word *ref = operand_at(g, 0, "m", NULL);
    if (!ref)
        return 0;
    if (!ref->opaque && strcmp(ref->text, "HEAD") == 0)
        return call_head(g->s, &g->repo, g->verb);
    return call_branch(g->s, &g->repo, ref);
}

/* The destination of a refspec. head: without one, the source is the destination. */
static int refspec_check(struct git *g, const struct amp_shell_word *spec, bool head)
{
    char *text = spec->text + (spec->text[0] == '+');
    char *colon = strchr(text, ':');
    struct amp_shell_word to = {colon ? colon + 1 : text, spec->opaque};
    if (spec->opaque)
        return call_refuse(g->s, "command_unreadable", "git %s: its refspec cannot be read",
                           g->verb);
    if (colon && !colon[1] && head)
        return call_refuse(g->s, "branch_violation", "git %s \":\" takes all matching branches",
                           g->verb);
    if (!colon && !head)
        return 0; /* fetch without a destination */
    if (!colon && (strcmp(text, "HEAD") == 0 || strcmp(text, "@") == 0))
        return call_head(g->s, &g->repo, g->verb);
    if (strchr(to.text, '*'))
        return strncmp(to.text, "refs/heads/", 11) == 0 || strncmp(to.text, "refs/*", 6) == 0
                   ? call_refuse(g->s, "branch_violation", "git %s to a pattern of branches",
                                 g->verb)
                   : 0;
    return to.text[0] ? call_branch(g->s, &g->repo, &to) : 0;
}

static int on_push(struct git *g)
{
    static const char *const valued[] = {"repo", "receive-pack", "exec", "push-option", NULL};
    static const char *const all[] = {"all", "mirror", "branches", NULL};
    const struct amp_shell_word *spec;
    if (no_verify(g, '\0'))
        return 1;
    if (has_flag(g, "receive-pack", '\0') || has_flag(g, "exec", '\0'))
        return call_refuse(g->s, "guard_bypass", "git push --receive-pack runs another program");
    for (int i = 0; all[i]; i++)
        if (has_flag(g, all[i], '\0'))
            return call_refuse(g->s, "branch_violation", "git push --%s: also protected branches",
                               all[i]);
    size_t i = 1;
    for (; (spec = operand_at(g, i, "o", valued)); i++) {
        if (!spec->opaque && strcmp(spec->text, "tag") == 0 && operand_at(g, i + 1, "o", valued)) {
            i++;
            continue;
        }
        if (refspec_check(g, spec, true))
            return 1;
    }
    return i > 1 || has_flag(g, "tags", '\0') ? 0 : call_head(g->s, &g->repo, g->verb);
}

static int on_fetch(struct git *g)
{
    static const char *const valued[] = {"depth",         "deepen",          "shallow-since",
                                         "refmap",        "upload-pack",     "jobs",
                                         "server-option", "negotiation-tip", NULL};
    const struct amp_shell_word *spec;
    if (has_flag(g, "upload-pack", '\0'))
        return call_refuse(g->s, "guard_bypass", "git %s --upload-pack runs another program",
                           g->verb);
    for (size_t i = 1; (spec = operand_at(g, i, "jo", valued)); i++)
        if (refspec_check(g, spec, false))
            return 1;
    return strcmp(g->verb, "pull") == 0 ? on_head(g) : 0;
}

static bool is_sensitive_key(const char *key)
{
    static const char *const keys[] = {
        "core.hookspath", "core.worktree", "alias.",          "remote.",     "url.", "include.",
        "includeif.",     "push.default",  "core.sshcommand", "extensions.", NULL};
    for (int i = 0; keys[i]; i++)
        if (strncasecmp(key, keys[i], strlen(keys[i])) == 0)
            return true;
    return false;
}

static int on_config(struct git *g)
{
    static const char *const valued[] = {"file", "blob", "type", "default", "value", NULL};
    static const char *const reads[] = {"get",          "get-all", "get-regexp",
                                        "get-urlmatch", "list",    NULL};
    const struct amp_shell_word *key = operand_at(g, 0, "f", valued),
                                *value = operand_at(g, 1, "f", valued);
    if (has_flag(g, "edit", 'e') || has_flag(g, "rename-section", '\0'))
        return call_refuse(g->s, "guard_bypass", "git config: what it changes cannot be seen");
    for (int i = 0; reads[i]; i++)
        if (has_flag(g, reads[i], '\0') || (key && strcmp(key->text, reads[i]) == 0))
            return 0;
    if (key && (strcmp(key->text, "set") == 0 || strcmp(key->text, "unset") == 0 ||
                strcmp(key->text, "rename-section") == 0 ||
                strcmp(key->text, "remove-section") == 0 || strcmp(key->text, "edit") == 0))
        key = value;
    else if (!value && !has_flag(g, "unset", '\0') && !has_flag(g, "unset-all", '\0') &&
             !has_flag(g, "remove-section", '\0'))
        return 0;
    if (!key || key->opaque)
        return call_unreadable(g->s, "git config");
    char section[300]; /* of remove-section: "alias" */
    snprintf(section, sizeof section, "%.290s.", key->text);
    if (is_sensitive_key(key->text) || is_sensitive_key(section))
        return call_refuse(g->s, "guard_bypass", "git config %.100s: the guard depends on it",
                           key->text);
    return 0;
}

static int on_remote(struct git *g)
{
    const struct amp_shell_word *verb = operand_at(g, 0, NULL, NULL);
    if (verb && strcmp(verb->text, "set-url") == 0 && has_flag(g, "push", '\0'))
        return call_refuse(g->s, "guard_bypass",
                           "git remote set-url --push gets around the settings "
                           "that refuse pushes");
    if (verb && strcmp(verb->text, "add") == 0 && has_flag(g, "mirror", '\0'))
        return call_refuse(g->s, "guard_bypass", "git remote add --mirror");
    return 0;
}

static int on_worktree(struct git *g)
{
    for (size_t i = 0; i + 1 < g->n; i++)
        if (strcmp(g->w[i].text, "-b") == 0 || strcmp(g->w[i].text, "-B") == 0)
            return call_branch(g->s, &g->repo, &g->w[i + 1]);
    return 0;
}

static int on_stash(struct git *g)
{
    const struct amp_shell_word *verb = operand_at(g, 0, NULL, NULL),
                                *name = operand_at(g, 1, NULL, NULL);
    if (!verb || strcmp(verb->text, "branch") != 0 || !name)
        return 0;
    return call_branch(g->s, &g->repo, name);
}

/* submodule foreach COMMAND, bisect run COMMAND */
static int on_nested(struct git *g)
{
    const struct amp_shell_word *verb = operand_at(g, 0, NULL, NULL);
    if (!verb || (strcmp(verb->text, "foreach") != 0 && strcmp(verb->text, "run") != 0))
        return 0;
    for (size_t i = 0; i < g->n; i++)
        if (&g->w[i] == verb && i + 1 < g->n) {
            while (i + 1 < g->n && g->w[i + 1].text[0] == '-')
                i++;
            if (i + 1 >= g->n)
                return 0;
            return g->n == i + 2 ? call_line(g->s, amp_span_str(g->w[i + 1].text))
                                 : call_simple(g->s, g->w + i + 1, g->n - i - 1, NULL);
        }
    return 0;
}

static int on_refused(struct git *g)
{
    return call_refuse(g->s, "guard_bypass",
                       "git %s can move any branch, and runs no hook or hides "
                       "its input",
                       g->verb);
}

static const struct {
    const char *verb;
    verb_fn fn;
} verbs[] = {
    {"commit", on_commit},
    {"merge", on_head},
    {"am", on_head},
    {"cherry-pick", on_head},
    {"revert", on_head},
    {"reset", on_head},
    {"rebase", on_rebase},
    {"pull", on_fetch},
    {"fetch", on_fetch},
    {"branch", on_branch},
    {"checkout", on_checkout},
    {"switch", on_checkout},
    {"symbolic-ref", on_symbolic_ref},
    {"update-ref", on_update_ref},
    {"push", on_push},
    {"config", on_config},
    {"remote", on_remote},
    {"worktree", on_worktree},
    {"stash", on_stash},
    {"submodule", on_nested},
    {"bisect", on_nested},
    {"send-pack", on_refused},
    {"http-push", on_refused},
    {"receive-pack", on_refused},
    {"fast-import", on_refused},
    {"filter-branch", on_refused},
    {"filter-repo", on_refused},
    {"subtree", on_refused},
    {"daemon", on_refused},
    {"shell", on_refused},
};

/* Verbs that move no branch. */
static const char *const harmless[] = {"add",
                                       "annotate",
                                       "apply",
                                       "archive",
                                       "blame",
                                       "bundle",
                                       "cat-file",
                                       "check-attr",
                                       "check-ignore",
                                       "check-mailmap",
                                       "check-ref-format",
                                       "cherry",
                                       "clean",
                                       "clone",
                                       "column",
                                       "commit-graph",
                                       "commit-tree",
                                       "count-objects",
                                       "describe",
                                       "diagnose",
                                       "diff",
                                       "diff-files",
                                       "diff-index",
                                       "diff-tree",
                                       "difftool",
                                       "fmt-merge-msg",
                                       "for-each-ref",
                                       "format-patch",
                                       "fsck",
                                       "gc",
                                       "get-tar-commit-id",
                                       "grep",
                                       "hash-object",
                                       "help",
                                       "hook",
                                       "index-pack",
                                       "init",
                                       "interpret-trailers",
                                       "lfs",
                                       "log",
                                       "ls-files",
                                       "ls-remote",
                                       "ls-tree",
                                       "mailinfo",
                                       "mailsplit",
                                       "maintenance",
                                       "merge-base",
                                       "merge-file",
                                       "merge-tree",
                                       "mergetool",
                                       "mktag",
                                       "mktree",
                                       "mv",
                                       "name-rev",
                                       "notes",
                                       "pack-objects",
                                       "pack-refs",
                                       "patch-id",
                                       "prune",
                                       "prune-packed",
                                       "range-diff",
                                       "read-tree",
                                       "reflog",
                                       "repack",
                                       "replace",
                                       "request-pull",
                                       "rerere",
                                       "restore",
                                       "rev-list",
                                       "rev-parse",
                                       "rm",
                                       "shortlog",
                                       "show",
                                       "show-branch",
                                       "show-index",
                                       "show-ref",
                                       "sparse-checkout",
                                       "status",
                                       "stripspace",
                                       "tag",
                                       "unpack-objects",
                                       "update-index",
                                       "update-server-info",
                                       "var",
                                       "verify-commit",
                                       "verify-pack",
                                       "verify-tag",
                                       "version",
                                       "whatchanged",
                                       "write-tree",
                                       "fetch-pack",
                                       "checkout-index",
                                       "bugreport",
                                       "--version",
                                       "--help",
                                       NULL};

/* ---- options before the verb ---- */

static int dir_change(struct git *g, const struct amp_shell_word *w, char dir[PATH_MAX],
                      bool *known)
{
    struct call_state at = *g->s;
    char path[PATH_MAX];
    at.cwd_known = *known;
    snprintf(at.cwd, sizeof at.cwd, "%s", dir);
    *known = call_path(&at, w, path);
    snprintf(dir, PATH_MAX, "%s", path);
    return 0;
}

static int setting_check(struct git *g, const struct amp_shell_word *w)
{
    if (w->opaque || is_sensitive_key(w->text))
        return call_refuse(g->s, "guard_bypass", "git -c %.100s: the guard depends on it", w->text);
    return 0;
}

/* Reads the options before the verb. *dir is where git works. */
static int options_read(struct git *g, const struct amp_shell_word *words, size_t n, size_t *at,
                        char dir[PATH_MAX], bool *known)
{
    static const char *const elsewhere[] = {"--git-dir",   "--work-tree",    "--namespace",
                                            "--exec-path", "--super-prefix", "--config-env",
                                            NULL};
    for (*at = 1; *at < n && words[*at].text[0] == '-' && words[*at].text[1]; ++*at) {
        const char *t = words[*at].text;
        if (strcmp(t, "--version") == 0 || strcmp(t, "--help") == 0)
            return 0;
        if (strcmp(t, "-C") == 0 && *at + 1 < n) {
            dir_change(g, &words[++*at], dir, known);
        } else if (strcmp(t, "-c") == 0 && *at + 1 < n) {
            if (setting_check(g, &words[++*at]))
                return 1;
        } else if (strcmp(t, "--exec-path") != 0) {
            for (int i = 0; elsewhere[i]; i++) {
                size_t len = strlen(elsewhere[i]);
                if (strncmp(t, elsewhere[i], len) == 0 && (!t[len] || t[len] == '='))
                    return call_refuse(g->s, "guard_bypass",
                                       "git %.60s: the guard cannot tell which repository and "
                                       "settings are used",
                                       t);
            }
        }
    }
    return 0;
}

int call_git(struct call_state *s, const struct amp_shell_word *words, size_t n)
{
    struct git g = {.s = s};
    char dir[PATH_MAX];
    bool known = s->cwd_known;
    size_t at;
    snprintf(dir, sizeof dir, "%s", s->cwd);
    if (options_read(&g, words, n, &at, dir, &known))
        return 1;
    if (at >= n)
        return 0;
    if (words[at].opaque)
        return call_unreadable(s, "the verb of git");
    g.verb = words[at].text;
    g.w = words + at + 1;
    g.n = n - at - 1;
    if (in_list(harmless, g.verb))
        return 0;
    if (!known)
        return call_unreadable(s, "the directory in which git works");
    if (call_repo_find(s->call, dir, &g.repo, s->err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(g.verb, verbs[i].verb) == 0)
            return verbs[i].fn(&g);
    return call_refuse(s, "command_unreadable",
                       "git %.60s: not a known command of git; an alias can do anything", g.verb);
}
