/*
 * The git hook, installed under the names of several hooks. It decides for agents (and for people
 * if the policy says so) whether a protected branch may change, then runs the hook that was
 * installed before, if any. It runs before every ref update, so it starts no git and links no
 * library but libc.
 *
 * reference-transaction "prepared" makes the decision; the other hooks refuse the same change
 * earlier, before git changes the working tree. Exit 1 refuses.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "guard.h"
#include "work/git/person.h"
#include "work/git/stopped.h"

#define INPUT_MAX   (64u << 20)
#define KEPT_SUFFIX ".amp-kept"

static void text_say(const char *severity, char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    fprintf(stderr, "branch-guard: %s: %s\n", severity, text);
}

/* Prints a diagnostic. Names in it are untrusted, so unprintable bytes become "?". */
__attribute__((format(printf, 2, 3))) static void guard_say(const char *severity, const char *fmt,
                                                            ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    text_say(severity, text);
}

int guard_refuse(const char *code, const char *hint, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text - 64, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : strlen(text);
    snprintf(text + at, sizeof text - at, " [%s]", code);
    text_say("error", text);
    if (hint)
        guard_say("hint", "%s", hint);
    return 1;
}

const char *caller_name(const struct guard *g)
{
    return g->caller.agent ? g->caller.name : "people";
}

/* Refuses a change; returns 1. late: git had already changed files, so the hint says how to clean
 * up. */
static int ref_refuse(const struct guard *g, enum amp_rule_verdict v, struct amp_span ref,
                      bool late)
{
    char hint[1024] = "work on another branch; a person merges it";
    struct command c;
    command_find(&c);
    const char *cleanup = late ? command_cleanup(&c) : NULL;
    if (cleanup)
        snprintf(hint, sizeof hint, "git %s had already started; clean up with: %s", c.verb,
                 cleanup);
    else if (v == AMP_RULE_REFUSE_ROLE)
        snprintf(hint, sizeof hint, "the policy's lines \"role\" name the branches of %s%.60s",
                 g->caller.role[0] ? "the role " : "an agent without a role", g->caller.role);
    else if (v == AMP_RULE_REFUSE_BOUND && g->caller.branch[0])
        snprintf(hint, sizeof hint, "this worktree is bound to %.255s; commit there",
                 g->caller.branch);
    else if (v == AMP_RULE_REFUSE_BOUND)
        snprintf(hint, sizeof hint, "%s",
                 g->caller.marked ? "this worktree is bound to no branch"
                                  : "commit in the worktree that worktree-bind bind made");
    if (v == AMP_RULE_REFUSE_ROLE)
        return guard_refuse(amp_rule_code(v), hint,
                            "%.*s: no branch of its role: refused to %s (role: %s)", (int)ref.n,
                            ref.p, caller_name(g), g->caller.role[0] ? g->caller.role : "none");
    if (v == AMP_RULE_REFUSE_BOUND)
        return guard_refuse(amp_rule_code(v), hint,
                            "%.*s: not the branch of this worktree: refused to %s", (int)ref.n,
                            ref.p, caller_name(g));
    return guard_refuse(amp_rule_code(v), hint, "%.*s: protected branch: refused to %s", (int)ref.n,
                        ref.p, caller_name(g));
}

/* Runs the previous hook, if there is one, with the same arguments and input; 0 without one. */
static int run_kept(struct guard *g, bool input_read)
{
    char path[4096];
    if (g->standalone)
        return 0;
    int n = snprintf(path, sizeof path, "%s" KEPT_SUFFIX, g->argv[0]);
    if (n < 0 || (size_t)n >= sizeof path || access(path, X_OK) != 0)
        return 0;
    if (input_read) {
        AMP_CLOSE int fd = memfd_create("amp-hook-input", MFD_CLOEXEC);
        if (fd < 0 || amp_write_all(fd, amp_buf_span(&g->input), NULL) ||
            lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) != STDIN_FILENO) {
            guard_say("error", "cannot pass the input to %s", path);
            return 1;
        }
    }
    g->argv[0] = path;
    execv(path, g->argv); /* replaces this process */
    guard_say("error", "cannot run %s: %s", path, strerror(errno));
    return 1;
}

static int read_input(struct guard *g)
{
    struct amp_error err;
    for (;;) {
        if (amp_buf_reserve(&g->input, 65536, &err) < 0) {
            guard_say("error", "%s: input: %s", g->hook, err.what);
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, g->input.data + g->input.len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            guard_say("error", "%s: input: %s", g->hook, strerror(errno));
            return -1;
        }
        if (n == 0)
            return 0;
        g->input.len += (size_t)n;
    }
}

