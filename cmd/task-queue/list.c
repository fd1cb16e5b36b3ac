/* task-queue list, show: the jobs at work, those that wait, in their order, and those that ended.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/list.h"
#include "cli/time.h"
#include "desk.h"
#include "message/delivery/record/record.h"
#include "shared/work/tool.h"
#include "work/item/judge/conflict.h"
#include "json/record.h"

#define LINE_MAX_BYTES (1u << 20)

static const char *state_of, *type;
static bool all, json;

static const char *const states[] = {"QUEUED", "CLAIMED", "RUNNING",   "PREEMPTING", "PARKED",
                                     "DONE",   "FAILED",  "CANCELLED", NULL};

static const struct amp_opt queue_list_opts[] = {
    {'a', "all", AMP_OPT_FLAG, &all, NULL, "also jobs that have ended"},
    {0, "state-of", AMP_OPT_CHOICE, &state_of, "STATE", "only jobs in this state",
     .choices = states},
    {0, "type", AMP_OPT_STRING, &type, "TYPE", "only jobs for this type of agents"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object per job, also ended ones"},
    AMP_OPT_END,
};

struct listing {
    struct queue_desk desk;
    struct amp_table table;
    struct amp_buf line, mem;
    int64_t now_ms;
    size_t n;
};

static bool is_wanted(const struct amp_queue_job *j)
{
    return (!state_of || strcmp(state_of, amp_queue_fsm.states[j->state].name) == 0) &&
           (!type || amp_span_is(j->type, type));
}

static const char *state_word(int state)
{
    return amp_queue_fsm.states[state].name;
}

#define EVER(form, key, member) AMP_COLUMN_EVER(form, struct amp_queue_job, key, NULL, member)
#define SOME(form, key, member) AMP_COLUMN(form, struct amp_queue_job, key, NULL, member)
static const struct amp_column columns[] = {
    AMP_COLUMN_WORD(struct amp_queue_job, "state", NULL, state, state_word),
    EVER(TEXT, "id", id),
    EVER(TEXT, "type", type),
    EVER(TEXT, "protocol", protocol),
    EVER(TEXT, "message", message),
    SOME(TEXT, "from", from),
    SOME(TEXT, "by", by),
    SOME(TEXT, "task", task),
    EVER(INT, "priority", priority),
    SOME(TEXT, "scope", scope),
    SOME(TEXT, AMP_CODE(follows), follows),
    SOME(TEXT, "on_failed", on_failed),
    SOME(TEXT, "worker", worker),
    SOME(TEXT, "session", session),
    SOME(TEXT, "asked_by", asked_by),
    SOME(TEXT, "cancelled_by", cancelled_by),
    EVER(INT, "attempts", attempts),
    SOME(INT, "losses", losses),
    EVER(INT, "runs", runs),
    SOME(INT, "tokens_in", tokens_in),
    SOME(INT, "tokens_out", tokens_out),
    SOME(INT, "cost_micros", micros),
    SOME(TEXT, "code", code),
    SOME(TEXT, "reason", reason),
    SOME(TIME, "submitted", submitted_ms),
    SOME(TIME, "claimed", claimed_ms),
    SOME(TIME, "started", started_ms),
    SOME(TIME, "deadline", deadline_ms),
    SOME(TIME, "ended", ended_ms),
    {0},
};

/* p: NULL for a job that does not wait. */
static int json_print(struct listing *l, const struct amp_queue_job *j,
                      const struct amp_order_place *p, struct amp_error *err)
{
    struct amp_jw w;

    amp_buf_reset(&l->line);
    amp_jw_init(&w, &l->line);
    amp_jw_open(&w, '{');
    amp_view_members(columns, j, &w);
    if (p) {
        amp_jw_member_int(&w, "effective", p->effective);
        amp_jw_some_int(&w, "position", (int64_t)p->position);
        amp_jw_member_text(&w, "waits", amp_waits_name(queue_desk_waits(&l->desk, j->type, p)));
        amp_jw_some_str(&w, "behind", p->behind);
        amp_jw_member_int(&w, "age_ms", l->now_ms - j->submitted_ms);
    }
    amp_rec_time(&w, "until", p && p->until_ms ? p->until_ms : j->until_ms);
    if (amp_conflict_members(&w, l->desk.store, j->id, err) < 0)
        return -1;
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&l->line), err);
}

static int row_print(struct listing *l, const struct amp_queue_job *j,
                     const struct amp_order_place *p, struct amp_error *err)
{
    char place[24] = "", level[24], age[AMP_AGE_MAX], waits[64] = "", until[AMP_TIME_MAX] = "";

    if (p && p->position)
        snprintf(place, sizeof place, "%llu", (unsigned long long)p->position);
    if (p && p->effective != j->priority)
        snprintf(level, sizeof level, "%lld (%lld)", (long long)j->priority,
                 (long long)p->effective);
    else
        snprintf(level, sizeof level, "%lld", (long long)j->priority);
    if (p && p->until_ms)
        amp_time_format(p->until_ms, until);
    if (p)
        snprintf(waits, sizeof waits, "%s%s%.16s%s",
                 amp_waits_name(queue_desk_waits(&l->desk, j->type, p)), *until ? " until " : "",
                 until, *until ? "Z" : "");
    int64_t since = j->ended_ms ? j->ended_ms : j->submitted_ms;
    const struct amp_span cells[] = {
        {j->id.p, j->id.n < 12 ? j->id.n : 12},
        amp_span_str(amp_queue_fsm.states[j->state].name),
        j->type,
        amp_span_str(level),
        amp_span_str(place),
        p ? amp_span_str(waits) : j->code,
        amp_age_text(l->now_ms - since, age),
        j->worker,
        j->task.n ? j->task : j->message,
    };
    return amp_table_row(&l->table, cells, sizeof cells / sizeof *cells, err);
}

