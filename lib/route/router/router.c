/*
 * The loop: read what is there, record it, decide, offer it to the ports, and let every port do
 * what it can. Nothing in it waits for one reader: a port that takes nothing fills its own queue
 * and refuses past its bound, and the input goes on.
 */
#include "route/admission/from.h"
#include "route/admission/streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/loop.h"

#define UNDECIDED_MAX   512
#define LISTENS_MS      1000 /* how long a port that only listens is waited for at the end */
#define RECIPIENT_BYTES 64   /* of an entry in the outbox */

static int commit_batch(struct router *r, struct job **batch, uint32_t *n, struct amp_error *err)
{
    if (!r->dry &&
        (amp_streams_record(r, batch, n, err) < 0 || amp_keeper_record(r, batch, *n, err) < 0))
        return -1;
    for (uint32_t i = 0; i < *n; i++)
        amp_match_add_all(r, batch[i]);
    *n = 0;
    amp_match_step(r);
    return 0;
}

/* SW4RM §21: who sent what is not valid is told, and it is kept; so too of the Runtime Protocol.
 * The others have the error log. */
static int malformed(struct router *r, const struct amp_view *v, struct amp_error *err)
{
    char why[160];
    const char *code = r->intake.bad_code, *field = r->intake.bad_field;
    bool told = v->protocol == AMP_PROTO_SW4RM || v->protocol == AMP_PROTO_RTP;
    /* An answer about an id with a NUL would be taken for one about another message. */
    if (v->id.n == 0 || memchr(v->id.p, '\0', v->id.n))
        return 0;
    if (r->dry || !told || v->from.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        return 0;
    struct job *j = amp_route_job_new(r, v->line, v);
    if (!j)
        return amp_fail_memory(err);
    j->lane = amp_lane_of(&r->lane_rules, v);
    if (strcmp(code, "oversize_payload") == 0)
        snprintf(why, sizeof why, "its payload is larger than its type may carry");
    else
        snprintf(why, sizeof why, "it is not valid%s%.100s", *field ? ": " : "", field);
    amp_keeper_refuse(r, j, code, why, "", false);
    amp_route_job_free(r, j);
    return 0;
}

/* Takes all whole lines that were read. */
static int take_lines(struct router *r, struct amp_error *err)
{
    struct job *batch[BATCH_MAX];
    uint32_t n = 0;
    size_t bytes = 0;
    struct amp_view v;
    struct amp_line line;
    enum amp_line_result got;
    int rc = 0;
    amp_recipients_turn(r);
    while ((got = amp_lines_next(&r->intake.lines, &line)) <= AMP_LINE_TOO_LONG) {
        if (n > 0 && r->direct.open && commit_batch(r, batch, &n, err) < 0)
            goto failed;
        if (got == AMP_LINE && amp_direct_take(r, line.bytes)) {
            bytes = 0;
            continue;
        }
        if ((rc = amp_intake_line(&r->intake, got, &line, &v, err)) < 0)
            goto failed;
        if (rc == 2) {
            r->voice->status(AMP_NO);
            if (malformed(r, &v, err) < 0)
                goto failed;
            continue;
        }
        if (n > 0 && (n == BATCH_MAX || bytes + v.line.n > BATCH_BYTES)) {
            bytes = 0;
            if (commit_batch(r, batch, &n, err) < 0)
                goto failed;
        }
        struct job *j = amp_route_job_new(r, v.line, &v);
        if (!j) {
            amp_fail_memory(err);
            goto failed;
        }
        j->number = r->intake.lines.number;
        j->came_ms = r->now_ms;
        int step = r->dry ? STEP_GO : amp_admission_admit(r, j, &v, err);
        if (step != STEP_GO) {
            amp_route_job_free(r, j);
            if (step < 0)
                goto failed;
            continue;
        }
        batch[n++] = j;
        bytes += v.line.n;
        if (amp_admission_look(r, j, &v, err) < 0)
            goto failed;
        amp_route_count_taken(r, j, &v);
        bytes += j->address.n * RECIPIENT_BYTES;
    }
    if (commit_batch(r, batch, &n, err) == 0)
        return 0;
failed:
    while (n > 0)
        amp_route_job_free(r, batch[--n]);
    return -1;
}

static int read_input(struct router *r, struct amp_error *err)
{
    int rc = amp_lines_fill(&r->intake.lines, r->in.fd, err);
    if (rc < 0)
        return errno == EINTR ? 0 : -1;
    if (rc == 2)
        return 0;
    if (rc == 0) {
        r->eof = true;
        r->eof_ms = r->now_ms;
    }
    return take_lines(r, err);
}

static void step_ports(struct router *r)
{
    /* Our own output last: the others' outcomes may add to it. */
    for (uint32_t i = r->n_ports; i-- > 0 && !r->broken;)
        if (i == 0 || (!r->dry && !r->outlets[i]->closed))
            amp_outlet_step(r, i);
}

/* At the end of input, when all is decided: closes what has nothing left. 1: all are closed. */
static int finish_ports(struct router *r)
{
    bool all = true;
    for (uint32_t i = r->n_ports; i-- > 0;) {
        if (r->outlets[i]->closed)
            continue;
        if (i > 0 && (r->dry || (r->outlets[i]->listens && r->now_ms - r->eof_ms > LISTENS_MS))) {
            r->outlets[i]->closed = true;
            continue;
        }
        if (i == 0 && !all)
            break; /* an open port may still fail and be answered */
        if (!amp_outlet_finish(r, i))
            all = false;
    }
    return all && r->outlets[0]->closed;
}

static void wait_for_something(struct router *r, bool *readable)
{
    struct pollfd fds[PORTS_MAX * AMP_PORT_FDS + 4];
    int timeout = -1;
    uint32_t n = 0;
    *readable = false;
    for (uint32_t i = 0; i < r->n_ports; i++, n += AMP_PORT_FDS)
        if (r->outlets[i]->port && (i == 0 || (!r->dry && !r->outlets[i]->closed)))
            amp_port_watch(r->outlets[i]->port, &fds[n], &timeout);
        else
            fds[n] = fds[n + 1] = (struct pollfd){.fd = -1};
    amp_rules_watch(r->rules, &fds[n], &timeout);
    n += 2;
    amp_outlets_watch(r, &timeout);
    int tick = amp_metrics_timeout(r->metrics);
    if (tick >= 0 && (timeout < 0 || tick < timeout))
        timeout = tick;
    if (amp_from_may(r))
        timeout = 0;
    bool reading = !*r->hangup && !amp_from_reads(r) && !r->eof && !r->held_ms &&
                   r->n_undecided < UNDECIDED_MAX &&
                   amp_outlet_pending(r, 0) < r->port_options.max_pending / 2;
    fds[n] = (struct pollfd){.fd = reading ? r->in.fd : -1, .events = POLLIN};
    fds[n + 1] = (struct pollfd){.fd = r->wake.log, .events = POLLIN};
    amp_streams_watch(r, &timeout);
    /* Some of what is not done has a time of its own. */
    bool quiet = !r->eof && !r->held_ms && r->n_undecided == 0 && !amp_keeper_waits(r);
    if ((!quiet || !amp_outlets_quiet(r)) && (timeout < 0 || timeout > 500))
        timeout = 500;
    /* A hang-up waits for what is decided now, which takes no longer. */
    const volatile int *hangup = timeout < 0 || timeout > 500 ? r->hangup : NULL;
    struct amp_loop turn = {.fds = fds,
                            .n = n + 2,
                            .most = n + 2,
                            .wait_ms = timeout,
                            .stop = r->stop,
                            .hangup = hangup};
    if (amp_loop_wait(&turn, NULL) == AMP_LOOP_READY) {
        *readable = fds[n].revents != 0;
        if (fds[n + 1].revents)
            amp_unacked_wake(r);
    }
    r->now_ms = amp_mono_ms();
}

int amp_router_run(struct router *r, struct amp_error *err)
{
    r->now_ms = amp_mono_ms();
    amp_unacked_open(r);
    if (r->store && !r->dry && amp_router_restore(r, err) < 0)
        return -1;
    amp_match_step(r);
    for (;;) {
        step_ports(r);
        amp_match_step(r);
        amp_reload_turn(r);
        amp_reload_close(r);
        amp_keeper_turn(r);
        amp_route_count_turn(r);
        if (r->broken) {
            *err = r->why;
            return -1;
        }
        if (amp_streams_turn(r, err) < 0 || amp_from_step(r, err) < 0)
            return -1;
        if (*r->stop) {
            amp_unacked_stop(r);
            amp_keeper_turn(r);
            return amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
        }
        if (r->eof && !amp_from_reads(r) && r->n_undecided == 0 && finish_ports(r) &&
            !amp_keeper_waits(r) && r->n_jobs == r->n_copies)
            break;
        bool readable;
        wait_for_something(r, &readable);
        if (readable && read_input(r, err) < 0)
            return -1;
    }
    amp_keeper_turn(r);
    if (r->broken) {
        *err = r->why;
        return -1;
    }
    return 0;
}
