/* task-queue override: a person lets a job run beside another one, with a reason, and signs that.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "shared/work/permit.h"

static struct amp_list beside;

static const struct amp_opt queue_override_opts[] = {
    {0, "beside", AMP_OPT_LIST, &beside, "JOB", "a job beside which it may run; may be repeated"},
    AMP_TOOL_OPTS_PERMIT,
    AMP_OPT_END,
};

static int pair_override(struct amp_store *s, const struct amp_tool_person *p, const char *job,
                         const char *other, struct amp_error *err)
{
    char changed[128], id[AMP_UUID_MAX];
    const struct amp_tool_permit q = {.of = AMP_PERMIT_BESIDE,
                                      .job = amp_span_str(job),
                                      .other = amp_span_str(other),
                                      .changed = changed};

    if (strcmp(job, other) == 0)
        return amp_fail(err, AMP_USAGE, bad_value, "--beside %.64s: it is the same job", other);
    snprintf(changed, sizeof changed, "jobs %.32s and %.32s may run side by side", job, other);
    if (amp_tool_permit_give(s, p, &q, id, err) < 0)
        return -1;
    amp_note("%s (override %s)", changed, id);
    return 0;
}

static int override_check(struct amp_command *c, struct amp_error *err)
{
    if (beside.n == 0)
        amp_die_usage("nothing to override: give --beside JOB");
    return amp_tool_why_check(c->act, amp_tool_why, err);
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
     queue_override, .check = override_check, .opens = AMP_OPENS_MADE | AMP_TOOL_OPENS_PERSON,
     .act = "override the queue", .least = 1, .most = 1,
     .usage = "override needs one job (task-queue list shows their ids)", .finds_state = true,
     .values = "job", .who = AMP_WHO_PERSON},
    {0},
};
