/* The deadlines of a state directory, as the options of sweep and watch set them. */
#ifndef AMP_ACK_SWEEP_H
#define AMP_ACK_SWEEP_H

#include "flow/deadlines.h"

/* One outbox for both verbs, so that each writes what the other left when it was killed. */
#define SWEEP_NAME "amp-ack.sweep"

struct amp_deadline_ctx sweep_deadlines(struct amp_metrics *metrics);

#endif
