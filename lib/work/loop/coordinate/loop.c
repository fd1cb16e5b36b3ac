/*
 * The coordinator's loop. It polls inputs and output and never blocks. The messages of one round
 * are taken in one turn of the store and synced before any line is written. An entry that needs no
 * acknowledgement is closed in the outbox once its line is written.
 */
#include "work/loop/coordinate/coordinate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/file/line.h"
#include "base/loop.h"
#include "message/delivery/intake.h"
#include "message/protocol/amp/amp.h"
#include "work/loop/coordinate/coordinator.h"

#define PENDING_MAX ((size_t)64 << 20)  /* bytes of output that stop the reading of input */
#define OUTPUT_MAX  ((size_t)320 << 20) /* bytes of output that may wait */
#define INPUTS_MAX  64
#define TURN_LINES  256
#define RECHECK_MS  1000 /* another coordinator may have ended the last task */

struct port {
    const struct amp_coordinate_input *from;
    struct amp_input in;
    struct amp_intake intake;
    bool ended, more; /* more: some lines of the last read are not yet taken */
};

struct loop {
    struct amp_coordinator c;
    struct amp_coordinate_end *end;
    size_t n_ports, first;
    bool out_open;
    bool ended_elsewhere; /* another process ended a task that was open */
    uint64_t pauses_rev;  /* of the suspensions when they were last looked at */
    uint64_t writes;      /* to the log, as the watch counted them then */
    struct port ports[];  /* room for each input */
};

static int open_all(struct loop *l, struct amp_error *err)
{
    const struct amp_coordinate_options *opt = l->c.opt;
    for (; l->n_ports < opt->n_inputs; l->n_ports++) {
        if (l->n_ports == INPUTS_MAX)
            return amp_fail(err, AMP_USAGE, too_many_inputs, "at most %d inputs", INPUTS_MAX);
        struct port *p = &l->ports[l->n_ports];
        p->from = &opt->inputs[l->n_ports];
        if (amp_input_open(p->from->path, opt->hold, &p->in, err) < 0)
            return -1;
        if (amp_intake_init(&p->intake, l->c.store, opt->tool, err) < 0 ||
            amp_intake_resume(&p->intake, opt->tool, p->from->trusted, err) < 0) {
            amp_intake_release(&p->intake);
            amp_input_close(&p->in);
            return -1;
        }
        p->intake.say = opt->say;
        p->intake.file = strcmp(p->from->path, "-") != 0 ? p->from->path : NULL;
        p->intake.check.protected_ = opt->protected_;
    }
    int fd = STDOUT_FILENO;
    bool own = strcmp(opt->output, "-") != 0;
    if (own && amp_output_open(opt->output, opt->open_timeout_ms, -1, opt->stop, &fd, err) < 0)
        return -1;
    if (amp_outq_open(&l->c.out, fd, own, OUTPUT_MAX, err) < 0)
        return -1;
    l->out_open = true;
    return amp_line_end(fd, err);
}

static void close_all(struct loop *l)
{
    for (size_t i = 0; i < l->n_ports; i++) {
        amp_intake_release(&l->ports[i].intake);
        amp_input_close(&l->ports[i].in);
    }
    if (l->out_open)
        amp_outq_close(&l->c.out);
    amp_git_close(l->c.git);
    amp_reader_free(l->c.own);
    free(l->c.emitted);
    free(l->c.tasks);
    amp_buf_release(&l->c.signed_line);
    amp_pause_watch_close(&l->c.pauses);
    free(l->c.held);
    free(l->c.adopted);
}

/* Closes the outbox entries whose lines are written and need no acknowledgement. */
static int close_written(struct loop *l, struct amp_error *err)
{
    struct amp_coordinator *c = &l->c;
    size_t n = 0;
    while (n < c->n_emitted && c->emitted[n].mark <= l->c.out.written)
        if (amp_store_outbox_acked(c->store, amp_span_str(c->emitted[n++].id), err) < 0)
            return -1;
    if (n > 0)
        memmove(c->emitted, c->emitted + n, (c->n_emitted - n) * sizeof *c->emitted);
    c->n_emitted -= n;
    return 0;
}

static int output_flush(struct loop *l, struct amp_error *err)
{
    struct amp_error why = {0};
    if (amp_outq_flush(&l->c.out, &why) < 0) {
        /* The output has no reader: open entries stay in the outbox for the next run. */
        if (amp_code_is(why.code, closed_pipe)) {
            l->end->output_closed = true;
            return 0;
        }
        if (err)
            *err = why;
        return -1;
    }
    return close_written(l, err);
}

/* The answer of a protocol that falls back, such as the work for a version 1 agent. */
static int answer_line(struct loop *l, const struct port *p, const struct amp_view *v,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, OUTPUT_MAX);
    int rc = amp_intake_answer(&p->intake, v, amp_now_ms(), &line, err);
    if (rc <= 0)
        return rc;
    line.len--;
    return amp_coordinator_queue(&l->c, amp_buf_span(&line), err);
}

