/* The time limits for the acknowledgement and the outcome of a message: the message's own, else the
 * configured ones, else those of its protocol (protocol/delivery.h). */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_TIMEOUTS_H
#define AMP_MESSAGE_DELIVERY_LEDGER_TIMEOUTS_H

#include <amp/protocol/protocol.h>

/* The time limit of the acknowledgement, 0: none is needed. */
int64_t amp_timeouts_ack(const struct amp_view *v);
/* The time limit of the outcome, from admission; 0: none is needed. */
int64_t amp_timeouts_sla(const struct amp_view *v);

/* Set the limits of this process; call them before the first message. ack.timeout is
 * "PROTOCOL=TIME"; a message's own time has priority over it. ack.sla is a time, 0: no limit. arg
 * is ignored. USAGE bad_protocol, or a code of amp_num_duration. */
int amp_timeouts_set_ack(void *arg, const char *text, struct amp_error *err);
void amp_timeouts_reset(void); /* before another list of ack.timeout is set */
int amp_timeouts_set_sla(void *arg, const char *text, struct amp_error *err);

/* Rows for the settings of tools that record messages. */
#define AMP_TIMEOUTS_SETTINGS                                                                      \
    {"ack.timeout", amp_timeouts_set_ack},                                                         \
    {                                                                                              \
        "ack.sla", amp_timeouts_set_sla                                                            \
    }

#endif
