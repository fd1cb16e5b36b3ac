/* The codes of AOP 2.0.2-C, its error taxonomy (§12): see meaning.h. A check of a message finds the
 * first seven; the executor of sessions gives all of them. */
#include <string.h>

#include "message/protocol/aop/aop.h"
#include "message/protocol/codes/classes.h"
#include "message/protocol/codes/meanings.h"

const struct amp_meaning amp_meanings_aop[] = {
    {"E_SCHEMA_VALIDATION", AMP_SEV_ERROR,
     "The message is version 2, but a field is missing, unknown, of the wrong type, or not one of "
     "its allowed values; or it contradicts its session. A warning: a text is empty that should "
     "not be.",
     "AOP §1.2, §2, §3, §12",
     "Fix the field. Put your own data into an extensions object, under a key that starts with "
     "x_."},
    {"E_MALFORMED_RESPONSE", AMP_SEV_ERROR,
     "A RESPONSE does not conform to the contract, its report is empty, or it does not fit its "
     "TASK: another model, unknown checkpoints, results that contradict its end.",
     "AOP §5, §12",
     "Add task_status.state, final_signal, a summary and at least one action; answer the TASK that "
     "was given."},
    {"E_PARSE_FAILURE", AMP_SEV_ERROR,
     "The line is neither version 2 JSON nor a v1 Markdown task (UNSTRUCTURED).", "AOP §1.3, §12",
     "Send JSON with an aop_version that starts with \"2.\"."},
    {"E_CONTEXT_OVERFLOW", AMP_SEV_ERROR,
     "The message exceeds a hard limit: 100 inputs, 50 expected outputs, 200 KiB for a TASK, 500 "
     "KiB for a RESPONSE.",
     "AOP §4, §12", "Split the task, or pass file names instead of contents."},
    {"E_PAYLOAD_SIZE_WARNING", AMP_SEV_WARNING,
     "The message exceeds a soft limit: an objective of 40,000 characters, 10 phases, 20 "
     "checkpoints in a phase, 200 actions.",
     "AOP §4, §12", "No action is required; a shorter message is recommended."},
    {"E_PERMISSION_DENIED", AMP_SEV_ERROR,
     "An input, an expected output, a changed artifact, the workspace or a delegated TASK is "
     "outside the effective access, or its path leaves its root or is ambiguous.",
     "AOP §11, §12",
     "Grant the path in task.access.filesystem, or remove it. amp-validate --effective prints the "
     "access."},
    {"E_COST_LIMIT_EXCEEDED", AMP_SEV_ERROR,
     "The task cost more than the lower of its two budgets.", "AOP §2.2, §12",
     "Raise budgets.max_cost_usd or max_tokens, or make the task smaller."},
    {"E_MAX_DEPTH_EXCEEDED", AMP_SEV_ERROR, "A task was delegated more than three levels deep.",
     "AOP §12", "Delegate the work from a higher level."},
    {"E_TIMEOUT", AMP_SEV_ERROR, "The task ran longer than its effective timeout.", "AOP §11, §12",
     "Raise guard_rails.timeout_seconds, or make the task smaller."},
    {"E_HEARTBEAT_FAILURE", AMP_SEV_ERROR, "The agent missed max_missed_beats heartbeats in a row.",
     "AOP §6.1, §12",
     "Check whether the agent is running; raise interval_seconds if it works silently."},
    {"E_AGENT_NOT_FOUND", AMP_SEV_ERROR,
     "The agent does not exist or cannot be reached, for example because it has no headless_mode.",
     "AOP §12", "Start the agent, or name another one in target."},
    {"E_MODEL_UNAVAILABLE", AMP_SEV_ERROR,
     "The requested model is not available: its provider has no command, its settings do not list "
     "it, or its command ended with status 69.",
     "AOP §9, §12", "Set providers.NAME.command, or name alternative_models."},
    {"E_ALL_MODELS_EXHAUSTED", AMP_SEV_ERROR, "Every alternative model failed too.", "AOP §9, §12",
     "Wait, or name more alternative_models."},
    {"E_FILE_NOT_FOUND", AMP_SEV_ERROR, "An input of the task, or its workspace, does not exist.",
     "AOP §12", "Fix the path in task.inputs or workspace_root."},
    {"E_DEPENDENCY_FAILED", AMP_SEV_ERROR,
     "A task that this one depends on is unknown, failed or was aborted, or its session was "
     "aborted.",
     "AOP §10, §12", "Fix that task first."},
    {"E_PROCESS_CRASH", AMP_SEV_ERROR, "The agent's process crashed or ended with a failure.",
     "AOP §12", "Read the agent's own log."},
    {"E_ROLLBACK_FAILED", AMP_SEV_ERROR, "A file could not be restored.", "AOP §7, §12",
     "Restore it from snapshot_path."},
    {"E_UNKNOWN", AMP_SEV_ERROR, "Any other error.", "AOP §12", "Read the message of the error."},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};

const char *amp_aop_code(const char *code)
{
    static const char *const codes[AMP_CODE_CLASSES] = {
        [AMP_CODE_FOREIGN] = "E_UNKNOWN",
        [AMP_CODE_INTERNAL] = "E_UNKNOWN",
        [AMP_CODE_WORK] = "E_UNKNOWN",
        [AMP_CODE_CRASH] = "E_PROCESS_CRASH",
        [AMP_CODE_ANSWER] = "E_MALFORMED_RESPONSE",
        [AMP_CODE_DEPENDENCY] = "E_FILE_NOT_FOUND",
        [AMP_CODE_VALIDATION] = "E_SCHEMA_VALIDATION",
        [AMP_CODE_PERMISSION] = "E_PERMISSION_DENIED",
        [AMP_CODE_SIZE] = "E_CONTEXT_OVERFLOW",
        [AMP_CODE_ROUTE] = "E_AGENT_NOT_FOUND",
        [AMP_CODE_UNAVAILABLE] = "E_AGENT_NOT_FOUND",
        [AMP_CODE_LIMIT] = "E_MODEL_UNAVAILABLE",
        [AMP_CODE_FULL] = "E_AGENT_NOT_FOUND",
        [AMP_CODE_EXPIRED] = "E_TIMEOUT",
        [AMP_CODE_TIMEOUT] = "E_TIMEOUT",
        [AMP_CODE_DUPLICATE] = "E_SCHEMA_VALIDATION",
        [AMP_CODE_PROGRESS] = "E_SCHEMA_VALIDATION",
        [AMP_CODE_CANCELLED] = "E_UNKNOWN",
        [AMP_CODE_PREEMPTED] = "E_UNKNOWN",
        [AMP_CODE_BUDGET] = "E_COST_LIMIT_EXCEEDED",
        [AMP_CODE_DEPTH] = "E_MAX_DEPTH_EXCEEDED",
    };
    for (const struct amp_meaning *m = amp_meanings_aop; m->code; m++)
        if (strcmp(m->code, code) == 0)
            return m->code;
    return codes[amp_code_class(code)];
}

const char *amp_aop_failure(struct amp_span code, struct amp_span summary)
{
    char name[64];

    (void)summary;
    return amp_aop_code(amp_span_copy(code, name, sizeof name) ? name : "");
}
