/* What each protocol says of acknowledgements, as data: which stage its messages wait for, and for
 * how long where a message does not say so itself. */
#ifndef AMP_MESSAGE_LEDGER_STAGES_H
#define AMP_MESSAGE_LEDGER_STAGES_H

#include <amp/protocol/protocol.h>

struct amp_stages {
    enum amp_protocol protocol;
    enum amp_ack_stage waits_for; /* RECEIVED: admission is enough */
    int64_t ack_timeout_ms;       /* of messages that cannot say whether they want one; 0: none */
    int64_t sla_ms;               /* from admission to an outcome; 0: none is waited for */
    const char *const *silent;    /* types that nobody acknowledges; NULL-terminated */
    const char *source;
};
/* NULL for a protocol without acknowledgements. */
const struct amp_stages *amp_stages_of(enum amp_protocol p);

/* How long to wait for the acknowledgement of a message, 0: not at all. */
int64_t amp_stages_timeout(const struct amp_view *v);
/* How long after its admission an outcome must be known, 0: nobody waits for one. */
int64_t amp_stages_sla(const struct amp_view *v);

/* What a team sets differently, for the whole process, before the first message: ack.timeout
 * ("PROTOCOL=TIME", after which a message's own time still counts) and ack.sla (a time, 0: no
 * matter). They take what an option or a setting says; arg is not looked at. USAGE bad_protocol or
 * what is wrong with the time. */
int amp_stages_set_timeout(void *arg, const char *text, struct amp_error *err);
void amp_stages_reset_timeouts(void); /* for a list that takes the place of another */
int amp_stages_set_sla(void *arg, const char *text, struct amp_error *err);

/* Rows for the settings of whatever tool records messages. */
#define AMP_STAGES_SETTINGS                                                                        \
    {"ack.timeout", amp_stages_set_timeout},                                                       \
    {                                                                                              \
        "ack.sla", amp_stages_set_sla                                                              \
    }

/* Whether signs of life are due of the work while it goes on, and how long it may be silent; warns:
 * silence is only told (AOP execution_policy.heartbeat). */
bool amp_stages_beat(const struct amp_view *v, int64_t *beat_ms, bool *warns);

#endif
