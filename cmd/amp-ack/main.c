/* amp-ack: the delivery lifecycle of messages. */
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/delivery/cursor/cursor.h"
#include "message/delivery/intake.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/delivery.h"
#include "message/delivery/transfer/transfer_fsm.h"
#include "people/answer/person.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/identity.h"
#include "shared/state.h"
#include "shared/values.h"
#include "verbs.h"

static const char *ack_state;
const char *ack_as;
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

/* clang-format off */
#define VERBS(X) \
    X(default) X(track) X(send) X(token) X(reply) X(status) X(log) X(show) X(audit) X(sweep) \
    X(dead) X(dead_export) X(dead_purge) X(cursors) X(export) X(doctor) X(repair)
/* clang-format on */
AMP_VERBS(VERBS);
static const int statuses[] = {0,         AMP_NO,       AMP_USAGE,  AMP_DATAERR, AMP_UNAVAILABLE,
                               AMP_IOERR, AMP_TEMPFAIL, AMP_NOPERM, AMP_CONFIG,  AMP_INTERRUPTED,
                               0};
static const struct amp_fsm *const machines[] = {&amp_delivery_fsm, &amp_cursor_fsm,
                                                 &amp_transfer_fsm, NULL};
AMP_CONFIG_RECORDER;
static int ack_open(struct amp_command *c, struct amp_error *err)
{
    struct amp_error why;
    if (amp_state_open(c, &why) == 0)
        return 0;
    bool repairs = amp_code_is(why.code, log_failed) || amp_code_is(why.code, log_damaged);
    return amp_fail_text(err, why.status, why.code, "%s%s", why.what,
                         repairs ? "; 'amp-ack repair' fixes it" : "");
}

static const struct amp_tool tool = {
    .name = "amp-ack",
    .doc = "track, acknowledge and escalate the delivery of messages",
    .opts = options,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_values,
    .refuse = amp_state_refuse,
    .open = ack_open,
    .close = amp_state_close,
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
    return amp_person_or_self_recorded(ack_state, amp_cli_name(), environ, agent, act, err);
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
