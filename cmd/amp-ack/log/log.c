/* amp-ack log: the history in the log, as lines for people or as records. Programs in share/draw
 * make drawings of the records. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "../pass.h"
#include "base/codes.h"
#include "cli/cli.h"
#include "cli/page/page.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/history/find.h"
#include "message/delivery/record/record.h"
#include "message/store/wake.h"
#include "people/question/escalation.h"
#include "people/story/story.h"
#include "work/agent/record.h"
#include "work/git/binding.h"
#include "work/git/hooks.h"
#include "work/task/record.h"

/* ---- a row as a line for people: local time, fixed columns, colour by kind ---- */

struct log_text {
    int columns; /* 0: no limit */
    bool color;
    char day[16]; /* of the last line, "2026-11-23" */
};

static void text_init(struct log_text *t)
{
    *t = (struct log_text){.columns = amp_page_columns(STDOUT_FILENO),
                           .color = amp_color_of(STDOUT_FILENO)};
}

/* True for rows that only the tools need: closed entries, records about the log, sources and
 * routers, changes without a new state, stages that another one implies. */
static bool is_bookkeeping(const struct amp_history_row *r)
{
    static const char *const kinds[] = {
        "log", "route", "cursor", "sequence",   "nonce",    "token",  "inboxes", "awaited",
        "job", "told",  "base",   "capability", "task_ids", "outbox", "spent",   NULL};
    if (r->what == AMP_HISTORY_LEFT || r->implied)
        return true;
    if (amp_span_is(r->kind, "log") &&
        (amp_span_is(r->event, "repair") || amp_span_is(r->event, "cut")))
        return false;
    for (int i = 0; kinds[i]; i++)
        if (amp_span_is(r->kind, kinds[i]))
            return true;
    if (r->what == AMP_HISTORY_EMIT) /* the message has lines of its own */
        return amp_span_is(r->kind, AMP_MESSAGE_KIND) || r->agent.n > 0; /* or an inbox */
    return amp_span_eq(r->from, r->to) && r->from.n && !r->late;
}

static const char *color_of(const struct amp_history_row *r)
{
    if (amp_span_is(r->kind, AMP_DEAD_KIND) || amp_span_is(r->kind, "refused") ||
        amp_span_is(r->to, "FAILED") || amp_span_is(r->to, "REJECTED"))
        return "\033[31m";
    if (amp_span_is(r->kind, AMP_ESCALATION_KIND) || amp_span_is(r->kind, AMP_OVERRIDE) ||
        r->late || amp_span_is(r->to, "TIMED_OUT"))
        return "\033[33m";
    if (amp_span_is(r->kind, AMP_TASK_KIND))
        return "\033[36m";
    if (amp_span_is(r->kind, AMP_AGENT_KIND) || amp_span_is(r->kind, AMP_BINDING_KIND))
        return "\033[34m";
    if (amp_span_starts(r->event, "ack_") || r->what == AMP_HISTORY_EMIT)
        return "\033[2m";
    return "";
}

/* Appends text in exactly `width` columns and two blanks. */
static int cell_add(struct amp_buf *out, struct amp_span text, int width, struct amp_error *err)
{
    int used = 0;
    for (size_t i = 0; i < text.n && used <= width;) {
        char piece[AMP_TEXT_PIECE];
        int columns = 0;
        i += amp_text_piece((struct amp_span){text.p + i, text.n - i}, piece, &columns);
        used += columns;
    }
    if (amp_text_safe(text, width, out, err) < 0)
        return -1;
    return amp_buf_fmt(out, err, "%*s", (used < width ? width - used : 0) + 2, "");
}

static int joined(struct amp_buf *b, struct amp_span a, const char *by, struct amp_span c,
                  struct amp_error *err)
{
    if (amp_buf_add(b, a.p, a.n, err) < 0 || (a.n && c.n && amp_buf_str(b, by, err) < 0))
        return -1;
    return amp_buf_add(b, c.p, c.n, err);
}

/* Adds the two ends of a message, else the actor. */
static int who_add(const struct amp_history_row *r, int width, struct amp_buf *out,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 1 << 16);
    bool message = amp_span_is(r->kind, AMP_MESSAGE_KIND) && !r->by.n;
    if (message || r->what == AMP_HISTORY_EMIT
            ? joined(&b, r->sender.n ? r->sender : r->actor, " → ", r->recipient, err) < 0
            : joined(&b,
                     r->by.n      ? r->by
                     : r->agent.n ? r->agent
                                  : r->actor,
                     "", (struct amp_span){"", 0}, err) < 0)
        return -1;
    return cell_add(out, amp_buf_span(&b), width, err);
}

