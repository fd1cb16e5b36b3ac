/* The end of jobs by a person: those that a name means, in one step each. */
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"
#include "shared/work/cancel.h"
#include "shared/work/permit.h"
#include "work/aop/account/jobs.h"
#include "work/item/judge/conflict.h"
#include "json/record.h"

#define PREFIX_LEAST 6 /* hex digits of a job's id */

struct search {
    struct amp_span name, task;
    bool prefix; /* the name may be the beginning of a job's id */
    char (*open)[AMP_QUEUE_ID_MAX];
    size_t n, cap;
    struct amp_tool_cancelled *out;
    char first[AMP_QUEUE_ID_MAX]; /* of those that a prefix matches */
};

static bool is_hex(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("0123456789abcdef", s.p[i]) || !s.p[i])
            return false;
    return s.n >= PREFIX_LEAST && s.n < AMP_QUEUE_ID_MAX;
}

static int job_match(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *j = rec;
    struct search *s = ctx;
    bool begins = s->prefix && j->id.n >= s->name.n && memcmp(j->id.p, s->name.p, s->name.n) == 0;

    if (!begins && !amp_span_eq(j->message, s->name) &&
        (j->task.n == 0 || (!amp_span_eq(j->task, s->name) && !amp_span_eq(j->task, s->task))))
        return 0;
    if (begins && *s->first)
        return amp_fail(err, AMP_NO, ambiguous_job, "%.*s: the ids of several jobs begin so",
                        AMP_CLIP(s->name, 64));
    if (begins)
        amp_span_copy(j->id, s->first, sizeof s->first);
    s->out->found++;
    s->out->state = j->state;
    if (amp_queue_ended(j->state))
        return 0;
    if (amp_grow(&s->open, &s->cap, s->n, sizeof *s->open, err) < 0)
        return -1;
    amp_span_copy(j->id, s->open[s->n++], sizeof *s->open);
    return 0;
}

static int job_end(struct amp_store *s, const struct search *f, size_t i,
                   const struct amp_tool_cancel *who, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_queue_job job;
    const struct amp_queue_step st = {.id = amp_span_str(f->open[i]),
                                      .event = AMP_QUEUE_EV_CANCEL,
                                      .by = who->person->name,
                                      .why = who->why ? who->why : "cancelled",
                                      .actor = amp_cli_name(),
                                      .now_ms = amp_now_ms()};

    if (amp_tool_permit_others(s, who->person, AMP_PERMIT_CANCEL, f->open[i],
                               who->why ? who->why : "", err) < 0 ||
        amp_queue_step(s, &st, &mem, &job, err) < 0)
        return -1;
    if (job.state == AMP_QUEUE_CANCELLED)
        amp_note("job %s is cancelled", f->open[i]);
    else
        amp_note("job %s ends when its agent has stopped", f->open[i]);
    return 0;
}

int amp_tool_jobs_cancel(struct amp_store *s, const struct amp_tool_cancel *who,
                         struct amp_tool_cancelled *out, struct amp_error *err)
{
    struct search f = {.name = amp_span_str(who->name),
                       .task = amp_span_str(who->task ? who->task : who->name),
                       .prefix = is_hex(amp_span_str(who->name)),
                       .out = out};

    uint32_t tended = 0;

    *out = (struct amp_tool_cancelled){0};
    int rc = amp_queue_each(s, NULL, job_match, &f, err);
    for (; rc == 0 && out->cancelled < f.n; out->cancelled++)
        rc = job_end(s, &f, out->cancelled, who, err);
    if (rc == 0 && f.n) /* with the questions about them */
        rc = amp_conflicts_tend(s, amp_now_ms(), amp_cli_name(), &tended, err);
    const struct amp_session_voice voice = {s, amp_cli_name(), amp_now_ms()};
    if (rc == 0 && out->found) /* with their TASKs, also of a cancel that was killed */
        rc = amp_session_reconcile(&voice, AMP_SPAN(""), err) < 0 ? -1 : amp_store_sync(s, err);
    free(f.open);
    return rc;
}
