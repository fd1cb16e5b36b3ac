/*
 * hooks check --prove: tries the rules of the policy on a scratch clone. For each rule, git must
 * refuse a violation with the rule's code, and let a permitted change pass. The clone is a
 * temporary directory, which is removed at the end, also after a signal. Nothing of the repository
 * runs: the guard is the installed program, and git gets neither the user's nor the system's
 * settings.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "../bind.h"
#include "base/codes.h"
#include "work/git/hooks.h"
#include "work/git/paths/glob.h"
#include "work/git/push.h"

#define AGENT     "amp-prove"
#define SAID_MAX  16384
#define TIME_MS   120000
#define SIZE_MAX_ (1ll << 30) /* of a file that is made to violate a limit */
#define FILES_MAX 1000
#define ARGS_MAX  16

struct proof {
    const struct amp_rule *rule;
    char dir[PATH_MAX], clone[PATH_MAX + 16], tree[PATH_MAX + 16], server[PATH_MAX + 16];
    char base[80], tip[80]; /* a commit; one on top of it */
    char branch[300], role[128];
    char said[SAID_MAX + 1]; /* by the last git: stdout or stderr */
    int failures, serial;
    struct amp_error *err;
};

/* ---- running git ---- */

enum as { AS_SETUP, AS_AGENT, AS_PERSON, AS_PUSHER };

/* Runs git in dir, with the words up to NULL. Returns its status, or -1. stdout of a setup, else
 * stderr is in said. Setup runs without hooks. */
static int git_run(struct proof *p, enum as as, const char *dir, const char *name,
                   struct amp_span input, const char *const *words)
{
    const char *argv[ARGS_MAX + 8] = {"git"};
    char home[PATH_MAX + 16], role[160], pusher[160], path[8192];
    const char *env[24] = {"GIT_CONFIG_NOSYSTEM=1",
                           "GIT_CONFIG_GLOBAL=/dev/null",
                           "GIT_TERMINAL_PROMPT=0",
                           "GIT_ALLOW_PROTOCOL=file:amp-refused",
                           "GIT_AUTHOR_NAME=" AGENT,
                           "GIT_AUTHOR_EMAIL=" AGENT "@agents.invalid",
                           "GIT_COMMITTER_NAME=" AGENT,
                           "GIT_COMMITTER_EMAIL=" AGENT "@agents.invalid",
                           "LC_ALL=C",
                           home,
                           path};
    size_t n = 1, e = 11;
    struct amp_child child;
    struct amp_child_end end = {0};
    snprintf(home, sizeof home, "HOME=%s", p->dir);
    snprintf(path, sizeof path, "PATH=%.8000s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    if (as == AS_SETUP) {
        argv[n++] = "-c";
        argv[n++] = "core.hooksPath=/dev/null";
    } else if (as == AS_AGENT) {
        env[e++] = "AMP_AGENT=" AGENT;
        snprintf(role, sizeof role, "AMP_ROLE=%s", name ? name : p->role);
        env[e++] = role;
    } else if (as == AS_PUSHER) {
        snprintf(pusher, sizeof pusher, "REMOTE_USER=%s", name);
        env[e++] = pusher;
    }
    for (; *words && n < ARGS_MAX + 7; words++)
        argv[n++] = *words;
    AMP_CLOSE int in = memfd_create("amp-prove", MFD_CLOEXEC);
    AMP_CLOSE int out = memfd_create("amp-prove", MFD_CLOEXEC);
    if (in < 0 || out < 0 || amp_write_all(in, input, p->err) < 0 || lseek(in, 0, SEEK_SET) != 0)
        return amp_fail_errno(p->err, AMP_IOERR, "memfd");
    const struct amp_child_spec spec = {.argv = argv,
                                        .envp = env,
                                        .cwd = dir,
                                        .fd_in = in,
                                        .fd_out = as == AS_SETUP ? out : -1,
                                        .fd_err = out,
                                        .dies_with_us = true};
    if (amp_child_start(&spec, &child, p->err) < 0 ||
        amp_child_wait(&child, TIME_MS, 1000, &amp_stop, &end, p->err) < 0)
        return -1;
    if (amp_stop)
        return amp_fail(p->err, AMP_INTERRUPTED, interrupted, "interrupted");
    ssize_t got = pread(out, p->said, SAID_MAX, 0);
    p->said[got > 0 ? got : 0] = '\0';
    return end.exited ? end.exit_code : 128;
}
#define GIT(p, as, dir, ...)                                                                       \
    git_run(p, as, dir, NULL, (struct amp_span){NULL, 0}, (const char *const[]){__VA_ARGS__, NULL})

