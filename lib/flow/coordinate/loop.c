/*
 * The coordinator's loop: inputs and output are polled, nothing blocks. What was read is taken in
 * one turn of the store, synced, and only then written; lines that want no acknowledgement leave
 * the outbox once they are written.
 */
#include "flow/coordinate/coordinate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/loop.h"
#include "flow/coordinate/coordinator.h"
#include "flow/intake.h"
#include "protocol/amp/amp.h"

#define PENDING_MAX ((size_t)64 << 20) /* bytes that wait for the output's reader */
#define INPUTS_MAX  64
#define TURN_LINES  256
#define RECHECK_MS  1000 /* another coordinator may have ended the last task */

struct port {
    struct amp_input in;
    struct amp_intake intake;
    bool ended, more; /* more: lines of the last read are not yet taken */
};

struct loop {
    struct amp_coordinator c;
    struct amp_coordinate_end *end;
    size_t n_ports, first;
    struct amp_outq out;
    bool out_open;
    struct port ports[]; /* room for each input */
};

static int open_all(struct loop *l, struct amp_error *err)
{
    const struct amp_coordinate_options *opt = l->c.opt;
    for (; opt->inputs[l->n_ports]; l->n_ports++) {
        if (l->n_ports == INPUTS_MAX)
            return amp_fail(err, AMP_USAGE, "too_many_inputs", "at most %d inputs", INPUTS_MAX);
        struct port *p = &l->ports[l->n_ports];
        if (amp_input_open(opt->inputs[l->n_ports], opt->hold, &p->in, err) < 0)
            return -1;
        if (amp_intake_init(&p->intake, l->c.store, opt->tool, err) < 0) {
            amp_input_close(&p->in);
            return -1;
        }
        p->intake.say = opt->say;
        p->intake.check.protected_ = opt->protected_;
    }
    int fd = STDOUT_FILENO;
    bool own = strcmp(opt->output, "-") != 0;
    if (own && amp_output_open(opt->output, opt->open_timeout_ms, -1, opt->stop, &fd, err) < 0)
        return -1;
    if (amp_outq_open(&l->out, fd, own, PENDING_MAX, err) < 0)
        return -1;
    l->out_open = true;
    return 0;
}

static void close_all(struct loop *l)
{
    for (size_t i = 0; i < l->n_ports; i++) {
        amp_intake_release(&l->ports[i].intake);
        amp_input_close(&l->ports[i].in);
    }
    if (l->out_open)
        amp_outq_close(&l->out);
    amp_git_close(l->c.git);
    amp_reader_free(l->c.own);
    amp_buf_release(&l->c.lines);
    free(l->c.said);
    free(l->c.tasks);
}

/* Hands committed lines to the output as far as its bound allows. */
static int output_fill(struct loop *l, struct amp_error *err)
{
    struct amp_coordinator *c = &l->c;
    struct amp_span all = amp_buf_span(&c->lines);
    size_t n = all.n;
    if (n > PENDING_MAX - amp_outq_pending(&l->out))
        n = PENDING_MAX - amp_outq_pending(&l->out);
    while (n && all.p[n - 1] != '\n')
        n--;
    if (!n)
        return 0;
    if (amp_outq_add(&l->out, (struct amp_span){all.p, n}, err) < 0)
        return -1;
    amp_buf_drop(&c->lines, n);
    c->lines_base += n;
    return 0;
}

/* Lines that are written and want no acknowledgement are closed in the outbox. */
static int close_written(struct loop *l, struct amp_error *err)
{
    struct amp_coordinator *c = &l->c;
    size_t n = 0;
    while (n < c->n_said && c->said[n].mark <= l->out.written)
        if (amp_store_outbox_acked(c->store, amp_span_str(c->said[n++].id), err) < 0)
            return -1;
    if (n > 0)
        memmove(c->said, c->said + n, (c->n_said - n) * sizeof *c->said);
    c->n_said -= n;
    return 0;
}

static int output_flush(struct loop *l, struct amp_error *err)
{
    struct amp_error why = {0};
    if (output_fill(l, err) < 0)
        return -1;
    if (amp_outq_flush(&l->out, &why) < 0) {
        /* Nobody reads any longer: what is in the outbox stays there for the next run. */
        if (strcmp(why.code, "closed_pipe") == 0) {
            l->end->output_closed = true;
            return 0;
        }
        if (err)
            *err = why;
        return -1;
    }
    return close_written(l, err);
}

/* A line for us that is not valid, from somebody who can be answered: it would be waited for. A
 * decision is refused like a valid one, for its question has to be opened again. */
