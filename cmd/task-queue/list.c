/* task-queue list, show: the jobs at work, those that wait, in their order, and those that ended.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "cli/list.h"
#include "desk.h"
#include "message/delivery/record/record.h"
#include "shared/work/tool.h"
#include "work/item/judge/conflict.h"

#define LINE_MAX_BYTES (1u << 20)

static const char *state_of, *type;
static bool all;

static const char *const states[] = {"QUEUED", "CLAIMED", "RUNNING",   "PREEMPTING", "PARKED",
                                     "DONE",   "FAILED",  "CANCELLED", NULL};

static const struct amp_opt queue_list_opts[] = {
    {'a', "all", AMP_OPT_FLAG, &all, NULL, "also jobs that have ended"},
    {0, "state-of", AMP_OPT_CHOICE, &state_of, "STATE", "only jobs in this state",
     .choices = states},
    {0, "type", AMP_OPT_STRING, &type, "TYPE", "only jobs for this type of agents"},
    AMP_OPT_JSON("print one JSON object per job, also ended ones"),
    AMP_OPT_END,
};

struct row {
    struct amp_queue_job j;
    struct amp_store *store; /* NULL: no job has conflicts or permits */
    struct amp_span work;
    int64_t since_ms; /* of its end or its submission */
    char level[48];
    /* Only a job that waits has these. */
    const char *waits;
    struct amp_span behind, effective;
    int64_t place, age_ms, until_ms;
    char why[64], number[24];
};

struct listing {
    struct queue_desk desk;
    struct amp_listing *list;
    struct amp_buf mem;
    bool conflicts; /* there are some, or permits */
};

static bool is_wanted(const struct amp_queue_job *j)
{
    return (!state_of || strcmp(state_of, amp_queue_fsm.states[j->state].name) == 0) &&
           (!type || amp_span_is(j->type, type));
}

/* The members conflicts and overrides. */
static void conflicts_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct row *r = row;

    (void)key;
    if (r->store && amp_conflict_members(w, r->store, r->j.id, &w->err) < 0)
        w->failed = true;
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct row, key, head, member)
static const struct amp_column columns[] = {
    EVER(ID, NULL, "JOB", j.id),
    AMP_COLUMN_STATE(struct row, "state", "STATE", j.state, &amp_queue_fsm),
    EVER(TEXT, "id", NULL, j.id),
    EVER(TEXT, "type", "TYPE", j.type),
    EVER(TEXT, "protocol", NULL, j.protocol),
    EVER(TEXT, "message", NULL, j.message),
    SOME(TEXT, "from", NULL, j.from),
    SOME(TEXT, "by", NULL, j.by),
    SOME(TEXT, "task", NULL, j.task),
    EVER(INT, "priority", NULL, j.priority),
    SOME(CHARS, NULL, "PRIORITY", level),
    SOME(RAW, "effective", NULL, effective),
    SOME(INT, "position", "PLACE", place),
    SOME(CSTR, "waits", NULL, waits),
    SOME(CHARS, NULL, "WAITS", why),
    SOME(TEXT, "behind", NULL, behind),
    SOME(COUNT, "age_ms", NULL, age_ms),
    SOME(AGE, NULL, "AGE", since_ms),
    SOME(TEXT, "scope", NULL, j.scope),
    SOME(TEXT, AMP_CODE(follows), NULL, j.follows),
    SOME(TEXT, "on_failed", NULL, j.on_failed),
    SOME(TEXT, "worker", "WORKER", j.worker),
    SOME(TEXT, NULL, "WORK", work),
    SOME(TEXT, "session", NULL, j.session),
    SOME(TEXT, "asked_by", NULL, j.asked_by),
    SOME(TEXT, "cancelled_by", NULL, j.cancelled_by),
    EVER(INT, "attempts", NULL, j.attempts),
    SOME(INT, "losses", NULL, j.losses),
    EVER(INT, "runs", NULL, j.runs),
    SOME(INT, "tokens_in", NULL, j.tokens_in),
    SOME(INT, "tokens_out", NULL, j.tokens_out),
    SOME(INT, "cost_micros", NULL, j.micros),
    SOME(TEXT, "code", NULL, j.code),
    SOME(TEXT, "reason", NULL, j.reason),
    EVER(TIME, "submitted", NULL, j.submitted_ms),
    SOME(TIME, "claimed", NULL, j.claimed_ms),
    SOME(TIME, "started", NULL, j.started_ms),
    SOME(TIME, "deadline", NULL, j.deadline_ms),
    SOME(TIME, "ended", NULL, j.ended_ms),
    SOME(TIME, "until", NULL, until_ms),
    AMP_COLUMN_PUT("conflicts", conflicts_put),
    {0},
};