static int setup_check(struct proof *p, const char *what, int status)
{
    if (status <= 0)
        return status;
    return amp_fail(p->err, AMP_IOERR, guard_failed, "git failed to %s: %.300s", what, p->said);
}

/* The first word of what git said. */
static void said_copy(const struct proof *p, char *out, size_t size)
{
    amp_span_copy((struct amp_span){p->said, strcspn(p->said, " \n")}, out, size);
}

/* ---- names that match a pattern ---- */

static void name_make(const char *pattern, const char *fill, bool path, char *out, size_t size)
{
    size_t n = 0;
    if (path && *pattern == '/')
        pattern++;
    for (; *pattern && n + strlen(fill) + 2 < size; pattern++) {
        if (*pattern == '*') {
            if (pattern[1] == '*')
                pattern++;
            n += (size_t)snprintf(out + n, size - n, "%s", fill);
        } else {
            out[n++] = *pattern == '?' ? 'x' : *pattern;
        }
    }
    if (path && n && out[n - 1] == '/')
        n += (size_t)snprintf(out + n, size - n, "%s", fill);
    out[n] = '\0';
}

static bool is_forbidden(const struct proof *p, const char *path)
{
    for (int i = 0; p->rule->paths[i]; i++)
        if (amp_glob_match(amp_span_str(p->rule->paths[i]), amp_span_str(path)))
            return true;
    return false;
}

/* ---- changes of the agent ---- */

static int marker_set(struct proof *p, const char *branch, const char *role)
{
    char dir[PATH_MAX + 64];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 2048);
    snprintf(dir, sizeof dir, "%s/.git/worktrees/tree", p->clone);
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(p->err, AMP_IOERR, "%s", dir);
    return amp_marker_format(AGENT, branch, role, &text, p->err) < 0
               ? -1
               : amp_file_write_atomic(fd, AMP_AGENT_MARKER, 0600, amp_buf_span(&text), p->err);
}

/* The message of a commit with all required trailers but one. */
static int message_make(const struct proof *p, const char *without, struct amp_buf *out)
{
    if (amp_buf_str(out, "Prove the guard\n", p->err) < 0)
        return -1;
    for (int i = 0, first = 1; p->rule->trailers[i]; i++) {
        const char *name = p->rule->trailers[i];
        if (without && strcmp(name, without) == 0)
            continue;
        if (amp_buf_fmt(out, p->err, "%s%s: %s\n", first ? "\n" : "", name, AGENT) < 0)
            return -1;
        first = 0;
    }
    return 0;
}

/* Commits n files of size bytes; the first has the path, if one is given. Returns git's status, or
 * -1. The index is that of the branch again afterwards. */
