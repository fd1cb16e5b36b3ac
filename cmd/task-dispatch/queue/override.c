/* task-dispatch override, and the overrides of other verbs: a person decides against a rule of the
 * queue, with a reason, and signs that. */
#include "override.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "../tasks/person.h"
#include "../verbs.h"
#include "base/codes.h"
#include "cli/config.h"
#include "flow/conflict/waiver.h"
#include "queue.h"
#include "queue/queue.h"
#include "json/record.h"

#define TEXT_MAX 65536
#define YEAR_MS  (INT64_C(366) * 86400000)

const char *queue_why, *queue_until;

static struct amp_list beside;

static const struct amp_opt queue_override_opts[] = {
    {0, "beside", AMP_OPT_LIST, &beside, "JOB", "a job beside which it may run; may be repeated"},
    QUEUE_OPTS_OVERRIDE,
    AMP_OPT_END,
};

/* ---- who, why, until when ---- */

static int until_read(int64_t now_ms, int64_t *out, struct amp_error *err)
{
    int64_t in;

    *out = 0;
    if (!queue_until || amp_time_parse(amp_span_str(queue_until), out))
        return 0;
    if (amp_num_duration(amp_span_str(queue_until), 1, YEAR_MS, &in, NULL) < 0)
        return amp_fail(err, AMP_USAGE, bad_time,
                        "--until %.100s: expected an RFC 3339 time with an offset, or a duration",
                        queue_until);
    *out = now_ms + in;
    return 0;
}

static int why_check(const char *act, const char *why, struct amp_error *err)
{
    return why && *why ? 0
                       : amp_fail(err, AMP_USAGE, why_required,
                                  "to %s needs a reason (--why, of cancel --reason): it is "
                                  "recorded with your name",
                                  act);
}

int queue_override_open(const char *act, struct tasks_person *p, struct amp_error *err)
{
    *p = (struct tasks_person){0};
    return why_check(act, queue_why, err) < 0 ? -1 : tasks_person_open(p, err);
}

int queue_override_give(struct amp_store *s, const struct tasks_person *p,
                        const struct queue_override *q, char id[AMP_UUID_MAX],
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct tasks_signature sig;
    struct amp_waiver o = {.of = q->of,
                           .job = q->job,
                           .other = q->other,
                           .person = amp_span_str(p->name),
                           .by = amp_span_str(p->by),
                           .why = amp_span_str(q->why ? q->why : queue_why),
                           .changed = amp_span_str(q->changed),
                           .since_ms = amp_now_ms()};

    amp_uuid4(id);
    o.id = amp_span_str(id);
    amp_buf_init(&text, TEXT_MAX);
    if (until_read(o.since_ms, &o.until_ms, err) < 0 || amp_waiver_text(&o, &text, err) < 0)
        return -1;
    if (tasks_sign(p, AMP_WAIVER_NAMESPACE, amp_buf_span(&text), &sig)) {
        o.alg = amp_span_str(sig.alg);
        o.key = amp_span_str(sig.key);
        o.signature = amp_span_str(sig.value);
    }
    return amp_waiver_give(s, &o, AMP_QUEUE_KEEP_MS, amp_cli_name(), err);
}

/* ---- jobs of other persons ---- */

static int operator_count(void *ctx, const char *text, struct amp_error *err)
{
    int *n = ctx;

    (void)text, (void)err;
    ++*n;
    return 0;
}

int queue_override_others(struct amp_store *s, const struct tasks_person *p, enum amp_waiver_of of,
                          const char *id, const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_queue_job job;
    char act[64], changed[128], waiver[AMP_UUID_MAX];
    int operators = 0;

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_config_values(task_config, task_state, "hitl.operators", operator_count, &operators,
                          err) < 0)
        return -1;
    int found = amp_queue_read(s, amp_span_str(id), &mem, &job, err);
    if (found <= 0 || !operators || amp_span_is(job.by, amp_cli_login("operator")))
        return found < 0 ? -1 : 0;
    snprintf(act, sizeof act, "%s another person's job", amp_waiver_name((int)of));
    snprintf(changed, sizeof changed, "%s of job %.32s", amp_waiver_name((int)of), id);
    const struct queue_override q = {.of = of, .job = job.id, .changed = changed, .why = why};
    return why_check(act, why ? why : queue_why, err) < 0
               ? -1
               : queue_override_give(s, p, &q, waiver, err);
}

/* ---- override ---- */

static int pair_override(struct amp_store *s, const struct tasks_person *p, const char *job,
                         const char *other, struct amp_error *err)
{
    char changed[128], id[AMP_UUID_MAX];
    const struct queue_override q = {.of = AMP_WAIVER_BESIDE,
                                     .job = amp_span_str(job),
                                     .other = amp_span_str(other),
                                     .changed = changed};

    if (strcmp(job, other) == 0)
        return amp_fail(err, AMP_USAGE, bad_value, "--beside %.64s: it is the same job", other);
    snprintf(changed, sizeof changed, "jobs %.32s and %.32s may run side by side", job, other);
    if (queue_override_give(s, p, &q, id, err) < 0)
        return -1;
    amp_note("%s (override %s)", changed, id);
    return 0;
}

static int override_check(struct amp_command *c, struct amp_error *err)
{
    if (beside.n == 0)
        amp_die_usage("nothing to override: give --beside JOB");
    return why_check(c->act, queue_why, err);
}

static int queue_override(struct amp_command *c, struct amp_error *err)
{
    for (int i = 0; i < beside.n; i++)
        if (pair_override(c->store, c->own, c->argv[0], beside.v[i], err) < 0)
            return -1;
    return AMP_OK;
}

const struct amp_verb queue_override_verbs[] = {
    {"override", "JOB", "let a job run beside another one with a common scope", queue_override_opts,
     queue_override, .check = override_check, .opens = AMP_OPENS_MADE | TASK_OPENS_PERSON,
     .act = "override the queue", .least = 1, .most = 1,
     .usage = "override needs one job (task-dispatch queue --json shows their ids)",
     .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {0},
};
