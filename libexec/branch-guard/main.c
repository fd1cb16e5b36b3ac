/*
 * The git hook. Installed under the names of the hooks it serves; it decides for agents (and for
 * people where the policy says so) whether a protected branch may change, then gives way to the
 * hook that stood there before, if any. Runs before every ref update, so it reads the few files it
 * needs itself: no git, no library but libc.
 *
 * The decision is made in reference-transaction "prepared"; the other hooks only refuse the same
 * thing earlier, before git has touched the working tree. Exit 1 refuses.
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

#include "guard.h"
#include "worktree/rule.h"

#define INPUT_MAX   (64u << 20)
#define KEPT_SUFFIX ".amp-kept"

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

/* Names come from elsewhere and go to a terminal. */
static void say(const char *severity, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const char *severity, const char *fmt, ...)
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

static const char *who(const struct guard *g)
{
    return g->agent ? g->agent : "people";
}

/* The mending command may only be printed where git had begun to change things. */
static int refuse(const struct guard *g, struct amp_span ref, bool late)
{
    say("error", "%.*s: protected branch: refused to %s", (int)ref.n, ref.p, who(g));
    struct command c;
    command_find(&c);
    const char *mend = late ? command_mending(&c) : NULL;
    if (mend)
        say("hint", "git %s had already started; clean up with: %s", c.verb, mend);
    else
        say("hint", "work on another branch; a person merges it");
    return 1;
}

/* The hook that stood here before us gets the same arguments and input. */
static int give_way(struct guard *g, bool input_read)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s" KEPT_SUFFIX, g->argv[0]);
    if (n < 0 || (size_t)n >= sizeof path || access(path, X_OK) != 0)
        return 0;
    if (input_read) {
        AMP_CLOSE int fd = memfd_create("amp-hook-input", MFD_CLOEXEC);
        if (fd < 0 || amp_write_all(fd, amp_buf_span(&g->input), NULL) ||
            lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) != STDIN_FILENO) {
            say("error", "cannot pass the input to %s", path);
            return 1;
        }
    }
    g->argv[0] = path;
    execv(path, g->argv); /* we become it: nothing is forked */
    say("error", "cannot run %s: %s", path, strerror(errno));
    return 1;
}

static int read_input(struct guard *g)
{
    struct amp_error err;
    for (;;) {
        if (amp_buf_reserve(&g->input, 65536, &err)) {
            say("error", "%s: input: %s", g->hook, err.what);
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, g->input.data + g->input.len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return say("error", "%s: input: %s", g->hook, strerror(errno)), -1;
        if (n == 0)
            return 0;
        g->input.len += (size_t)n;
    }
}

/* The next field of a line, up to a space; the last field takes the rest. */
static struct amp_span field(struct amp_span *line, bool last)
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

static bool overridden(struct guard *g, struct amp_span ref, bool use)
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

/* Whether the branch that HEAD points to may not change; name gets it. */
static bool head_refused(struct guard *g, char name[NAME_SIZE])
{
    return repo_head(&g->repo, name) && (g->agent || g->rule.humans_refuse) &&
           amp_rule_protects(&g->rule, amp_span_str(name)) &&
           !overridden(g, amp_span_str(name), false);
}

/* `git branch -m feat main` deletes feat first and writes main without asking any hook: the
 * deletion is the only moment to refuse, and then nothing is lost. */
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
    field(&line, false); /* old: zeros when git does not care; we look ourselves */
    struct amp_ref_update u = {.new_value = field(&line, false)};
    u.ref = field(&line, true);
    if (amp_span_is(u.ref, "ORIG_HEAD") && head_refused(g, head)) {
        struct command c;
        command_find(&c);
        return command_starts_with_orig_head(&c) ? refuse(g, amp_span_str(head), false) : 0;
    }
    if (!amp_rule_protects(&g->rule, u.ref)) {
        if (is_zero(u.new_value) && u.ref.n > 11 && memcmp(u.ref.p, "refs/heads/", 11) == 0 &&
            renames_onto_protected(g)) {
            say("error", "%.*s: would be renamed onto a protected branch: refused to %s",
                (int)u.ref.n, u.ref.p, who(g));
            return 1;
        }
        return 0;
    }
    u.now = repo_value(&g->repo, u.ref, value);
    u.packed = repo_packed(&g->repo, u.ref);
    u.packed_locked = g->repo.packed_locked;
    if (amp_rule_decide(&g->rule, g->agent, &u) != AMP_RULE_REFUSE || overridden(g, u.ref, true))
        return 0;
    return refuse(g, u.ref, true);
}

static int reference_transaction(struct guard *g)
{
    if (g->n_args < 1 || strcmp(g->args[0], "prepared") != 0)
        return give_way(g, false);
    if (read_input(g))
        return 1;
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);)
        if (check_update(g, line))
            return 1;
    return give_way(g, true);
}

