/* task-queue cancel: a person ends jobs. */
#include "shared/work/cancel.h"
#include "base/codes.h"
#include "shared/work/person.h"
#include "work/item/machine.h"

static const char *reason;

static const struct amp_opt queue_cancel_opts[] = {
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", "record why"},
    AMP_TOOL_OPT_KEY,
    AMP_OPT_END,
};

static int ended_check(const char *name, const struct amp_tool_cancelled *n, struct amp_error *err)
{
    if (n->cancelled)
        return 0;
    if (!n->found)
        return amp_fail(err, AMP_NO, unknown_job, "no job has the id %s, or is of such a message",
                        name);
    if (n->state != AMP_QUEUE_CANCELLED)
        return amp_fail(err, AMP_NO, ended, "%s has ended: it is %s", name,
                        amp_queue_fsm.states[n->state].name);
    amp_note("%s was cancelled before", name);
    return 0;
}

static int name_cancel(const struct amp_command *c, const char *name, struct amp_error *err)
{
    const struct amp_tool_cancel who = {.name = name, .why = reason, .person = c->own};
    struct amp_tool_cancelled jobs;

    return amp_tool_jobs_cancel(c->store, &who, &jobs, err) < 0 ? -1
                                                                : ended_check(name, &jobs, err);
}

/* The others are cancelled also if one cannot be. */
static int queue_cancel(struct amp_command *c, struct amp_error *err)
{
    for (int i = 0; i < c->argc; i++) {
        if (name_cancel(c, c->argv[i], err) == 0)
            continue;
        if (err->status != AMP_NO || i == c->argc - 1)
            return -1;
        amp_status_note(amp_complain(err));
    }
    return 0;
}

const struct amp_verb queue_cancel_verbs[] = {
    {"cancel", "JOB…", "end jobs", queue_cancel_opts, queue_cancel,
     .opens = AMP_OPENS_FOUND | AMP_TOOL_OPENS_PERSON, .act = "cancel a job", .least = 1,
     .usage = "nothing to cancel: give a job, or the id of its message or task (task-queue list "
              "shows them)",
     .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {0},
};
