/*
 * The run: inputs one after another, results out in the order of their lines. Valid lines that
 * stand together leave together, straight from the input's buffer; what has gathered is written
 * before the input would block.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/loop.h"
#include "cli/cli.h"
#include "session.h"
#include "stats.h"

/* Output and reports of a part of a chunk, past which it leaves. */
enum { RESULT_MOST = 256 * 1024 };

static int put(struct session *s, struct amp_span bytes, struct amp_error *err)
{
    if (bytes.n == 0)
        return 0;
    if (s->open_end && amp_out(AMP_SPAN("\n"), err) < 0)
        return -1;
    s->open_end = bytes.p[bytes.n - 1] != '\n';
    if (amp_out(bytes, err) < 0)
        return -1;
    if (!s->open_end || !s->shared)
        return 0;
    s->open_end = false;
    return amp_out(AMP_SPAN("\n"), err);
}

/* The line that shows progress makes room for what is to stay. */
static void clear(struct session *s)
{
    if (s->shown)
        amp_err(AMP_SPAN("\r\033[K"));
    s->shown = false;
}

int session_emit(struct session *s, const struct chunk *c, struct result *r, struct amp_error *err)
{
    if (r->stats) {
        stats_add(s->stats, r->stats);
        if (r->reports.len > 0)
            clear(s);
    }
    if (report_write(amp_buf_span(&r->reports), err) < 0)
        return -1;
    for (size_t i = 0; i < r->n_pieces; i++) {
        const struct piece *p = &r->pieces[i];
        const char *base = p->of_chunk ? c->bytes.p : r->text.data;
        if (put(s, (struct amp_span){base + p->at, p->n}, err) < 0)
            return -1;
    }
    if (r->undecided)
        amp_status_note(AMP_TEMPFAIL);
    for (unsigned i = 0; i < r->n_refusals; i++)
        amp_refused(r->refusals[i].code, r->refusals[i].n);
    if (s->refused == 0) {
        s->refused_line = r->refused_line;
        s->refused_offset = r->refused_offset;
    }
    s->refused += r->refused;
    s->line = c->line + r->lines - 1;
    s->offset = c->offset + r->used;
    if (s->progress && stats_progress(s->stats, amp_mono_ms() - s->start_ms, &s->told_ms))
        s->shown = true;
    return r->stop;
}

int session_settle(struct session *s, struct amp_error *err)
{
    if (amp_out_flush(err) < 0)
        return -1;
    return report_flush(err);
}

int session_wait(struct session *s, int input, int other, bool block, struct amp_error *err)
{
    struct pollfd fds[2];
    struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
    amp_loop_add(&turn, input, POLLIN);
    amp_loop_add(&turn, other, POLLIN);
    if (!block)
        amp_loop_within(&turn, 0);
    int ended;
    do
        ended = amp_loop_wait(&turn, err);
    while (block && ended == AMP_LOOP_SIGNAL && !amp_stop);
    if (ended >= 0 && amp_stop)
        return amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
    return ended < 0 ? -1 : ended == AMP_LOOP_READY;
}

/* What has been read. With a history the chunk is judged twice, before and after asking. */
int session_take(struct session *s, const struct chunk *c, struct result *r, struct amp_error *err)
{
    if (s->history && (judge_chunk(s->judge, c, true, NULL, 0, r, err) < 0 ||
                       history_ask(s->history, r, err) < 0))
        return -1;
    size_t most = s->history ? 0 : RESULT_MOST;
    if (judge_chunk(s->judge, c, false, s->history, most, r, err) < 0)
        return -1;
    return session_emit(s, c, r, err);
}

int session_fill(struct session *s, struct stream *in, struct amp_error *err)
{
    for (;;) {
        int ready = session_wait(s, in->fd, -1, false, err);
        if (ready == 0) {
            if (session_settle(s, err) < 0)
                return -1;
            ready = session_wait(s, in->fd, -1, true, err);
        }
        enum amp_read got = ready < 0 ? AMP_READ_FAILED : stream_fill(in, err);
        if (got != AMP_READ_WOULD_BLOCK)
            return got;
    }
}

/* An input by this thread alone. */
static int take_input(struct session *s, struct stream *in, struct amp_error *err)
{
    struct result r;
    struct chunk c;
    int got = 1, stop = 0;
    if (result_init(&r, s->opt, err) < 0)
        stop = -1;
    while (got > 0 && stop == 0) {
        got = session_fill(s, in, err);
        if (got < 0)
            stop = -1;
        while (stop == 0 && stream_chunk(in, &c)) {
            stop = session_take(s, &c, &r, err);
            if (stop >= 0)
                stream_take(in, r.used, r.lines);
        }
    }
    result_release(&r);
    return stop;
}

