/*
 * The run: inputs one after another, results in the order of their lines. Adjacent valid lines are
 * written together, directly from the input's buffer. Pending output is written before the input
 * would block.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/loop.h"
#include "cli/cli.h"
#include "said/said.h"
#include "stats.h"
#include "validation.h"

enum { RESULT_MOST = 256 * 1024 }; /* output and reports of a chunk's part, in bytes */

static int write_piece(struct validation *s, struct amp_span bytes, struct amp_error *err)
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

/* Clears the progress line before other output. */
static void clear_progress(struct validation *s)
{
    if (s->shown)
        amp_err(AMP_SPAN("\r\033[K"));
    s->shown = false;
}

/* Whether the bytes begin with a document over several lines. */
static bool is_broken(struct amp_span bytes)
{
    return bytes.n > 1 && (bytes.p[0] == '{' || bytes.p[0] == '[') &&
           (bytes.p[1] == '\n' || bytes.p[1] == '\r');
}

/* Judges the chunk again if a number in it falls. Then it is not judged in parts, because the
 * numbers of all its lines are taken. */
static int judge_again(struct validation *s, const struct chunk *c, struct chunk_result *r,
                       struct amp_error *err)
{
    int falls = order_take(&s->order, r->numbers, r->n_numbers, s->opt->strict, err);
    if (falls <= 0)
        return falls;
    struct line_number *numbers = r->numbers;
    r->numbers = NULL;
    r->cap_numbers = 0;
    judge_order(s->judge, numbers);
    struct chunk part = *c; /* the lines that were judged */
    part.bytes.n = r->used;
    int rc = judge_chunk(s->judge, &part, false, s->history, 0, r, err);
    judge_order(s->judge, NULL);
    free(numbers);
    return rc;
}

enum validation_end validation_emit(struct validation *s, const struct chunk *c,
                                    struct chunk_result *r, struct amp_error *err)
{
    if (r->n_numbers > 0 && judge_again(s, c, r, err) < 0)
        return VALIDATION_FAILED;
    if (r->stats) {
        stats_add(s->stats, r->stats);
        if (r->reports.len > 0)
            clear_progress(s);
    }
    if (report_write(amp_buf_span(&r->reports), err) < 0)
        return VALIDATION_FAILED;
    for (size_t i = 0; i < r->n_pieces; i++) {
        const struct piece *p = &r->pieces[i];
        const char *base = p->of_chunk ? c->bytes.p : r->text.data;
        if (write_piece(s, (struct amp_span){base + p->at, p->n}, err) < 0)
            return VALIDATION_FAILED;
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
    s->lines += r->lines;
    s->broken |= c->line == 1 && !c->document && is_broken(c->bytes);
    s->line = c->line + r->lines - 1;
    s->offset = c->offset + r->used;
    if (!s->stats)
        amp_progress("lines", s->lines, 0);
    if (s->progress && stats_progress(s->stats, amp_mono_ms() - s->start_ms, &s->told_ms))
        s->shown = true;
    return r->stop ? VALIDATION_STOPS : VALIDATION_CONTINUES;
}

int validation_settle(struct amp_error *err)
{
    if (amp_out_flush(err) < 0)
        return -1;
    return report_flush(err);
}

int validation_wait(int input, int other, bool block, struct amp_error *err)
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
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    return ended < 0 ? -1 : ended == AMP_LOOP_READY;
}

/* Judges a chunk and writes its result. With a history it is judged twice, before and after the
 * state is queried. */
static enum validation_end take_chunk(struct validation *s, const struct chunk *c,
                                      struct chunk_result *r, struct amp_error *err)
{
    if (s->history && (judge_chunk(s->judge, c, true, NULL, 0, r, err) < 0 ||
                       history_ask(s->history, r, err) < 0))
        return VALIDATION_FAILED;
    size_t most = s->history ? 0 : RESULT_MOST;
    if (judge_chunk(s->judge, c, false, s->history, most, r, err) < 0)
        return VALIDATION_FAILED;
    return validation_emit(s, c, r, err);
}

