/*
 * Starts the filters, restarts the killed ones, and ends them all.
 *
 * The filters keep everything in the state directory, so each unit may be killed and started again:
 * a worker repeats the attempt of its agent, the router sends the next reader what the dead one had
 * not acknowledged, and the coordinator writes its open messages again. Messages that the
 * coordinator had read and not recorded come again when the workers start; therefore all units
 * start again with it.
 *
 * When a filter has ended, the others of its unit see end of file. They get TERM after END_MS or
 * CAUSE_MS, or at once if the filter was killed, and KILL after KILL_MS. When all have ended, the
 * unit is judged: it starts again, or the loop ends, and the other units in the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/backoff.h"
#include "base/loop.h"
#include "loop.h"

/* The number of restarts of a unit in a row, and the time after which they are forgotten. */
#define RESTARTS_MAX 5
#define CALM_MS      60000
#define END_MS       5000 /* of the coordinator's unit, and of all units after the loop's end */
#define CAUSE_MS     500
#define KILL_MS      15000
/* The interval of looks at the terminal while lines are held. */
#define HELD_MS 150

static const struct amp_backoff backoff = {.first_ms = 100, .most_ms = 10000};

struct process {
    struct amp_child child;
    bool runs, ended;
    bool told; /* it got a signal of ours: its end means nothing */
    struct amp_child_end end;
};

struct unit {
    enum { UP, ENDING, TERMED, DOWN } state;
    int64_t due_ms; /* the end of the state: TERM, KILL or the start; 0: never */
    int64_t started_ms;
    int restarts;
};

struct supervisor {
    struct loop_run *r;
    struct process processes[LOOP_FILTERS];
    struct unit units[LOOP_UNITS];
    /* AGAIN: all units end, and start again with the coordinator's. */
    enum { RUNNING, AGAIN, OVER } phase;
    int status;
    char bin[PATH_MAX]; /* the directory of the programs; "" unknown */
};

static const struct loop_filter *filter_of(const struct supervisor *s, size_t i)
{
    return &s->r->plan.filters[i];
}

/* ---- starting ---- */

