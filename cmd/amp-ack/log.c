/* amp-ack log: the history in the log, as a table, records, or a sequence diagram. */
#include <fcntl.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "flow/wake.h"
#include "message/history/diagram.h"
#include "pass.h"
#include "store/history/history.h"

#define BLOB_MAX ((size_t)64 << 20)
#define DAYS_MS  ((int64_t)100 * 365 * 24 * 3600 * 1000)
#define LOOK_MS  100

static const char *correlation, *session, *agent, *id, *since, *format = "table";
static bool follow;
static int64_t limit = 2000;

static const char *const formats[] = {"table", "ndjson", "mermaid", NULL};

const struct amp_opt log_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "continue with new entries until a signal"},
    {0, "correlation", AMP_OPT_STRING, &correlation, "ID",
     .doc = "only this conversation: a correlation id or a task", .values = "task"},
    {0, "session", AMP_OPT_STRING, &session, "ID", .doc = "only the messages of this session"},
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", .doc = "only messages and actions of this agent",
     .values = "agent"},
    {0, "id", AMP_OPT_STRING, &id, "ID", .doc = "only this message", .values = "message"},
    {0, "since", AMP_OPT_STRING, &since, "TIME",
     .doc = "only from TIME on: RFC 3339 or an age (90s, 2h)"},
    {0, "format", AMP_OPT_CHOICE, &format, "FORMAT",
     .doc = "table, ndjson, or mermaid for a diagram", .choices = formats},
    {0, "limit", AMP_OPT_INT, &limit, "N", .doc = "most arrows and notes of a diagram", .min = 1,
     .max = 1000000},
    AMP_OPT_END,
};

struct reading {
    struct amp_store *store;
    struct amp_store_place at;
    struct amp_history *history;
    struct amp_diagram *diagram; /* or NULL */
    struct amp_buf text;
};

static int blob_read(void *ctx, struct amp_span name, struct amp_buf *out, struct amp_error *err)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/blob/%.*s", amp_store_dir(ctx), (int)name.n, name.p);
    return amp_file_read(AT_FDCWD, path, BLOB_MAX, out, err);
}

static int word_add(struct amp_buf *out, struct amp_span text, int width, struct amp_error *err)
{
    if (text.n == 0)
        return 0;
    return amp_buf_add(out, "  ", 2, err) < 0 ? -1 : amp_text_safe(text, width, out, err);
}

static int step_add(struct amp_buf *out, const struct amp_history_row *r, struct amp_error *err)
{
    if (r->to.n == 0)
        return 0;
    return word_add(out, r->from, 20, err) < 0 ||
                   amp_buf_str(out, r->from.n ? " → " : "  ", err) < 0
               ? -1
               : amp_text_safe(r->to, 20, out, err);
}

