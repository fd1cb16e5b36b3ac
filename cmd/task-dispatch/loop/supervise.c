/*
 * Starts the filters, restarts the killed ones, and ends them all.
 *
 * The filters keep everything in the state directory, so each unit may be killed and started again:
 * a worker repeats the attempt of its agent, the router sends the next reader what the dead one had
 * not acknowledged, and the coordinator writes its open messages again. Messages that the
 * coordinator had read and not recorded come again when the workers start; therefore all units
 * start again with it.
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
/* Between the coordinator's end and TERM for filters that go on; between TERM and KILL. */
#define END_MS 5000
/* A filter that ends because another was killed may be seen first. */
#define CAUSE_MS 500
#define KILL_MS  15000
/* The interval of looks at the terminal while lines are held. */
#define HELD_MS 150

static const struct amp_backoff backoff = {.first_ms = 100, .most_ms = 10000};

enum phase {
    RUNNING,
    ENDING,   /* the coordinator has ended; the others see end of file */
    STOPPING, /* all get a signal; the loop ends */
    FALLING   /* the same, and all start again */
};

struct process {
    struct amp_child child;
    bool runs, ended;
    bool told; /* it got a signal of ours: its end means nothing */
    struct amp_child_end end;
};

struct unit {
    int restarts;
    int64_t started_ms, again_ms; /* again_ms: when it starts again; 0: it runs */
    bool falls;                   /* one of its filters ended, the others get TERM */
    int64_t term_ms;              /* when they get it; 0: they have it */
};

struct supervisor {
    struct loop_run *r;
    struct process processes[LOOP_FILTERS];
    struct unit units[LOOP_UNITS];
    enum phase phase;
    int64_t kill_ms, term_ms; /* when the rest gets KILL, or TERM; 0: not */
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
    s->units[unit].started_ms = amp_now_ms();
    s->units[unit].again_ms = 0;
    s->units[unit].falls = false;
    s->units[unit].term_ms = 0;
    return rc;
}

static int units_start(struct supervisor *s, struct amp_error *err)
{
    for (int u = 0; u < LOOP_UNITS; u++)
        if (unit_start(s, (enum loop_unit)u, err) < 0)
            return -1;
    s->phase = RUNNING;
    s->kill_ms = s->term_ms = 0;
    return 0;
}

/* ---- ending ---- */

/* unit < 0: of all units. */
static void unit_signal(struct supervisor *s, int unit, int sig)
{
    for (size_t i = 0; i < s->r->plan.n; i++) {
        struct process *p = &s->processes[i];
        if (!p->runs || (unit >= 0 && (int)filter_of(s, i)->unit != unit))
            continue;
        p->told = true;
        amp_child_kill_tree(&p->child, sig);
    }
}

static bool unit_runs(const struct supervisor *s, int unit)
{
    for (size_t i = 0; i < s->r->plan.n; i++)
        if (s->processes[i].runs && (unit < 0 || (int)filter_of(s, i)->unit == unit))
            return true;
    return false;
}

static void all_stop(struct supervisor *s, enum phase phase, int status)
{
    s->phase = phase;
    s->status = status;
    s->term_ms = 0;
    s->kill_ms = amp_now_ms() + KILL_MS;
    unit_signal(s, -1, SIGTERM);
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

/* Counts a restart; the wait before it, or -1: there were too many. */
static int64_t restart_wait(struct supervisor *s, enum loop_unit unit, const struct process *cause)
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
        return -1;
    }
    int64_t wait = amp_backoff_nth(&backoff, (uint32_t)u->restarts);
    u->restarts++;
    amp_warn("%s: %s; starting %s again in %.2g s (%d of %d)", loop_unit_names[unit], text,
             unit == LOOP_SPINE ? "all filters" : "it", (double)wait / 1000, u->restarts,
             RESTARTS_MAX);
    return wait;
}

static void spine_judge(struct supervisor *s)
{
    const struct process *killed = unit_cause(s, LOOP_SPINE, true);
    if (killed) {
        int64_t wait = restart_wait(s, LOOP_SPINE, killed);
        all_stop(s, wait < 0 ? STOPPING : FALLING, AMP_TEMPFAIL);
        s->units[LOOP_SPINE].again_ms = amp_now_ms() + (wait < 0 ? 0 : wait);
        return;
    }
    /* The coordinator is the first filter; its status is the loop's. */
    const struct process *failed = unit_cause(s, LOOP_SPINE, false);
    s->status = s->processes[0].end.exit_code;
    if (s->status == AMP_OK && failed && failed->end.exit_code >= AMP_USAGE)
        s->status = failed->end.exit_code;
    s->phase = ENDING;
    s->term_ms = amp_now_ms() + END_MS;
    loop_fifos_touch(s->r->plan.dir);
}

static void worker_judge(struct supervisor *s, enum loop_unit unit)
{
    char text[128];
    const struct process *cause = unit_cause(s, unit, true);
    const struct process *failed = cause ? NULL : unit_cause(s, unit, false);
    loop_screen_restore(&s->r->screen);
    if (failed) {
        amp_warn("%s: %s: the loop ends", loop_unit_names[unit],
                 cause_text(s, failed, text, sizeof text));
        all_stop(s, STOPPING, failed->end.exit_code);
        return;
    }
    int64_t wait = restart_wait(s, unit, cause);
    if (wait < 0)
        all_stop(s, STOPPING, AMP_TEMPFAIL);
    else
        s->units[unit].again_ms = amp_now_ms() + wait;
}