static int job_print(struct listing *l, const struct amp_queue_job *j,
                     const struct amp_order_place *p, struct amp_error *err)
{
    if (!is_wanted(j))
        return 0;
    l->n++;
    return json ? json_print(l, j, p, err) : row_print(l, j, p, err);
}

static int job_each(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *j = rec;
    return job_print(ctx, j, NULL, err);
}

static int place_each(void *ctx, struct amp_span id, const struct amp_order_place *p,
                      struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_queue_job j;
    int found = amp_queue_read(l->desk.store, id, &l->mem, &j, err);

    if (found < 0)
        return -1;
    bool waits = found && (j.state == AMP_QUEUE_QUEUED || j.state == AMP_QUEUE_PARKED);
    return waits ? job_print(l, &j, p, err) : 0;
}

static int states_print(struct listing *l, int first, int last, struct amp_error *err)
{
    for (int s = first; s <= last; s++)
        if (amp_subject_each(&amp_queue_subject, l->desk.store, amp_queue_fsm.states[s].name,
                             job_each, l, err) < 0)
            return -1;
    return 0;
}

static int listing_open(struct listing *l, struct amp_store *s, struct amp_error *err)
{
    amp_buf_init(&l->line, LINE_MAX_BYTES);
    amp_buf_init(&l->mem, LINE_MAX_BYTES);
    return queue_desk_open(&l->desk, s, err);
}

static void listing_close(struct listing *l)
{
    queue_desk_close(&l->desk);
    amp_buf_release(&l->line);
    amp_buf_release(&l->mem);
}

static int jobs_print(struct listing *l, struct amp_error *err)
{
    if (states_print(l, AMP_QUEUE_CLAIMED, AMP_QUEUE_PREEMPTING, err) < 0 ||
        amp_order_each(l->desk.order, l->now_ms, place_each, l, err) < 0)
        return -1;
    return all || json || state_of ? states_print(l, AMP_QUEUE_DONE, AMP_QUEUE_CANCELLED, err) : 0;
}

/* Why conflicts are not judged. */
static int notice_print(struct listing *l, struct amp_error *err)
{
    char text[400];

    if (amp_conflict_notice(l->desk.store, text, sizeof text, err) < 0)
        return -1;
    if (*text)
        amp_note("%s", text);
    return 0;
}

static int queue_list(struct amp_command *c, struct amp_error *err)
{
    static const char *const head[] = {"JOB",   "STATE", "TYPE",   "PRIORITY", "PLACE",
                                       "WAITS", "AGE",   "WORKER", "WORK"};
    struct listing l = {.now_ms = amp_now_ms()};

    amp_table_init(&l.table, head, sizeof head / sizeof *head);
    l.table.fit = amp_page_columns(STDOUT_FILENO);
    int rc =
        listing_open(&l, c->store, err) < 0 || notice_print(&l, err) < 0 ? -1 : jobs_print(&l, err);
    if (rc == 0 && !json && l.n)
        rc = amp_table_print(&l.table, err);
    else if (rc == 0 && !json)
        amp_note("no %sjobs in %s%s", all || state_of || type ? "such " : "open ", c->state,
                 all || state_of ? "" : " (--all also lists those that have ended)");
    amp_table_release(&l.table);
    listing_close(&l);
    return rc;
}

/* ---- one job ---- */

static const struct amp_opt queue_show_opts[] = {AMP_OPT_END};

/* The message that asked for the job, from the ledger. */
static int message_print(struct listing *l, struct amp_span id, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_message_rec rec;

    if (amp_message_find(l->desk.store, id, &mem, &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return amp_out(rec.line, err) < 0 ? -1 : amp_out(AMP_SPAN("\n"), err);
}

static int show_print(struct listing *l, const char *id, struct amp_error *err)
{
    AMP_BUF struct amp_buf message = {.max = LINE_MAX_BYTES};
    struct amp_order_place place;
    struct amp_queue_job j;
    int found = amp_queue_read(l->desk.store, amp_span_str(id), &l->mem, &j, err);

    if (found == 0)
        return amp_fail(err, AMP_NO, unknown_job, "no job has the id %s", id);
    int waits = found < 0 ? -1 : amp_order_place(l->desk.order, j.id, l->now_ms, &place, err);
    return waits < 0 || amp_buf_add(&message, j.message.p, j.message.n, err) < 0 ||
                   json_print(l, &j, waits ? &place : NULL, err) < 0
               ? -1
               : message_print(l, amp_buf_span(&message), err);
}

static int queue_show(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.now_ms = amp_now_ms()};

    int rc = listing_open(&l, c->store, err);
    for (int i = 0; i < c->argc && rc == 0; i++)
        rc = show_print(&l, c->argv[i], err);
    listing_close(&l);
    return rc;
}

const struct amp_verb queue_list_verbs[] = {
    {"list", "", "list the jobs of the queue", queue_list_opts, queue_list, .opens = AMP_OPENS_READ,
     .finds_state = true},
    {"show", "JOB…", "print jobs and the messages that asked for them", queue_show_opts, queue_show,
     .opens = AMP_OPENS_READ, .least = 1,
     .usage = "no job: give its id (task-queue list --json shows them)", .finds_state = true,
     .values = "job"},
    {0},
};