/* Answers an invalid message to the coordinator with a nack, because its sender may wait for an
 * answer. An invalid decision is refused like a valid one, so that its question is opened again. */
static int refuse_line(struct loop *l, const struct port *p, const struct amp_view *v,
                       struct amp_error *err)
{
    struct amp_coordinator *c = &l->c;
    struct amp_view own, of = *v;
    const struct amp_check_options any = {0};
    char why[256];
    bool decision = v->kind == AMP_KIND_DECISION;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    if (decision)
        of.id = v->body.decision.ref;
    if (!(decision || amp_intake_is_to(v, "coordinator")) || !amp_coordinator_has_protocol(v) ||
        !of.id.n || !v->task.n ||
        (decision && (!amp_is_task_id(v->task) || memchr(of.id.p, 0, of.id.n))))
        return 0;
    snprintf(why, sizeof why, "the message is not valid: %.48s%s%.160s", p->intake.bad_code,
             *p->intake.bad_field ? ": " : "", p->intake.bad_field);
    if (amp_compose_nack(&of, AMP_STAGE_REJECTED, "coordinator", p->intake.bad_code, why, "", false,
                         amp_now_ms(), &line, err) < 0)
        return -1;
    line.len--;
    /* A nack cannot name an invalid id or task: then there is no answer. */
    int rc = amp_reader_line(c->own, amp_buf_span(&line), &any, &own, NULL, NULL, err);
    if (rc <= 0)
        return rc;
    if (decision)
        return amp_coordinator_take(c, v, p->intake.bad_code, p->intake.bad_field, err);
    return amp_coordinator_queue(c, amp_buf_span(&line), err);
}

/* Whether the message counts as said by its sender. 0: it was refused, or is invalid and not about
 * to be answered. */
static int port_hear(struct loop *l, struct port *p, enum amp_intake_got got,
                     const struct amp_view *v, struct amp_said *said, struct amp_error *err)
{
    struct amp_error why;
    int heard = amp_coordinator_hears(&l->c, p->from, v, said, &why, err);
    if (heard != 0)
        return heard;
    /* An invalid line is already reported. It is not answered, because its sender is not known. */
    if (got == AMP_INTAKE_BAD)
        return 0;
    p->intake.accepted--;
    p->intake.rejected++;
    return amp_intake_refuse(&p->intake, v, &why, err) < 0 ||
                   amp_coordinator_refused(&l->c, p->from, v, &why, err) < 0
               ? -1
               : 0;
}

/* Takes up to *left of the messages that were read from a port. */
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
        struct amp_said said;
        int heard = port_hear(l, p, got, &v, &said, err);
        if (heard < 0)
            return -1;
        if (!heard)
            continue;
        l->c.said = &said;
        const char *code = got == AMP_INTAKE_BAD ? p->intake.bad_code : NULL;
        /* A task without criteria is recorded, because it can be completed later. */
        bool lacking = code && amp_code_is(code, empty_acceptance_criteria);
        if (code && answer_line(l, p, &v, err) < 0)
            return -1;
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
    /* Each round begins with another input, so that a busy one does not delay the others. */
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
        if (!any && amp_identities_refresh(l->c.opt->ids, err) < 0)
            return -1;
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
    for (size_t i = 0; !open && i < l->c.n_tasks; i++)
        l->ended_elsewhere |= l->c.tasks[i].open && amp_span_is(id, l->c.tasks[i].id);
    return amp_coordinator_know(&l->c, id, open, err) ? 0 : -1;
}

/* Updates which tasks are open. A task that another process ended may have left a line to send. */
static int tasks_look(struct loop *l, struct amp_error *err)
{
    l->ended_elsewhere = false;
    if (amp_store_each(l->c.store, AMP_TASK_KIND, NULL, look_again, l, err) < 0)
        return -1;
    return amp_coordinator_adopt_new(&l->c, err) < 0 ? -1
           : l->ended_elsewhere                      ? amp_coordinator_adopt(&l->c, err)
                                                     : 0;
}

/* Whether all inputs but FIFOs have ended. *any: whether some input has. */
static bool is_all_read(const struct loop *l, bool *any)
{
    bool all = true;
    *any = false;
    for (size_t i = 0; i < l->n_ports; i++) {
        *any |= l->ports[i].ended;
        all &= l->ports[i].ended || l->ports[i].in.fifo;
    }
    return all;
}

/* The number of tasks that this run waits for. */
static uint32_t open_tasks(const struct loop *l)
{
    bool any, all = is_all_read(l, &any);
    uint32_t n = 0;
    for (size_t i = 0; i < l->c.n_tasks; i++)
        n += l->c.tasks[i].open && !(all && l->c.tasks[i].parked);
    return n;
}