/* One of the unit's filters has ended: the others follow, then the unit is judged. */
static void unit_fall(struct supervisor *s, enum loop_unit unit)
{
    struct unit *u = &s->units[unit];
    int64_t now = amp_now_ms();
    if (!u->falls) {
        u->falls = true;
        s->kill_ms = now + KILL_MS;
        /* The pipeline ends by itself behind a coordinator that has ended. */
        u->term_ms = now + (unit == LOOP_SPINE ? END_MS : CAUSE_MS);
    }
    if (unit_runs(s, unit)) {
        if (u->term_ms && (now >= u->term_ms || unit_cause(s, unit, true))) {
            u->term_ms = 0;
            unit_signal(s, unit, SIGTERM);
        }
        return;
    }
    u->term_ms = 0;
    s->kill_ms = 0;
    if (unit == LOOP_SPINE)
        spine_judge(s);
    else
        worker_judge(s, unit);
}

/* ---- the loop ---- */

/* The workers first: if one has ended because the spine did, the spine's end is seen too. */
static int ends_take(struct supervisor *s, struct amp_error *err)
{
    for (size_t i = s->r->plan.n; i-- > 0;) {
        struct process *p = &s->processes[i];
        if (!p->runs)
            continue;
        int rc = amp_child_poll(&p->child, &p->end, err);
        if (rc < 0)
            return -1;
        p->runs = rc == 0;
        p->ended = rc > 0;
    }
    return 0;
}

static bool unit_has_end(const struct supervisor *s, enum loop_unit unit)
{
    for (size_t i = 0; i < s->r->plan.n; i++)
        if (filter_of(s, i)->unit == unit && s->processes[i].ended)
            return true;
    return false;
}

static void units_judge(struct supervisor *s)
{
    if (unit_has_end(s, LOOP_SPINE)) {
        unit_fall(s, LOOP_SPINE);
        return;
    }
    for (int u = LOOP_EXECUTOR; u < LOOP_UNITS && s->phase == RUNNING; u++)
        if (!s->units[u].again_ms && unit_has_end(s, (enum loop_unit)u))
            unit_fall(s, (enum loop_unit)u);
}

static int again_start(struct supervisor *s, int64_t now, struct amp_error *err)
{
    for (int u = 0; u < LOOP_UNITS; u++) {
        int64_t at = s->units[u].again_ms;
        if (!at || at > now)
            continue;
        if (s->phase == FALLING) {
            if (u == LOOP_SPINE && !unit_runs(s, -1))
                return units_start(s, err);
        } else if (s->phase == RUNNING && unit_start(s, (enum loop_unit)u, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void limits_keep(struct supervisor *s, int64_t now)
{
    if (s->term_ms && now >= s->term_ms && unit_runs(s, -1)) {
        s->term_ms = 0;
        s->kill_ms = now + KILL_MS;
        unit_signal(s, -1, SIGTERM);
    }
    if (s->kill_ms && now >= s->kill_ms) {
        s->kill_ms = 0;
        for (int u = 0; u < LOOP_UNITS; u++)
            if (s->phase != RUNNING || s->units[u].falls)
                unit_signal(s, u, SIGKILL);
    }
}

static int turn_wait(struct supervisor *s, struct amp_error *err)
{
    struct pollfd fds[LOOP_FILTERS + 1];
    struct amp_loop l =
        amp_loop_turn(fds, LOOP_FILTERS + 1, s->phase == STOPPING ? NULL : &amp_stop,
                      s->phase == STOPPING ? NULL : &amp_hangup);
    int64_t now = amp_now_ms();
    amp_loop_add(&l, s->r->screen.pipe[0], POLLIN);
    for (size_t i = 0; i < s->r->plan.n; i++)
        if (s->processes[i].runs)
            amp_loop_add(&l, s->processes[i].child.pidfd, POLLIN);
    for (int u = 0; u < LOOP_UNITS; u++)
        if (s->units[u].term_ms)
            amp_loop_within(&l, s->units[u].term_ms > now ? s->units[u].term_ms - now : 0);
    for (int u = 0; u < LOOP_UNITS; u++)
        if (s->units[u].again_ms && (s->phase == RUNNING || !unit_runs(s, -1)))
            amp_loop_within(&l, s->units[u].again_ms > now ? s->units[u].again_ms - now : 0);
    if (s->kill_ms)
        amp_loop_within(&l, s->kill_ms > now ? s->kill_ms - now : 0);
    if (s->term_ms)
        amp_loop_within(&l, s->term_ms > now ? s->term_ms - now : 0);
    if (loop_screen_waits(&s->r->screen))
        amp_loop_within(&l, HELD_MS);
    return amp_loop_wait(&l, err) < 0 ? -1 : 0;
}

static int loop_turn(struct supervisor *s, struct amp_error *err)
{
    if (turn_wait(s, err) < 0)
        return -1;
    loop_screen_take(&s->r->screen);
    if (ends_take(s, err) < 0)
        return -1;
    if ((amp_stop || amp_hangup) && s->phase != STOPPING)
        all_stop(s, STOPPING, AMP_INTERRUPTED);
    if (s->phase == RUNNING)
        units_judge(s);
    int64_t now = amp_now_ms();
    limits_keep(s, now);
    return again_start(s, now, err);
}

int loop_supervise(struct loop_run *r, struct amp_error *err)
{
    struct supervisor s = {.r = r};
    bin_find(&s);
    int rc = units_start(&s, err);
    while (rc == 0 && (unit_runs(&s, -1) || s.phase == RUNNING || s.phase == FALLING))
        rc = loop_turn(&s, err);
    r->complete = rc == 0 && s.phase == ENDING;
    if (rc < 0) {
        unit_signal(&s, -1, SIGKILL);
        for (size_t i = 0; i < r->plan.n; i++)
            if (s.processes[i].runs)
                amp_child_wait(&s.processes[i].child, -1, 0, NULL, &s.processes[i].end, NULL);
        return -1;
    }
    return s.status;
}
