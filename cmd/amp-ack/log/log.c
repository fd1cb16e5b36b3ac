/* amp-ack log: the history in the log, as lines for people, records, drawings, or traces. */
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "../pass.h"
#include "flow/wake.h"
#include "log.h"
#include "message/history/diagram.h"
#include "message/history/draw/draw.h"
#include "message/history/find.h"

#define DAYS_MS ((int64_t)100 * 365 * 24 * 3600 * 1000)
#define LOOK_MS 100

static const char *correlation, *task, *session, *agent, *id, *since, *format;
static bool follow, all;
static int64_t limit;

static const char *const formats[] = {"text", "ndjson", "mermaid", "dot", "svg",
                                      "html", "sw4rm",  "otlp",    NULL};
/* In the order of formats[]. */
enum form { TEXT, NDJSON, MERMAID, DOT, SVG, HTML, SW4RM, OTLP };

const struct amp_opt log_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "continue with new entries until a signal"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "as text, also the tools' bookkeeping"},
    {0, "task", AMP_OPT_STRING, &task, "TASK", .doc = "only the conversation about this task",
     .values = "task"},
    {0, "correlation", AMP_OPT_STRING, &correlation, "ID",
     .doc = "only this conversation: a correlation id or a task", .values = "task"},
    {0, "session", AMP_OPT_STRING, &session, "ID", .doc = "only the messages of this session"},
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", .doc = "only messages and actions of this agent",
     .values = "agent"},
    {0, "id", AMP_OPT_STRING, &id, "ID", .doc = "only this message", .values = "message"},
    {0, "since", AMP_OPT_STRING, &since, "TIME",
     .doc = "only from TIME on: RFC 3339 or an age (90s, 2h)"},
    {0, "format", AMP_OPT_CHOICE, &format, "FORMAT",
     .doc = "how to write it (default: text on a terminal, else ndjson)", .choices = formats},
    {0, "limit", AMP_OPT_INT, &limit, "N",
     .doc = "most entries of a drawing (default: 2000 for mermaid, else 20000)", .min = 1,
     .max = 1000000},
    AMP_OPT_END,
};

struct reading {
    struct amp_store *store;
    enum form form;
    struct amp_history_finder *finder;
    struct amp_diagram *diagram; /* MERMAID */
    struct amp_drawing *drawing; /* the other drawings */
    struct log_text lines;
    struct amp_buf text;
};

static int row_fn(void *ctx, const struct amp_history_row *r, struct amp_error *err)
{
    struct reading *rd = ctx;
    int rc = 0;
    amp_buf_reset(&rd->text);
    switch (rd->form) {
    case TEXT:
        rc = log_text_row(&rd->lines, r, &rd->text, err);
        break;
    case NDJSON:
        rc = amp_history_json(r, &rd->text, err);
        break;
    case SW4RM:
        rc = amp_history_log_event(r, &rd->text, err);
        break;
    case MERMAID:
        return amp_diagram_row(rd->diagram, r, err);
    case DOT:
    case SVG:
    case HTML:
    case OTLP:
        return amp_drawing_row(rd->drawing, r, err);
    }
    return rc == 0 && rd->text.len > 0 ? amp_out(amp_buf_span(&rd->text), err) : rc;
}

static int frames_read(struct reading *rd, struct amp_error *err)
{
    if (amp_history_finder_read(rd->finder, row_fn, rd, err) < 0)
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

/* What the drawing is about. */
static int title_make(struct amp_buf *out, struct amp_error *err)
{
    const char *of = task ? task : correlation ? correlation : session ? session : id;
    return amp_buf_fmt(out, err, "%s%s%s%s%s", of ? "History of " : "History of the messages",
                       of ? of : "", agent ? " · agent " : "", agent ? agent : "",
                       since ? " · recent" : "");
}

static int drawing_write(struct reading *rd, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf title = {0};
    bool conversation = task || correlation || session || id;
    amp_buf_init(&title, 1 << 20);
    if (title_make(&title, err) < 0)
        return -1;
    switch (rd->form) {
    case MERMAID:
        return amp_diagram_write(rd->diagram, out, err);
    case DOT:
        return amp_drawing_dot(rd->drawing, out, err);
    case SVG:
        return amp_drawing_svg(rd->drawing, conversation, amp_buf_span(&title), out, err);
    case HTML:
        return amp_drawing_html(rd->drawing, conversation, amp_buf_span(&title), out, err);
    default:
        return amp_drawing_otlp(rd->drawing, out, err);
    }
}

static int log_print(struct reading *rd, struct amp_error *err)
{
    int rc = follow ? frames_follow(rd, err) : frames_read(rd, err);
    if (rc == 0 && amp_stop)
        rc = amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
    if (rc < 0 || (!rd->diagram && !rd->drawing))
        return rc;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)512 << 20);
    if (drawing_write(rd, &text, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&text), err);
}

static enum form form_chosen(void)
{
    int i = 0;
    if (!format)
        return isatty(STDOUT_FILENO) ? TEXT : NDJSON;
    while (strcmp(formats[i], format) != 0)
        i++;
    return (enum form)i;
}

static int reading_open(struct reading *rd, struct amp_error *err)
{
    struct amp_history_filter f = {.correlation = amp_span_str(task ? task : correlation),
                                   .session = amp_span_str(session),
                                   .agent = amp_span_str(agent),
                                   .id = amp_span_str(id)};
    bool draws = rd->form != TEXT && rd->form != NDJSON && rd->form != SW4RM;
    log_text_init(&rd->lines, all);
    if (ack_since(since, &f.since_ms, err) < 0)
        return -1;
    if (rd->form == MERMAID && !(rd->diagram = amp_diagram_new((uint32_t)limit, err)))
        return -1;
    if (draws && rd->form != MERMAID && !(rd->drawing = amp_drawing_new((uint32_t)limit, err)))
        return -1;
    return amp_history_finder_open(rd->store, &f, &amp_stop, &rd->finder, err);
}

int ack_log(int argc, char **argv)
{
    int status;
    int64_t ms;
    struct amp_error err = {0};
    struct reading rd = {.form = form_chosen()};
    if (follow && rd.form != TEXT && rd.form != NDJSON && rd.form != SW4RM)
        amp_die_usage("a drawing is made at the end: --follow and --format %s exclude each other",
                      format);
    if (task && correlation)
        amp_die_usage("--task and --correlation exclude each other");
    if (ack_since(since, &ms, &err) < 0)
        return amp_complain(&err);
    amp_signals_install();
    ACK_STATE *s = rd.store = ack_open_state(ACK_LOOK, &status);
    if (!s)
        return status;
    amp_buf_init(&rd.text, (size_t)64 << 20);
    if (reading_open(&rd, &err) < 0 || log_print(&rd, &err) < 0)
        status = amp_complain(&err);
    amp_drawing_free(rd.drawing);
    amp_diagram_free(rd.diagram);
    amp_history_finder_free(rd.finder);
    amp_buf_release(&rd.text);
    return status;
}