static int state_add(const struct amp_history_row *r, int width, struct amp_buf *out,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 1 << 16);
    if (joined(&b, r->from, " → ", r->to, err) < 0 ||
        (r->late && amp_buf_str(&b, " (late)", err) < 0))
        return -1;
    return cell_add(out, amp_buf_span(&b), width, err);
}

/* The rest of the line: type or code, task, id, as far as there is room. */
static int rest_add(const struct amp_history_row *r, int room, struct amp_buf *out,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    const struct amp_span words[] = {r->type,
                                     r->code,
                                     r->why,
                                     r->decision,
                                     amp_span_is(r->kind, AMP_TASK_KIND) ? (struct amp_span){"", 0}
                                                                         : r->task,
                                     r->id};
    amp_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].n && ((b.len && amp_buf_str(&b, "  ", err) < 0) ||
                           amp_buf_add(&b, words[i].p, words[i].n, err) < 0))
            return -1;
    return amp_text_safe(amp_buf_span(&b), room, out, err);
}

static int day_add(struct log_text *t, const struct tm *tm, struct amp_buf *out,
                   struct amp_error *err)
{
    char day[16];
    if (!strftime(day, sizeof day, "%Y-%m-%d", tm) || strcmp(day, t->day) == 0)
        return 0;
    memcpy(t->day, day, sizeof day);
    return amp_buf_fmt(out, err, "%s%s%s\n", t->color ? "\033[1m" : "", day,
                       t->color ? "\033[0m" : "");
}

/* Appends a line, and before the first one of a day the day. */
static int row_text(struct log_text *t, const struct amp_history_row *r, struct amp_buf *out,
                    struct amp_error *err)
{
    int64_t ms = 0;
    struct tm tm;
    char clock[16] = "--:--:--";
    const char *color = t->color ? color_of(r) : "";
    if (amp_time_parse(r->at, &ms)) {
        time_t s = (time_t)(ms / 1000);
        if (localtime_r(&s, &tm) &&
            (day_add(t, &tm, out, err) < 0 || !strftime(clock, sizeof clock, "%H:%M:%S", &tm)))
            return -1;
    }
    int columns = t->columns, who = 24, event = 22, state = 24;
    if (columns && columns < 110) {
        who = 18;
        event = 16;
        state = 16;
    }
    if (columns && columns < 80) {
        who = 14;
        event = 12;
        state = 0;
    }
    int rest = columns ? columns - 10 - who - 2 - event - 2 - (state ? state + 2 : 0) : 0;
    AMP_BUF struct amp_buf what = {0};
    amp_buf_init(&what, 1 << 16);
    if (joined(&what, r->kind, " ", r->what == AMP_HISTORY_EMIT ? AMP_SPAN("emit") : r->event,
               err) < 0 ||
        amp_buf_fmt(out, err, "%s%s  ", color, clock) < 0 || who_add(r, who, out, err) < 0 ||
        cell_add(out, amp_buf_span(&what), event, err) < 0 ||
        (state && state_add(r, state, out, err) < 0) ||
        (columns && rest < 4 ? 0 : rest_add(r, rest, out, err)) < 0)
        return -1;
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    return amp_buf_fmt(out, err, "%s\n", *color ? "\033[0m" : "");
}

/* ---- the verb ---- */

#define DAYS_MS ((int64_t)100 * 365 * 24 * 3600 * 1000)
#define LOOK_MS 100

static const char *correlation, *task, *session, *agent, *id, *since, *format;
static bool follow, all, messages;
static int64_t limit;

static const char *const formats[] = {"text", "ndjson", "sw4rm", NULL};
/* In the order of formats[]. */
enum form { TEXT, NDJSON, SW4RM };

static const struct amp_opt log_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "continue with new entries until a signal"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "as text, also the tools' bookkeeping"},
    {'m', "messages", AMP_OPT_FLAG, &messages, NULL,
     .doc = "as ndjson, also each message itself, where it was recorded"},
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
    {0, "limit", AMP_OPT_INT, &limit, "N", .doc = "only the newest N entries", .min = 1,
     .max = 1000000},
    AMP_OPT_END,
};

struct reading {
    struct amp_store *store;
    bool any;      /* a row was read */
    bool counts;   /* rows are only counted */
    int64_t rows;  /* that were counted, or that are not printed because they are too old */
    int64_t print; /* rows that may still be printed; -1: all */
    enum form form;
    struct amp_history_finder *finder;
    struct log_text lines;
    struct amp_buf text;
};