static int agent_commit(struct proof *p, const char *path, int64_t size, int n, const char *without)
{
    char file[PATH_MAX + 32], oid[80], info[1200], name[600];
    AMP_BUF struct amp_buf message = {0};
    amp_buf_init(&message, 64 << 10);
    snprintf(file, sizeof file, "%s/blob", p->dir);
    AMP_CLOSE int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || ftruncate(fd, size) != 0)
        return amp_fail_errno(p->err, AMP_IOERR, "%s", file);
    if (message_make(p, without, &message) < 0 ||
        setup_check(p, "write a file",
                    GIT(p, AS_SETUP, p->tree, "hash-object", "-w", "--no-filters", file)) < 0)
        return -1;
    said_copy(p, oid, sizeof oid);
    for (int i = 0; i < n; i++) {
        if (path && i == 0) {
            snprintf(name, sizeof name, "%s", path);
        } else {
            snprintf(name, sizeof name, "amp-prove-%d-%d", ++p->serial, i);
            if (is_forbidden(p, name))
                snprintf(name, sizeof name, "amp/prove/%d.%d", p->serial, i);
        }
        snprintf(info, sizeof info, "100644,%s,%s", oid, name);
        if (setup_check(p, "change the index",
                        GIT(p, AS_SETUP, p->tree, "update-index", "--add", "--cacheinfo", info)) <
            0)
            return -1;
    }
    int rc = GIT(p, AS_AGENT, p->tree, "commit", "-q", "--allow-empty", "-m", message.data);
    char said[SAID_MAX + 1];
    memcpy(said, p->said, sizeof said);
    if (rc >= 0 &&
        setup_check(p, "restore the index", GIT(p, AS_SETUP, p->tree, "read-tree", "HEAD")) < 0)
        return -1;
    memcpy(p->said, said, sizeof said);
    return rc;
}

static int ref_update(struct proof *p, enum as as, const char *dir, const char *role,
                      const char *branch, const char *value)
{
    char ref[600];
    snprintf(ref, sizeof ref, "refs/heads/%s", branch);
    return git_run(p, as, dir, role, (struct amp_span){NULL, 0},
                   (const char *const[]){"update-ref", ref, value, NULL});
}

/* ---- the report ---- */

/* Prints a rule's record. refused and passed: the statuses of the two tries; -2: not tried, and
 * note says why. */
static void rule_report(struct proof *p, const char *rule, const char *value, const char *code,
                        int refused, const char *said, int passed, const char *note)
{
    char text[700], mark[64];
    snprintf(mark, sizeof mark, "[%s]", code);
    bool refuses = refused > 0 && strstr(said, mark), passes = passed == 0;
    bool holds = refuses && passes;
    snprintf(text, sizeof text, "%s%s; %s%s%s",
             refuses ? "a violation is refused: " : "a violation is NOT refused with ", code,
             passes         ? "a permitted change passes"
             : passed == -2 ? "no permitted change was tried"
                            : "a permitted change is refused",
             *note ? ": " : "", note);
    p->failures += !holds;
    char name[400];
    snprintf(name, sizeof name, "%s%s%s", rule, *value ? " " : "", value);
    prove_print(holds, name, code, refuses, passes, text, p->err);
}

/* ---- the rules ---- */

static int change_permitted(struct proof *p)
{
    return agent_commit(p, NULL, 1, 1, NULL);
}

static int prove_branch(struct proof *p, const char *pattern)
{
    char name[300], said[SAID_MAX + 1];
    name_make(strncmp(pattern, "refs/heads/", 11) == 0 ? pattern + 11 : pattern, "amp-prove", false,
              name, sizeof name);
    int refused = ref_update(p, AS_AGENT, p->clone, NULL, name, p->tip);
    memcpy(said, p->said, sizeof said);
    int passed = refused < 0 ? -1 : change_permitted(p);
    if (passed < 0)
        return -1;
    rule_report(p, "branch", pattern, AMP_CODE(branch_violation), refused, said, passed,
                passed ? p->said : "");
    return 0;
}