static int before_commit(struct guard *g)
{
    char head[NAME_SIZE];
    return head_refused(g, head) ? refuse(g, amp_span_str(head), false) : give_way(g, false);
}

/* pre-rebase UPSTREAM [BRANCH] */
static int before_rebase(struct guard *g)
{
    char name[NAME_SIZE];
    if (g->n_args < 2 || !*g->args[1])
        return before_commit(g);
    snprintf(name, sizeof name, "%s%s", strncmp(g->args[1], "refs/", 5) == 0 ? "" : "refs/heads/",
             g->args[1]);
    struct amp_span ref = amp_span_str(name);
    if (amp_rule_protects(&g->rule, ref) && !overridden(g, ref, false))
        return refuse(g, ref, false);
    return give_way(g, false);
}

/* Lines "<local ref> <local value> <remote ref> <remote value>". */
static int before_push(struct guard *g)
{
    if (read_input(g))
        return 1;
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        field(&line, false);
        struct amp_ref_update u = {.new_value = field(&line, false)};
        u.ref = field(&line, false);
        u.now = field(&line, true);
        if (amp_rule_decide(&g->rule, g->agent, &u) == AMP_RULE_REFUSE &&
            !overridden(g, u.ref, true))
            return refuse(g, u.ref, false);
    }
    return give_way(g, true);
}

/* The name that the transport vouches for, else the account. */
static const char *pusher(void)
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
    const char *name = pusher();
    for (int i = 0; g->rule.pushers[i]; i++)
        if (strcmp(g->rule.pushers[i], name) == 0)
            return true;
    return false;
}

/* The rule is asked as for an agent, under the pusher's name. */
static bool received_refused(struct guard *g, struct amp_span ref, struct amp_span new_value)
{
    char value[VALUE_SIZE];
    struct amp_ref_update u = {.ref = ref, .new_value = new_value};
    if (!amp_rule_protects(&g->rule, ref) || may_push(g))
        return false;
    u.now = repo_value(&g->repo, ref, value);
    if (!g->agent) {
        amp_span_copy(amp_span_str(pusher()), g->agent_name, sizeof g->agent_name);
        g->agent = g->agent_name;
    }
    return amp_rule_decide(&g->rule, g->agent, &u) == AMP_RULE_REFUSE && !overridden(g, ref, true);
}

/* update REF OLD NEW, on the receiving side */
static int update(struct guard *g)
{
    if (g->n_args < 3)
        return give_way(g, false);
    struct amp_span ref = amp_span_str(g->args[0]);
    return received_refused(g, ref, amp_span_str(g->args[2])) ? refuse(g, ref, false)
                                                              : give_way(g, false);
}

static int pre_receive(struct guard *g)
{
    if (read_input(g))
        return 1;
    struct amp_span line;
    for (size_t at = 0; next_line(g, &at, &line);) {
        field(&line, false);
        struct amp_span to = field(&line, false), ref = field(&line, true);
        if (received_refused(g, ref, to))
            return refuse(g, ref, false);
    }
    return give_way(g, true);
}

static const struct {
    const char *name;
    int (*run)(struct guard *g);
    bool server;
} hooks[] = {
    {"reference-transaction", reference_transaction, false},
    {"pre-commit", before_commit, false},
    {"pre-merge-commit", before_commit, false},
    {"pre-rebase", before_rebase, false},
    {"pre-push", before_push, false},
    {"update", update, true},
    {"pre-receive", pre_receive, true},
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
        say("error", "a git hook; install it with: worktree-bind hooks install");
        return 64;
    }
    size_t which = 0, n = sizeof hooks / sizeof *hooks;
    while (which < n && strcmp(hooks[which].name, g.hook) != 0)
        which++;
    if (which == n) {
        say("error", "%s: not a hook of branch-guard", g.hook);
        return 1;
    }
    amp_buf_init(&g.input, INPUT_MAX);
    repo_find(&g.repo);
    if (amp_rule_agent(getenv("AMP_AGENT"), g.repo.gitdir, g.agent_name, sizeof g.agent_name))
        g.agent = g.agent_name;
    struct amp_error err;
    amp_rule_default(&g.rule);
    if (g.repo.common >= 0 && amp_rule_load(&g.rule, g.repo.common, &err)) {
        /* Nothing weaker than what was meant: whoever might be held to it waits for a repair. */
        say("error", "%s", err.what);
        say("hint", "write it again with: worktree-bind hooks install");
        if (g.agent || hooks[which].server)
            return 1;
        amp_rule_default(&g.rule);
    }
    bool asked = g.agent || g.rule.humans_refuse || hooks[which].server;
    int status = asked ? hooks[which].run(&g) : give_way(&g, false);
    amp_buf_release(&g.input);
    free(g.repo.packed);
    return status;
}
