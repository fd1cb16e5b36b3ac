/* The codes of Runtime Protocol v1: see meaning.h. */
#include <stddef.h>

#include "protocol/codes/meanings.h"

#define E AMP_SEV_ERROR

const struct amp_meaning amp_meanings_rtp[] = {
    {"bad_value", E, "A field is missing, of another type, out of range or too long.",
     "Runtime Protocol v1", "See the field."},
    {"bad_enum", E, "A field holds none of its allowed words.", "Runtime Protocol v1",
     "Use one of the words that are listed."},
    {"unknown_kind", E, "The kind is none of the ten.", "Runtime Protocol v1 §1",
     "Use message, ack, reply, task_create, task_accept, task_update, task_complete, task_failed, "
     "signal or dead_letter."},
    {"corr_id_required", E, "A reply, an ack or an event of a task has no corrId.",
     "Runtime Protocol v1 §1 rule 3", "Give the corrId of the event that began it."},
    {"expired", E, "The expiresAt is not after createdAt, or has passed at the time given (--now).",
     "Runtime Protocol v1 §1", "Send it anew with a later expiresAt."},
    {"missing_route_fields", E,
     "A message names no recipient, or a task neither toAgents nor requiredCapabilities "
     "(no_route).",
     "Runtime Protocol v1 §3 rule 1, §4 rules 2 and 3", "Name agents, or capabilities."},
    {"invalid_targets", E, "An entry of toAgents is no agent's id.",
     "Runtime Protocol v1 §4 rules 1 and 3", "Give a list of agent ids, or [\"all\"]."},
    {"eta_required", E, "An acceptance has neither etaAt nor etaSeconds.",
     "Runtime Protocol v1 §4, Task Accept rule 2", "Say when it will be ready."},
    {"eta_range", E, "An estimate in seconds is out of its range.",
     "Runtime Protocol v1 §2 rule 3, §4",
     "etaSeconds: 1 to 1209600; defaultEtaSeconds: 30 to 86400."},
    {"eta_in_past", E,
     "An estimate lies before the event's createdAt, or has passed at the time given (--now).",
     "Runtime Protocol v1 §4", "Give a time to come."},
    {"bad_status", E, "The status of a task_update is neither in_progress nor failed.",
     "Runtime Protocol v1 §4, Task Update", "The end of a task has kinds of its own."},
    {"result_required", E, "A task_complete has neither resultSummary nor resultRef.",
     "Runtime Protocol v1 §4, Task Complete", "Say what came out, or where it stands."},
    {"diagnostics_required", E,
     "A task_failed has no errorSummary, or a task_update with the status failed neither note nor "
     "result.",
     "Runtime Protocol v1 §4, Task Failed", "Say what went wrong."},
    {"duplicate_event", E, "The state knows this eventId with other bytes (--state).",
     "Runtime Protocol v1 §1 rule 1", "Give each event an id of its own."},
    {"seq_not_monotonic", E, "The seq is not above the last of this outbox (--state).",
     "Runtime Protocol v1 §1 rule 2", "Number the events of an outbox upwards."},
    {"attempt_not_incremented", E,
     "The same operation was sent before, and trace.attempt has not grown (--state).",
     "Runtime Protocol v1 §1 rule 4", "Add one to trace.attempt at each resend."},
    {"unknown_ref", E, "An ack's event or a task is not in the state (--state).",
     "Runtime Protocol v1 §4, §5", "Record the event first, or mend the reference."},
    {"accept_required", E, "Nobody has accepted the task that is worked on (--state).",
     "Runtime Protocol v1 §4, Task Accept rule 1", "Send a task_accept first."},
    {"already_claimed", E, "Another agent has accepted the task (--state).",
     "Runtime Protocol v1 §4, Task Accept", "Leave the task to that agent."},
    {"not_assignee", E, "The task names agents, and this is none of them (--state).",
     "Runtime Protocol v1 §4, routing rule 1", "Leave the task to the agents that it names."},
    {"not_claimant", E, "Not the agent that accepted the task reports on it (--state).",
     "Runtime Protocol v1 §4", "Let the agent that accepted it report."},
    {"terminal", E, "The task has ended (--state).", "Runtime Protocol v1 §4",
     "Create a new task for more work."},
    {"no_terminal_outcome", E,
     "An ack says processed, but there is no reply, task_complete or task_failed (--state).",
     "Runtime Protocol v1 §5 rule 3", "Send the outcome before the ack."},
    {"no_route", E,
     "Neither toAgents nor requiredCapabilities lead to an agent; missing_route_fields and "
     "invalid_targets say which is at fault (seed_code).",
     "Runtime Protocol v1 §4, routing rule 3", "Name agents that exist, or capabilities."},
    {"capability_unavailable", E, "The capability is known, but its owner or skill is not there.",
     "Runtime Protocol v1 §2, §4", "Wait for its owner, or name another capability."},
    {"backpressure", E, "The agent has as many tasks as it may have.", "Runtime Protocol v1 §4",
     "Accept the task when another one has ended."},
    {"inferred_failure_class", AMP_SEV_WARNING,
     "A failureClass is none of the protocol's words and is read as the one that it hints at, or "
     "else the one that errorSummary hints at, or else execution_error.",
     "Runtime Protocol v1 §4, Task Failed; §8",
     "Use failed_terminal, dependency_missing, dependency_unavailable, capability_unavailable, "
     "version_incompatible, approval_required, timeout, authz_denied, invalid_target, overloaded, "
     "execution_error, policy_blocked, transport_error or unknown; in a review item also "
     "sla_breach."},
    {"foreign_outbox", AMP_SEV_WARNING,
     "An ack stands in the outbox of another gateway than the one that gives it.",
     "Runtime Protocol v1 §5 rule 1", "Make ackedByNodeId the sourceNodeId."},
    {NULL, E, NULL, NULL, NULL},
};