/* The next field of a line, up to a space; the last field takes the rest. */
static struct amp_span next_field(struct amp_span *line, bool last)
{
    const char *sp = last ? NULL : memchr(line->p, ' ', line->n);
    struct amp_span f = {line->p, sp ? (size_t)(sp - line->p) : line->n};
    size_t skip = f.n + (sp ? 1 : 0);
    line->p += skip;
    line->n -= skip;
    return f;
}

static bool next_line(const struct guard *g, size_t *at, struct amp_span *line)
{
    if (*at >= g->input.len)
        return false;
    const char *p = g->input.data + *at, *lf = memchr(p, '\n', g->input.len - *at);
    line->p = p;
    line->n = lf ? (size_t)(lf - p) : g->input.len - *at;
    *at += line->n + 1;
    return true;
}

/* ---- the hooks ---- */

/* Whether this caller may not move the branch; an override counts. */
static enum amp_rule_verdict branch_decide(struct guard *g, struct amp_span ref)
{
    enum amp_rule_verdict v = amp_rule_allows(&g->rule, &g->caller, ref);
    return amp_rule_refused(v) && is_overridden(g, ref, false) ? AMP_RULE_ALLOW : v;
}

/* The verdict for the branch of HEAD; name gets it. */
static enum amp_rule_verdict head_decide(struct guard *g, char name[NAME_SIZE])
{
    return repo_head(&g->repo, name) ? branch_decide(g, amp_span_str(name)) : AMP_RULE_ALLOW;
}

/* `git branch -m feat main` deletes feat first and writes main without running a hook, so only the
 * deletion can be refused; then nothing is lost. */
static enum amp_rule_verdict rename_decide(const struct guard *g)
{
    static const char *const flags[] = {"-m", "-M", "--move", "-c", "-C", "--copy"};
    char name[NAME_SIZE];
    struct command c;
    command_find(&c);
    const char *to = command_last(&c);
    if (strcmp(c.verb, "branch") != 0 || !to)
        return AMP_RULE_ALLOW;
    int n = snprintf(name, sizeof name, "refs/heads/%s", to);
    if (n < 0 || (size_t)n >= sizeof name)
        return AMP_RULE_ALLOW;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (command_has(&c, flags[i]))
            return amp_rule_allows(&g->rule, &g->caller, amp_span_str(name));
    return AMP_RULE_ALLOW;
}

static bool is_zero(struct amp_span value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != '0')
            return false;
    return true;
}

static bool is_branch(struct amp_span ref)
{
    return amp_span_starts(ref, "refs/heads/");
}

/* Adds an id to the list of new commits, if the update brings some. */
static int commit_note(struct amp_buf *ids, struct amp_span value)
{
    struct amp_error err;
    if (is_zero(value))
        return 0;
    if (amp_buf_add(ids, value.p, value.n, &err) < 0 || amp_buf_str(ids, "\n", &err) < 0)
        return guard_refuse(AMP_CODE(guard_failed), NULL, "%s", err.what);
    return 0;
}

static int check_update(struct guard *g, struct amp_ref_update *u, struct amp_buf *ids)
{
    char head[NAME_SIZE], value[VALUE_SIZE];
    if (amp_span_is(u->ref, "ORIG_HEAD")) {
        enum amp_rule_verdict v = head_decide(g, head);
        struct command c;
        if (!amp_rule_refused(v))
            return 0;
        command_find(&c);
        return command_starts_with_orig_head(&c) ? ref_refuse(g, v, amp_span_str(head), false) : 0;
    }
    enum amp_rule_verdict v = amp_rule_allows(&g->rule, &g->caller, u->ref);
    if (!amp_rule_refused(v)) {
        if (is_zero(u->new_value) && is_branch(u->ref))
            v = rename_decide(g);
        if (amp_rule_refused(v))
            return guard_refuse(
                amp_rule_code(v), "work on another branch; a person merges it",
                "%.*s: would be renamed onto a %s: refused to %s", (int)u->ref.n, u->ref.p,
                v == AMP_RULE_REFUSE ? "protected branch" : "branch that the agent may not move",
                caller_name(g));
        return is_branch(u->ref) ? commit_note(ids, u->new_value) : 0;
    }
    u->now = repo_value(&g->repo, u->ref, value);
    u->packed = repo_packed(&g->repo, u->ref);
    u->packed_locked = g->repo.packed_locked;
    v = amp_rule_decide(&g->rule, &g->caller, u);
    if (!amp_rule_refused(v) || is_overridden(g, u->ref, true))
        return 0;
    return ref_refuse(g, v, u->ref, true);
}

