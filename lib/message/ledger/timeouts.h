/* How long the acknowledgement and the outcome of a message are waited for: what the message says,
 * what a team sets, and else the terms of its protocol (protocol/terms.h). */
#ifndef AMP_MESSAGE_LEDGER_TIMEOUTS_H
#define AMP_MESSAGE_LEDGER_TIMEOUTS_H

#include <amp/protocol/protocol.h>

/* How long to wait for the acknowledgement of a message, 0: not at all. */
int64_t amp_timeouts_ack(const struct amp_view *v);
/* How long after its admission an outcome must be known, 0: nobody waits for one. */
int64_t amp_timeouts_sla(const struct amp_view *v);

/* What a team sets differently, for the whole process, before the first message: ack.timeout
 * ("PROTOCOL=TIME", after which a message's own time still counts) and ack.sla (a time, 0: no
 * matter). They take what an option or a setting says; arg is not looked at. USAGE bad_protocol or
 * what is wrong with the time. */
int amp_timeouts_set_ack(void *arg, const char *text, struct amp_error *err);
void amp_timeouts_reset(void); /* for a list that takes the place of another */
int amp_timeouts_set_sla(void *arg, const char *text, struct amp_error *err);

/* Rows for the settings of whatever tool records messages. */
#define AMP_TIMEOUTS_SETTINGS                                                                      \
    {"ack.timeout", amp_timeouts_set_ack},                                                         \
    {                                                                                              \
        "ack.sla", amp_timeouts_set_sla                                                            \
    }

#endif
