/*
 * Hands one message to the agent. A line in a pipe is lost if the reader ends, so it does not count
 * as handed over. The pipe is therefore made one page large: then poll reports it as writable only
 * after the reader has read the line.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/file/line.h"
#include "base/loop.h"
#include "message/delivery/record/record.h"
#include "message/route/handover/handover.h"

#define GRACE_MS       2000
#define LINE_BYTES_MAX ((size_t)256 << 20)

int amp_handover_open(struct amp_handover *h, struct amp_error *err)
{
    const char *path = h->o->out_path;
    struct stat st;
    int fd = STDOUT_FILENO;
    bool own = path && strcmp(path, "-") != 0;
    h->out.fd = -1;
    if (h->o->argv)
        return 0;
    if (own && amp_output_open(path, h->o->open_timeout_ms, -1, h->o->stop, &fd, err) < 0)
        return -1;
    if (amp_outq_open(&h->out, fd, own, LINE_BYTES_MAX, err) < 0) {
        if (own)
            close(fd);
        return -1;
    }
    if (fstat(h->out.fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot use the output");
    /* If the pipe cannot be made small, because it has data, a written line counts as read. */
    h->fifo = S_ISFIFO(st.st_mode) && fcntl(h->out.fd, F_SETPIPE_SZ, 1) > 0;
    h->file = S_ISREG(st.st_mode);
    return amp_line_end(h->out.fd, err);
}

void amp_handover_close(struct amp_handover *h)
{
    if (h->out.fd >= 0)
        amp_outq_close(&h->out);
}

static int reader_lost(struct amp_error *err)
{
    return amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
}

int amp_handover_wait(struct amp_handover *h, struct pollfd *own, unsigned n, int64_t timeout_ms,
                      struct amp_error *err)
{
    int64_t until = timeout_ms < 0 ? -1 : amp_mono_ms() + timeout_ms;
    for (;;) {
        struct pollfd fds[3 + AMP_PORT_FDS];
        struct amp_loop turn = amp_loop_turn(fds, 3 + AMP_PORT_FDS, h->o->stop, NULL);
        int64_t rest = until < 0 ? -1 : until - amp_mono_ms();
        int64_t wait = rest = until >= 0 && rest < 0 ? 0 : rest;
        bool any = false;
        for (unsigned i = 0; i < n; i++)
            amp_loop_add(&turn, own[i].fd, own[i].events);
        if (h->acks)
            amp_acks_watch(h->acks, amp_loop_places(&turn, AMP_PORT_FDS), &wait);
        amp_loop_within(&turn, wait);
        int ended = amp_loop_wait(&turn, err);
        if (ended < 0)
            return -1;
        if (*h->o->stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        for (unsigned i = 0; i < n; i++) {
            own[i].revents = fds[i].revents;
            any = any || own[i].revents != 0;
        }
        if (!h->acks)
            return 0;
        if (amp_acks_step(h->acks, err) < 0)
            return -1;
        if (any || wait == rest)
            return 0;
    }
}

int amp_handover_pause(struct amp_handover *h, int64_t ms, struct amp_error *err)
{
    int64_t until = amp_mono_ms() + ms;
    for (int64_t rest = ms; rest > 0; rest = until - amp_mono_ms())
        if (amp_handover_wait(h, NULL, 0, rest, err) < 0)
            return -1;
    return 0;
}

/* Waits until the pipe is empty. */
static int empty_wait(struct amp_handover *h, struct amp_error *err)
{
    for (;;) {
        struct pollfd p = {.fd = h->out.fd, .events = POLLOUT};
        int unread = 0;
        if (amp_handover_wait(h, &p, 1, -1, err) < 0)
            return -1;
        if (p.revents & POLLERR)
            return ioctl(h->out.fd, FIONREAD, &unread) == 0 && unread == 0 ? 0 : reader_lost(err);
        if (p.revents & POLLOUT)
            return 0;
    }
}

/* ---- an output ---- */

static int text_add(const struct amp_handover *h, const struct amp_inbox_msg *m, struct amp_buf *b,
                    struct amp_error *err)
{
    struct amp_span message;
    if (amp_line_message(m->line, &message, err) < 0)
        return -1;
    if (amp_buf_str(b, "Message ", err) < 0 || h->o->safe(m->id, 200, b, err) < 0)
        return -1;
    if (m->redelivered && amp_buf_str(b, " (again: it may have been handed over before)", err) < 0)
        return -1;
    return amp_buf_str(b, ":\n", err) < 0 || amp_buf_add(b, message.p, message.n, err) < 0 ||
                   amp_buf_str(b, "\n\n", err) < 0
               ? -1
               : 0;
}

static int wrapped_add(const struct amp_inbox_msg *m, struct amp_buf *b, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, b);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "id", m->id);
    amp_jw_member_int(&w, "attempt", m->attempt);
    amp_jw_member_bool(&w, "redelivered", m->redelivered);
    amp_rec_line(&w, m->line);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int line_write(struct amp_handover *h, const struct amp_inbox_msg *m, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, LINE_BYTES_MAX);
    int rc;
    if (strcmp(h->o->format, "text") == 0)
        rc = text_add(h, m, &b, err);
    else if (strcmp(h->o->format, "wrap") == 0)
        rc = wrapped_add(m, &b, err);
    else
        rc = amp_buf_add(&b, m->line.p, m->line.n, err) < 0 ? -1 : amp_buf_str(&b, "\n", err);
    if (rc < 0 || amp_outq_add(&h->out, amp_buf_span(&b), err) < 0 ||
        amp_outq_drain(&h->out, -1, h->o->stop, err) < 0)
        return -1;
    if (h->fifo)
        return empty_wait(h, err);
    if (h->file && fdatasync(h->out.fd) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync the output");
    return 0;
}

