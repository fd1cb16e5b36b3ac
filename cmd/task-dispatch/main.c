/* task-dispatch: leads tasks through dispatch, review and rework. */
#include <stdlib.h>
#include <string.h>

#include "activity/buffer.h"
#include "agent/agent.h"
#include "agent/job/job.h"
#include "aof/aof.h"
#include "aof/machine.h"
#include "base/codes.h"
#include "cli/config.h"
#include "cli/config_schema.h"
#include "cli/rows.h"
#include "flow/config.h"
#include "flow/facts.h"
#include "flow/identity/head.h"
#include "flow/intake.h"
#include "flow/keep.h"
#include "flow/values.h"
#include "handoff/handoff.h"
#include "message/history/find.h"
#include "pool/pool.h"
#include "queue/conflict/machine.h"
#include "queue/machine.h"
#include "queue/queue.h"
#include "session/machine.h"
#include "session/session.h"
#include "task/landing/landing.h"
#include "task/machines.h"
#include "task/policy.h"
#include "tasks/tasks.h"
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

#define INPUT_HINT   "inputs are given with --in"
#define COMMAND_HINT "the agent's command follows --exec"

static const struct amp_verb verbs[] = {
    {NULL, "", "coordinate", task_coordinate_opts, task_coordinate, .finds_state = true,
     .who = AMP_WHO_PERSON},
    {"init", "", "set up the repository: state, hooks, loop.sh, AGENTS.md", task_init_opts,
     task_init, .group = "Starting", .who = AMP_WHO_PERSON},
    {"loop", "[TASK.md…]", "run the complete loop with two commands, supervised", task_loop_opts,
     task_loop, .finds_state = true, .who = AMP_WHO_PERSON},
    {"new", "[FILE…]", "create a task", task_new_opts, task_new, .finds_state = true,
     .group = "Tasks", .who = AMP_WHO_PERSON},
    {"list", "", "list the tasks", tasks_list_opts, tasks_list, .finds_state = true},
    {"show", "TASK", "tell the story of a task", tasks_show_opts, tasks_show, .finds_state = true,
     .values = "task"},
    {"diff", "TASK", "show what the branch of a task changes", tasks_diff_opts, tasks_diff,
     .finds_state = true, .values = "task"},
    {"log", "TASK", "print the output of a task's agent", tasks_log_opts, tasks_log,
     .finds_state = true, .values = "task"},
    {"open", "TASK", "print the worktree of a task", tasks_open_opts, tasks_open,
     .finds_state = true, .values = "task"},
    {"edit", "TASK", "change the text of a task and send it again", tasks_edit_opts, tasks_edit,
     .finds_state = true, .values = "task", .who = AMP_WHO_PERSON},
    {"retry", "TASK", "send a task again that failed, was ended, or asks", tasks_retry_opts,
     tasks_retry, .finds_state = true, .values = "task", .who = AMP_WHO_PERSON},
    {"cancel", "TASK|JOB…", "end tasks and jobs", tasks_cancel_opts, tasks_cancel,
     .finds_state = true, .values = "task job", .who = AMP_WHO_PERSON},
    {"land", "TASK|COMMIT", "merge approved work", tasks_land_opts, tasks_land, .finds_state = true,
     .values = "task", .who = AMP_WHO_PERSON},
    {"coordinate", "", "dispatch tasks, request reviews, and handle verdicts", task_coordinate_opts,
     task_coordinate, INPUT_HINT, .finds_state = true, .group = "The loop's filters",
     .who = AMP_WHO_PERSON},
    {"run", "", "run an executor in a worktree", task_run_opts, task_run, COMMAND_HINT,
     .who = AMP_WHO_PERSON},
    {"review", "", "run a reviewer in a worktree", task_review_opts, task_review, COMMAND_HINT,
     .who = AMP_WHO_PERSON},
    {"activity", "", "list who works on what and where", activity_opts, activity_list,
     .finds_state = true, .group = "Agents"},
    {"activity purge", "[TASK…]", "remove entries of the activity buffer", activity_purge_opts,
     activity_purge, .finds_state = true, .values = "task", .who = AMP_WHO_PERSON},
    {"handoff", "", "take the handoffs on stdin and pass other messages on", handoff_opts,
     handoff_filter, .who = AMP_WHO_PERSON},
    {"handoff request", "", "ask another agent to take work over", handoff_request_opts,
     handoff_request, .finds_state = true, .who = AMP_WHO_SELF},
    {"handoff pending", "", "list the handoffs that wait for an answer", handoff_pending_opts,
     handoff_pending, .finds_state = true},
    {"handoff accept", "ID", "take the work of a handoff over", handoff_accept_opts, handoff_accept,
     .finds_state = true, .values = "handoff", .who = AMP_WHO_SELF},
    {"handoff reject", "ID", "decline a handoff", handoff_reject_opts, handoff_reject,
     .finds_state = true, .values = "handoff", .who = AMP_WHO_SELF},
    {"handoff complete", "ID", "report that a handoff is done", handoff_complete_opts,
     handoff_complete, .finds_state = true, .values = "handoff", .who = AMP_WHO_SELF},
    {"submit", "", "put the work that messages on stdin ask for into the queue", queue_submit_opts,
     queue_submit, .finds_state = true, .group = "The queue", .who = AMP_WHO_PERSON},
    {"status", "", "print who does what now: types, workers, agents, budgets, questions",
     queue_status_opts, queue_status, .finds_state = true},
    {"queue", "", "list the jobs of the queue", queue_list_opts, queue_list, .finds_state = true},
    {"queue show", "JOB…", "print jobs and the messages that asked for them", queue_show_opts,
     queue_show, .finds_state = true, .values = "job"},
    {"queue rank", "JOB…", "give jobs that wait another priority", queue_rank_opts, queue_rank,
     .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {"queue accounts", "[ACCOUNT…]", "list the usage limits of accounts, or end them",
     queue_accounts_opts, queue_accounts, .finds_state = true, .who = AMP_WHO_WITH("--lift")},
    {"override", "JOB", "let a job run beside another one with a common scope", queue_override_opts,
     queue_override, .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {"preempt", "JOB…", "ask the agents of jobs to yield", queue_ask_opts, queue_preempt,
     .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {"work", "", "run a pool of agents on the queue", pool_work_opts, pool_work, COMMAND_HINT,
     .who = AMP_WHO_PERSON},
    {"shutdown", "[POOL…]", "end pools of agents", pool_shutdown_opts, pool_shutdown,
     .who = AMP_WHO_PERSON},
    {"session list", "", "list the sessions of AOP", session_list_opts, session_list,
     .finds_state = true, .group = "Sessions"},
    {"session show", "SESSION", "list the TASKs of a session", session_show_opts, session_show,
     .finds_state = true, .values = "session"},
    {"session report", "SESSION", "print the final report of a session", session_report_opts,
     session_report, .finds_state = true, .values = "session", .who = AMP_WHO_PERSON},
    {"session escalate", "SESSION TASK PRIORITY", "give a TASK another priority",
     session_escalate_opts, session_escalate, .finds_state = true, .values = "session",
     .who = AMP_WHO_PERSON},
    {"session rollback", "SESSION TASK", "put the files of a TASK back", session_rollback_opts,
     session_rollback, .finds_state = true, .values = "session", .who = AMP_WHO_PERSON},
    {"aof", "", "route messages of AOF/1 on stdin to task files", aof_opts, aof_route,
     .group = "Task files", .who = AMP_WHO_PERSON},
    {"aof poll", "", "take back task files whose agent is gone", aof_poll_opts, aof_poll,
     .who = AMP_WHO_PERSON},
    {"aof end", "TASK…", "move task files by the results of their runs", aof_end_opts, aof_end,
     .who = AMP_WHO_PERSON},
    {"aof new", "[FILE]", "create a task file", aof_new_opts, aof_new, .who = AMP_WHO_PERSON},
    {"verify", "[COMMIT]", "check that a commit was approved", task_verify_opts, task_verify,
     .finds_state = true, .group = "Approvals", .who = AMP_WHO_PERSON},
    {"export", "COMMIT|TASK", "write the proof of an approval as a bundle", task_export_opts,
     task_export, .values = "task", .finds_state = true, .who = AMP_WHO_PERSON},
    {0},
};

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
    .opts = opts,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_flow_values,
    .summary = amp_intake_summary,
};

int task_open(struct amp_store **out, struct amp_error *err)
{
    if (!task_state || !*task_state)
        amp_die_no_state();
    const struct amp_store_options how = {.lock_timeout_ms = task_lock_timeout,
                                          .facts = &amp_flow_facts,
                                          .keep = amp_flow_keep,
                                          .names = amp_history_names,
                                          .sign_head = amp_head_sign,
                                          .actor = amp_cli_name()};
    return amp_store_open(task_state, &how, out, err);
}

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
