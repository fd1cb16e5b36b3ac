/* Decides about a command line: its simple commands, the files that they write, and the command
 * lines inside of them. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worktree/call/private.h"
#include "worktree/paths/reserved.h"
#include "worktree/worktree.h"

#define DEPTH_MAX 8

int call_refuse(struct call_state *s, const char *code, const char *fmt, ...)
{
    va_list ap;
    if (s->out->code[0])
        return 1;
    snprintf(s->out->code, sizeof s->out->code, "%s", code);
    va_start(ap, fmt);
    vsnprintf(s->out->what, sizeof s->out->what, fmt, ap);
    va_end(ap);
    return 1;
}

static bool has_word(struct amp_span text, const char *word)
{
    return text.n && memmem(text.p, text.n, word, strlen(word));
}

/* Whether the text mentions git and a word that could move a branch. */
static bool text_mentions(struct amp_span text)
{
    static const char *const moving[] = {
        "push",         "commit",   "merge",        "rebase",      "reset",     "update-ref",
        "symbolic-ref", "branch",   "fetch",        "pull",        "checkout",  "switch",
        "cherry-pick",  "revert",   "send-pack",    "fast-import", "filter-",   "receive-pack",
        " am ",         "hooks",    "refs/",        ".git/",       "hooksPath", "GIT_DIR",
        "alias",        "worktree", "stash branch", NULL};
    if (has_word(text, "worktree-bind") && has_word(text, "hooks"))
        return true;
    if (!has_word(text, "git"))
        return false;
    for (int i = 0; moving[i]; i++)
        if (has_word(text, moving[i]))
            return true;
    return false;
}

int call_unreadable(struct call_state *s, const char *what)
{
    if (!text_mentions(s->line))
        return 0;
    return call_refuse(s, "command_unreadable",
                       "%s cannot be read, and the command mentions git in a way that could move a "
                       "branch; write it plainly",
                       what);
}

static int branch_refuse(struct call_state *s, const struct call_repo *r, const char *ref,
                         const char *verb)
{
    enum amp_rule_verdict v = amp_rule_allows(&r->rule, &r->caller, amp_span_str(ref));
    if (!amp_rule_refused(v))
        return 0;
    return call_refuse(s, amp_rule_code(v), "%s%.200s: %s: refused to %s", verb, ref,
                       v == AMP_RULE_REFUSE        ? "protected branch"
                       : v == AMP_RULE_REFUSE_ROLE ? "no branch of its role"
                                                   : "not the branch of its worktree",
                       r->caller.name);
}

int call_branch(struct call_state *s, const struct call_repo *r, const struct amp_shell_word *name)
{
    char ref[512];
    const char *t = name->text;
    if (name->opaque)
        return call_refuse(s, "command_unreadable",
                           "the name of a branch, '%.100s', cannot be read", t);
    if (strcmp(t, "HEAD") == 0 || strcmp(t, "@") == 0)
        return call_head(s, r, "");
    if (strlen(t) > 400)
        return call_refuse(s, "command_unreadable", "a branch name of more than 400 bytes");
    /* A ref beside the branches is not the guard's; a name without refs/ may be any. */
    bool full = strncmp(t, "refs/", 5) == 0;
    snprintf(ref, sizeof ref, "%s%s", full ? "" : "refs/heads/",
             !full && strncmp(t, "heads/", 6) == 0 ? t + 6 : t);
    return branch_refuse(s, r, ref, "");
}

int call_head(struct call_state *s, const struct call_repo *r, const char *verb)
{
    char lead[64];
    if (!r->found)
        return 0;
    snprintf(lead, sizeof lead, "%s%s%s", *verb ? "git " : "", verb, *verb ? ": HEAD is " : "");
    if (!s->heads_set)
        return r->head[0] ? branch_refuse(s, r, r->head, lead) : 0;
    if (s->n_heads < 0)
        return call_refuse(s, "command_unreadable",
                           "git %s: the branch that it moves cannot be read", verb);
    for (int i = 0; i < s->n_heads; i++)
        if (branch_refuse(s, r, s->heads[i], lead))
            return 1;
    return 0;
}

/* ---- words ---- */