/* Reads more; writes all pending output before it waits. */
static enum amp_read fill_stream(struct validation *s, struct input_stream *in,
                                 struct amp_error *err)
{
    for (;;) {
        int ready = validation_wait(in->fd, -1, false, err);
        if (ready == 0) {
            if (validation_settle(err) < 0)
                return AMP_READ_FAILED;
            ready = validation_wait(in->fd, -1, true, err);
        }
        enum amp_read got = ready < 0 ? AMP_READ_FAILED : stream_fill(in, err);
        if (got != AMP_READ_WOULD_BLOCK)
            return got;
    }
}

/* An input of lines, in this thread. */
static enum validation_end take_lines(struct validation *s, struct input_stream *in,
                                      struct amp_error *err)
{
    struct chunk_result r;
    struct chunk c;
    enum amp_read got = AMP_READ_BYTES;
    enum validation_end end = VALIDATION_CONTINUES;
    if (result_init(&r, s->opt, err) < 0)
        return VALIDATION_FAILED;
    while (got == AMP_READ_BYTES && end == VALIDATION_CONTINUES) {
        got = fill_stream(s, in, err);
        if (got == AMP_READ_FAILED)
            end = VALIDATION_FAILED;
        while (end == VALIDATION_CONTINUES && stream_chunk(in, &c)) {
            end = take_chunk(s, &c, &r, err);
            if (end != VALIDATION_FAILED)
                stream_take(in, r.used, r.lines);
        }
    }
    result_release(&r);
    return end;
}

/* --document: an input is one text, which is read completely. */
static enum validation_end take_document(struct validation *s, struct input_stream *in,
                                         struct amp_error *err)
{
    struct chunk_result r;
    enum amp_read got;
    while ((got = fill_stream(s, in, err)) == AMP_READ_BYTES && in->buf.len <= in->max_line)
        continue;
    if (got == AMP_READ_FAILED)
        return VALIDATION_FAILED;
    struct chunk c = {.file = in->file,
                      .bytes = in->buf.len ? amp_buf_span(&in->buf) : AMP_SPAN(""),
                      .line = 1,
                      .document = true,
                      .too_long = in->buf.len > in->max_line};
    if (result_init(&r, s->opt, err) < 0)
        return VALIDATION_FAILED;
    enum validation_end end = take_chunk(s, &c, &r, err);
    result_release(&r);
    return end;
}

struct extraction {
    struct validation *session;
    struct chunk_result result;
    struct amp_buf line;
    const char *file;
    struct amp_extract *extract;
    const struct chunk *event; /* --from: the line that has the text, or NULL */
};

/* Judges a text that was found, as a line of its own. */
static int take_found(void *ctx, struct amp_span text, const struct amp_found *at,
                      struct amp_error *err)
{
    struct extraction *e = ctx;
    struct amp_found of_event = *at;
    if (e->event) {
        of_event.line = e->event->line;
        of_event.offset = e->event->offset;
        of_event.column = 1;
        at = &of_event;
    }
    /* A text that is not JSON may contain line ends. */
    bool whole = !at->too_long && memchr(text.p, '\n', text.n);
    e->session->found++;
    amp_buf_reset(&e->line);
    if (amp_buf_add(&e->line, text.p, text.n, err) < 0 ||
        (!whole && amp_buf_add(&e->line, "\n", 1, err) < 0))
        return -1;
    struct chunk c = {.file = e->file,
                      .bytes = amp_buf_span(&e->line),
                      .line = at->line,
                      .offset = at->offset,
                      .too_long = at->too_long,
                      .document = whole,
                      .found = at};
    return take_chunk(e->session, &c, &e->result, err);
}

static enum validation_end feed_extract(struct validation *s, struct input_stream *in,
                                        struct amp_extract *x, struct amp_error *err)
{
    enum amp_read got;
    int stop = VALIDATION_CONTINUES;
    do {
        got = fill_stream(s, in, err);
        struct amp_span part = {in->buf.data + in->pos, in->buf.len - in->pos};
        if (got == AMP_READ_BYTES) {
            stop = amp_extract_feed(x, part, err);
            stream_take(in, part.n, 0);
        }
    } while (got == AMP_READ_BYTES && stop == VALIDATION_CONTINUES);
    if (got == AMP_READ_FAILED)
        return VALIDATION_FAILED;
    return stop ? stop : amp_extract_end(x, err);
}

