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

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "guard.h"
#include "worktree/rule.h"

#define INPUT_MAX   (64u << 20)
#define KEPT_SUFFIX ".amp-kept"
#define OVERRIDE    "amp/override"

/* The one-use permission of a person, from the file OVERRIDE, which `worktree-bind hooks override`
 * writes after logging it. The process that unlinks the file has used the permission, and adds a
 * line to amp/guard.log. */
struct override {
    bool found;
    char text[1024];
    struct amp_span branch, agent, id;
};

struct guard {
    const char *hook; /* its name */
    char **argv;      /* as git gave it */
    char **args;      /* after the hook's name */
    int n_args;
    struct repo repo;
    struct amp_rule rule;
    struct override override;
    bool override_used;
    char agent_name[128];
    const char *agent; /* NULL: a person */
    struct amp_buf input;
};

/* Prints a diagnostic. Names in it are untrusted, so unprintable bytes become "?". */
static void guard_say(const char *severity, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void guard_say(const char *severity, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
    fprintf(stderr, "branch-guard: %s: %s\n", severity, text);
}

static const char *caller_name(const struct guard *g)
{
    return g->agent ? g->agent : "people";
}

/* Refuses a change; returns 1. late: git had already changed files, so the hint says how to clean
 * up. */
static int ref_refuse(const struct guard *g, struct amp_span ref, bool late)
{
    guard_say("error", "%.*s: protected branch: refused to %s", (int)ref.n, ref.p, caller_name(g));
    struct command c;
    command_find(&c);
    const char *cleanup = late ? command_cleanup(&c) : NULL;
    if (cleanup)
        guard_say("hint", "git %s had already started; clean up with: %s", c.verb, cleanup);
    else
        guard_say("hint", "work on another branch; a person merges it");
    return 1;
}

/* Runs the previous hook, if there is one, with the same arguments and input; 0 without one. */
static int run_kept(struct guard *g, bool input_read)
{
    char path[4096];
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

/* ---- the override ---- */

static void override_find(struct override *o, int common_fd, int64_t now_ms)
{
    memset(o, 0, sizeof *o);
    AMP_CLOSE int fd =
        common_fd < 0 ? -1 : amp_file_open(common_fd, OVERRIDE, O_RDONLY | O_NOFOLLOW, 0, NULL);
    if (fd < 0 || read(fd, o->text, sizeof o->text - 1) <= 0)
        return;
    int64_t until = 0;
    bool head = false;
    for (char *p = o->text, *end; (end = strchr(p, '\n')); p = end + 1) {
        *end = '\0';
        char *v = strchr(p, ' ');
        if (!v)
            return;
        *v++ = '\0';
        struct amp_span s = amp_span_str(v);
        if (strcmp(p, "amp-override") == 0)
            head = strcmp(v, "1") == 0;
        else if (strcmp(p, "branch") == 0)
            o->branch = s;
        else if (strcmp(p, "agent") == 0)
            o->agent = s;
        else if (strcmp(p, "id") == 0)
            o->id = s;
        else if (strcmp(p, "until") != 0 || amp_num_parse(s, 1, INT64_MAX, &until, NULL))
            return;
    }
    o->found = head && o->branch.n && o->agent.n && o->id.n && until > now_ms;
}

static bool override_covers(const struct override *o, struct amp_span ref, const char *agent)
{
    static const struct amp_span prefix = {"refs/heads/", 11};
    if (!o->found || !amp_span_starts(ref, prefix.p))
        return false;
    return amp_span_eq((struct amp_span){ref.p + prefix.n, ref.n - prefix.n}, o->branch) &&
           (amp_span_is(o->agent, "*") || (agent && amp_span_is(o->agent, agent)));
}

/* Uses it up; false if another process has used it already. */
static bool override_use(const struct override *o, int common_fd, const char *agent, int64_t now_ms)
{
    if (unlinkat(common_fd, OVERRIDE, 0) != 0)
        return false;
    char time[AMP_TIME_MAX], line[1024];
    amp_time_format(now_ms, time);
    int n = snprintf(line, sizeof line, "%s override %.*s for %.*s used by %s\n", time,
                     (int)o->id.n, o->id.p, (int)o->branch.n, o->branch.p, agent ? agent : "-");
    AMP_CLOSE int fd = amp_file_open(common_fd, "amp/guard.log",
                                     O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600, NULL);
    /* The override is used in any case; the log is for people. */
    ssize_t put = fd < 0 ? 0 : write(fd, line, n > 0 && (size_t)n < sizeof line ? (size_t)n : 0);
    (void)put;
    return true;
}

/* Whether the override covers the change of ref; use: uses it up. */
static bool is_overridden(struct guard *g, struct amp_span ref, bool use)
{
    if (g->override_used)
        return override_covers(&g->override, ref, g->agent);
    int64_t now = amp_now_ms();
    override_find(&g->override, g->repo.common, now);
    if (!override_covers(&g->override, ref, g->agent))
        return false;
    g->override_used = use && override_use(&g->override, g->repo.common, g->agent, now);
    return !use || g->override_used;
}

/* ---- the hooks ---- */

/* Whether the branch of HEAD is protected from this caller; name gets it. */
static bool head_refused(struct guard *g, char name[NAME_SIZE])
{
    return repo_head(&g->repo, name) && (g->agent || g->rule.humans_refuse) &&
           amp_rule_protects(&g->rule, amp_span_str(name)) &&
           !is_overridden(g, amp_span_str(name), false);
}

/* `git branch -m feat main` deletes feat first and writes main without running a hook, so only the
 * deletion can be refused; then nothing is lost. */
static bool renames_onto_protected(const struct guard *g)
{
    static const char *const flags[] = {"-m", "-M", "--move", "-c", "-C", "--copy"};
    struct command c;
    command_find(&c);
    const char *to = command_last(&c);
    if (strcmp(c.verb, "branch") != 0 || !to)
        return false;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (command_has(&c, flags[i]) && amp_rule_protects(&g->rule, amp_span_str(to)))
            return true;
    return false;
}

static bool is_zero(struct amp_span value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != '0')
            return false;
    return true;
}

static int check_update(struct guard *g, struct amp_span line)
{
    char head[NAME_SIZE], value[VALUE_SIZE];
    next_field(&line, false); /* old: zeros if git does not check it; the guard reads it */
    struct amp_ref_update u = {.new_value = next_field(&line, false)};
    u.ref = next_field(&line, true);
    if (amp_span_is(u.ref, "ORIG_HEAD") && head_refused(g, head)) {
        struct command c;
        command_find(&c);
        return command_starts_with_orig_head(&c) ? ref_refuse(g, amp_span_str(head), false) : 0;
    }
    if (!amp_rule_protects(&g->rule, u.ref)) {
        if (is_zero(u.new_value) && u.ref.n > 11 && memcmp(u.ref.p, "refs/heads/", 11) == 0 &&
            renames_onto_protected(g)) {
            guard_say("error", "%.*s: would be renamed onto a protected branch: refused to %s",
                      (int)u.ref.n, u.ref.p, caller_name(g));
            return 1;
        }
        return 0;
    }
    u.now = repo_value(&g->repo, u.ref, value);
    u.packed = repo_packed(&g->repo, u.ref);
    u.packed_locked = g->repo.packed_locked;
    if (amp_rule_decide(&g->rule, g->agent, &u) != AMP_RULE_REFUSE || is_overridden(g, u.ref, true))
        return 0;
    return ref_refuse(g, u.ref, true);
}

static int on_transaction(struct guard *g)
{
    if (g->n_args < 1 || strcmp(g->args[0], "prepared") != 0)
        return run_kept(g, false);
    if (read_input(g) < 0)
        return 1;
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);)
        if (check_update(g, line))
            return 1;
    return run_kept(g, true);
}

