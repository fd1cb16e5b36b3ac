/*
 * exec-each:ARGV — one process a message. The message is its standard input, a file in memory that
 * ends where the message ends; its exit status says what became of the message: 0 it was delivered,
 * a status that says "not now" has it tried again, any other refuses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "port/private.h"
#include "port/tries.h"

#define GRACE_MS 2000

static int each_open(struct amp_port *p, struct amp_error *err)
{
    if (amp_argv_split(p->arg, &p->argv, err) < 0)
        return -1;
    if (!(p->tries = calloc(1, sizeof(*p->tries))))
        return amp_fail_memory(err);
    p->tries->window = p->opt.jobs < AMP_TRIES_MAX ? p->opt.jobs : AMP_TRIES_MAX;
    p->ends = epoll_create1(EPOLL_CLOEXEC);
    if (p->ends < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot watch the processes of %s", p->spec);
    return 0;
}

/* What amp-exit(7) calls absent, failed or to be tried again, and what a shell says of a command
 * that it cannot run; the rest is about the message. */
static bool is_temporary(int status)
{
    return status == AMP_UNAVAILABLE || status == AMP_CANTCREAT || status == AMP_IOERR ||
           status == AMP_TEMPFAIL || status == AMP_TIMEDOUT || status == AMP_INTERRUPTED ||
           status == 126 || status == 127;
}

static int message_file(struct amp_span line, struct amp_error *err)
{
    int fd = memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a file for a message");
    if (amp_write_all(fd, line, err) < 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void begin(struct amp_port *p, struct amp_try *t, int64_t now, amp_port_done_fn done,
                  void *ctx)
{
    struct amp_error why = {0};
    t->begun++;
    t->since_ms = now;
    t->stopped = false;
    AMP_CLOSE int fd = message_file(amp_try_line(t), &why);
    struct amp_child_spec spec = {
        .argv = (const char *const *)p->argv,
        .fd_in = fd,
        .fd_out = STDOUT_FILENO,
        .fd_err = STDERR_FILENO,
    };
    if (fd < 0 || amp_child_start(&spec, &t->child, &why) < 0) {
        amp_try_ended(p, t, &why, true, 0, done, ctx);
        return;
    }
    t->running = true;
    struct epoll_event ev = {.events = EPOLLIN};
    /* Where it cannot be watched its end is seen with the next turn of the loop. */
    (void)epoll_ctl(p->ends, EPOLL_CTL_ADD, t->child.pidfd, &ev);
}

static void ended(struct amp_port *p, struct amp_try *t, const struct amp_child_end *end,
                  amp_port_done_fn done, void *ctx)
{
    struct amp_error why = {0};
    bool again = true;
    if (t->stopped) {
        amp_fail(&why, AMP_TIMEDOUT, "command_timeout", "%s took longer than %lld ms", p->spec,
                 (long long)p->opt.attempt_timeout_ms);
    } else if (end->signaled) {
        amp_fail(&why, AMP_UNAVAILABLE, "command_failed", "%s was ended by signal %d", p->spec,
                 end->signal);
    } else if (end->exit_code == 0) {
        amp_try_ended(p, t, NULL, false, 0, done, ctx);
        return;
    } else if (is_temporary(end->exit_code)) {
        amp_fail(&why, AMP_UNAVAILABLE, "command_failed", "%s ended with status %d (%s)", p->spec,
                 end->exit_code, amp_status_meaning(end->exit_code));
    } else {
        again = false;
        amp_fail(&why, AMP_NO, "command_refused", "%s ended with status %d (%s)", p->spec,
                 end->exit_code, amp_status_meaning(end->exit_code));
    }
    amp_try_ended(p, t, &why, again, 0, done, ctx);
}

static void look(struct amp_port *p, struct amp_try *t, int64_t now, amp_port_done_fn done,
                 void *ctx)
{
    struct amp_child_end end;
    struct amp_error why = {0};
    int rc = amp_child_poll(&t->child, &end, &why);
    if (rc == 1) {
        t->child.pid = 0;
        ended(p, t, &end, done, ctx);
    } else if (rc < 0) {
        t->child.pid = 0;
        amp_try_ended(p, t, &why, true, 0, done, ctx);
    } else if (!t->stopped && p->opt.attempt_timeout_ms > 0 &&
               now - t->since_ms >= p->opt.attempt_timeout_ms) {
        t->stopped = true;
        t->kill_ms = now + GRACE_MS;
        amp_child_kill_tree(&t->child, SIGTERM);
    } else if (t->stopped && now >= t->kill_ms) {
        t->kill_ms = now + GRACE_MS;
        amp_child_kill_tree(&t->child, SIGKILL);
    }
}

static void each_step(struct amp_port *p, amp_port_done_fn done, void *ctx)
{
    struct amp_tries *s = p->tries;
    int64_t now = amp_mono_ms();
    for (uint32_t i = 0; i < s->window; i++)
        if (s->v[i].running)
            look(p, &s->v[i], now, done, ctx);
    amp_tries_take(p, now);
    for (uint32_t i = 0; i < s->window; i++)
        if (s->v[i].used && !s->v[i].running && s->v[i].due_ms <= now)
            begin(p, &s->v[i], now, done, ctx);
}

static int64_t each_watch(const struct amp_port *p, struct pollfd *fds)
{
    int64_t now = amp_mono_ms(), wait = amp_tries_wait(p, now);
    for (uint32_t i = 0; i < p->tries->window; i++) {
        const struct amp_try *t = &p->tries->v[i];
        if (!t->running)
            continue;
        fds[0] = (struct pollfd){.fd = p->ends, .events = POLLIN};
        if (!t->stopped && p->opt.attempt_timeout_ms <= 0)
            continue;
        int64_t left = (t->stopped ? t->kill_ms : t->since_ms + p->opt.attempt_timeout_ms) - now;
        if (wait < 0 || left < wait)
            wait = left < 0 ? 0 : left;
    }
    return wait;
}

static void each_close(struct amp_port *p)
{
    for (uint32_t i = 0; p->tries && i < AMP_TRIES_MAX; i++)
        if (p->tries->v[i].running)
            amp_child_kill_tree(&p->tries->v[i].child, SIGTERM);
    for (uint32_t i = 0; p->tries && i < AMP_TRIES_MAX; i++) {
        struct amp_child_end end;
        struct amp_error err;
        int stop = 1;
        if (p->tries->v[i].running)
            amp_child_wait(&p->tries->v[i].child, -1, GRACE_MS, &stop, &end, &err);
    }
    amp_tries_free(p);
    if (p->ends >= 0)
        close(p->ends);
    p->ends = -1;
}

const struct amp_port_ops amp_port_each = {
    .word = "exec-each",
    .takes_arg = true,
    .open = each_open,
    .offer = amp_tries_offer,
    .step = each_step,
    .watch = each_watch,
    .close = each_close,
};
