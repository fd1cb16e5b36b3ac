/*
 * The filter itself. Valid lines that stand together in the buffer leave together, byte for byte;
 * what has gathered is written before the input would block. With --state a line waits for the
 * helper's answer, in order.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <amp/base/pipe.h>

#include "cli/cli.h"
#include "validate.h"

struct stream {
    const struct validate_options *opt;
    struct amp_check_options check;
    struct amp_reader *reader;
    struct history *history;
    struct amp_lines lines;
    const char *file;    /* for people */
    struct amp_span run; /* valid lines that were not yet handed to stdout */
    bool open_end;       /* the last line that left had no line end */
    uint64_t rejected;
    struct amp_line_place at;
    uint64_t stopped_line, stopped_offset; /* the first refused line, for --fail-fast */
};

static void tell(void *ctx, const struct amp_finding *f)
{
    struct stream *s = ctx;
    report(f, s->file, &s->at);
}

static int put(struct stream *s, struct amp_span bytes, struct amp_error *err)
{
    if (bytes.n == 0)
        return 0;
    if (s->open_end && amp_out(AMP_SPAN("\n"), err) < 0)
        return -1;
    s->open_end = bytes.p[bytes.n - 1] != '\n';
    return amp_out(bytes, err);
}

/* The run points into the line buffer, so it must leave before the next fill. */
static int end_run(struct stream *s, struct amp_error *err)
{
    struct amp_span run = s->run;
    s->run = (struct amp_span){NULL, 0};
    return put(s, run, err);
}

static int pass(void *ctx, const struct history_line *l, struct amp_error *err)
{
    struct stream *s = ctx;
    if (s->opt->fail_fast && s->rejected > 0)
        return 0; /* it came after the one that was refused */
    return put(s, l->whole, err);
}

static void note_refused(struct stream *s, const struct amp_line_place *at)
{
    if (s->rejected++ == 0) {
        s->stopped_line = at->line;
        s->stopped_offset = at->offset;
    }
}

static void refuse(void *ctx, const struct history_line *l)
{
    note_refused(ctx, &l->at);
}

static int accept(struct stream *s, const struct amp_line *line, const struct amp_view *v,
                  struct amp_error *err)
{
    if (s->history) {
        struct history_line l = {.file = s->file, .at = s->at, .whole = line->whole};
        return history_take(s->history, &l, v, err);
    }
    if (s->run.n > 0 && s->run.p + s->run.n == line->whole.p) {
        s->run.n += line->whole.n;
        return 0;
    }
    if (end_run(s, err) < 0)
        return -1;
    s->run = line->whole;
    return 0;
}

static void too_long(struct stream *s)
{
    char expected[64];
    snprintf(expected, sizeof expected, "at most %lld bytes (--max-line)",
             (long long)s->opt->max_line);
    struct amp_finding f = {.severity = AMP_SEV_ERROR,
                            .code = "line_too_long",
                            .field = "",
                            .pointer = "",
                            .rule = "limit",
                            .message = "the line is too long",
                            .found = "",
                            .expected = expected};
    tell(s, &f);
}

/* The lines that have been read. 1: --fail-fast says stop; 0: more is needed; -1: failure. */
static int take_lines(struct stream *s, struct amp_error *err)
{
    struct amp_line line;
    for (;;) {
        enum amp_line_result got = amp_lines_next(&s->lines, &line);
        if (got == AMP_LINE_MORE || got == AMP_LINE_END)
            return 0;
        s->at.line = line.number;
        s->at.offset = line.offset;
        s->at.now_ms = amp_now_ms();
        struct amp_view v;
        int good = 0;
        if (got == AMP_LINE_TOO_LONG)
            too_long(s);
        else
            good = amp_reader_line(s->reader, line.bytes, &s->check, &v, tell, s, err);
        if (good < 0 || (good && accept(s, &line, &v, err) < 0))
            return -1;
        /* With --fail-fast the lines before this one still have to pass. */
        if (!good && s->opt->fail_fast && s->history && history_drain(s->history, err) < 0)
            return -1;
        if (!good)
            note_refused(s, &s->at);
        if (s->rejected > 0 && s->opt->fail_fast)
            return 1;
    }
}

/* Everything gathered so far leaves. */
static int settle(struct stream *s, struct amp_error *err)
{
    if (s->history && history_drain(s->history, err) < 0)
        return -1;
    if (amp_out_flush(err) < 0)
        return -1;
    return report_flush(err);
}