static int refuse_line(struct loop *l, const struct port *p, const struct amp_view *v,
                       struct amp_error *err)
{
    struct amp_coordinator *c = &l->c;
    struct amp_view own, of = *v;
    const struct amp_check_options any = {0};
    char why[256];
    bool decision = v->kind == AMP_KIND_DECISION, ours = decision;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    for (uint32_t i = 0; i < v->n_to; i++)
        ours |= amp_span_is(v->to[i], "coordinator");
    if (decision)
        of.id = v->body.decision.ref;
    if (!ours || !amp_coordinator_speaks(v) || !of.id.n || !v->task.n ||
        (decision && (!amp_is_task_id(v->task) || memchr(of.id.p, 0, of.id.n))))
        return 0;
    snprintf(why, sizeof why, "the message is not valid: %.48s%s%.160s", p->intake.bad_code,
             *p->intake.bad_field ? ": " : "", p->intake.bad_field);
    if (amp_compose_nack(&of, AMP_STAGE_REJECTED, "coordinator", p->intake.bad_code, why, "", false,
                         amp_now_ms(), &line, err) < 0)
        return -1;
    line.len--;
    /* Where its id or its task are what is wrong there is nothing to refer to. */
    int rc = amp_reader_line(c->own, amp_buf_span(&line), &any, &own, NULL, NULL, err);
    if (rc <= 0)
        return rc;
    if (decision)
        return amp_coordinator_take(c, v, p->intake.bad_code, p->intake.bad_field, err);
    c->refused++;
    return amp_coordinator_queue(c, AMP_SPAN(""), amp_buf_span(&line), true, err);
}

/* Takes what has been read from a port, at most a turn's worth. */
static int port_take(struct loop *l, struct port *p, int *left, struct amp_error *err)
{
    struct amp_view v;
    p->more = true;
    while (*left > 0) {
        enum amp_intake_got got = amp_intake_next(&p->intake, &v, err);
        if (got <= AMP_INTAKE_NONE) {
            p->more = false;
            return (int)got;
        }
        --*left;
        if (got == AMP_INTAKE_MESSAGE && amp_coordinator_is_ours(&v)) {
            int held = amp_intake_holds(&p->intake, &v, err);
            if (held < 0)
                return -1;
            if (!held)
                got = AMP_INTAKE_BAD;
        }
        const char *code = got == AMP_INTAKE_BAD ? p->intake.bad_code : NULL;
        /* A task without criteria is recorded all the same: it can be completed. */
        bool lacking = code && strcmp(code, "empty_acceptance_criteria") == 0;
        if (code && !lacking ? refuse_line(l, p, &v, err) < 0
                             : amp_coordinator_take(&l->c, &v, code, p->intake.bad_field, err) < 0)
            return -1;
    }
    return 0;
}

static int read_ports(struct loop *l, const struct pollfd *fds, struct amp_error *err)
{
    int left = TURN_LINES;
    bool any = false;
    /* A busy input must not keep the others waiting: each round begins with another one. */
    l->first = (l->first + 1) % l->n_ports;
    for (size_t n = 0; n < l->n_ports; n++) {
        size_t i = (l->first + n) % l->n_ports;
        struct port *p = &l->ports[i];
        if (p->ended)
            continue;
        if (!p->more && (fds[i].revents & (POLLIN | POLLHUP | POLLERR))) {
            if (amp_lines_fill(&p->intake.lines, p->in.fd, err) == AMP_READ_FAILED)
                return -1;
        } else if (!p->more) {
            continue;
        }
        any = true;
        if (port_take(l, p, &left, err) < 0)
            return -1;
        p->ended = !p->more && p->intake.lines.eof;
    }
    return any ? amp_coordinator_commit(&l->c, err) : 0;
}

static int look_again(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct loop *l = ctx;
    if (amp_span_is(id, AMP_TASK_NONE))
        return 0;
    int state = amp_fsm_state(&amp_task_fsm, rec->state);
    bool open = state < 0 || amp_task_is_open((uint8_t)state);
    return amp_coordinator_know(&l->c, id, open, err) ? 0 : -1;
}

/* Reads again which tasks are open. */
static int tasks_look(struct loop *l, struct amp_error *err)
{
    return amp_store_each(l->c.store, AMP_TASK_KIND, NULL, look_again, l, err);
}

/* The inputs of a person ended; the FIFOs of the cycle are left. */
static bool is_all_read(const struct loop *l)
{
    for (size_t i = 0; i < l->n_ports; i++)
        if (!l->ports[i].ended && !l->ports[i].in.fifo)
            return false;
    return true;
}

/* Those that this run still waits for. */
static uint32_t open_tasks(const struct loop *l)
{
    bool all = is_all_read(l);
    uint32_t n = 0;
    for (size_t i = 0; i < l->c.n_tasks; i++)
        n += l->c.tasks[i].open && !(all && l->c.tasks[i].parked);
    return n;
}

/* The inputs of a person ended, and there is no task that the FIFOs could be about. */
static bool no_task_comes(const struct loop *l)
{
    bool ended = false;
    for (size_t i = 0; i < l->n_ports; i++)
        ended |= l->ports[i].ended;
    return ended && l->c.n_tasks == 0 && is_all_read(l);
}

/* At least one task was seen and all are terminal, in the state as it is now. Where an input ended
 * without a word the tasks of earlier runs count: it was them that this run was to finish. */
