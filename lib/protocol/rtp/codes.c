/* The codes of Runtime Protocol v1: see meaning.h. */
#include <stddef.h>

#include "protocol/codes/meanings.h"

#define E AMP_SEV_ERROR

const struct amp_meaning amp_meanings_rtp[] = {
    {"bad_value", E, "A field is missing, of the wrong type, out of range or too long.",
     "Runtime Protocol v1", "Fix the field that the finding names."},
    {"bad_enum", E, "A field does not have one of its allowed values.", "Runtime Protocol v1",
     "Use one of the values that the finding lists."},
    {"unknown_kind", E, "The kind is not one of the ten kinds.", "Runtime Protocol v1 §1",
     "Use message, ack, reply, task_create, task_accept, task_update, task_complete, task_failed, "
     "signal or dead_letter."},
    {"corr_id_required", E, "A reply, an ack or a task event has no corrId.",
     "Runtime Protocol v1 §1 rule 3", "Use the corrId of the event that started the exchange."},
    {"expired", E, "expiresAt is not after createdAt, or is before the time of --now.",
     "Runtime Protocol v1 §1", "Send it again with a later expiresAt."},
    {"missing_route_fields", E,
     "A message names no recipient, or a task names neither toAgents nor requiredCapabilities "
     "(no_route).",
     "Runtime Protocol v1 §3 rule 1, §4 rules 2 and 3", "Name agents, or capabilities."},
    {"invalid_targets", E, "An entry of toAgents is not an agent id.",
     "Runtime Protocol v1 §4 rules 1 and 3", "Use a list of agent ids, or [\"all\"]."},
    {"eta_required", E, "An acceptance has neither etaAt nor etaSeconds.",
     "Runtime Protocol v1 §4, Task Accept rule 2", "Add etaAt or etaSeconds."},
    {"eta_range", E, "An estimate in seconds is out of range.", "Runtime Protocol v1 §2 rule 3, §4",
     "etaSeconds: 1 to 1209600; defaultEtaSeconds: 30 to 86400."},
    {"eta_in_past", E, "An estimate is before the event's createdAt, or before the time of --now.",
     "Runtime Protocol v1 §4", "Use a time in the future."},
    {"bad_status", E, "The status of a task_update is neither in_progress nor failed.",
     "Runtime Protocol v1 §4, Task Update",
     "Report the end of a task with task_complete or task_failed."},
    {"result_required", E, "A task_complete has neither resultSummary nor resultRef.",
     "Runtime Protocol v1 §4, Task Complete", "Add resultSummary or resultRef."},
    {"diagnostics_required", E,
     "A task_failed has no errorSummary, or a task_update with the status failed has neither note "
     "nor result.",
     "Runtime Protocol v1 §4, Task Failed", "Describe the failure."},
    {"duplicate_event", E, "Another event with this eventId is in the state directory (--state).",
     "Runtime Protocol v1 §1 rule 1", "Use a new id for each event."},
    {"seq_not_monotonic", E, "seq is not greater than the last one of this outbox (--state).",
     "Runtime Protocol v1 §1 rule 2", "Number the events of an outbox in increasing order."},
    {"attempt_not_incremented", E,
     "The operation was sent before, and trace.attempt did not increase (--state).",
     "Runtime Protocol v1 §1 rule 4", "Increase trace.attempt with each resend."},
    {"unknown_ref", E, "The event of an ack, or a task, is not in the state directory (--state).",
     "Runtime Protocol v1 §4, §5", "Record the event first, or fix the reference."},
    {"accept_required", E, "No agent has accepted the task (--state).",
     "Runtime Protocol v1 §4, Task Accept rule 1", "Send a task_accept first."},
    {"already_claimed", E, "Another agent has accepted the task (--state).",
     "Runtime Protocol v1 §4, Task Accept", "Do not work on the task."},
    {"not_assignee", E, "The sender is not one of the agents that the task names (--state).",
     "Runtime Protocol v1 §4, routing rule 1",
     "Only the agents that the task names may work on it."},
    {"not_claimant", E, "The sender is not the agent that accepted the task (--state).",
     "Runtime Protocol v1 §4", "Only the agent that accepted the task reports on it."},
    {"terminal", E, "The task has ended (--state).", "Runtime Protocol v1 §4",
     "Create a new task for more work."},
    {"no_terminal_outcome", E,
     "An ack is processed, but there is no reply, task_complete or task_failed (--state).",
     "Runtime Protocol v1 §5 rule 3", "Send the outcome before the ack."},
    {"no_route", E,
     "Neither toAgents nor requiredCapabilities lead to an agent (seed_code of "
     "missing_route_fields and invalid_targets).",
     "Runtime Protocol v1 §4, routing rule 3", "Name agents that exist, or capabilities."},
    {"capability_unavailable", E,
     "The capability is known, but its owner or skill is not available.",
     "Runtime Protocol v1 §2, §4", "Wait for its owner, or name another capability."},
    {"backpressure", E, "The agent has reached its limit of tasks (runtime.max_claims, --state).",
     "Runtime Protocol v1 §4", "Accept the task when another one has ended."},
    {"retry_budget_exceeded", AMP_SEV_WARNING,
     "The task failed three times with retryable true; one more failure is its end (--state).",
     "Runtime Protocol v1 §4, Task Failed", "Create a new task for another attempt."},
    {"inferred_failure_class", AMP_SEV_WARNING,
     "The failureClass is not one of the protocol's values. It is read as the class that it "
     "suggests, or that errorSummary suggests, or else as execution_error.",
     "Runtime Protocol v1 §4, Task Failed; §8",
     "Use failed_terminal, dependency_missing, dependency_unavailable, capability_unavailable, "
     "version_incompatible, approval_required, timeout, authz_denied, invalid_target, overloaded, "
     "execution_error, policy_blocked, transport_error or unknown; in a review item also "
     "sla_breach."},
    {"foreign_outbox", AMP_SEV_WARNING,
     "An ack is in the outbox of a gateway other than the one that sends it.",
     "Runtime Protocol v1 §5 rule 1", "Set ackedByNodeId to the sourceNodeId."},
    {NULL, E, NULL, NULL, NULL},
};