/* An input that is one text: read completely, judged once. */
static int take_document(struct session *s, struct stream *in, struct amp_error *err)
{
    struct result r;
    int got;
    while ((got = session_fill(s, in, err)) > 0 && in->buf.len <= in->max_line)
        continue;
    if (got < 0)
        return -1;
    struct chunk c = {.file = in->file,
                      .bytes = in->buf.len ? amp_buf_span(&in->buf) : AMP_SPAN(""),
                      .line = 1,
                      .document = true,
                      .too_long = in->buf.len > in->max_line};
    if (result_init(&r, s->opt, err) < 0)
        return -1;
    int stop = session_take(s, &c, &r, err);
    result_release(&r);
    return stop;
}

/* One input. 0: to its end; 1: --fail-fast; -1: failure. */
static int take_file(struct session *s, const char *path, struct amp_error *err)
{
    struct amp_input in;
    struct stream stream;
    s->line = s->offset = 0;
    amp_note_terminal(path);
    if (amp_input_open(path, false, &in, err) < 0)
        return -1;
    if (in.fifo)
        amp_pipe_widen(in.fd);
    stream_init(&stream, strcmp(path, "-") == 0 ? "stdin" : path, in.fd, (size_t)s->opt->max_line);
    int stop = s->opt->extract    ? extract_input(s, &stream, err)
               : s->opt->document ? take_document(s, &stream, err)
               : s->opt->jobs > 1 ? parallel_input(s, &stream, err)
                                  : take_input(s, &stream, err);
    stream_release(&stream);
    amp_input_close(&in);
    return stop;
}

static int run_files(struct session *s, char **files, int n)
{
    static char standard[] = "-";
    struct amp_error err;
    for (int i = 0; i < (n ? n : 1); i++) {
        const char *path = n ? files[i] : standard;
        int stop = take_file(s, path, &err);
        if (stop < 0) {
            s->unread = true;
            clear(s);
            amp_status_note(amp_complain(&err));
            if (s->line && strcmp(err.code, "closed_pipe") != 0)
                amp_note("%s: stopped after line %llu, at byte %llu", n ? path : "stdin",
                         (unsigned long long)s->line, (unsigned long long)s->offset);
            if (err.status != AMP_DATAERR && err.sys != EISDIR)
                return -1; /* not only this file could not be read */
        } else if (stop == 1) {
            return 1;
        }
    }
    return 0;
}

/* --extract: the answer is no. */
static void nothing_found(char **files, int n)
{
    struct amp_error err;
    if (n > 1)
        amp_fail(&err, AMP_NO, "not_found", "no message found in any of the %d files", n);
    else
        amp_fail(&err, AMP_NO, "not_found", "no message found in %s",
                 n && strcmp(files[0], "-") != 0 ? files[0] : "stdin");
    amp_status_note(amp_complain(&err));
}

static void run(struct session *s, char **files, int n_files)
{
    struct amp_error err;
    s->start_ms = amp_mono_ms();
    s->told_ms = -1000; /* the first is shown at once */
    int end = run_files(s, files, n_files);
    clear(s);
    if (end >= 0 && session_settle(s, &err) < 0)
        amp_status_note(amp_complain(&err));
    else if (end < 0)
        report_flush(&err);
    if (end >= 0 && s->opt->extract && s->found == 0 && !s->unread)
        nothing_found(files, n_files);
    if (s->opt->fail_fast && s->refused > 0)
        amp_note("stopped at line %llu, byte %llu, the first refused line",
                 (unsigned long long)s->refused_line, (unsigned long long)s->refused_offset);
    if (s->stats)
        stats_tell(s->stats, s->opt, amp_mono_ms() - s->start_ms);
}

int session_run(const struct validate_options *opt, char **files, int n_files)
{
    struct amp_error err;
    struct session s = {.opt = opt, .shared = amp_output_shared(STDOUT_FILENO)};
    if (report_open(opt, &err) < 0)
        return amp_complain(&err);
    amp_signals_install();
    amp_pipe_widen(STDOUT_FILENO);
    s.judge = judge_new(opt, &err);
    bool ready = s.judge != NULL;
    if (ready && opt->state) {
        s.history = history_open(opt->state, &err);
        ready = s.history != NULL;
    }
    if (ready && opt->stats) {
        s.stats = stats_new();
        s.progress = isatty(2) && strcmp(opt->stats, "text") == 0;
        if (!s.stats)
            ready = amp_fail_memory(&err) == 0;
    }
    if (ready)
        run(&s, files, n_files);
    stats_free(s.stats);
    history_close(s.history);
    judge_free(s.judge);
    if (!ready)
        return amp_complain(&err);
    return s.refused > 0 ? AMP_NO : AMP_OK;
}