static bool in_list(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the variable changes the rules that apply to git. */
static bool variable_is_sensitive(const char *assignment)
{
    static const char *const names[] = {"AMP_AGENT",
                                        "AMP_ROLE",
                                        "AMP_RESULT",
                                        "AMP_LIBEXEC",
                                        "GIT_DIR",
                                        "GIT_WORK_TREE",
                                        "GIT_COMMON_DIR",
                                        "GIT_CONFIG",
                                        "GIT_EXEC_PATH",
                                        "GIT_NAMESPACE",
                                        "GIT_SSH",
                                        "GIT_PROXY_COMMAND",
                                        "LD_PRELOAD",
                                        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                        "XDG_CONFIG_HOME",
                                        "GIT_TEMPLATE_DIR",
                                        "GIT_CEILING",
                                        "GIT_DISCOVERY",
                                        NULL};
    for (int i = 0; names[i]; i++)
        if (strncmp(assignment, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

bool call_is_assignment(const char *t)
{
    size_t n = strspn(t, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n && (t[n] == '=' || (t[n] == '+' && t[n + 1] == '=')) && !(t[0] >= '0' && t[0] <= '9');
}

bool call_path(const struct call_state *s, const struct amp_shell_word *w, char out[PATH_MAX])
{
    char text[2 * PATH_MAX];
    out[0] = '\0';
    if (w->opaque || strlen(w->text) >= PATH_MAX || (w->text[0] != '/' && !s->cwd_known))
        return false;
    snprintf(text, sizeof text, "%s/%s", w->text[0] == '/' ? "" : s->cwd, w->text);
    return amp_path_canonical(text, out, NULL) == 0;
}

/* ---- files ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return n && strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The rules about paths; path is relative to the top of the working tree. */
static int file_rules_check(struct call_state *s, const struct call_repo *r, const char *path)
{
    AMP_BUF struct amp_buf reserved = {0};
    struct amp_reservation other;
    for (int i = 0; r->rule.paths[i]; i++)
        if (amp_glob_match(amp_span_str(r->rule.paths[i]), amp_span_str(path)))
            return call_refuse(s, "path_forbidden",
                               "%.300s: forbidden path (%.100s): refused to %s", path,
                               r->rule.paths[i], r->caller.name);
    AMP_CLOSE int common = open(r->common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(s->err, AMP_IOERR, "%s", r->common);
    if (amp_reserved_load(&reserved, common, s->err) < 0)
        return -1;
    if (amp_reserved_by(&reserved, amp_span_str(r->caller.name), amp_span_str(path), &other))
        return call_refuse(s, "path_reserved", "%.300s: reserved for %.*s (%.*s): refused to %s",
                           path, AMP_CLIP(other.holder, 100), AMP_CLIP(other.pattern, 100),
                           r->caller.name);
    return 0;
}

int call_write(struct call_state *s, const char *path, bool rules)
{
    struct call_repo r;
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';
    if (strstr(path, "/.git/") || strcmp(base_name(path), ".git") == 0)
        return call_refuse(s, "guard_bypass", "%.300s: in a git directory; only git writes there",
                           path);
    if (call_repo_find(s->call, dir, &r, s->err) < 0)
        return -1;
    if (!r.found)
        return 0;
    if (is_below(path, r.gitdir) || is_below(path, r.common))
        return call_refuse(s, "guard_bypass", "%.300s: in a git directory; only git writes there",
                           path);
    if (!rules || !r.top[0] || !is_below(path, r.top) || !path[strlen(r.top)])
        return 0;
    return file_rules_check(s, &r, path + strlen(r.top) + 1);
}

/* A word that may be a path; also "of=PATH". */
static int word_write(struct call_state *s, const struct amp_shell_word *w, bool rules)
{
    char path[PATH_MAX];
    struct amp_shell_word at = *w;
    if (strncmp(at.text, "of=", 3) == 0)
        at.text += 3;
    if (at.text[0] == '-' && at.text[1])
        return 0;
    /* Also in a part that is literal, and where .git is a file. */
    for (const char *git = strstr(at.text, ".git"); git; git = strstr(git + 1, ".git"))
        if ((git == at.text || git[-1] == '/') && (!git[4] || git[4] == '/'))
            return call_refuse(s, "guard_bypass",
                               "%.300s: in a git directory; only git writes there", at.text);
    return call_path(s, &at, path) ? call_write(s, path, rules) : 0;
}

/* Programs that only read their operands. */
static const char *const readers[] = {
    "cat",    "less",  "more",    "head",      "tail",     "grep",     "egrep",   "fgrep",
    "rg",     "ls",    "stat",    "file",      "wc",       "diff",     "cmp",     "test",
    "[",      "echo",  "printf",  "true",      "false",    "pwd",      "du",      "tree",
    "md5sum", "cksum", "sha1sum", "sha256sum", "readlink", "realpath", "dirname", "basename",
    "which",  "type",  "od",      "xxd",       "strings",  "sort",     "uniq",    "cut",
    "jq",     "nl",    "for",     "ag",        "fd",       NULL};
/* Programs whose operands are written. */
static const char *const writers[] = {
    "rm", "mv",  "cp",    "ln",    "tee",   "touch", "truncate", "chmod",  "chown", "install",
    "dd", "sed", "mkdir", "rmdir", "rsync", "shred", "patch",    "unlink", NULL};

static int operands_check(struct call_state *s, const struct amp_shell_word *words, size_t n)
{
    const char *name = base_name(words[0].text);
    if (in_list(readers, name))
        return 0;
    if (strcmp(name, "find") == 0) {
        bool acts = false;
        for (size_t i = 1; i < n; i++)
            acts |=
                strcmp(words[i].text, "-delete") == 0 || strncmp(words[i].text, "-exec", 5) == 0 ||
                strncmp(words[i].text, "-fprint", 7) == 0 || strncmp(words[i].text, "-ok", 3) == 0;
        if (!acts)
            return 0;
    }
    bool rules = in_list(writers, name);
    for (size_t i = 1; i < n; i++) {
        if (strncmp(words[i - 1].text, "--exclude", 9) == 0)
            continue;
        int rc = word_write(s, &words[i], rules);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- commands ---- */

const char *const call_shells[] = {"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", NULL};
const char *const call_wrappers[] = {
    "sudo",    "doas",   "nice",   "nohup",   "time",     "timeout", "setsid",  "stdbuf",
    "ionice",  "chrt",   "xargs",  "find",    "parallel", "watch",   "flock",   "unshare",
    "nsenter", "chroot", "strace", "ltrace",  "command",  "exec",    "builtin", "busybox",
    "env",     "script", "su",     "taskset", NULL};
static const char *const interpreters[] = {
    "python", "python2", "python3", "perl",  "ruby", "node", "nodejs",    "php", "awk",
    "gawk",   "mawk",    "lua",     "tclsh", "deno", "bun",  "osascript", NULL};
static const char *const exporters[] = {"export", "declare", "typeset", "readonly",
                                        "local",  "unset",   "set",     NULL};

static bool is_known(const struct amp_shell_word *w)
{
    const char *name = base_name(w->text);
    return !w->opaque && (strcmp(name, "git") == 0 || strncmp(name, "git-", 4) == 0 ||
                          strcmp(name, "worktree-bind") == 0 || strcmp(name, "eval") == 0 ||
                          in_list(call_shells, name) || in_list(interpreters, name) ||
                          in_list(call_wrappers, name));
}

/* A shell with its arguments: the script of -c, or the here-document. */
static int on_shell(struct call_state *s, const struct amp_shell_word *w, size_t n,
                    const char *input)
{
    for (size_t i = 1; i < n; i++) {
        const char *t = w[i].text;
        if (t[0] != '-' && t[0] != '+')
            return 0; /* a script, which cannot be seen */
        if (t[0] == '-' && t[1] != '-' && strchr(t, 'c')) {
            while (i + 1 < n && w[i + 1].text[0] == '-')
                i++;
            if (i + 1 >= n)
                return 0;
            return w[i + 1].opaque ? call_unreadable(s, "the script of a shell")
                                   : call_line(s, amp_span_str(w[i + 1].text));
        }
        if (strcmp(t, "-o") == 0 || strcmp(t, "+o") == 0)
            i++;
    }
    if (input)
        return call_line(s, amp_span_str(input));
    return call_unreadable(s, "the input of a shell");
}

static int on_eval(struct call_state *s, const struct amp_shell_word *w, size_t n)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, AMP_SHELL_MAX);
    for (size_t i = 1; i < n; i++) {
        if (w[i].opaque)
            return call_unreadable(s, "the text of eval");
        if (amp_buf_str(&line, w[i].text, s->err) < 0 || amp_buf_str(&line, " ", s->err) < 0)
            return -1;
    }
    return call_line(s, amp_buf_span(&line));
}

static int on_interpreter(struct call_state *s, const struct amp_shell_word *w, size_t n,
                          const char *input)
{
    for (size_t i = 1; i < n; i++)
        if (text_mentions(amp_span_str(w[i].text)))
            return call_refuse(s, "command_unreadable",
                               "a program for %.40s that mentions git cannot be read",
                               base_name(w[0].text));
    if (input && text_mentions(amp_span_str(input)))
        return call_refuse(s, "command_unreadable",
                           "a program for %.40s that mentions git cannot be read",
                           base_name(w[0].text));
    return operands_check(s, w, n);
}

static int on_wrapper(struct call_state *s, const struct amp_shell_word *w, size_t n,
                      const char *input)
{
    bool env = strcmp(base_name(w[0].text), "env") == 0, clears = false;
    for (size_t i = 1; i < n; i++) {
        const char *t = w[i].text;
        if (env &&
            (strcmp(t, "-i") == 0 || strcmp(t, "-") == 0 || strcmp(t, "--ignore-environment") == 0))
            clears = true;
        if (env && ((strcmp(t, "-u") == 0 && i + 1 < n && variable_is_sensitive(w[i + 1].text)) ||
                    (strncmp(t, "--unset=", 8) == 0 && variable_is_sensitive(t + 8)) ||
                    (strncmp(t, "-u", 2) == 0 && t[2] && variable_is_sensitive(t + 2))))
            return call_refuse(s, "guard_bypass", "env -u of a variable that the guard reads");
        if (call_is_assignment(t) && variable_is_sensitive(t))
            return call_refuse(s, "guard_bypass", "%.60s: a variable that the guard depends on", t);
        if (env && (strcmp(t, "-S") == 0 || strncmp(t, "--split-string", 14) == 0))
            return call_unreadable(s, "env -S");
        if (!is_known(&w[i]))
            continue;
        if (clears)
            return call_refuse(s, "guard_bypass", "env -i removes what the guard reads");
        int rc = call_simple(s, w + i, n - i, input);
        if (rc)
            return rc;
        /* Further words belong to this command, but for find and xargs there may be more. */
        if (strcmp(base_name(w[0].text), "find") != 0)
            break;
    }
    return operands_check(s, w, n);
}

static int on_change_dir(struct call_state *s, const struct amp_shell_word *w, size_t n)
{
    char path[PATH_MAX];
    size_t i = 1;
    while (i < n && w[i].text[0] == '-' && w[i].text[1])
        i++;
    s->cwd_known = i < n && call_path(s, &w[i], path);
    if (s->cwd_known)
        memcpy(s->cwd, path, sizeof s->cwd);
    s->heads_set = false;
    return 0;
}

static int on_worktree_bind(struct call_state *s, const struct amp_shell_word *w, size_t n)
{
    for (size_t i = 1; i + 1 < n; i++)
        if (strcmp(w[i].text, "hooks") == 0 &&
            (w[i + 1].opaque || strcmp(w[i + 1].text, "install") == 0 ||
             strcmp(w[i + 1].text, "uninstall") == 0 || strcmp(w[i + 1].text, "override") == 0))
            return call_refuse(s, "permission_denied", "only people may change the guard");
    return 0;
}

int call_simple(struct call_state *s, const struct amp_shell_word *words, size_t n,
                const char *input)
{
    while (n && call_is_assignment(words[0].text)) {
        if (variable_is_sensitive(words[0].text))
            return call_refuse(s, "guard_bypass", "%.60s: a variable that the guard depends on",
                               words[0].text);
        words++;
        n--;
    }
    if (!n)
        return 0;
    if (words[0].opaque)
        return call_unreadable(s, "the name of a command");
    const char *name = base_name(words[0].text);
    if (in_list(exporters, name)) {
        for (size_t i = 1; i < n; i++)
            if (variable_is_sensitive(words[i].text))
                return call_refuse(s, "guard_bypass",
                                   "%s %.60s: a variable that the guard depends on", name,
                                   words[i].text);
        return 0;
    }
    if (strcmp(name, "cd") == 0 || strcmp(name, "pushd") == 0 || strcmp(name, "popd") == 0)
        return on_change_dir(s, words, n);
    if (strcmp(name, "git") == 0)
        return call_git(s, words, n);
    if (strncmp(name, "git-", 4) == 0) {
        AMP_FREE char *verb = strdup(name + 4);
        AMP_FREE struct amp_shell_word *copy = calloc(n + 1, sizeof *copy);
        if (!copy || !verb)
            return amp_fail_memory(s->err);
        memcpy(copy + 1, words, n * sizeof *words);
        copy[0] = words[0];
        copy[1].text = verb;
        return call_git(s, copy, n + 1);
    }
    if (strcmp(name, "worktree-bind") == 0)
        return on_worktree_bind(s, words, n);
    if (strcmp(name, "alias") == 0 || strcmp(name, "trap") == 0)
        return call_unreadable(s, name);
    if (strcmp(name, "eval") == 0)
        return on_eval(s, words, n);
    if (in_list(call_shells, name))
        return on_shell(s, words, n, input);
    if (in_list(interpreters, name))
        return on_interpreter(s, words, n, input);
    if (in_list(call_wrappers, name))
        return on_wrapper(s, words, n, input);
    if ((strcmp(name, "gh") == 0 || strcmp(name, "glab") == 0) && n > 2 &&
        strcmp(words[2].text, "merge") == 0)
        return call_refuse(s, "branch_violation", "%s merges into a branch of the server", name);
    return operands_check(s, words, n);
}

static int item_check(struct call_state *s, const struct amp_shell_item *i, const char *input)
{
    int rc = 0;
    for (size_t k = 0; k < i->n_nested && !rc; k++) {
        struct call_state inside = *s; /* a subshell */
        rc = call_line(&inside, amp_span_str(i->nested[k]));
    }
    for (size_t k = 0; k < i->n_targets && !rc; k++)
        rc = word_write(s, &i->targets[k], true);
    return rc ? rc : call_simple(s, i->words, i->n, i->input ? i->input : input);
}

int call_line(struct call_state *s, struct amp_span line)
{
    struct amp_shell shell;
    struct amp_error err;
    struct {
        char cwd[PATH_MAX];
        bool known;
    } saved[4];
    int depth = 0, rc = 0;
    const char *input = NULL;
    if (++s->depth > DEPTH_MAX)
        return call_refuse(s, "command_unreadable", "commands inside of commands, %d deep",
                           DEPTH_MAX);
    if (amp_shell_parse(line, &shell, &err) < 0) {
        s->depth--;
        if (strcmp(err.code, "bad_command") != 0) {
            *s->err = err;
            return -1;
        }
        return call_unreadable(s, err.what);
    }
    for (size_t i = 0; i < shell.n; i++)
        if (shell.items[i].input)
            input = shell.items[i].input;
    for (size_t i = 0; i < shell.n && !rc; i++) {
        if (shell.items[i].kind == AMP_SHELL_OPEN) {
            if (depth == 4) {
                rc = call_unreadable(s, "deep subshells");
                break;
            }
            memcpy(saved[depth].cwd, s->cwd, sizeof s->cwd);
            saved[depth++].known = s->cwd_known;
        } else if (shell.items[i].kind == AMP_SHELL_CLOSE) {
            if (depth) {
                memcpy(s->cwd, saved[--depth].cwd, sizeof s->cwd);
                s->cwd_known = saved[depth].known;
            }
        } else {
            rc = item_check(s, &shell.items[i], input);
        }
    }
    amp_shell_release(&shell);
    s->depth--;
    return rc;
}