/* Commits that are on a branch were checked when they came there; those of a remote are others'. */
static const char *const not_new_here[] = {"--branches", "--remotes", NULL};

static int on_transaction(struct guard *g)
{
    if (g->n_args < 1 || strcmp(g->args[0], "prepared") != 0)
        return run_kept(g, false);
    if (read_input(g) < 0)
        return 1;
    AMP_BUF struct amp_buf ids = {0};
    amp_buf_init(&ids, INPUT_MAX);
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        next_field(&line, false); /* old: zeros if git does not check it; the guard reads it */
        struct amp_ref_update u = {.new_value = next_field(&line, false)};
        u.ref = next_field(&line, true);
        if (check_update(g, &u, &ids))
            return 1;
    }
    if (contents_of_commits(g, amp_buf_span(&ids), not_new_here))
        return 1;
    return run_kept(g, true);
}

static int on_commit(struct guard *g)
{
    char head[NAME_SIZE];
    enum amp_rule_verdict v = head_decide(g, head);
    if (amp_rule_refused(v))
        return ref_refuse(g, v, amp_span_str(head), false);
    /* A merge brings files of others; reference-transaction checks what it changes itself. */
    bool merge = strcmp(g->hook, "pre-merge-commit") == 0 ||
                 (g->repo.gitdir >= 0 && faccessat(g->repo.gitdir, "MERGE_HEAD", F_OK, 0) == 0);
    if (!merge && contents_of_index(g))
        return 1;
    return run_kept(g, false);
}

/* commit-msg FILE */
static int on_message(struct guard *g)
{
    if (g->n_args > 0 && contents_of_message(g, g->args[0]))
        return 1;
    return run_kept(g, false);
}

/* pre-rebase UPSTREAM [BRANCH] */
static int on_rebase(struct guard *g)
{
    char name[NAME_SIZE];
    enum amp_rule_verdict v;
    if (g->n_args < 2 || !*g->args[1]) {
        v = head_decide(g, name);
    } else {
        snprintf(name, sizeof name, "%s%s",
                 strncmp(g->args[1], "refs/", 5) == 0 ? "" : "refs/heads/", g->args[1]);
        v = branch_decide(g, amp_span_str(name));
    }
    return amp_rule_refused(v) ? ref_refuse(g, v, amp_span_str(name), false) : run_kept(g, false);
}

static int glob_add(struct amp_buf *text, const char *pattern, struct amp_error *err)
{
    const char *name = strncmp(pattern, "refs/heads/", 11) == 0 ? pattern + 11 : pattern;
    size_t n = strlen(name);
    int rc;
    if (!n)
        return 0;
    if (strpbrk(name, "*?["))
        rc = amp_buf_fmt(text, err, "--glob=refs/heads/%s", name);
    else /* without a glob character, git takes the name for a folder of refs */
        rc = amp_buf_fmt(text, err, "--glob=refs/heads/%.*s[%c]", (int)n - 1, name, name[n - 1]);
    return rc < 0 || amp_buf_add(text, "", 1, err) < 0 ? -1 : 0;
}

/* The options of rev-list that leave out what is on a remote or on a protected branch here: those
 * commits are not the agent's. */
static int pushed_without(const struct guard *g, struct amp_buf *text, const char *list[],
                          struct amp_error *err)
{
    int n = 0;
    if (glob_add(text, "main", err) < 0 || glob_add(text, "master", err) < 0)
        return -1;
    for (int i = 0; g->rule.patterns[i]; i++)
        if (glob_add(text, g->rule.patterns[i], err) < 0)
            return -1;
    list[n++] = "--remotes";
    for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1)
        list[n++] = text->data + at;
    list[n] = NULL;
    return 0;
}

/* The program pre-commit reads git's input itself and sets variables for the first pushed branch.
 */