/* Whether the inputs but FIFOs ended without any task. */
static bool no_task_comes(const struct loop *l)
{
    bool any, all = is_all_read(l, &any);
    return any && all && l->c.n_tasks == 0;
}

/* Whether a task was seen and all tasks are terminal. Tasks of earlier runs count as seen once an
 * input has ended. */
static int all_done(struct loop *l, bool *done, struct amp_error *err)
{
    bool ended;
    is_all_read(l, &ended);
    *done = false;
    if (!(l->c.seen || ended) || l->c.n_tasks == 0 || open_tasks(l))
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

/* Held entries and new tasks wait for a commit, which can be seen a little after the write that
 * wakes (message/pause/watch.h). A cancelled task needs no such wait: its nack is synced before the
 * end of its suspension is written. */
static int64_t pauses_wait(const struct loop *l)
{
    const struct amp_pause_watch *p = &l->c.pauses;
    if (p->writes != l->writes)
        return 0;
    int64_t wait = amp_pause_watch_wait(p);
    return wait < 0 || l->c.n_held > 0 || p->due || p->polls ? wait : RECHECK_MS;
}

/* After a write to the log: whoever cancels a task suspends it before and resumes it afterwards, so
 * only then the outbox is looked at. */
static int pauses_look(struct loop *l, struct amp_error *err)
{
    struct amp_pause_watch *p = &l->c.pauses;
    const struct amp_pause *found;
    if (!amp_pause_watch_due(p) && p->writes == l->writes)
        return 0;
    if (amp_pause_look(p, AMP_SPAN(""), AMP_SPAN(""), &found, err) < 0)
        return -1;
    bool changed = p->now.rev != l->pauses_rev, any = p->now.n_v > 0;
    l->pauses_rev = p->now.rev;
    if ((changed && amp_coordinator_release(&l->c, err) < 0) ||
        ((changed || any) && amp_coordinator_adopt(&l->c, err) < 0) ||
        amp_coordinator_adopt_new(&l->c, err) < 0)
        return -1;
    l->writes = p->writes;
    return 0;
}

/* One round: waits, reads, takes messages, writes. 1: the run has ended. */
static int round_once(struct loop *l, struct amp_error *err)
{
    const struct amp_coordinate_options *opt = l->c.opt;
    struct pollfd fds[INPUTS_MAX + 3];
    struct amp_loop turn = amp_loop_turn(fds, INPUTS_MAX + 3, opt->stop, NULL);
    bool alive = false, more = false, done = false,
         full = amp_outq_pending(&l->c.out) >= PENDING_MAX;
    for (size_t i = 0; i < l->n_ports; i++) {
        const struct port *p = &l->ports[i];
        /* While the output is full no more messages are read. */
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
    amp_loop_add(&turn, amp_outq_events(&l->c.out) ? l->c.out.fd : -1, amp_outq_events(&l->c.out));
    amp_loop_within(&turn, amp_outq_timeout(&l->c.out));
    amp_loop_add(&turn, amp_pause_watch_fd(&l->c.pauses), POLLIN);
    amp_loop_within(&turn, pauses_wait(l));
    if (opt->until_done)
        amp_loop_within(&turn, RECHECK_MS);
    if (more)
        amp_loop_within(&turn, 0);
    int ended = amp_loop_wait(&turn, err);
    if (ended < 0)
        return -1;
    if (ended == AMP_LOOP_SIGNAL)
        return 0;
    if (pauses_look(l, err) < 0)
        return -1;
    bool late = ended == AMP_LOOP_LATE;
    /* Only after a quiet interval, because a task may still arrive in a FIFO. */
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
    if (!l->end->output_closed && amp_outq_drain(&l->c.out, -1, l->c.opt->stop, &why) < 0) {
        l->end->output_closed = amp_code_is(why.code, closed_pipe);
        if (why.status != AMP_INTERRUPTED && !l->end->output_closed) {
            *err = why;
            return -1;
        }
    }
    return close_written(l, err);
}

static int loop_run(struct loop *l, struct amp_error *err)
{
    amp_pause_watch_open(&l->c.pauses, l->c.store);
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
    struct loop *l = calloc(1, sizeof *l + opt->n_inputs * sizeof *l->ports);
    if (!l)
        return amp_fail_memory(err);
    memset(end, 0, sizeof *end);
    amp_buf_init(&end->names, (size_t)1 << 20);
    l->end = end;
    l->c.store = s;
    l->c.opt = opt;
    l->c.out.fd = -1;
    l->c.own = amp_reader_new(NULL, err);
    int rc = l->c.own ? loop_run(l, err) : -1;
    if (l->c.turn)
        amp_store_end(s);
    for (size_t i = 0; i < l->n_ports; i++)
        end->rejected += l->ports[i].intake.rejected;
    end->refused_tasks = l->c.refused_tasks;
    close_all(l);
    free(l);
    return rc;
}
