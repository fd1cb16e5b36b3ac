/* Executors: the loop around the commands that work on tasks. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/lines.h>

#include "base/loop.h"
#include "base/process/runner.h"
#include "work/aof/board/private.h"

enum {
    SLOTS_MOST = 64,
    LINE_MOST = 12 << 20,
    TURN_MS = 20,    /* of a command's output, until others have their turn */
    FILLS_MOST = 64, /* reads of a turn */
};

/* A command at work. */
struct slot {
    bool used;
    struct amp_runner run;
    int out; /* -1: its output has ended */
    struct amp_lines lines;
    struct amp_aof_given given;
    int64_t beat_at, beats; /* monotonic; how many */
    bool expired;           /* it is stopped because its lease is over */
    bool more;              /* of its output, some may be left */
};

struct execution {
    struct amp_aof_router *r;
    const struct amp_aof_executor *x;
    struct slot slots[SLOTS_MOST];
    unsigned running;
    bool triggered; /* a message was handled: a poll follows */
};

/* Routes the complete lines that were read, until a time. 1: some may be left. */
static int lines_route(struct execution *e, struct slot *s, int64_t until, struct amp_error *err)
{
    struct amp_line line;
    while (amp_mono_ms() < until) {
        enum amp_line_result got = amp_lines_next(&s->lines, &line);
        int rc = 0;
        if (got == AMP_LINE)
            rc = amp_aof_router_line_of(e->r, line.bytes, s->given.agent, err);
        else if (got == AMP_LINE_TOO_LONG)
            rc = amp_aof_router_too_long(e->r, err);
        else
            return 0;
        if (rc < 0)
            return -1;
        e->triggered = e->triggered || rc > 0;
    }
    return 1;
}

/* Reads what is there. A command that never stops writing has its turn, as the others have: until a
 * time, and of a command that has ended at most what a pipe may have. 1: some may be left. */
static int output_read(struct execution *e, struct slot *s, int64_t until, struct amp_error *err)
{
    int rc = lines_route(e, s, until, err);
    for (unsigned i = 0; i < FILLS_MOST && rc == 0 && s->out >= 0; i++) {
        enum amp_read got = amp_lines_fill(&s->lines, s->out, err);
        if (got == AMP_READ_FAILED)
            return -1;
        if (got == AMP_READ_END)
            amp_auto_close(&s->out), s->out = -1;
        rc = lines_route(e, s, until, err);
        if (got == AMP_READ_WOULD_BLOCK)
            return rc;
    }
    return rc < 0 ? -1 : rc > 0 || s->out >= 0;
}

static void slot_free(struct execution *e, struct slot *s)
{
    amp_auto_close(&s->out);
    s->out = -1;
    amp_lines_release(&s->lines);
    amp_buf_release(&s->given.text);
    s->used = false;
    e->running--;
    if (e->x->ended)
        e->x->ended(e->x->ctx, (unsigned)(s - e->slots));
}

/* action.started and action.completed. */
static int action_log(struct execution *e, const struct slot *s, const char *type,
                      const char *result, struct amp_error *err)
{
    return amp_aof_action(e->r, &s->given, type, e->x->post ? "sessions_spawn" : "command", result,
                          err);
}

/* Ends a session: its output is routed, then its result decides. A failure without a result is
 * logged, and the heartbeat runs out, so that a task that always fails is not tried at once. */
static int slot_end(struct execution *e, struct slot *s, const struct amp_child_end *end,
                    struct amp_error *err)
{
    struct amp_error why = {0};
    enum amp_run_verdict verdict = amp_runner_verdict(&s->run, end, s->given.agent, &why);
    bool stopped = s->run.stopped && !s->run.timed_out;
    const char *reason = s->expired         ? AMP_AOF_LEASE_EXPIRED
                         : s->run.timed_out ? "timeout"
                         : stopped          ? "stopped"
                                            : "agent_failed";
    bool failed = verdict != AMP_RUN_DONE || s->run.stopped;
    int rc = output_read(e, s, INT64_MAX, err) < 0 ? -1 : 0;
    if (rc == 0)
        rc = action_log(e, s, "action.completed", failed ? reason : "ended", err);
    if (rc == 0) {
        e->r->speaker = s->given.agent;
        rc = amp_aof_end(e->r, s->given.id, err);
        e->r->speaker = NULL;
    }
    if (rc == 0 && failed)
        rc = amp_aof_dispatch_error(e->r, &s->given, reason, why.what, stopped, err);
    slot_free(e, s);
    return rc < 0 ? -1 : 0;
}