static int push_from_variables(struct guard *g)
{
    static const char *const names[] = {"PRE_COMMIT_LOCAL_BRANCH", "PRE_COMMIT_TO_REF",
                                        "PRE_COMMIT_REMOTE_BRANCH", "PRE_COMMIT_FROM_REF"};
    struct amp_error err;
    for (int i = 0; i < 4; i++) {
        const char *v = getenv(names[i]);
        if (!v && i == 2)
            return 0;
        /* Without a value, all commits of the branch are pushed. */
        if ((!v || !*v) && i == 1)
            v = getenv(names[0]);
        if (amp_buf_fmt(&g->input, &err, "%s%c", v && *v ? v : "0", i < 3 ? ' ' : '\n') < 0)
            return guard_refuse(AMP_CODE(guard_failed), NULL, "%s", err.what);
    }
    return 0;
}

/* Lines "<local ref> <local value> <remote ref> <remote value>". */
static int on_push(struct guard *g)
{
    if (read_input(g) < 0 || (g->standalone && !g->input.len && push_from_variables(g)))
        return 1;
    struct amp_error err;
    AMP_BUF struct amp_buf ids = {0}, text = {0};
    amp_buf_init(&ids, INPUT_MAX);
    amp_buf_init(&text, 1 << 20);
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        next_field(&line, false);
        struct amp_ref_update u = {.new_value = next_field(&line, false)};
        u.ref = next_field(&line, false);
        u.now = next_field(&line, true);
        enum amp_rule_verdict v = amp_rule_decide(&g->rule, &g->caller, &u);
        if (amp_rule_refused(v) && !is_overridden(g, u.ref, true))
            return ref_refuse(g, v, u.ref, false);
        if (!amp_rule_refused(v) && commit_note(&ids, u.new_value))
            return 1;
    }
    const char *without[2 * AMP_RULE_PATTERNS_MAX];
    if (pushed_without(g, &text, without, &err) < 0)
        return guard_refuse(AMP_CODE(guard_failed), NULL, "%s", err.what);
    if (contents_of_commits(g, amp_buf_span(&ids), without))
        return 1;
    return run_kept(g, true);
}

/* The name that the transport has authenticated, else the account. */
static const char *pusher_name(void)
{
    static const char *const names[] = {"REMOTE_USER", "GL_USER"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return v;
    }
    const struct passwd *pw = getpwuid(getuid());
    return pw ? pw->pw_name : "unknown";
}

static bool may_push(const struct guard *g)
{
    if (g->caller.agent)
        return false;
    if (!g->rule.server_all)
        return !g->rule.humans_refuse;
    const char *name = pusher_name();
    for (int i = 0; g->rule.pushers[i]; i++)
        if (strcmp(g->rule.pushers[i], name) == 0)
            return true;
    return false;
}

/* The verdict for a pushed update. A pusher who is not listed is treated as an agent of that name;
 * the rules of roles and bound branches apply to agents that the transport names. */
static enum amp_rule_verdict received_decide(struct guard *g, struct amp_span ref,
                                             struct amp_span new_value)
{
    char value[VALUE_SIZE];
    struct amp_ref_update u = {.ref = ref, .new_value = new_value};
    enum amp_rule_verdict v = amp_rule_allows(&g->rule, &g->caller, ref);
    if (v == AMP_RULE_REFUSE_BOUND) /* worktrees are not on a server */
        return AMP_RULE_ALLOW;
    if (v != AMP_RULE_REFUSE_ROLE && (!amp_rule_protects(&g->rule, ref) || may_push(g)))
        return AMP_RULE_ALLOW;
    u.now = repo_value(&g->repo, ref, value);
    if (!g->caller.agent) {
        amp_span_copy(amp_span_str(pusher_name()), g->caller.name, sizeof g->caller.name);
        g->caller.agent = true;
    }
    v = amp_rule_decide(&g->rule, &g->caller, &u);
    return amp_rule_refused(v) && is_overridden(g, ref, true) ? AMP_RULE_ALLOW : v;
}

/* update REF OLD NEW, on the receiving side */
static int on_update(struct guard *g)
{
    if (g->n_args < 3)
        return run_kept(g, false);
    struct amp_span ref = amp_span_str(g->args[0]);
    enum amp_rule_verdict v = received_decide(g, ref, amp_span_str(g->args[2]));
    return amp_rule_refused(v) ? ref_refuse(g, v, ref, false) : run_kept(g, false);
}

/* Runs before update, while the pushed objects are still in quarantine, and refuses the complete
 * push. It leaves protected branches to update, which refuses only them, and so leaves the override
 * to the branch that uses it. */