static int take_piece(void *ctx, struct amp_span text, struct amp_error *err)
{
    struct extraction *e = ctx;
    return amp_extract_feed(e->extract, text, err);
}

static int end_text(void *ctx, struct amp_span text, struct amp_error *err)
{
    struct extraction *e = ctx;
    (void)text;
    return amp_extract_end(e->extract, err);
}

/* --from: of an input's lines only the assistant's texts. */
static enum validation_end feed_said(struct extraction *e, const struct amp_json_limits *limits,
                                     struct input_stream *in, struct amp_error *err)
{
    struct chunk c, line = {.line = 1};
    struct said said;
    enum amp_read got = AMP_READ_BYTES;
    int stop = VALIDATION_CONTINUES;
    said_init(&said, (enum said_agent)e->session->opt->from, limits);
    said.piece = take_piece;
    said.end = end_text;
    said.ctx = e;
    e->event = &line;
    while (got == AMP_READ_BYTES && stop == VALIDATION_CONTINUES) {
        got = fill_stream(e->session, in, err);
        if (got == AMP_READ_FAILED)
            stop = VALIDATION_FAILED;
        while (stop == VALIDATION_CONTINUES && stream_chunk(in, &c)) {
            line = c;
            const char *lf = memchr(c.bytes.p, '\n', c.bytes.n);
            line.bytes.n = lf ? (size_t)(lf + 1 - c.bytes.p) : c.bytes.n;
            line.too_long = c.too_long || line.bytes.n > in->max_line + 1;
            stop = line.too_long ? take_chunk(e->session, &line, &e->result, err)
                                 : said_line(&said, line.bytes, err);
            stream_take(in, line.bytes.n, 1);
        }
    }
    if (stop == VALIDATION_CONTINUES)
        stop = said_end(&said, err);
    said_release(&said);
    return stop;
}

/* --extract: an input is any text. */
static enum validation_end take_text(struct validation *s, struct input_stream *in,
                                     struct amp_error *err)
{
    struct amp_json_limits limits = amp_json_limits_default;
    struct extraction e = {.session = s, .file = in->file};
    enum amp_protocol only = AMP_PROTO_NONE;
    limits.max_bytes = (uint32_t)s->opt->max_line;
    limits.max_depth = (uint32_t)s->opt->max_depth;
    if (s->opt->protocol)
        only = amp_protocol_find(amp_span_str(s->opt->protocol));
    if (result_init(&e.result, s->opt, err) < 0)
        return VALIDATION_FAILED;
    amp_buf_init(&e.line, (size_t)s->opt->max_line + 1024);
    e.extract = amp_extract_new(&limits, only, take_found, &e, err);
    enum validation_end end = !e.extract          ? VALIDATION_FAILED
                              : s->opt->from >= 0 ? feed_said(&e, &limits, in, err)
                                                  : feed_extract(s, in, e.extract, err);
    amp_extract_free(e.extract);
    amp_buf_release(&e.line);
    result_release(&e.result);
    return end;
}

static enum validation_end take_file(struct validation *s, const char *path, struct amp_error *err)
{
    struct amp_input in;
    struct input_stream stream;
    s->line = s->offset = 0;
    amp_note_terminal(path);
    if (amp_input_open(path, false, &in, err) < 0)
        return VALIDATION_FAILED;
    if (in.fifo)
        amp_pipe_widen(in.fd);
    stream_init(&stream, strcmp(path, "-") == 0 ? "stdin" : path, in.fd, (size_t)s->opt->max_line);
    enum validation_end end = s->opt->extract    ? take_text(s, &stream, err)
                              : s->opt->document ? take_document(s, &stream, err)
                              : s->opt->jobs > 1 ? parallel_input(s, &stream, err)
                                                 : take_lines(s, &stream, err);
    stream_release(&stream);
    amp_input_close(&in);
    return end;
}

