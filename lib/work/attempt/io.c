/* A worker's input and output: polls them and writes the outbox. */
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/loop.h"
#include "message/delivery/sender/identity.h"
#include "work/agent/work.h"
#include "work/attempt/io.h"
#include "work/item/own.h"
#include "work/task/task.h"

#define HEARTBEAT_MS 30000

/* 1: there are jobs or unsent lines of earlier runs, 0: none, -1: failure. */
static int has_work(struct amp_worker *w, struct amp_error *err)
{
    bool any, unsent;

    if (amp_own_any(w->store, w->opt->consumer, &any, err) < 0 ||
        amp_outbox_any(w->store, w->opt->consumer, &unsent, err))
        return -1;
    return any || unsent;
}

/* Opens the output. If the input ends before the output has a reader, and there is no earlier work,
 * the worker ends without an output. */
static int output_open(struct amp_worker *w, int *fd, struct amp_error *err)
{
    const struct amp_worker_options *o = w->opt;
    int work, rc = amp_output_open(o->out, o->open_timeout_ms, w->io->in.fd, o->stop, fd, err);

    if (rc <= 0)
        return rc;
    if ((work = o->submit ? 1 : has_work(w, err)) < 0)
        return -1;
    if (work)
        return amp_output_open(o->out, o->open_timeout_ms, -1, o->stop, fd, err);
    w->io->broken = w->io->ended = true;
    return 0;
}

int amp_worker_io_open(struct amp_worker *w, struct amp_error *err)
{
    struct amp_worker_io *io = calloc(1, sizeof *io);
    const struct amp_worker_options *o = w->opt;
    bool reads = !o->wait || o->submit; /* else its pool gives it work */

    if (!io)
        return amp_fail_memory(err);
    w->io = io;
    io->in.fd = -1;
    amp_buf_init(&io->line, AMP_WORKER_PENDING);
    if (!reads)
        io->ended = true;
    else if (amp_input_open(o->in ? o->in : "-", false, &io->in, err))
        return -1;
    io->in_open = reads;
    int fd = 1;
    if (o->out && strcmp(o->out, "-") && output_open(w, &fd, err))
        return -1;
    if (io->broken)
        return 0;
    if (amp_outq_open(&io->out, fd, fd != 1, AMP_WORKER_PENDING, err))
        return -1;
    io->box =
        (struct amp_outbox){.store = w->store, .name = o->consumer, .ids = o->ids, .out = &io->out};
    io->out_open = true;
    io->dirty = true;
    return 0;
}

static int line_send(struct amp_worker *w, struct amp_identities *ids, struct amp_span line,
                     struct amp_error *err)
{
    struct amp_worker_io *io = w->io;

    if (io->broken)
        return 0;
    if (line.n && line.p[line.n - 1] == '\n')
        line.n--;
    amp_buf_reset(&io->line);
    if (amp_identities_sign(ids, line, &io->line, err) < 0 || amp_buf_str(&io->line, "\n", err) < 0)
        return -1;
    return amp_outq_add(&io->out, amp_buf_span(&io->line), err);
}

int amp_worker_send(struct amp_worker *w, struct amp_span line, struct amp_error *err)
{
    return line_send(w, w->opt->ids, line, err);
}

int amp_worker_pass(struct amp_worker *w, struct amp_span line, struct amp_error *err)
{
    return line_send(w, NULL, line, err);
}

/* Syncs, then writes the entries of the outbox. */
static int output_flush(struct amp_worker *w, struct amp_error *err)
{
    struct amp_worker_io *io = w->io;
    struct amp_error e;

    if (io->broken || io->held)
        return 0;
    if (io->dirty && !io->muted) {
        /* The work may have taken long: the key may be another now. */
        int more =
            amp_identities_refresh(w->opt->ids, err) < 0 ? -1 : amp_outbox_emit(&io->box, err);
        if (more < 0)
            return -1;
        io->dirty = more;
    }
    if (amp_outq_flush(&io->out, &e) < 0) {
        if (!amp_code_is(e.code, closed_pipe)) {
            *err = e;
            return -1;
        }
        /* No reader: unwritten entries stay in the outbox, and no more input is read. */
        io->broken = io->ended = true;
        return 0;
    }
    return amp_outbox_settle(&io->box, err);
}