static int slot_start(struct execution *e, struct slot *s, struct amp_error *err)
{
    const struct amp_aof_executor *x = e->x;
    unsigned number = (unsigned)(s - e->slots);
    struct amp_error why;
    s->out = -1;
    s->beats = 0;
    s->expired = false;
    s->beat_at = amp_mono_ms() + amp_aof_beat_every(&x->lease);
    amp_lines_init(&s->lines, LINE_MOST);
    s->used = true;
    s->more = false;
    e->running++;
    if ((x->post ? x->post(x->ctx, &s->given, &why)
                 : x->start(x->ctx, number, &s->given, &s->run, &s->out, &why)) < 0) {
        int rc =
            amp_aof_dispatch_error(e->r, &s->given, why.code, why.what, why.sys != ETIMEDOUT, err);
        slot_free(e, s);
        if (rc == 0 && err)
            *err = why; /* the next task would fail the same way */
        return -1;
    }
    int rc = action_log(e, s, "action.started", NULL, err);
    if (x->post)
        slot_free(e, s);
    return rc;
}

static int slots_fill(struct execution *e, struct amp_error *err)
{
    for (unsigned i = 0; i < e->x->most && i < SLOTS_MOST && !*e->x->stop;) {
        struct slot *s = &e->slots[i];
        if (s->used) {
            i++;
            continue;
        }
        amp_buf_init(&s->given.text, AMP_AOF_TASK_BYTES + 1);
        int rc = amp_aof_dispatch(e->r, &e->x->lease, &s->given, err);
        if (rc <= 0) {
            amp_buf_release(&s->given.text);
            return rc;
        }
        if (slot_start(e, s, err) < 0)
            return -1;
    }
    return 0;
}

/* Looks after one command. */
static int slot_step(struct execution *e, struct slot *s, struct amp_error *err)
{
    struct amp_child_end end;
    int rc = output_read(e, s, amp_mono_ms() + TURN_MS, err);
    if (rc < 0)
        return -1;
    s->more = rc > 0;
    rc = amp_runner_look(&s->run, &end, err);
    if (rc != 0)
        return rc < 0 ? -1 : slot_end(e, s, &end, err);
    if (s->expired || amp_mono_ms() < s->beat_at)
        return 0;
    s->beat_at = amp_mono_ms() + amp_aof_beat_every(&e->x->lease);
    rc = amp_aof_heartbeat(e->r, &s->given, &e->x->lease, ++s->beats, err);
    if (rc > 0) {
        s->expired = true;
        amp_runner_stop(&s->run);
    }
    return rc < 0 ? -1 : 0;
}

static int events_wait(struct execution *e, int64_t poll_at, struct amp_error *err)
{
    struct pollfd fds[2 * SLOTS_MOST];
    struct amp_loop turn = amp_loop_turn(fds, 2 * SLOTS_MOST, e->x->stop, NULL);
    int64_t now = amp_mono_ms();
    if (poll_at >= 0)
        amp_loop_within(&turn, poll_at > now ? poll_at - now : 0);
    for (unsigned i = 0; i < SLOTS_MOST; i++) {
        struct slot *s = &e->slots[i];
        if (!s->used)
            continue;
        if (s->more)
            amp_loop_within(&turn, 0);
        amp_loop_add(&turn, s->out, POLLIN);
        amp_loop_add(&turn, s->run.child.pidfd, POLLIN);
        amp_loop_within(&turn, amp_runner_wait(&s->run));
        if (!s->expired)
            amp_loop_within(&turn, s->beat_at > now ? s->beat_at - now : 0);
    }
    return amp_loop_wait(&turn, err) < 0 ? -1 : 0;
}

static void runs_end(struct execution *e)
{
    struct amp_child_end end;
    struct amp_error none;
    for (unsigned i = 0; i < SLOTS_MOST; i++)
        if (e->slots[i].used) {
            amp_runner_stop(&e->slots[i].run);
            amp_runner_finish(&e->slots[i].run, NULL, &end, &none);
            slot_end(e, &e->slots[i], &end, &none);
        }
}

int amp_aof_execute(struct amp_aof_router *r, const struct amp_aof_executor *x,
                    struct amp_error *err)
{
    struct execution *e = calloc(1, sizeof *e);
    struct amp_aof_polled polled;
    int64_t poll_at = 0;
    int rc = 0;
    if (!e)
        return amp_fail_memory(err);
    e->r = r;
    e->x = x;
    if (x->every_ms > 0)
        rc = amp_aof_system(r, "system.startup", err);
    while (rc == 0 && !*x->stop) {
        bool due = e->triggered || amp_mono_ms() >= poll_at;
        e->triggered = false;
        if (due && (rc = amp_aof_poll(r, &polled, err)) < 0)
            break;
        if (due)
            poll_at = x->every_ms > 0 ? amp_mono_ms() + x->every_ms : INT64_MAX;
        if ((rc = slots_fill(e, err)) < 0 || (rc = x->flush(err)) < 0 ||
            (e->running == 0 && x->every_ms == 0))
            break;
        rc = events_wait(e, x->every_ms > 0 ? poll_at : -1, err);
        for (unsigned i = 0; i < SLOTS_MOST && rc == 0; i++)
            if (e->slots[i].used)
                rc = slot_step(e, &e->slots[i], err);
    }
    runs_end(e);
    free(e);
    return rc == 0 && x->every_ms > 0 ? amp_aof_system(r, "system.shutdown", err) : rc;
}