static int all_done(struct loop *l, bool *done, struct amp_error *err)
{
    bool seen = l->c.seen;
    for (size_t i = 0; i < l->n_ports; i++)
        seen |= l->ports[i].ended;
    *done = false;
    if (!seen || l->c.n_tasks == 0 || open_tasks(l))
        return 0;
    if (tasks_look(l, err) < 0)
        return -1;
    *done = !open_tasks(l);
    return 0;
}

static int name_open(struct loop *l, struct amp_error *err)
{
    l->end->open_tasks = 0;
    l->end->no_task = l->c.n_tasks == 0;
    for (size_t i = 0; i < l->c.n_tasks; i++) {
        if (!l->c.tasks[i].open)
            continue;
        if (amp_buf_fmt(&l->end->names, err, "%s%s", l->end->open_tasks ? " " : "",
                        l->c.tasks[i].id) < 0)
            return -1;
        l->end->open_tasks++;
    }
    return 0;
}

/* One round: waits, reads, takes, writes. 1: it is over. */
static int round_once(struct loop *l, struct amp_error *err)
{
    const struct amp_coordinate_options *opt = l->c.opt;
    struct pollfd fds[INPUTS_MAX + 1];
    struct amp_loop turn = amp_loop_turn(fds, INPUTS_MAX + 1, opt->stop, NULL);
    bool alive = false, more = false, done = false, full = l->c.lines.len > 0;
    for (size_t i = 0; i < l->n_ports; i++) {
        const struct port *p = &l->ports[i];
        /* Past the bound nothing more is taken until the output moves. */
        amp_loop_add(&turn, p->ended || full ? -1 : p->in.fd, POLLIN);
        alive |= !p->ended;
        more |= p->more && !full;
    }
    if (opt->until_done && all_done(l, &done, err) < 0)
        return -1;
    if (done)
        return 1;
    if (!alive && !full)
        return 1;
    amp_loop_add(&turn, amp_outq_events(&l->out) ? l->out.fd : -1, amp_outq_events(&l->out));
    amp_loop_within(&turn, amp_outq_timeout(&l->out));
    if (opt->until_done)
        amp_loop_within(&turn, RECHECK_MS);
    if (more)
        amp_loop_within(&turn, 0);
    int ended = amp_loop_wait(&turn, err);
    if (ended < 0)
        return -1;
    if (ended == AMP_LOOP_SIGNAL)
        return 0;
    bool late = ended == AMP_LOOP_LATE;
    /* A quiet moment first: what is on its way in a FIFO may be a task. */
    if (late && !more && opt->until_done && no_task_comes(l))
        return 1;
    if (late && opt->until_done && l->c.seen && tasks_look(l, err) < 0)
        return -1;
    if (!full && read_ports(l, fds, err) < 0)
        return -1;
    return output_flush(l, err) < 0 ? -1 : 0;
}

static int output_finish(struct loop *l, struct amp_error *err)
{
    struct amp_error why = {0};
    while (!l->end->output_closed && (l->c.lines.len || amp_outq_pending(&l->out))) {
        if (output_fill(l, err) < 0)
            return -1;
        if (amp_outq_drain(&l->out, -1, l->c.opt->stop, &why) == 0) {
            if (close_written(l, err) < 0)
                return -1;
            continue;
        }
        l->end->output_closed = strcmp(why.code, "closed_pipe") == 0;
        if (why.status == AMP_INTERRUPTED || l->end->output_closed)
            break;
        if (err)
            *err = why;
        return -1;
    }
    return close_written(l, err);
}

static int loop_run(struct loop *l, struct amp_error *err)
{
    if (open_all(l, err) < 0 || amp_coordinator_restore(&l->c, err) < 0)
        return -1;
    int rc = output_flush(l, err);
    while (rc == 0 && !*l->c.opt->stop && !l->end->output_closed)
        rc = round_once(l, err);
    if (rc < 0)
        return -1;
    l->end->interrupted = *l->c.opt->stop != 0;
    return output_finish(l, err) < 0 ? -1 : name_open(l, err);
}

int amp_coordinate(struct amp_store *s, const struct amp_coordinate_options *opt,
                   struct amp_coordinate_end *end, struct amp_error *err)
{
    size_t inputs = 0;
    while (inputs < INPUTS_MAX && opt->inputs[inputs])
        inputs++;
    struct loop *l = calloc(1, sizeof *l + inputs * sizeof *l->ports);
    if (!l)
        return amp_fail_memory(err);
    memset(end, 0, sizeof *end);
    amp_buf_init(&end->names, (size_t)1 << 20);
    l->end = end;
    l->c.store = s;
    l->c.opt = opt;
    l->out.fd = -1;
    l->c.own = amp_reader_new(NULL, err);
    int rc = l->c.own ? loop_run(l, err) : -1;
    if (l->c.turn)
        amp_store_end(s);
    for (size_t i = 0; i < l->n_ports; i++) {
        end->accepted += l->ports[i].intake.accepted;
        end->rejected += l->ports[i].intake.rejected;
    }
    end->refused = l->c.refused;
    end->refused_tasks = l->c.refused_tasks;
    close_all(l);
    free(l);
    return rc;
}