static int prove_role(struct proof *p, const char *line)
{
    char role[128], good[300], said[SAID_MAX + 1];
    const char *sp = strchr(line, ' '), *bad = "amp-prove-elsewhere";
    amp_span_copy((struct amp_span){line, (size_t)(sp - line)}, role, sizeof role);
    const char *as = strcmp(role, "*") == 0 ? "amp-prove" : role;
    name_make(sp + 1, "amp-prove", false, good, sizeof good);
    if (marker_set(p, bad, as) < 0)
        return -1;
    int refused = ref_update(p, AS_AGENT, p->tree, as, bad, p->tip);
    memcpy(said, p->said, sizeof said);
    if (refused < 0 || marker_set(p, good, as) < 0)
        return -1;
    int passed = ref_update(p, AS_AGENT, p->tree, as, good, p->base);
    if (passed < 0 || marker_set(p, p->branch, p->role) < 0)
        return -1;
    rule_report(p, "role", line, AMP_CODE(branch_not_of_role), refused, said, passed,
                passed ? p->said : "");
    return 0;
}

static int prove_bound(struct proof *p)
{
    char other[320], said[SAID_MAX + 1];
    snprintf(other, sizeof other, "%s-2", p->branch);
    int refused = ref_update(p, AS_AGENT, p->tree, NULL, other, p->tip);
    memcpy(said, p->said, sizeof said);
    int passed = refused < 0 ? -1 : change_permitted(p);
    if (passed < 0)
        return -1;
    rule_report(p, "bound", "on", AMP_CODE(branch_not_bound), refused, said, passed,
                passed ? p->said : "");
    return 0;
}

static int prove_commit(struct proof *p, const char *rule, const char *value, const char *code,
                        int refused)
{
    char said[SAID_MAX + 1];
    memcpy(said, p->said, sizeof said);
    int passed = refused == -1 ? -1 : change_permitted(p);
    if (passed < 0)
        return -1;
    rule_report(p, rule, value, code, refused, refused == -2 ? "" : said, passed,
                refused == -2 ? "too large to be tried"
                : passed      ? p->said
                              : "");
    return 0;
}

static int prove_sizes(struct proof *p)
{
    const struct amp_rule *r = p->rule;
    char value[32];
    snprintf(value, sizeof value, "%lld", (long long)r->max_file);
    if (r->max_file &&
        prove_commit(p, "max-file", value, AMP_CODE(file_too_large),
                     r->max_file < SIZE_MAX_ ? agent_commit(p, NULL, r->max_file + 1, 1, NULL)
                                             : -2) < 0)
        return -1;
    if (!r->max_commit)
        return 0;
    int64_t each = r->max_file && r->max_file < r->max_commit ? r->max_file : r->max_commit;
    int64_t n = r->max_commit / each + 1;
    snprintf(value, sizeof value, "%lld", (long long)r->max_commit);
    return prove_commit(
        p, "max-commit", value, AMP_CODE(commit_too_large),
        each < SIZE_MAX_ && n < FILES_MAX ? agent_commit(p, NULL, each, (int)n, NULL) : -2);
}

static int prove_server(struct proof *p)
{
    char said[SAID_MAX + 1], spec[100];
    const char *pusher = p->rule->pushers[0];
    snprintf(spec, sizeof spec, "%.70s:refs/heads/main", p->base);
    int refused = git_run(p, AS_PUSHER, p->clone, "amp-prove-nobody", (struct amp_span){NULL, 0},
                          (const char *const[]){"push", "-q", "-f", p->server, spec, NULL});
    memcpy(said, p->said, sizeof said);
    if (refused < 0)
        return -1;
    int passed = !pusher
                     ? -2
                     : git_run(p, AS_PUSHER, p->clone, pusher, (struct amp_span){NULL, 0},
                               (const char *const[]){"push", "-q", "-f", p->server, spec, NULL});
    if (passed == -1)
        return -1;
    rule_report(p, "server", "all", AMP_CODE(branch_violation), refused, said, pusher ? passed : 0,
                pusher ? passed ? p->said : "" : "nobody is a pusher");
    return 0;
}

/* Pushes an unprotected branch from an agent's worktree, past its hooks, and from the main worktree
 * for a person. */