void amp_worker_io_close(struct amp_worker *w)
{
    struct amp_worker_io *io = w->io;
    struct amp_error err;

    if (!io)
        return;
    io->held = false;
    if (io->out_open) {
        if (!output_flush(w, &err) && !io->broken &&
            !amp_outq_drain(&io->out, -1, w->opt->stop, &err))
            output_flush(w, &err);
        amp_outq_close(&io->out);
    }
    if (io->in_open)
        amp_input_close(&io->in);
    amp_buf_release(&io->line);
    amp_outbox_release(&io->box);
    free(io);
    w->io = NULL;
}

int amp_worker_look(struct amp_worker *w, struct amp_error *err)
{
    struct amp_agent_status st = {0};
    const struct amp_pause *p;
    struct amp_span task = amp_span_str(w->task);
    bool own = !amp_store_in_batch(w->store); /* one turn for what it reads */

    if (own && amp_store_begin(w->store, err) < 0)
        return -1;
    int paused = amp_pause_look(&w->pauses, task, amp_span_str(w->opt->agent), &p, err);
    int suspended = paused < 0 ? -1 : amp_task_suspended(w->store, task, err);
    if (suspended >= 0 && amp_agent_status(w->store, w->opt->agent, &st, err) < 0)
        suspended = -1;
    if (own)
        amp_store_end(w->store);
    if (suspended < 0)
        return -1;
    w->paused |= paused > 0;
    w->halted |= suspended || st.suspended;
    return 0;
}

/* Records the heartbeat, and checks whether the current task or the agent was suspended. */
static int task_watch(struct amp_worker *w, struct amp_error *err)
{
    int64_t now = amp_mono_ms();

    if (w->opt->agent && (!w->opt->wait || w->task) && now - w->seen_ms >= HEARTBEAT_MS) {
        if (amp_agent_seen(w->store, w->opt->agent, amp_now_ms(), err))
            return -1;
        w->seen_ms = now;
    }
    return w->task && amp_pause_watch_due(&w->pauses) ? amp_worker_look(w, err) : 0;
}

static int input_read(struct amp_worker *w, struct amp_error *err)
{
    struct amp_worker_io *io = w->io;
    enum amp_read got = amp_lines_fill(&w->intake.lines, io->in.fd, err);

    if (got == AMP_READ_FAILED)
        return -1;
    if (got == AMP_READ_END)
        io->ended = true;
    if (amp_identities_refresh(w->opt->ids, err) < 0)
        return -1;
    return got == AMP_READ_WOULD_BLOCK ? 0 : amp_worker_take_lines(w, err);
}

bool amp_worker_ended(const struct amp_worker *w)
{
    return w->io->ended;
}

int amp_worker_turn(struct amp_worker *w, struct pollfd *fds, unsigned n_fds, int64_t wait_ms,
                    struct amp_error *err)
{
    struct amp_worker_io *io = w->io;
    struct pollfd all[AMP_WORKER_FDS + 4];
    struct amp_loop turn = amp_loop_turn(all, AMP_WORKER_FDS + 4, w->opt->stop, NULL);
    const struct pollfd *in = NULL;

    if (output_flush(w, err) || task_watch(w, err))
        return -1;
    for (unsigned i = 0; i < n_fds; i++)
        amp_loop_add(&turn, fds[i].fd, fds[i].events);
    if (!io->ended && amp_outq_pending(&io->out) < AMP_WORKER_PENDING / 2)
        in = amp_loop_add(&turn, io->in.fd, POLLIN);
    if (!io->broken && !io->held) {
        if (amp_outq_events(&io->out))
            amp_loop_add(&turn, io->out.fd, amp_outq_events(&io->out));
        amp_loop_within(&turn, amp_outq_timeout(&io->out));
    }
    if (!w->opt->wait || w->task)
        amp_loop_within(&turn, HEARTBEAT_MS);
    amp_loop_within(&turn, wait_ms);
    if (w->task || w->waits) {
        amp_loop_add(&turn, amp_pause_watch_fd(&w->pauses), POLLIN);
        amp_loop_within(&turn, amp_pause_watch_wait(&w->pauses));
    }
    if ((w->opt->wait ? w->opt->wait(w->opt->wait_ctx, &turn, err) : amp_loop_wait(&turn, err)) < 0)
        return -1;
    for (unsigned i = 0; i < n_fds; i++)
        fds[i].revents = all[i].revents;
    if (in && in->revents && input_read(w, err))
        return -1;
    /* A suspension may have woken the turn. */
    return output_flush(w, err) || task_watch(w, err) ? -1 : 0;
}