static int on_commit(struct guard *g)
{
    char head[NAME_SIZE];
    return head_refused(g, head) ? ref_refuse(g, amp_span_str(head), false) : run_kept(g, false);
}

/* pre-rebase UPSTREAM [BRANCH] */
static int on_rebase(struct guard *g)
{
    char name[NAME_SIZE];
    if (g->n_args < 2 || !*g->args[1])
        return on_commit(g);
    snprintf(name, sizeof name, "%s%s", strncmp(g->args[1], "refs/", 5) == 0 ? "" : "refs/heads/",
             g->args[1]);
    struct amp_span ref = amp_span_str(name);
    if (amp_rule_protects(&g->rule, ref) && !is_overridden(g, ref, false))
        return ref_refuse(g, ref, false);
    return run_kept(g, false);
}

/* Lines "<local ref> <local value> <remote ref> <remote value>". */
static int on_push(struct guard *g)
{
    if (read_input(g) < 0)
        return 1;
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        next_field(&line, false);
        struct amp_ref_update u = {.new_value = next_field(&line, false)};
        u.ref = next_field(&line, false);
        u.now = next_field(&line, true);
        if (amp_rule_decide(&g->rule, g->agent, &u) == AMP_RULE_REFUSE &&
            !is_overridden(g, u.ref, true))
            return ref_refuse(g, u.ref, false);
    }
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
    if (g->agent)
        return false;
    if (!g->rule.server_all)
        return !g->rule.humans_refuse;
    const char *name = pusher_name();
    for (int i = 0; g->rule.pushers[i]; i++)
        if (strcmp(g->rule.pushers[i], name) == 0)
            return true;
    return false;
}