static int on_pre_receive(struct guard *g)
{
    static const char *const not_new[] = {"--all", NULL};
    if (read_input(g) < 0)
        return 1;
    AMP_BUF struct amp_buf ids = {0};
    amp_buf_init(&ids, INPUT_MAX);
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        next_field(&line, false);
        if (commit_note(&ids, next_field(&line, false)))
            return 1;
    }
    if (!may_push(g) && contents_of_commits(g, amp_buf_span(&ids), not_new))
        return 1;
    return run_kept(g, true);
}

/* The ids on standard input, for a tool that moves a branch without git's hooks. */
static int on_contents(struct guard *g)
{
    return read_input(g) < 0 || contents_of_commits(g, amp_buf_span(&g->input), not_new_here);
}

static const struct hook {
    const char *name;
    int (*run)(struct guard *g);
    bool server;
} hooks[] = {
    {"reference-transaction", on_transaction, false},
    {"pre-commit", on_commit, false},
    {"pre-merge-commit", on_commit, false},
    {"commit-msg", on_message, false},
    {"pre-rebase", on_rebase, false},
    {"pre-push", on_push, false},
    {"update", on_update, true},
    {"pre-receive", on_pre_receive, true},
};

/* The hook of this name; other hook managers rename a hook that they replace. */
static const struct hook *hook_find(const char *name)
{
    static const char *const suffixes[] = {"", ".legacy", ".old"};
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
            size_t n = strlen(hooks[i].name);
            if (strncmp(name, hooks[i].name, n) == 0 && strcmp(name + n, suffixes[k]) == 0)
                return &hooks[i];
        }
    return NULL;
}

int main(int argc, char **argv)
{
    struct guard g = {.argv = argv, .args = argv + 1, .n_args = argc > 0 ? argc - 1 : 0};
    if (argc < 1)
        return 1;
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    static const struct hook contents = {"contents", on_contents, false};
    const struct hook *hook = NULL;
    if (strcmp(name, "branch-guard") == 0) {
        if (argc == 2 && strcmp(argv[1], "--version") == 0)
            return puts("branch-guard " AMP_VERSION) < 0;
        if (argc >= 3 && strcmp(argv[1], "--hook") == 0)
            hook = hook_find(name = argv[2]);
        else if (argc == 2 && strcmp(argv[1], "--contents") == 0)
            hook = &contents;
        if (!hook) {
            guard_say("error", "a git hook; install it with: worktree-bind hooks install");
            return 64;
        }
        int skip = argc < 3 ? argc : 3;
        g.standalone = true;
        g.args = argv + skip;
        g.n_args = argc - skip;
    } else {
        hook = hook_find(name);
    }
    if (!hook)
        return guard_refuse(AMP_CODE(guard_failed), NULL, "%s: not a hook of branch-guard", name);
    g.hook = hook->name;
    amp_buf_init(&g.input, INPUT_MAX);
    repo_find(&g.repo);
    amp_rule_caller(getenv("AMP_AGENT"), getenv("AMP_ROLE"), g.repo.gitdir, &g.caller);
    struct amp_agent_caller started;
    if (!g.caller.agent && amp_agent_started(&started)) {
        g.caller.agent = true;
        amp_span_copy(amp_span_str(started.name), g.caller.name, sizeof g.caller.name);
    }
    struct amp_error err;
    amp_rule_default(&g.rule);
    if (g.repo.common >= 0 && amp_rule_load(&g.rule, g.repo.common, &err) < 0) {
        /* No weaker policy is assumed: callers that the rule may restrict are refused. */
        guard_refuse(err.code, "write it again with: worktree-bind hooks install", "%s", err.what);
        if (g.caller.agent || hook->server)
            return 1;
        amp_rule_default(&g.rule);
    }
    char why[512];
    int stopped = g.caller.agent && !hook->server && g.repo.common >= 0
                      ? amp_stopped_is(g.repo.common, g.caller.name, why, sizeof why, &err)
                      : 0;
    if (stopped)
        return guard_refuse(stopped < 0 ? err.code : AMP_CODE(suspended), NULL,
                            "%s: suspended by %s", caller_name(&g), stopped < 0 ? err.what : why);
    bool asked = g.caller.agent || g.rule.humans_refuse || hook->server;
    int status = asked ? hook->run(&g) : run_kept(&g, false);
    amp_buf_release(&g.input);
    amp_buf_release(&g.repo.packed);
    return status;
}
