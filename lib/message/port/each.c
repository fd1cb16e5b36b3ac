/*
 * exec-each:ARGV — a process for each message. The message is its standard input, a file in memory;
 * its exit status is the outcome: 0 is delivered, after a temporary failure (amp-exit(7)) the
 * message is tried again, any other status refuses it.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "message/port/private.h"
#include "message/port/tries.h"

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

static void attempt_begin(struct amp_port *p, struct amp_try *t)
{
    struct amp_error why = {0};
    const struct amp_child_spec spec = {.argv = (const char *const *)p->argv,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .wrap = p->opt.wrap};
    int64_t limit = p->opt.attempt_timeout_ms > 0 ? p->opt.attempt_timeout_ms : -1;
    t->begun++;
    if (amp_runner_start(&t->run, &spec, amp_try_line(t), limit, GRACE_MS, &why) < 0) {
        amp_try_ended(p, t, &why, true, 0);
        return;
    }
    t->running = true;
    struct epoll_event ev = {.events = EPOLLIN};
    /* If it cannot be watched, the next step notices its end. */
    (void)epoll_ctl(p->ends, EPOLL_CTL_ADD, t->run.child.pidfd, &ev);
}

static void attempt_look(struct amp_port *p, struct amp_try *t)
{
    struct amp_child_end end;
    struct amp_error why = {0};
    enum amp_run_verdict verdict = AMP_RUN_AGAIN;
    int rc = amp_runner_look(&t->run, &end, &why);
    if (rc == 0)
        return;
    if (rc > 0)
        verdict = amp_runner_verdict(&t->run, &end, p->spec, &why);
    if (t->paused && verdict != AMP_RUN_DONE) { /* not an attempt that failed; it is taken back */
        t->running = false;
        t->begun--;
        t->due_ms = amp_mono_ms();
        return;
    }
    amp_try_ended(p, t, verdict == AMP_RUN_DONE ? NULL : &why, verdict == AMP_RUN_AGAIN, 0);
}

static void each_step(struct amp_port *p)
{
    struct amp_tries *s = p->tries;
    int64_t now = amp_mono_ms();
    for (uint32_t i = 0; i < s->window; i++)
        if (s->v[i].running)
            attempt_look(p, &s->v[i]);
    amp_tries_take(p, now);
    for (uint32_t i = 0; i < s->window; i++)
        if (s->v[i].used && !s->v[i].running && !s->v[i].paused && s->v[i].due_ms <= now)
            attempt_begin(p, &s->v[i]);
}

static int64_t each_watch(const struct amp_port *p, struct pollfd *fds)
{
    int64_t now = amp_mono_ms(), wait = amp_tries_wait(p, now);
    for (uint32_t i = 0; i < p->tries->window; i++) {
        const struct amp_try *t = &p->tries->v[i];
        if (!t->running)
            continue;
        fds[0] = (struct pollfd){.fd = p->ends, .events = POLLIN};
        int64_t left = amp_runner_wait(&t->run);
        if (left >= 0 && (wait < 0 || left < wait))
            wait = left;
    }
    return wait;
}

static void each_close(struct amp_port *p)
{
    for (uint32_t i = 0; p->tries && i < AMP_TRIES_MAX; i++)
        if (p->tries->v[i].running)
            amp_child_kill_tree(&p->tries->v[i].run.child, SIGTERM);
    for (uint32_t i = 0; p->tries && i < AMP_TRIES_MAX; i++) {
        struct amp_child_end end;
        struct amp_error err;
        int stop = 1;
        if (p->tries->v[i].running)
            amp_runner_finish(&p->tries->v[i].run, &stop, &end, &err);
    }
    amp_tries_free(p);
    if (p->ends >= 0)
        close(p->ends);
    p->ends = -1;
}

const struct amp_port_ops amp_port_each = {
    .word = "exec-each",
    .takes_arg = true,
    .traits = AMP_PORT_RUNS,
    .open = each_open,
    .offer = amp_tries_offer,
    .step = each_step,
    .watch = each_watch,
    .close = each_close,
};
