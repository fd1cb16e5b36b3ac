/* One attempt: the agent's process, its captured output, its time limit, and the trip-wire. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/runner.h"
#include "flow/work/worker.h"
#include "worktree/worktree.h"

/* A captured stream: a pipe into a file that takes so much and no more. The rest is read and
 * dropped, so that the agent never waits for us. */
struct capture {
    int from, to;
    int64_t room;
};

static void capture_close(struct capture *c)
{
    if (c->from >= 0)
        close(c->from);
    if (c->to >= 0)
        close(c->to);
    c->from = c->to = -1;
}

/* Opens the file and the pipe; *write_end is the child's. */
static int capture_open(struct capture *c, const char *path, int64_t room, int *write_end,
                        struct amp_error *err)
{
    int p[2];

    c->room = room;
    c->to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (c->to < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
    if (pipe2(p, O_CLOEXEC))
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a pipe");
    c->from = p[0];
    *write_end = p[1];
    fcntl(c->from, F_SETFL, O_NONBLOCK);
    return 0;
}

static void capture_read(struct capture *c)
{
    char b[65536];

    for (int turns = 0; c->from >= 0 && turns < 16; turns++) {
        ssize_t n = read(c->from, b, sizeof b);
        if (n < 0)
            return;
        if (n == 0) {
            close(c->from);
            c->from = -1;
            return;
        }
        size_t keep = n > c->room ? (size_t)c->room : (size_t)n;
        if (keep && amp_write_all(c->to, (struct amp_span){b, keep}, NULL))
            keep = (size_t)c->room; /* the disk is full: what is left is dropped */
        c->room -= (int64_t)keep;
    }
}

/* While the program itself is to end, it only waits for the agent; else it goes on with its work.
 */
static int supervise(struct amp_worker *w, struct amp_runner *run, struct capture *out,
                     struct capture *errs, struct amp_child_end *end, struct amp_error *err)
{
    for (;;) {
        struct pollfd p[3] = {{.fd = run->child.pidfd, .events = POLLIN},
                              {.fd = out->from, .events = POLLIN},
                              {.fd = errs->from, .events = POLLIN}};
        bool stop = *w->opt->stop;

        if (stop || w->halted)
            amp_runner_stop(run);
        int64_t wait = amp_runner_wait(run);
        if (stop) {
            amp_poll(p, 3, wait, NULL);
        } else if (amp_worker_turn(w, p, 3, wait, err)) {
            amp_child_kill_tree(&run->child, SIGKILL);
            amp_child_poll(&run->child, end, NULL);
            return -1;
        }
        int rc = amp_runner_look(run, end, err);
        capture_read(out);
        capture_read(errs);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
}

static int start(struct amp_worker *w, const struct amp_contract *c, const struct amp_attempt *a,
                 const char *cwd, struct capture *out, struct capture *errs,
                 struct amp_child *child, struct amp_error *err)
{
    struct amp_env env = {0};
    AMP_CLOSE int in = -1;
    AMP_CLOSE int out_w = -1;
    AMP_CLOSE int err_w = -1;
    const char *const *envp;

    in = amp_file_open(AT_FDCWD, a->message, O_RDONLY, 0, err);
    if (in < 0)
        return -1;
    if (capture_open(out, a->out, w->opt->output_bytes, &out_w, err) ||
        capture_open(errs, a->err, w->opt->output_bytes, &err_w, err) ||
        amp_contract_env(c, a, w->opt->envp, &env, err))
        return -1;
    memcpy(&envp, &env.v, sizeof envp);
    const struct amp_child_spec spec = {
        .argv = w->opt->argv,
        .envp = envp,
        .cwd = cwd,
        .fd_in = in,
        .fd_out = out_w,
        .fd_err = err_w,
        .new_session = true,
        .owns_tree = true,
    };
    int rc = amp_child_start(&spec, child, err);
    amp_env_release(&env);
    return rc;
}

int amp_worker_attempt(struct amp_worker *w, const struct amp_contract *c,
                       const struct amp_attempt *a, const char *cwd, enum amp_attempt_end *end,
                       char *why, size_t why_size, int64_t *wall_ms, struct amp_error *err)
{
    struct capture out = {-1, -1, 0}, errs = {-1, -1, 0};
    struct amp_child child;
    struct amp_child_end how = {0};

    if (amp_store_sync(w->store, err))
        return -1;
    int rc = start(w, c, a, cwd, &out, &errs, &child, err);
    if (rc && (!strcmp(err->code, "command_not_found") || !strcmp(err->code, "not_executable"))) {
        snprintf(why, why_size, "its command could not be started: %s", err->what);
        *end = AMP_END_MACHINERY;
        *wall_ms = 0;
        rc = 0;
    } else if (!rc) {
        w->task = c->task;
        struct amp_runner agent = amp_runner_of(
            &child, w->opt->timeout_ms > 0 ? w->opt->timeout_ms : -1, w->opt->grace_ms);
        rc = supervise(w, &agent, &out, &errs, &how, err);
        w->task = NULL;
        if (!rc) {
            *end = amp_attempt_read_end(&how, why, why_size);
            /* Asked to end it still answered within its grace: the answer counts. */
            if (*end == AMP_END_STOPPED && how.exited && how.exit_code == 0 &&
                !access(a->result, F_OK))
                *end = AMP_END_DONE;
            *wall_ms = how.wall_ms;
        }
    }
    capture_close(&out);
    capture_close(&errs);
    return rc;
}

struct trip {
    struct amp_worker *w;
    const char *repo;
    char *what;
    size_t size;
    bool tripped;
};

/* A change that the reflog ascribes to somebody else (a person who commits meanwhile) is explained;
 * one by this agent, or that left no trace, is not. */
static void on_change(void *ctx, const char *ref, const char *before, const char *after)
{
    struct trip *t = ctx;
    struct amp_git_reflog log;
    struct amp_error e;
    char email[256];
    bool traced = *after && !amp_git_reflog(t->w->git, t->repo, ref, after, &log, &e);

    amp_agent_email(t->w->opt->agent, email, sizeof email);
    if (traced && strcmp(log.email, email) && strcmp(log.name, t->w->opt->agent))
        return;
    if (t->tripped)
        return;
    t->tripped = true;
    snprintf(t->what, t->size, "%s moved from %.12s to %.12s while %s worked; the reflog names %s",
             ref, *before ? before : "nothing", *after ? after : "nothing", t->w->opt->agent,
             traced ? log.name : "nobody");
}

int amp_worker_tripped(struct amp_worker *w, const char *repo, const struct amp_git_refs *before,
                       char *what, size_t size, struct amp_error *err)
{
    struct amp_git_refs now;
    struct trip t = {w, repo, what, size, false};

    if (amp_git_refs(w->git, repo, true, &now, err))
        return -1;
    amp_git_refs_compare(before, &now, on_change, &t);
    amp_git_refs_release(&now);
    return t.tripped;
}