/* Applies the rule as for an agent with the pusher's name. */
static bool received_refused(struct guard *g, struct amp_span ref, struct amp_span new_value)
{
    char value[VALUE_SIZE];
    struct amp_ref_update u = {.ref = ref, .new_value = new_value};
    if (!amp_rule_protects(&g->rule, ref) || may_push(g))
        return false;
    u.now = repo_value(&g->repo, ref, value);
    if (!g->agent) {
        amp_span_copy(amp_span_str(pusher_name()), g->agent_name, sizeof g->agent_name);
        g->agent = g->agent_name;
    }
    return amp_rule_decide(&g->rule, g->agent, &u) == AMP_RULE_REFUSE &&
           !is_overridden(g, ref, true);
}

/* update REF OLD NEW, on the receiving side */
static int on_update(struct guard *g)
{
    if (g->n_args < 3)
        return run_kept(g, false);
    struct amp_span ref = amp_span_str(g->args[0]);
    return received_refused(g, ref, amp_span_str(g->args[2])) ? ref_refuse(g, ref, false)
                                                              : run_kept(g, false);
}

static int on_pre_receive(struct guard *g)
{
    if (read_input(g) < 0)
        return 1;
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        next_field(&line, false);
        struct amp_span to = next_field(&line, false), ref = next_field(&line, true);
        if (received_refused(g, ref, to))
            return ref_refuse(g, ref, false);
    }
    return run_kept(g, true);
}

static const struct {
    const char *name;
    int (*run)(struct guard *g);
    bool server;
} hooks[] = {
    {"reference-transaction", on_transaction, false},
    {"pre-commit", on_commit, false},
    {"pre-merge-commit", on_commit, false},
    {"pre-rebase", on_rebase, false},
    {"pre-push", on_push, false},
    {"update", on_update, true},
    {"pre-receive", on_pre_receive, true},
};

int main(int argc, char **argv)
{
    struct guard g = {.argv = argv, .args = argv + 1, .n_args = argc > 0 ? argc - 1 : 0};
    if (argc < 1)
        return 1;
    const char *slash = strrchr(argv[0], '/');
    g.hook = slash ? slash + 1 : argv[0];
    if (strcmp(g.hook, "branch-guard") == 0) {
        if (argc == 2 && strcmp(argv[1], "--version") == 0)
            return puts("branch-guard " AMP_VERSION) < 0;
        guard_say("error", "a git hook; install it with: worktree-bind hooks install");
        return 64;
    }
    size_t which = 0, n = sizeof hooks / sizeof *hooks;
    while (which < n && strcmp(hooks[which].name, g.hook) != 0)
        which++;
    if (which == n) {
        guard_say("error", "%s: not a hook of branch-guard", g.hook);
        return 1;
    }
    amp_buf_init(&g.input, INPUT_MAX);
    repo_find(&g.repo);
    if (amp_rule_agent(getenv("AMP_AGENT"), g.repo.gitdir, g.agent_name, sizeof g.agent_name))
        g.agent = g.agent_name;
    struct amp_error err;
    amp_rule_default(&g.rule);
    if (g.repo.common >= 0 && amp_rule_load(&g.rule, g.repo.common, &err)) {
        /* No weaker policy is assumed: callers that the rule may restrict are refused. */
        guard_say("error", "%s", err.what);
        guard_say("hint", "write it again with: worktree-bind hooks install");
        if (g.agent || hooks[which].server)
            return 1;
        amp_rule_default(&g.rule);
    }
    bool asked = g.agent || g.rule.humans_refuse || hooks[which].server;
    int status = asked ? hooks[which].run(&g) : run_kept(&g, false);
    amp_buf_release(&g.input);
    amp_buf_release(&g.repo.packed);
    return status;
}
