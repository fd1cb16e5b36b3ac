/* The codes of Runtime Protocol v1: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

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
    {"diagnostics_required", E, "A task_failed has no errorSummary.",
     "Runtime Protocol v1 §4, Task Failed", "Say what went wrong."},
    {"foreign_outbox", AMP_SEV_WARNING,
     "An ack stands in the outbox of another gateway than the one that gives it.",
     "Runtime Protocol v1 §5 rule 1", "Make ackedByNodeId the sourceNodeId."},
    {NULL, E, NULL, NULL, NULL},
};
