/* task-dispatch: leads tasks through dispatch, review and rework. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/job/job.h"
#include "aof/aof.h"
#include "aof/machine.h"
#include "base/codes.h"
#include "cli/config.h"
#include "cli/config_schema.h"
#include "cli/rows.h"
#include "flow/config.h"
#include "flow/intake.h"
#include "flow/values.h"
#include "handoff/handoff.h"
#include "queue/conflict/machine.h"
#include "queue/machine.h"
#include "queue/queue.h"
#include "session/machine.h"
#include "session/session.h"
#include "task/landing/landing.h"
#include "task/machines.h"
#include "task/policy.h"
#include "tasks/person.h"
#include "verbs.h"

const char *task_state, *task_config;
int64_t task_lock_timeout = AMP_LOCK_TIMEOUT_MS;
struct amp_identity_cli task_identity = AMP_IDENTITY_CLI;

static const struct amp_opt opts[] = {
    AMP_OPT_STATE(task_state),
    AMP_OPT_CONFIG(task_config),
    AMP_OPT_LOCK_TIMEOUT(task_lock_timeout),
    AMP_OPT_IDENTITIES(task_identity),
    AMP_OPT_END,
};

/* clang-format off */
#define VERBS(X) \
    X(default) X(init) X(loop) X(new) X(list) X(show) X(diff) X(log) X(open) X(again) X(cancel) \
    X(land) X(coordinate) X(worker) X(activity_buffer) X(handoff_filter) X(handoff) \
    X(handoff_pending) X(queue_submit) X(queue_status) X(queue_list) X(queue_rank) \
    X(queue_accounts) X(queue_override) X(preempt) X(pool_work) X(pool_shutdown) \
    X(session_list) X(session_report) X(session_rollback) X(aof) X(aof_poll) X(verify) \
    X(export)
/* clang-format on */
AMP_VERBS(VERBS);

static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 130, 0};
static const struct amp_fsm *const machines[] = {&amp_task_fsm,
                                                 &amp_qa_fsm,
                                                 &amp_agent_fsm,
                                                 &amp_job_fsm,
                                                 &amp_landing_fsm,
                                                 &amp_handoff_fsm,
                                                 &amp_queue_fsm,
                                                 &amp_conflict_fsm,
                                                 &amp_breaker_fsm,
                                                 &amp_aof_task_fsm,
                                                 &amp_session_fsm,
                                                 &amp_session_task_fsm,
                                                 NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "task-dispatch",
    .doc = "lead agents' tasks through dispatch, review and rework",
    .first = "The loop's filters",
    .opts = opts,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_flow_values,
    .refuse = amp_state_refuse,
    .open = tasks_verb_open,
    .close = tasks_verb_close,
    .summary = amp_intake_summary,
};

int task_policy(struct amp_task_policy *out, struct amp_error *err)
{
    struct json_t *config = NULL;
    amp_task_policy_default(out);
    return amp_config_load(task_config, task_state, &config, err) < 0
               ? -1
               : amp_task_policy_load(out, config, err);
}

int task_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                  const char *const **out, struct amp_error *err)
{
    const json_t *list = json_object_get(json_object_get(config, section), key), *p;
    const char **v;
    size_t i;

    if (inner)
        list = json_object_get(list, inner);
    if (!list)
        return 0;
    if (!json_is_array(list))
        return amp_fail(err, AMP_CONFIG, bad_value, "%s in the configuration: expected a list",
                        key);
    if (!(v = calloc(json_array_size(list) + 1, sizeof *v)))
        return amp_fail_memory(err);
    json_array_foreach (list, i, p) {
        if (!(v[i] = json_string_value(p)))
            return amp_fail(err, AMP_CONFIG, bad_value,
                            "%s in the configuration: expected a list of patterns", key);
    }
    *out = v;
    return 0;
}

void task_patterns_free(const char *const *v)
{
    void *p;

    memcpy(&p, &v, sizeof p);
    free(p);
}

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
