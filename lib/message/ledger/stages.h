/* How long the acknowledgement and the outcome of a message are waited for: what the message says,
 * what a team sets, and else the terms of its protocol (protocol/terms.h). */
#ifndef AMP_MESSAGE_LEDGER_STAGES_H
#define AMP_MESSAGE_LEDGER_STAGES_H

#include <amp/protocol/protocol.h>

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

#endif
