/* amp-ack: the delivery lifecycle of messages. */
#include <string.h>
#include <unistd.h>

#include "cli/config_schema.h"
#include "cli/identity.h"
#include "flow/config.h"
#include "flow/identity/person.h"
#include "flow/intake.h"
#include "flow/values.h"
#include "message/cursor/cursor.h"
#include "message/ledger/timeouts.h"
#include "message/record/delivery.h"
#include "message/transfer/transfer_fsm.h"
#include "verbs.h"

const char *ack_state, *ack_as;
int64_t ack_lock_timeout_ms = AMP_LOCK_TIMEOUT_MS;
struct amp_metrics_options ack_metrics = {.interval_ms = AMP_METRICS_INTERVAL_MS};
const char *ack_config, *ack_sla;
struct amp_list ack_retries, ack_backoff, ack_idempotent, ack_timeouts;

static struct amp_identity_cli identity = AMP_IDENTITY_CLI;

static const struct amp_opt options[] = {
    AMP_OPT_STATE(ack_state),
    AMP_OPT_IDENTITIES(identity),
    AMP_OPT_CONFIG(ack_config),
    {0, "as", AMP_OPT_STRING, &ack_as, "NAME",
     .doc = "name in the state directory; the agent that answers"},
    AMP_OPT_LOCK_TIMEOUT(ack_lock_timeout_ms),
    AMP_OPT_END,
};

static const struct amp_verb verbs[] = {
    {NULL, "", "the same as track", track_opts, NULL, .old = ack_track},
    {"track", "", "record messages and pass them on", track_opts, NULL, .old = ack_track,
     .group = "Recording"},
    {"send", "", "acknowledge the messages on stdin", send_opts, NULL, .old = ack_send,
     .who = AMP_WHO_SELF},
    {"token", "PRODUCER OPERATION", "print the idempotency token of the parameters on stdin",
     token_opts, NULL, .old = ack_token},
    {"accept", "ID", "accept the work that a message asks for", accept_opts, NULL,
     .old = ack_accept, .finds_state = true, .group = "Answering", .who = AMP_WHO_SELF},
    {"progress", "ID [PERCENT]", "report how far the work is", progress_opts, NULL,
     .old = ack_progress, .finds_state = true, .who = AMP_WHO_SELF},
    {"complete", "ID", "report that the work is done", complete_opts, NULL, .old = ack_complete,
     .finds_state = true, .who = AMP_WHO_SELF},
    {"fail", "ID", "refuse a message, or report that its work failed", fail_opts, NULL,
     .old = ack_fail, .finds_state = true, .who = AMP_WHO_SELF},
    {"reply", "ID", "answer a message that expects a reply", reply_opts, NULL, .old = ack_reply,
     .finds_state = true, .who = AMP_WHO_SELF},
    {"status", "", "show how far messages are delivered", status_opts, NULL, .old = ack_status,
     .finds_state = true, .group = "Looking", .operand_hint = "--task TASK selects"},
    {"log", "", "show what happened to messages", log_opts, NULL, .old = ack_log,
     .finds_state = true, .operand_hint = "--task TASK or --id ID selects"},
    {"show", "", "pass messages on and print a line about each", show_opts, NULL, .old = ack_show},
    {"audit", "", "list security events, or verify the log", audit_opts, NULL, .old = ack_audit,
     .finds_state = true},
    {"sweep", "", "escalate, retry and expire overdue messages", sweep_opts, NULL, .old = ack_sweep,
     .group = "Deadlines", .who = AMP_WHO_PERSON},
    {"watch", "", "do the same at each deadline, until a signal", watch_opts, NULL,
     .old = ack_watch, .who = AMP_WHO_PERSON},
    {"dead list", "", "list the dead letters", dead_list_opts, NULL, .old = ack_dead_list,
     .finds_state = true, .group = "Dead letters"},
    {"dead show", "[ID…]", "print complete dead letters", dead_show_opts, NULL,
     .old = ack_dead_show, .finds_state = true, .values = "letter"},
    {"dead requeue", "[ID…]", "deliver dead letters again", dead_requeue_opts, NULL,
     .old = ack_dead_requeue, .values = "letter", .who = AMP_WHO_PERSON},
    {"dead export", "[ID…]", "export dead letters, or a bundle for diagnosis", dead_export_opts,
     NULL, .old = ack_dead_export, .values = "letter"},
    {"dead purge", "[ID…]", "remove dead letters", dead_purge_opts, NULL, .old = ack_dead_purge,
     .values = "letter", .who = AMP_WHO_PERSON},
    {"cursors list", "", "list how far consumers have read", cursors_list_opts, NULL,
     .old = ack_cursors_list, .finds_state = true, .group = "Cursors"},
    {"cursors show", "CONSUMER SOURCE", "print one cursor", NULL, NULL, .old = ack_cursors_show,
     .finds_state = true, .values = "consumer source"},
    {"cursors move", "CONSUMER SOURCE SEQ", "set a cursor to the event after SEQ",
     cursors_edit_opts, NULL, .old = ack_cursors_move, .values = "consumer source",
     .who = AMP_WHO_SELF},
    {"cursors retire", "CONSUMER SOURCE", "retire a cursor", cursors_edit_opts, NULL,
     .old = ack_cursors_retire, .values = "consumer source", .who = AMP_WHO_SELF},
    {"export", "DIR", "archive ended segments of the log before they are removed", export_opts,
     NULL, .old = ack_export, .group = "Keeping", .who = AMP_WHO_PERSON},
    {"doctor", "[FILE…]", "find problems and print the commands that fix them", doctor_opts, NULL,
     .old = ack_doctor, .group = "Repairing"},
    {"repair", "", "repair a state directory after a failed write", NULL, NULL, .old = ack_repair,
     .who = AMP_WHO_PERSON},
    {0},
};
static const int statuses[] = {0,         AMP_NO,       AMP_USAGE,  AMP_DATAERR, AMP_UNAVAILABLE,
                               AMP_IOERR, AMP_TEMPFAIL, AMP_NOPERM, AMP_CONFIG,  AMP_INTERRUPTED,
                               0};