static void bin_find(struct supervisor *s)
{
    ssize_t n = readlink("/proc/self/exe", s->bin, sizeof s->bin - 1);
    s->bin[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(s->bin, '/');
    if (slash)
        *slash = '\0';
}

static int process_start(struct supervisor *s, size_t i, int in, int out, struct amp_error *err)
{
    const struct loop_filter *f = filter_of(s, i);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", s->bin, f->argv[0]);
    AMP_FREE const char **argv = calloc(f->n + 1, sizeof *argv);
    if (!argv)
        return amp_fail_memory(err);
    memcpy(argv, f->argv, f->n * sizeof *argv);
    if (s->bin[0] && access(path, X_OK) == 0)
        argv[0] = path;
    const struct amp_child_spec spec = {.argv = argv,
                                        .fd_in = in,
                                        .fd_out = out,
                                        .fd_err = f->asks ? STDERR_FILENO : s->r->screen.pipe[1],
                                        .keep_group = true,
                                        .dies_with_us = true};
    struct process *p = &s->processes[i];
    *p = (struct process){.runs = false};
    if (amp_child_start(&spec, &p->child, err) < 0)
        return -1;
    p->runs = true;
    return 0;
}

static int unit_start(struct supervisor *s, enum loop_unit unit, struct amp_error *err)
{
    int before = -1, rc = 0;
    for (size_t i = 0; rc == 0 && i < s->r->plan.n; i++) {
        const struct loop_filter *f = filter_of(s, i);
        int pipes[2] = {-1, -1};
        if (f->unit != unit)
            continue;
        if (f->writes && pipe2(pipes, O_CLOEXEC) != 0)
            rc = amp_fail_errno(err, AMP_IOERR, "a pipe");
        else
            rc = process_start(s, i, f->reads ? before : -1, pipes[1], err);
        if (before >= 0)
            close(before);
        if (pipes[1] >= 0)
            close(pipes[1]);
        before = pipes[0];
    }
    if (before >= 0)
        close(before);
    s->units[unit].state = UP;
    s->units[unit].due_ms = 0;
    s->units[unit].started_ms = amp_now_ms();
    return rc;
}

static int units_start(struct supervisor *s, struct amp_error *err)
{
    for (int u = 0; u < LOOP_UNITS; u++)
        if (unit_start(s, (enum loop_unit)u, err) < 0)
            return -1;
    s->phase = RUNNING;
    return 0;
}

/* ---- ending ---- */

static bool unit_runs(const struct supervisor *s, enum loop_unit unit)
{
    for (size_t i = 0; i < s->r->plan.n; i++)
        if (filter_of(s, i)->unit == unit && s->processes[i].runs)
            return true;
    return false;
}

static bool any_runs(const struct supervisor *s)
{
    for (size_t i = 0; i < s->r->plan.n; i++)
        if (s->processes[i].runs)
            return true;
    return false;
}

static void unit_signal(struct supervisor *s, enum loop_unit unit, int sig)
{
    for (size_t i = 0; i < s->r->plan.n; i++) {
        struct process *p = &s->processes[i];
        if (!p->runs || filter_of(s, i)->unit != unit)
            continue;
        p->told = true;
        amp_child_kill_tree(&p->child, sig);
    }
    s->units[unit].state = TERMED;
    s->units[unit].due_ms = sig == SIGTERM ? amp_now_ms() + KILL_MS : 0;
}

/* Ends all units that run: after a while, if they do not end by themselves, or now. */
static void all_end(struct supervisor *s, bool now)
{
    for (int u = 0; u < LOOP_UNITS; u++) {
        struct unit *unit = &s->units[u];
        if (unit->state == DOWN) {
            unit->due_ms = 0;
        } else if (now) {
            unit_signal(s, (enum loop_unit)u, SIGTERM);
        } else {
            unit->state = ENDING;
            unit->due_ms = amp_now_ms() + END_MS;
        }
    }
}

static void loop_stop(struct supervisor *s, int status)
{
    s->phase = OVER;
    s->status = status;
    s->r->complete = false;
    all_end(s, true);
}

/* ---- what an end means ---- */

/* Killed, or ended by a signal of somebody else, or by a fault of its own. */
static bool was_killed(const struct amp_child_end *e)
{
    return e->signaled ||
           (e->exited && (e->exit_code == AMP_INTERNAL || e->exit_code == AMP_INTERRUPTED));
}

/* The filter that ended first without a signal of ours and not with 0, else NULL. */
static const struct process *unit_cause(const struct supervisor *s, enum loop_unit unit,
                                        bool killed)
{
    for (size_t i = 0; i < s->r->plan.n; i++) {
        const struct process *p = &s->processes[i];
        if (filter_of(s, i)->unit == unit && p->ended && !p->told &&
            (killed ? was_killed(&p->end) : p->end.exit_code != 0))
            return p;
    }
    return NULL;
}

static const char *cause_text(const struct supervisor *s, const struct process *p, char *out,
                              size_t size)
{
    const char *program = filter_of(s, (size_t)(p - s->processes))->argv[0];
    if (p->end.signaled)
        snprintf(out, size, "%s was killed (signal %d)", program, p->end.signal);
    else
        snprintf(out, size, "%s ended with %d", program, p->end.exit_code);
    return out;
}

/* Starts the unit again after a wait, or ends the loop if that was done too often. */
static void unit_again(struct supervisor *s, enum loop_unit unit, const struct process *cause)
{
    struct unit *u = &s->units[unit];
    char text[128] = "it ended without a reason";
    if (cause)
        cause_text(s, cause, text, sizeof text);
    if (amp_now_ms() - u->started_ms > CALM_MS)
        u->restarts = 0;
    if (u->restarts == RESTARTS_MAX) {
        amp_warn("%s: %s; started again %d times in a row (the limit): the loop ends",
                 loop_unit_names[unit], text, RESTARTS_MAX);
        loop_stop(s, AMP_TEMPFAIL);
        return;
    }
    int64_t wait = amp_backoff_nth(&backoff, (uint32_t)u->restarts++);
    amp_warn("%s: %s; starting %s again in %.2g s (%d of %d)", loop_unit_names[unit], text,
             unit == LOOP_SPINE ? "all filters" : "it", (double)wait / 1000, u->restarts,
             RESTARTS_MAX);
    if (unit == LOOP_SPINE) {
        s->phase = AGAIN;
        all_end(s, true);
    }
    u->due_ms = amp_now_ms() + wait;
}

/* All filters of the unit have ended. */
static void unit_judge(struct supervisor *s, enum loop_unit unit)
{
    const struct process *killed = unit_cause(s, unit, true), *failed = unit_cause(s, unit, false);
    char text[128];
    s->units[unit].state = DOWN;
    s->units[unit].due_ms = 0;
    if (unit == LOOP_ADMIN)
        loop_screen_restore(&s->r->screen);
    if (s->phase != RUNNING)
        return;
    if (killed || (unit != LOOP_SPINE && !failed)) {
        unit_again(s, unit, killed);
    } else if (unit != LOOP_SPINE) {
        amp_warn("%s: %s: the loop ends", loop_unit_names[unit],
                 cause_text(s, failed, text, sizeof text));
        loop_stop(s, failed->end.exit_code);
    } else {
        /* The coordinator is the first filter; its status is the loop's. */
        s->status = s->processes[0].end.exit_code;
        if (s->status == AMP_OK && failed && failed->end.exit_code >= AMP_USAGE)
            s->status = failed->end.exit_code;
        s->phase = OVER;
        s->r->complete = true;
        all_end(s, false);
        unit_signal(s, LOOP_LANDER, SIGTERM); /* it reads no FIFO */
        loop_fifos_touch(s->r->plan.dir);
    }
}

/* ---- the loop ---- */

/* The workers first: if one has ended because the spine did, the spine's end is seen too. */
static int ends_take(struct supervisor *s, struct amp_error *err)
{
    for (size_t i = s->r->plan.n; i-- > 0;) {
        struct process *p = &s->processes[i];
        struct unit *u = &s->units[filter_of(s, i)->unit];
        int rc = p->runs ? amp_child_poll(&p->child, &p->end, err) : 0;
        if (rc < 0)
            return -1;
        if (rc == 0)
            continue;
        p->runs = false;
        p->ended = true;
        if (u->state == UP) {
            u->state = ENDING;
            u->due_ms = amp_now_ms() + (filter_of(s, i)->unit == LOOP_SPINE ? END_MS : CAUSE_MS);
        }
    }
    return 0;
}

/* The end of the spine decides what that of the others means. It starts again after they have
 * ended. */
static bool unit_waits(const struct supervisor *s, enum loop_unit unit)
{
    const struct unit *spine = &s->units[LOOP_SPINE];
    return unit == LOOP_SPINE ? spine->state == DOWN && s->phase == AGAIN && any_runs(s)
                              : spine->state == ENDING || spine->state == TERMED;
}

static int unit_step(struct supervisor *s, enum loop_unit unit, struct amp_error *err)
{
    struct unit *u = &s->units[unit];
    bool due = u->due_ms && amp_now_ms() >= u->due_ms;
    if (unit_waits(s, unit) || u->state == UP)
        return 0;
    if (u->state == DOWN)
        return !due ? 0 : unit == LOOP_SPINE ? units_start(s, err) : unit_start(s, unit, err);
    if (!unit_runs(s, unit))
        unit_judge(s, unit);
    else if (u->state == ENDING && (due || unit_cause(s, unit, true)))
        unit_signal(s, unit, SIGTERM);
    else if (u->state == TERMED && due)
        unit_signal(s, unit, SIGKILL);
    return 0;
}

static int turn_wait(struct supervisor *s, bool stops, struct amp_error *err)
{
    struct pollfd fds[LOOP_FILTERS + 1];
    struct amp_loop l =
        amp_loop_turn(fds, LOOP_FILTERS + 1, stops ? NULL : &amp_stop, stops ? NULL : &amp_hangup);
    int64_t now = amp_now_ms();
    amp_loop_add(&l, s->r->screen.pipe[0], POLLIN);
    for (size_t i = 0; i < s->r->plan.n; i++)
        if (s->processes[i].runs)
            amp_loop_add(&l, s->processes[i].child.pidfd, POLLIN);
    for (int u = 0; u < LOOP_UNITS; u++)
        if (s->units[u].due_ms && !unit_waits(s, (enum loop_unit)u))
            amp_loop_within(&l, s->units[u].due_ms > now ? s->units[u].due_ms - now : 0);
    if (loop_screen_waits(&s->r->screen))
        amp_loop_within(&l, HELD_MS);
    return amp_loop_wait(&l, err) < 0 ? -1 : 0;
}

static int loop_turn(struct supervisor *s, struct amp_error *err)
{
    bool stops = s->phase == OVER && !s->r->complete;
    if (turn_wait(s, stops, err) < 0)
        return -1;
    loop_screen_take(&s->r->screen);
    if (ends_take(s, err) < 0)
        return -1;
    if ((amp_stop || amp_hangup) && !stops)
        loop_stop(s, AMP_INTERRUPTED);
    for (int u = 0; u < LOOP_UNITS; u++)
        if (unit_step(s, (enum loop_unit)u, err) < 0)
            return -1;
    return 0;
}

int loop_supervise(struct loop_run *r, struct amp_error *err)
{
    struct supervisor s = {.r = r};
    r->complete = false;
    bin_find(&s);
    int rc = units_start(&s, err);
    while (rc == 0 && (any_runs(&s) || s.phase != OVER))
        rc = loop_turn(&s, err);
    if (rc == 0)
        return s.status;
    for (int u = 0; u < LOOP_UNITS; u++)
        unit_signal(&s, (enum loop_unit)u, SIGKILL);
    for (size_t i = 0; i < r->plan.n; i++)
        if (s.processes[i].runs)
            amp_child_wait(&s.processes[i].child, -1, 0, NULL, &s.processes[i].end, NULL);
    return -1;
}