/* Writes what a job waits for into out. */
static void place_note(const struct listing *l, const struct amp_order_place *p, struct row *out)
{
    const size_t n = strlen(out->level);
    char until[AMP_TIME_MAX] = "";

    out->waits = amp_waits_name(queue_desk_waits(&l->desk, out->j.type, p));
    out->behind = p->behind;
    out->place = (int64_t)p->position;
    out->age_ms = l->list->now_ms - out->j.submitted_ms;
    if (p->until_ms) {
        out->until_ms = p->until_ms;
        amp_time_format(p->until_ms, until);
    }
    snprintf(out->why, sizeof out->why, "%s%s%.16s%s", out->waits, *until ? " until " : "", until,
             *until ? "Z" : "");
    snprintf(out->number, sizeof out->number, "%lld", (long long)p->effective);
    out->effective = amp_span_str(out->number);
    if (p->effective != out->j.priority)
        snprintf(out->level + n, sizeof out->level - n, " (%s)", out->number);
}

/* p: NULL for a job that does not wait. */
static int job_print(struct listing *l, const struct amp_queue_job *j,
                     const struct amp_order_place *p, struct amp_error *err)
{
    struct row row = {.j = *j,
                      .store = l->conflicts ? l->desk.store : NULL,
                      .work = j->task.n ? j->task : j->message,
                      .since_ms = j->ended_ms ? j->ended_ms : j->submitted_ms,
                      .age_ms = -1,
                      .until_ms = j->until_ms};

    amp_span_copy(j->code, row.why, sizeof row.why);
    snprintf(row.level, sizeof row.level, "%lld", (long long)j->priority);
    if (p)
        place_note(l, p, &row);
    return amp_listing_row(l->list, &row, err);
}

static int job_each(void *ctx, const void *rec, struct amp_error *err)
{
    return is_wanted(rec) ? job_print(ctx, rec, NULL, err) : 0;
}

static int place_each(void *ctx, struct amp_span id, const struct amp_order_place *p,
                      struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_queue_job j;
    int found = amp_queue_read(l->desk.store, id, &l->mem, &j, err);

    if (found < 0)
        return -1;
    bool waits =
        found && (j.state == AMP_QUEUE_QUEUED || j.state == AMP_QUEUE_PARKED) && is_wanted(&j);
    return waits ? job_print(l, &j, p, err) : 0;
}

static int states_print(struct listing *l, int first, int last, struct amp_error *err)
{
    for (int s = first; s <= last; s++)
        if (amp_queue_each(l->desk.store, amp_queue_fsm.states[s].name, job_each, l, err) < 0)
            return -1;
    return 0;
}

static int listing_open(struct listing *l, struct amp_store *s, struct amp_error *err)
{
    amp_buf_init(&l->mem, LINE_MAX_BYTES);
    return queue_desk_open(&l->desk, s, err) < 0 || amp_conflict_any(s, &l->conflicts, err) < 0 ? -1
                                                                                                : 0;
}

static void listing_close(struct listing *l)
{
    queue_desk_close(&l->desk);
    amp_buf_release(&l->mem);
}

static int jobs_print(struct listing *l, struct amp_error *err)
{
    if (states_print(l, AMP_QUEUE_CLAIMED, AMP_QUEUE_PREEMPTING, err) < 0 ||
        amp_order_each(l->desk.order, l->list->now_ms, place_each, l, err) < 0)
        return -1;
    return all || amp_listing_json || state_of
               ? states_print(l, AMP_QUEUE_DONE, AMP_QUEUE_CANCELLED, err)
               : 0;
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
    struct listing l = {.list = c->list};

    int rc =
        listing_open(&l, c->store, err) < 0 || notice_print(&l, err) < 0 ? -1 : jobs_print(&l, err);
    if (rc == 0 && !amp_listing_json && !c->list->rows)
        amp_note("no %sjobs in %s%s", all || state_of || type ? "such " : "open ", c->state,
                 all || state_of ? "" : " (--all also lists those that have ended)");
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
    int waits = found < 0 ? -1 : amp_order_place(l->desk.order, j.id, l->list->now_ms, &place, err);
    return waits < 0 || amp_buf_add(&message, j.message.p, j.message.n, err) < 0 ||
                   job_print(l, &j, waits ? &place : NULL, err) < 0
               ? -1
               : message_print(l, amp_buf_span(&message), err);
}

static int queue_show(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.list = c->list};

    amp_listing_json = true;
    int rc = listing_open(&l, c->store, err);
    for (int i = 0; i < c->argc && rc == 0; i++)
        rc = show_print(&l, c->argv[i], err);
    listing_close(&l);
    return rc;
}

const struct amp_verb queue_list_verbs[] = {
    {"list", "", "list the jobs of the queue", queue_list_opts, queue_list, .opens = AMP_OPENS_READ,
     .lists = columns, .finds_state = true},
    {"show", "JOB…", "print jobs and the messages that asked for them", queue_show_opts, queue_show,
     .opens = AMP_OPENS_READ, .lists = columns, .least = 1,
     .usage = "no job: give its id (task-queue list --json shows them)", .finds_state = true,
     .values = "job"},
    {0},
};
