/* amp-ack: the delivery lifecycle of messages: track, acknowledge, sweep, look, send again. */
#include "flow/config.h"
#include "message/cursor/cursor.h"
#include "message/record/delivery.h"
#include "verbs.h"

const char *ack_state, *ack_as;
int64_t ack_lock_timeout_ms = AMP_LOCK_TIMEOUT_MS;
struct amp_metrics_options ack_metrics = {.interval_ms = AMP_METRICS_INTERVAL_MS};
const char *ack_config;

static const struct amp_opt options[] = {
    AMP_OPT_STATE(ack_state),
    AMP_OPT_CONFIG(ack_config),
    {0, "as", AMP_OPT_STRING, &ack_as, "NAME", .doc = "name in the state directory"},
    AMP_OPT_LOCK_TIMEOUT(ack_lock_timeout_ms),
    AMP_OPT_END,
};

static const struct amp_verb verbs[] = {
    {NULL, "", "the same as track", track_opts, ack_track},
    {"track", "", "record every message before it passes", track_opts, ack_track},
    {"send", "", "acknowledge the messages on stdin", send_opts, ack_send},
    {"sweep", "", "escalate what is overdue", sweep_opts, ack_sweep},
    {"watch", "", "escalate what becomes overdue, when it does", watch_opts, ack_watch},
    {"dead list", "", "list the dead letters", dead_list_opts, ack_dead_list},
    {"dead show", "[ID…]", "print dead letters whole", dead_show_opts, ack_dead_show},
    {"dead requeue", "[ID…]", "send dead letters again", dead_requeue_opts, ack_dead_requeue},
    {"dead export", "[ID…]", "write dead letters out, or a bundle that explains them",
     dead_export_opts, ack_dead_export},
    {"dead purge", "[ID…]", "remove dead letters", dead_purge_opts, ack_dead_purge},
    {"status", "", "show how far deliveries came", status_opts, ack_status},
    {"log", "", "show what happened, all of it or one conversation", log_opts, ack_log},
    {"show", "", "pass messages on, telling each on stderr", show_opts, ack_show},
    {"token", "PRODUCER OPERATION", "print the idempotency token of the parameters on stdin",
     token_opts, ack_token},
    {"cursors list", "", "how far consumers have read", cursors_list_opts, ack_cursors_list},
    {"cursors show", "CONSUMER SOURCE", "print one cursor", NULL, ack_cursors_show},
    {"cursors move", "CONSUMER SOURCE SEQ", "set a cursor behind the event SEQ", cursors_edit_opts,
     ack_cursors_move},
    {"cursors retire", "CONSUMER SOURCE", "end a cursor", cursors_edit_opts, ack_cursors_retire},
    {"doctor", "[FILE…]", "say what is wrong, and what mends it", doctor_opts, ack_doctor},
    {"repair", "", "mend a state directory after a failed write", repair_opts, ack_repair},
    {0},
};
static const int statuses[] = {0,         AMP_NO,       AMP_USAGE,  AMP_DATAERR, AMP_UNAVAILABLE,
                               AMP_IOERR, AMP_TEMPFAIL, AMP_NOPERM, AMP_CONFIG,  AMP_INTERRUPTED,
                               0};
static const struct amp_fsm *const machines[] = {&amp_delivery_fsm, &amp_cursor_fsm, NULL};
AMP_CONFIG_RECORDER;
static const struct amp_tool tool = {
    .name = "amp-ack",
    .doc = "track, acknowledge and escalate the delivery of messages",
    .opts = options,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
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

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