/* TIME  ACTOR  KIND EVENT  ID  FROM → TO  TYPE, then NAME=TEXT for everything else. */
static int table_line(const struct amp_history_row *r, struct amp_buf *out, struct amp_error *err)
{
    const struct {
        const char *name;
        struct amp_span text;
    } named[] = {{"from", r->sender},    {"to", r->recipient},
                 {"agent", r->agent},    {"stage", r->stage},
                 {"by", r->by},          {"code", r->code},
                 {"of", r->original},    {"correlation", r->correlation},
                 {"session", r->session}};
    if (amp_text_safe(r->at.n ? r->at : AMP_SPAN("-"), 24, out, err) < 0 ||
        word_add(out, r->actor.n ? r->actor : AMP_SPAN("-"), 24, err) < 0 ||
        word_add(out, r->kind, 16, err) < 0 || amp_buf_str(out, " ", err) < 0 ||
        amp_text_safe(r->event, 24, out, err) < 0 || word_add(out, r->id, 64, err) < 0 ||
        step_add(out, r, err) < 0 || word_add(out, r->type, 24, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        if (named[i].text.n > 0 && (amp_buf_fmt(out, err, "  %s=", named[i].name) < 0 ||
                                    amp_text_safe(named[i].text, 60, out, err) < 0))
            return -1;
    return amp_buf_str(out, r->late ? "  late\n" : r->implied ? "  implied\n" : "\n", err);
}

static int row_fn(void *ctx, const struct amp_history_row *r, struct amp_error *err)
{
    struct reading *rd = ctx;
    amp_buf_reset(&rd->text);
    int rc = rd->diagram                     ? amp_diagram_row(rd->diagram, r, err)
             : strcmp(format, "ndjson") == 0 ? amp_history_json(r, &rd->text, err)
                                             : table_line(r, &rd->text, err);
    return rc == 0 && rd->text.len > 0 ? amp_out(amp_buf_span(&rd->text), err) : rc;
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    struct reading *rd = ctx;
    if (amp_history_frame(rd->history, n, frame, row_fn, rd, err) < 0)
        return -1;
    return amp_stop != 0;
}

static int frames_read(struct reading *rd, struct amp_error *err)
{
    if (amp_store_frames_on(rd->store, &rd->at, frame_fn, rd, err) < 0)
        return -1;
    return amp_out_flush(err);
}

static int frames_follow(struct reading *rd, struct amp_error *err)
{
    struct amp_wake wake;
    struct amp_wake_for f = {.log = true, .out_fd = 1, .timeout_ms = -1, .stop = &amp_stop};
    unsigned why = 0;
    if (amp_wake_open(&wake, amp_store_dir(rd->store), err) < 0)
        return -1;
    int rc;
    do {
        /* Later writes to the log end the wait below. */
        rc = amp_wake_drain(&wake, err) < 0 ? -1 : frames_read(rd, err);
        int64_t read_ms = amp_mono_ms();
        if (rc == 0)
            rc = amp_wake_wait(&wake, &f, &why, err);
        if (rc == 0 && (why & AMP_WAKE_OUT))
            rc = amp_fail(err, AMP_IOERR, "closed_pipe", "the reader of the output is gone");
        /* A busy log is read ten times a second. */
        struct amp_wake_for rest = {.out_fd = -1, .stop = &amp_stop};
        rest.timeout_ms = read_ms + LOOK_MS - amp_mono_ms();
        if (rc == 0 && rest.timeout_ms > 0 && !amp_stop)
            rc = amp_wake_wait(&wake, &rest, &why, err);
    } while (rc == 0 && !amp_stop);
    amp_wake_close(&wake);
    return rc;
}

int ack_since(const char *text, int64_t *ms, struct amp_error *err)
{
    struct amp_error why;
    int64_t ago;
    *ms = 0;
    if (!text || amp_time_parse(amp_span_str(text), ms))
        return 0;
    if (amp_num_duration(amp_span_str(text), 0, DAYS_MS, &ago, &why) < 0)
        return amp_fail(err, AMP_USAGE, "bad_time",
                        "--since takes an RFC 3339 time with an offset, or a duration");
    *ms = amp_now_ms() - ago;
    return 0;
}

static int log_print(struct reading *rd, struct amp_error *err)
{
    int rc = follow ? frames_follow(rd, err) : frames_read(rd, err);
    if (rc == 0 && amp_stop)
        rc = amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
    if (rc < 0 || !rd->diagram)
        return rc;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)512 << 20);
    if (amp_diagram_write(rd->diagram, &text, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&text), err);
}

int ack_log(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    struct amp_history_filter f = {.correlation = amp_span_str(correlation),
                                   .session = amp_span_str(session),
                                   .agent = amp_span_str(agent),
                                   .id = amp_span_str(id),
                                   .blob = blob_read};
    struct reading rd = {.store = NULL};
    bool mermaid = strcmp(format, "mermaid") == 0;
    if (mermaid && follow)
        amp_die_usage(
            "a diagram is drawn at the end: --follow and --format mermaid exclude each other");
    if (ack_since(since, &f.since_ms, &err) < 0)
        return amp_complain(&err);
    amp_signals_install();
    ACK_STATE *s = rd.store = ack_open_state(ACK_LOOK, &status);
    if (!s)
        return status;
    f.blob_ctx = rd.store;
    amp_buf_init(&rd.text, (size_t)64 << 20);
    rd.history = amp_history_new(&f, &err);
    rd.diagram = mermaid && rd.history ? amp_diagram_new((uint32_t)limit, &err) : NULL;
    if (!rd.history || (mermaid && !rd.diagram) || log_print(&rd, &err) < 0)
        status = amp_complain(&err);
    amp_diagram_free(rd.diagram);
    amp_history_free(rd.history);
    amp_buf_release(&rd.text);
    return status;
}
