/* A row as a line for people: local time, fixed columns, colour by kind. */
#include "log.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "agent/record.h"
#include "cli/cli.h"
#include "cli/page/page.h"
#include "hitl/escalation.h"
#include "message/dead/dead.h"
#include "message/record/record.h"
#include "task/record.h"
#include "worktree/binding.h"
#include "worktree/hooks.h"

void log_text_init(struct log_text *t, bool all)
{
    *t = (struct log_text){.columns = amp_page_columns(STDOUT_FILENO),
                           .color = amp_color_of(STDOUT_FILENO),
                           .all = all};
}

/* What only the tools need: closed entries, records about the log, sources and routers, changes
 * without a new state, stages that another one implies. */
static bool is_bookkeeping(const struct amp_history_row *r)
{
    static const char *const kinds[] = {"log",   "route",      "cursor",   "sequence", "nonce",
                                        "token", "inboxes",    "awaited",  "job",      "told",
                                        "base",  "capability", "task_ids", "outbox",   NULL};
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

/* Who: the two ends of a message, else the actor. */
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

int log_text_row(struct log_text *t, const struct amp_history_row *r, struct amp_buf *out,
                 struct amp_error *err)
{
    int64_t ms = 0;
    struct tm tm;
    char clock[16] = "--:--:--";
    if (!t->all && is_bookkeeping(r))
        return 0;
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