static enum validation_end take_files(struct validation *s, char **files, int n)
{
    static char standard[] = "-";
    struct amp_error err;
    for (int i = 0; i < (n ? n : 1); i++) {
        const char *path = n ? files[i] : standard;
        enum validation_end end = take_file(s, path, &err);
        if (end == VALIDATION_STOPS)
            return end;
        if (end == VALIDATION_FAILED) {
            s->unread = true;
            clear_progress(s);
            amp_status_note(amp_complain(&err));
            if (s->line && !amp_code_is(err.code, closed_pipe))
                amp_note("%s: stopped after line %llu, at byte %llu", n ? path : "stdin",
                         (unsigned long long)s->line, (unsigned long long)s->offset);
            if (err.status != AMP_DATAERR && err.sys != EISDIR)
                return VALIDATION_FAILED; /* not a fault of this file only */
        }
    }
    return VALIDATION_CONTINUES;
}

/* --extract found nothing, which is a negative result. */
static void report_nothing_found(char **files, int n)
{
    struct amp_error err;
    if (n > 1)
        amp_fail(&err, AMP_NO, not_found, "no message found in any of the %d files", n);
    else
        amp_fail(&err, AMP_NO, not_found, "no message found in %s",
                 n && strcmp(files[0], "-") != 0 ? files[0] : "stdin");
    amp_status_note(amp_complain(&err));
}

static uint64_t total_lines, total_refused; /* of the session, for the summary */

int validation_summary(struct amp_buf *out, struct amp_error *err)
{
    if (total_lines == 0)
        return 0;
    return amp_buf_fmt(out, err, "%llu line%s, %llu refused", (unsigned long long)total_lines,
                       total_lines == 1 ? "" : "s", (unsigned long long)total_refused);
}

static void run_session(struct validation *s, char **files, int n_files)
{
    struct amp_error err;
    s->start_ms = amp_mono_ms();
    s->told_ms = -1000; /* the first line is shown at once */
    enum validation_end end = take_files(s, files, n_files);
    clear_progress(s);
    if (end == VALIDATION_FAILED)
        report_flush(&err);
    else if (validation_settle(&err) < 0)
        amp_status_note(amp_complain(&err));
    if (end != VALIDATION_FAILED && s->opt->extract && s->found == 0 && !s->unread)
        report_nothing_found(files, n_files);
    if (s->opt->fail_fast && s->refused > 0)
        amp_note("stopped at line %llu, byte %llu, the first refused line",
                 (unsigned long long)s->refused_line, (unsigned long long)s->refused_offset);
    if (s->stats)
        stats_print(s->stats, s->opt, amp_mono_ms() - s->start_ms);
    if (s->broken && s->refused > 0 && !s->opt->extract)
        amp_note("the input seems to be one document over several lines: --document reads it");
    total_lines = s->lines;
    total_refused = s->refused;
}

int validation_run(const struct validate_options *opt, char **files, int n_files,
                   struct amp_error *err)
{
    struct validation s = {.opt = opt, .shared = amp_output_shared(STDOUT_FILENO)};
    if (report_open(opt, err) < 0)
        return -1;
    amp_signals_install();
    amp_pipe_widen(STDOUT_FILENO);
    order_init(&s.order);
    s.judge = judge_new(opt, err);
    bool ready = s.judge != NULL;
    if (ready && opt->state) {
        s.history = history_open(opt->state, err);
        ready = s.history != NULL;
    }
    if (ready && opt->stats) {
        s.stats = stats_new();
        s.progress = amp_progress_wanted() && strcmp(opt->stats, "text") == 0;
        if (!s.stats)
            ready = amp_fail_memory(err) == 0;
    }
    if (ready)
        run_session(&s, files, n_files);
    free(s.stats);
    history_close(s.history);
    judge_free(s.judge);
    order_release(&s.order);
    return !ready ? -1 : s.refused > 0 ? AMP_NO : AMP_OK;
}