static int row_fn(void *ctx, const struct amp_history_row *r, struct amp_error *err)
{
    struct reading *rd = ctx;
    int rc = 0;
    rd->any = true;
    if (rd->form == TEXT && !all && is_bookkeeping(r))
        return 0;
    if (rd->counts)
        return rd->rows++, 0;
    if (rd->rows > 0)
        return rd->rows--, 0;
    if (rd->print == 0)
        return 1;
    rd->print -= rd->print > 0;
    amp_buf_reset(&rd->text);
    switch (rd->form) {
    case TEXT:
        rc = row_text(&rd->lines, r, &rd->text, err);
        break;
    case NDJSON:
        rc = amp_history_json(r, &rd->text, err);
        break;
    case SW4RM:
        rc = amp_history_log_event(r, &rd->text, err);
        break;
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
            rc = amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
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
        return amp_fail(err, AMP_USAGE, bad_time,
                        "--since takes an RFC 3339 time with an offset, or a duration");
    *ms = amp_now_ms() - ago;
    return 0;
}

static int log_print(struct reading *rd, struct amp_error *err)
{
    int rc = follow ? frames_follow(rd, err) : frames_read(rd, err);
    if (rc == 0 && amp_stop)
        rc = amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    return rc;
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

/* A task may be named by its number, as with task-dispatch; other names are as in the log, which
 * may have tasks of others. */
static int task_find(struct amp_store *s, struct amp_error *err)
{
    static char found[AMP_TASK_ID_MAX];
    struct amp_error why;
    if (!task)
        return 0;
    if (amp_story_find(s, task, found, &why) == 0)
        task = found;
    else if (why.status != AMP_NO)
        return (*err = why, -1);
    return 0;
}

/* Silence would look like a log without the message. */
static void nothing_say(const struct reading *rd)
{
    const char *of = task ? task : correlation ? correlation : session ? session : id ? id : agent;
    if (!rd->any && of && !follow)
        amp_note("the log has nothing about %s%s", of, since ? " in that time" : "");
}

static int finder_open(struct reading *rd, const struct amp_store_place *at, struct amp_error *err)
{
    struct amp_history_filter f = {.correlation = amp_span_str(task ? task : correlation),
                                   .session = amp_span_str(session),
                                   .agent = amp_span_str(agent),
                                   .id = amp_span_str(id),
                                   .messages = messages};
    amp_history_finder_free(rd->finder);
    rd->finder = NULL;
    if (ack_since(since, &f.since_ms, err) < 0 ||
        amp_history_finder_open(rd->store, &f, &amp_stop, &rd->finder, err) < 0)
        return -1;
    if (at)
        amp_history_finder_begin(rd->finder, at);
    return 0;
}

/* Opens the finder so that `limit` rows are printed. The rows are counted first, so the memory does
 * not depend on them; without a filter only near the end of the log, as far as necessary. */
static int newest_open(struct reading *rd, struct amp_error *err)
{
    bool near = !task && !correlation && !session && !agent && !id && !since;
    struct amp_store_place at;
    uint64_t after = 0;
    rd->counts = true;
    for (uint64_t most = 4 * (uint64_t)limit;; most *= 4) {
        rd->rows = 0;
        if ((near && amp_store_place_near_end(rd->store, most, &at, &after, err) < 0) ||
            finder_open(rd, near ? &at : NULL, err) < 0 ||
            amp_history_finder_read(rd->finder, row_fn, rd, err) < 0)
            return -1;
        if (after == 0 || rd->rows >= limit || amp_stop)
            break;
    }
    rd->counts = false;
    rd->rows = rd->rows > limit ? rd->rows - limit : 0;
    rd->print = follow ? -1 : limit;
    return finder_open(rd, near ? &at : NULL, err);
}

static int reading_open(struct reading *rd, struct amp_error *err)
{
    rd->print = -1;
    text_init(&rd->lines);
    if (task_find(rd->store, err) < 0)
        return -1;
    return limit ? newest_open(rd, err) : finder_open(rd, NULL, err);
}

static int log_check(struct amp_command *c, struct amp_error *err)
{
    int64_t ms;
    (void)c;
    if (task && correlation)
        amp_die_usage("--task and --correlation exclude each other");
    return ack_since(since, &ms, err);
}

static int ack_log(struct amp_command *c, struct amp_error *err)
{
    struct reading rd = {
        .store = c->store, .form = form_chosen(), .text = {.max = (size_t)64 << 20}};
    int rc = reading_open(&rd, err);
    if (rc == 0)
        rc = log_print(&rd, err);
    if (rc == 0)
        nothing_say(&rd);
    amp_history_finder_free(rd.finder);
    amp_buf_release(&rd.text);
    return rc;
}

const struct amp_verb log_verbs[] = {
    {"log", "", "show what happened to messages", log_opts, ack_log, .check = log_check,
     .opens = AMP_OPENS_LOOK, .signals = true, .finds_state = true,
     .operand_hint = "--task TASK or --id ID selects"},
    {0},
};