static int prove_push(struct proof *p)
{
    char said[SAID_MAX + 1], ref[100];
    snprintf(ref, sizeof ref, "%.70s:refs/heads/amp-prove-push", p->base);
    int refused = GIT(p, AS_AGENT, p->tree, "push", "-q", "--no-verify", p->clone, ref);
    memcpy(said, p->said, sizeof said);
    int passed = refused < 0 ? -1 : GIT(p, AS_PERSON, p->clone, "push", "-q", p->clone, ref);
    if (passed < 0)
        return -1;
    rule_report(p, "push", "", AMP_PUSH_CODE, refused, said, passed, passed ? p->said : "");
    return 0;
}

static int prove_rules(struct proof *p)
{
    const struct amp_rule *r = p->rule;
    char name[600];
    if (prove_branch(p, "main") < 0 || prove_branch(p, "master") < 0)
        return -1;
    for (int i = 0; r->patterns[i]; i++)
        if (prove_branch(p, r->patterns[i]) < 0)
            return -1;
    for (int i = 0; r->roles[i]; i++)
        if (prove_role(p, r->roles[i]) < 0)
            return -1;
    if (r->bound && prove_bound(p) < 0)
        return -1;
    for (int i = 0; r->trailers[i]; i++)
        if (prove_commit(p, "trailer", r->trailers[i], AMP_CODE(trailer_missing),
                         agent_commit(p, NULL, 1, 1, r->trailers[i])) < 0)
            return -1;
    for (int i = 0; r->paths[i]; i++) {
        name_make(r->paths[i], "amp-prove", true, name, sizeof name);
        if (prove_commit(p, "path", r->paths[i], AMP_CODE(path_forbidden),
                         agent_commit(p, name, 1, 1, NULL)) < 0)
            return -1;
    }
    if (prove_sizes(p) < 0)
        return -1;
    if (r->humans_refuse) {
        char said[SAID_MAX + 1];
        int refused = ref_update(p, AS_PERSON, p->clone, NULL, "main", p->tip);
        memcpy(said, p->said, sizeof said);
        int passed = refused < 0 ? -1 : change_permitted(p);
        if (passed < 0)
            return -1;
        rule_report(p, "humans", "refuse", AMP_CODE(branch_violation), refused, said, passed,
                    passed ? p->said : "");
    }
    return r->server_all ? prove_server(p) : prove_push(p);
}

/* ---- the scratch clone ---- */

static void step_ignore(void *ctx, const char *did, const char *path, const char *note)
{
    (void)ctx;
    (void)did;
    (void)path;
    (void)note;
}

static int guard_place(struct proof *p, const char *common, bool server, const char *program)
{
    struct amp_hooks h = {.server = server};
    snprintf(h.common, sizeof h.common, "%.4000s", common);
    snprintf(h.dir, sizeof h.dir, "%.4000s/hooks", common);
    return amp_hooks_install(&h, p->rule, program, step_ignore, NULL, p->err);
}

/* Take the agent's branch and role from the first line of a role, if there is one. */
static void branch_choose(struct proof *p)
{
    const char *line = p->rule->roles[0], *sp = line ? strchr(line, ' ') : NULL;
    snprintf(p->branch, sizeof p->branch, "amp-prove/work");
    snprintf(p->role, sizeof p->role, "amp-prove");
    if (!sp)
        return;
    name_make(sp + 1, "amp-prove-work", false, p->branch, sizeof p->branch);
    if (*line != '*')
        amp_span_copy((struct amp_span){line, (size_t)(sp - line)}, p->role, sizeof p->role);
}