/* Reads more. 1: bytes came; 0: end of file; -1: failure. */
static int fill(struct stream *s, const struct amp_input *in, struct amp_error *err)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    if (end_run(s, err) < 0)
        return -1;
    for (;;) {
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
        int ready = poll(&p, 1, 0);
        if (ready == 0) {
            if (settle(s, err) < 0)
                return -1;
            ready = poll(&p, 1, -1);
        }
        if (ready < 0) {
            if (errno != EINTR)
                return amp_fail_errno(err, AMP_IOERR, "cannot wait for the input");
            continue;
        }
        int got = amp_lines_fill(&s->lines, in->fd, err);
        if (got < 0 && err->sys == EISDIR)
            err->status = AMP_DATAERR;
        if (got != 2)
            return got;
    }
}

/* One input. 0: to its end; 1: --fail-fast; -1: failure. */
static int take_file(struct stream *s, const char *path, struct amp_error *err)
{
    struct amp_input in;
    if (amp_input_open(path, false, &in, err) < 0)
        return -1;
    s->file = strcmp(path, "-") == 0 ? "stdin" : path;
    amp_lines_init(&s->lines, (size_t)s->opt->max_line);
    int got, stop;
    do {
        got = fill(s, &in, err);
        stop = got < 0 ? -1 : take_lines(s, err);
    } while (got > 0 && stop == 0);
    struct amp_error later;
    if (end_run(s, stop < 0 ? &later : err) < 0 && stop >= 0)
        stop = -1;
    amp_lines_release(&s->lines);
    amp_input_close(&in);
    return stop;
}

/* Whether the next input can still be tried: only this one could not be read. */
static bool only_this_file(const struct amp_error *err)
{
    return err->status == AMP_DATAERR;
}

static int run_files(struct stream *s, char **files, int n)
{
    static char standard[] = "-";
    struct amp_error err;
    for (int i = 0; i < (n ? n : 1); i++) {
        const char *path = n ? files[i] : standard;
        int stop = take_file(s, path, &err);
        if (stop < 0) {
            amp_status_note(amp_complain(&err));
            if (s->at.line && strcmp(err.code, "closed_pipe") != 0)
                amp_note("%s: stopped after line %llu, at byte %llu", s->file,
                         (unsigned long long)s->at.line, (unsigned long long)s->lines.offset);
            if (!only_this_file(&err))
                return -1;
        } else if (stop == 1) {
            return 1;
        }
    }
    return 0;
}

int stream_run(const struct validate_options *opt, char **files, int n_files)
{
    struct amp_error err;
    struct amp_json_limits limits = amp_json_limits_default;
    limits.max_bytes = (uint32_t)opt->max_line;
    limits.max_depth = (uint32_t)opt->max_depth;
    struct stream s = {.opt = opt,
                       .file = "stdin",
                       .check = {.strict = opt->strict,
                                 .check_repo = opt->check_repo,
                                 .hlc = opt->hlc,
                                 .max_payload = opt->max_payload,
                                 .protected_ = opt->protect,
                                 .bare = true},
                       .at = {.tool = amp_cli_name()}};
    if (opt->protocol)
        s.check.only = amp_protocol_find(amp_span_str(opt->protocol));
    struct history_sink sink = {&s, pass, refuse};
    if (report_open(opt->errors, &err) < 0)
        return amp_complain(&err);
    amp_signals_install();
    s.reader = amp_reader_new(&limits, &err);
    if (!s.reader)
        return amp_complain(&err);
    if (opt->state) {
        s.history = history_open(opt->state, opt->strict, &sink, &err);
        if (!s.history) {
            amp_reader_free(s.reader);
            return amp_complain(&err);
        }
    }
    int end = run_files(&s, files, n_files);
    if (end >= 0 && settle(&s, &err) < 0)
        amp_status_note(amp_complain(&err));
    else
        report_flush(NULL);
    if (opt->fail_fast && s.rejected > 0)
        amp_note("stopped at line %llu, byte %llu, the first that was refused",
                 (unsigned long long)s.stopped_line, (unsigned long long)s.stopped_offset);
    history_close(s.history);
    amp_reader_free(s.reader);
    return s.rejected > 0 ? AMP_NO : AMP_OK;
}