static const struct amp_fsm *const machines[] = {&amp_delivery_fsm, &amp_cursor_fsm,
                                                 &amp_transfer_fsm, NULL};
AMP_CONFIG_RECORDER;
static const struct amp_tool tool = {
    .name = "amp-ack",
    .doc = "track, acknowledge and escalate the delivery of messages",
    .opts = options,
    .verbs = (const struct amp_verb *const[]){verbs, NULL},
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_flow_values,
    .summary = amp_intake_summary,
};

int ack_metrics_end(struct amp_metrics *m, int rc, struct amp_error *err)
{
    struct amp_error why;
    if (amp_metrics_close(m, &why) == 0)
        return rc;
    if (rc == 0)
        *err = why;
    return -1;
}

const char *ack_identity_word(void)
{
    return identity.require;
}

int ack_identities(const char *principal, struct amp_identities **out, struct amp_error *err)
{
    const struct amp_identity_tool who = {
        .state = ack_state, .config = ack_config, .principal = principal, .quiet = true};
    *out = NULL;
    bool all = strcmp(identity.require, "all") == 0;
    return ack_state || all ? amp_identity_cli_open(&identity, &who, out, err) : 0;
}

int ack_person_or_self(const char *agent, const char *act, struct amp_error *err)
{
    return amp_flow_person_or_self(ack_state, amp_cli_name(), environ, agent, act, err);
}

int ack_terms(struct amp_error *err)
{
    if (ack_timeouts.n > 0)
        amp_timeouts_reset();
    for (int i = 0; i < ack_timeouts.n; i++)
        if (amp_timeouts_set_ack(NULL, ack_timeouts.v[i], err) < 0)
            return -1;
    return ack_sla ? amp_timeouts_set_sla(NULL, ack_sla, err) : 0;
}

int ack_retry_rules(struct amp_retry_rules *out, struct amp_error *err)
{
    amp_retry_defaults(out);
    out->idempotent = ack_idempotent.n > 0 ? ack_idempotent.v : NULL;
    for (int i = 0; i < ack_retries.n; i++)
        if (amp_retry_set_budget(out, ack_retries.v[i], err) < 0)
            return -1;
    for (int i = 0; i < ack_backoff.n; i++)
        if (amp_retry_set_backoff(out, ack_backoff.v[i], err) < 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
