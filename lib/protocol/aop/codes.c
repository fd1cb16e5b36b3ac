/* The codes of AOP 2.0.2-C, which are its error taxonomy (§12): see meaning.h. Those about running
 * a task are here so that they can be explained; a check of messages alone never gives them. */
#include <stddef.h>

#include "protocol/codes/meanings.h"

const struct amp_meaning amp_meanings_aop[] = {
    {"E_SCHEMA_VALIDATION", AMP_SEV_ERROR,
     "The message is version 2 but not as the contract says: a field is missing, unknown, of "
     "another type, or none of its words. A warning: a text that should say something is empty.",
     "AOP §1.2, §2, §3, §12",
     "Mend the field; data of your own goes into an extensions object under a key that starts "
     "with x_."},
    {"E_MALFORMED_RESPONSE", AMP_SEV_ERROR,
     "A RESPONSE is not as the contract says, or its report says nothing.", "AOP §5, §12",
     "Give task_status.state and final_signal, a summary, and at least one action."},
    {"E_PARSE_FAILURE", AMP_SEV_ERROR,
     "The line is neither JSON of version 2 nor a task in v1 Markdown, so it is UNSTRUCTURED.",
     "AOP §1.3, §12", "Send JSON with an aop_version that starts with \"2.\"."},
    {"E_CONTEXT_OVERFLOW", AMP_SEV_ERROR,
     "The message passes a hard limit: 100 inputs, 50 expected outputs, 200 KiB for a TASK, 500 "
     "KiB for a RESPONSE.",
     "AOP §4, §12", "Split the task, or name files in place of their contents."},
    {"E_PAYLOAD_SIZE_WARNING", AMP_SEV_WARNING,
     "The message passes a soft limit: an objective of 40,000 characters, 10 phases, 20 "
     "checkpoints in a phase, 200 actions.",
     "AOP §4, §12", "Nothing has to be done; a shorter message is read better."},
    {"E_PERMISSION_DENIED", AMP_SEV_ERROR,
     "An input or expected output lies outside the effective access, or its path leaves its root "
     "or could mean two places.",
     "AOP §11, §12",
     "Grant the path in task.access.filesystem, or take it out; amp-validate --effective shows "
     "what is granted."},
    {"E_COST_LIMIT_EXCEEDED", AMP_SEV_ERROR,
     "The task cost more than the lower of its budgets; equal to it is within it.", "AOP §2.2, §12",
     "Raise budgets.max_cost_usd or max_tokens, or make the task smaller."},
    {"E_MAX_DEPTH_EXCEEDED", AMP_SEV_ERROR, "A task was delegated more than three levels deep.",
     "AOP §12", "Let an agent nearer to the first one hand out the work."},
    {"E_TIMEOUT", AMP_SEV_ERROR, "The task ran longer than its effective timeout.", "AOP §11, §12",
     "Raise guard_rails.timeout_seconds, or make the task smaller."},
    {"E_HEARTBEAT_FAILURE", AMP_SEV_ERROR,
     "The agent missed max_missed_beats signs of life in a row.", "AOP §6.1, §12",
     "See whether the agent still runs; raise interval_seconds if its work is silent."},
    {"E_AGENT_NOT_FOUND", AMP_SEV_ERROR, "The agent is not there or cannot be reached.", "AOP §12",
     "Start the agent, or name another one in target."},
    {"E_MODEL_UNAVAILABLE", AMP_SEV_ERROR, "The model that was asked for is not available.",
     "AOP §9, §12", "Name alternative_models."},
    {"E_ALL_MODELS_EXHAUSTED", AMP_SEV_ERROR, "Every alternative model failed too.", "AOP §9, §12",
     "Wait, or name further alternative_models."},
    {"E_FILE_NOT_FOUND", AMP_SEV_ERROR, "An input that the task needs is not there.", "AOP §12",
     "Mend the path in task.inputs."},
    {"E_DEPENDENCY_FAILED", AMP_SEV_ERROR, "A task that this one depends on was aborted.",
     "AOP §10, §12", "Mend that task first."},
    {"E_PROCESS_CRASH", AMP_SEV_ERROR, "The agent's process crashed or ended with a failure.",
     "AOP §12", "Read the agent's own log."},
    {"E_ROLLBACK_FAILED", AMP_SEV_ERROR, "A file could not be put back.", "AOP §7, §12",
     "Put it back by hand from snapshot_path."},
    {"E_UNKNOWN", AMP_SEV_ERROR, "Everything else.", "AOP §12", "Read the message beside it."},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