/* ---- a command ---- */

enum { WORDS = 5, WORD_REDELIVERED = 3, WORD_RESULT = 4 };

/* The environment, with the variables of the message first. */
static char **environment_make(const struct amp_handover *h, const struct amp_inbox_msg *m,
                               char words[WORDS][1100])
{
    extern char **environ;
    static const char *const names[] = {
        "AMP_AGENT=", "AMP_ATTEMPT=", "AMP_MSG_ID=", "AMP_REDELIVERED=", "AMP_RESULT="};
    size_t n = 0, out = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + WORDS + 1, sizeof(*env));
    if (!env)
        return NULL;
    bool has[WORDS] = {true, true, true, m->redelivered, h->outcome.path[0]};
    snprintf(words[0], sizeof words[0], "%s%.255s", names[0], h->o->name);
    snprintf(words[1], sizeof words[1], "%s%u", names[1], m->attempt);
    snprintf(words[2], sizeof words[2], "%s%.*s", names[2], (int)(m->id.n < 200 ? m->id.n : 200),
             m->id.p);
    snprintf(words[WORD_REDELIVERED], sizeof words[0], "%s1", names[WORD_REDELIVERED]);
    snprintf(words[WORD_RESULT], sizeof words[0], "%s%.1040s", names[WORD_RESULT], h->outcome.path);
    for (int i = 0; i < WORDS; i++)
        if (has[i])
            env[out++] = words[i];
    for (size_t i = 0; i < n; i++) {
        bool ours = false;
        for (int k = 0; k < WORDS; k++)
            ours = ours || strncmp(environ[i], names[k], strlen(names[k])) == 0;
        if (!ours)
            env[out++] = environ[i];
    }
    return env;
}

/* 1: people suspended the message, or its agent, and *found says so; 0: they did not. */
static int message_held(struct amp_handover *h, struct amp_span line,
                        const struct amp_pause **found, struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_view v = {0};
    int rc = amp_pause_look(h->pauses, AMP_SPAN(""), h->o->agent, found, err);
    if (rc || h->pauses->now.n_v == 0)
        return rc;
    if (amp_reader_line(h->reader, line, &any, &v, NULL, NULL, err) < 0)
        return -1;
    *found = amp_pauses_find(&h->pauses->now, v.task, h->o->agent);
    return *found != NULL;
}

/* Waits for the end of the command; a person's suspension ends it. */
static int command_wait(struct amp_handover *h, const struct amp_inbox_msg *m,
                        struct amp_runner *run, struct amp_child_end *end, struct amp_error *err)
{
    const struct amp_pause *by;
    for (;;) {
        if (*h->o->stop)
            amp_runner_stop(run);
        if (!h->paused && amp_pause_watch_due(h->pauses)) {
            int held = message_held(h, m->line, &by, err);
            if (held < 0)
                return -1;
            h->paused = held > 0;
        }
        if (h->paused)
            amp_runner_hurry(run, AMP_PAUSE_GRACE_MS);
        int rc = amp_runner_look(run, end, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, run->stopped ? NULL : h->o->stop, NULL);
        amp_loop_add(&turn, run->child.pidfd, POLLIN);
        amp_loop_add(&turn, h->paused ? -1 : amp_pause_watch_fd(h->pauses), POLLIN);
        amp_loop_within(&turn, amp_runner_wait(run));
        amp_loop_within(&turn, h->paused ? -1 : amp_pause_watch_wait(h->pauses));
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
    }
}

static int command_run(struct amp_handover *h, const struct amp_inbox_msg *m,
                       enum amp_run_verdict *how, struct amp_error *err)
{
    char words[WORDS][1100];
    struct amp_runner run;
    struct amp_child_end end;
    struct amp_span message;
    int64_t limit = h->o->attempt_timeout_ms > 0 ? h->o->attempt_timeout_ms : -1;
    if (amp_outcome_prepare(h->acks, m, &h->outcome, err) < 0)
        return -1;
    *how = AMP_RUN_DONE;
    h->paused = false;
    if (h->outcome.left)
        return 0;
    AMP_FREE char **env = environment_make(h, m, words);
    if (!env)
        return amp_fail_memory(err);
    const struct amp_child_spec spec = {.argv = h->o->argv,
                                        .envp = (const char *const *)env,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .wrap = h->o->wrap};
    /* The agent's command gets the message, not the line of its transport. */
    if (amp_line_message(m->line, &message, err) < 0 ||
        amp_runner_start(&run, &spec, message, limit, GRACE_MS, err) < 0)
        return -1;
    h->paused = false;
    amp_pause_watch_renew(h->pauses);
    if (command_wait(h, m, &run, &end, err) < 0)
        return -1;
    if (*h->o->stop)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    *how = amp_runner_verdict(&run, &end, h->o->argv[0], &h->why);
    h->paused = h->paused && *how != AMP_RUN_DONE;
    return 0;
}

int amp_handover(struct amp_handover *h, const struct amp_inbox_msg *m, enum amp_run_verdict *how,
                 struct amp_error *err)
{
    *how = AMP_RUN_DONE;
    return h->o->argv ? command_run(h, m, how, err) : line_write(h, m, err);
}