static int clone_make(struct proof *p, const char *common, const char *program)
{
    char git_dir[PATH_MAX + 32];
    snprintf(p->clone, sizeof p->clone, "%s/clone", p->dir);
    snprintf(p->tree, sizeof p->tree, "%s/tree", p->dir);
    snprintf(p->server, sizeof p->server, "%s/server.git", p->dir);
    snprintf(git_dir, sizeof git_dir, "%s/.git", p->clone);
    if (setup_check(p, "clone",
                    GIT(p, AS_SETUP, p->dir, "clone", "-q", "--shared", "--no-checkout",
                        "--template=", common, p->clone)) < 0)
        return -1;
    int born = GIT(p, AS_SETUP, p->clone, "rev-parse", "-q", "--verify", "HEAD");
    if (born < 0)
        return -1;
    if (born != 0) {
        if (setup_check(p, "make a tree", GIT(p, AS_SETUP, p->clone, "mktree")) < 0)
            return -1;
        said_copy(p, p->tip, sizeof p->tip);
        if (setup_check(p, "make a commit",
                        GIT(p, AS_SETUP, p->clone, "commit-tree", "-m", "base", p->tip)) < 0)
            return -1;
    }
    said_copy(p, p->base, sizeof p->base);
    char tree[100];
    snprintf(tree, sizeof tree, "%s^{tree}", p->base);
    if (setup_check(p, "make a commit",
                    GIT(p, AS_SETUP, p->clone, "commit-tree", "-m", "tip", "-p", p->base, tree)) <
        0)
        return -1;
    said_copy(p, p->tip, sizeof p->tip);
    branch_choose(p);
    if (setup_check(p, "detach HEAD",
                    GIT(p, AS_SETUP, p->clone, "update-ref", "--no-deref", "HEAD", p->base)) < 0 ||
        setup_check(p, "make a branch",
                    GIT(p, AS_SETUP, p->clone, "branch", "-f", p->branch, p->base)) < 0 ||
        setup_check(p, "make a worktree",
                    GIT(p, AS_SETUP, p->clone, "worktree", "add", "-q", "--no-checkout", p->tree,
                        p->branch)) < 0 ||
        setup_check(p, "read a tree", GIT(p, AS_SETUP, p->tree, "read-tree", "HEAD")) < 0 ||
        marker_set(p, p->branch, p->role) < 0 || guard_place(p, git_dir, false, program) < 0)
        return -1;
    if (!p->rule->server_all)
        return 0;
    /* The server has the commit already, so that a push is refused for its branch only. */
    char known[400];
    snprintf(known, sizeof known, "refs/heads/%s:refs/amp-prove/base", p->branch);
    return setup_check(p, "make a server",
                       GIT(p, AS_SETUP, p->dir, "init", "-q", "--bare", "--template=", p->server)) <
                       0 ||
                   setup_check(p, "fetch",
                               GIT(p, AS_SETUP, p->server, "fetch", "-q", p->clone, known)) < 0 ||
                   guard_place(p, p->server, true, program) < 0
               ? -1
               : 0;
}

static int file_remove(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path) != 0 && errno != ENOENT ? -1 : 0;
}

int hooks_prove(const struct amp_hooks *h, const char *program, struct amp_error *err)
{
    struct amp_rule rule;
    AMP_FREE struct proof *p = calloc(1, sizeof *p);
    if (!p)
        return amp_fail_memory(err);
    const char *tmp = getenv("TMPDIR");
    p->rule = &rule;
    p->err = err;
    AMP_CLOSE int common = open(h->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", h->common);
    if (amp_rule_load(&rule, common, err) < 0)
        return -1;
    snprintf(p->dir, sizeof p->dir, "%.3000s/amp-prove-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    amp_signals_install();
    if (!mkdtemp(p->dir))
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", p->dir);
    int rc = clone_make(p, h->common, program) < 0 || prove_rules(p) < 0 ? -1 : p->failures;
    if (nftw(p->dir, file_remove, 16, FTW_DEPTH | FTW_PHYS) != 0 && rc >= 0)
        rc = amp_fail_errno(err, AMP_IOERR, "%s: cannot be removed", p->dir);
    return rc;
}
