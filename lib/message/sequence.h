/*
 * Numbers for what we send in our own name: strictly rising per outbox, without a gap, over
 * processes and crashes. Key "sequence.<source>".
 */
#ifndef AMP_MESSAGE_SEQUENCE_H
#define AMP_MESSAGE_SEQUENCE_H

#include "store/store.h"

/* Takes n numbers of the outbox: *first and those behind it are the caller's alone. They are
 * durable at the next amp_store_sync, as is what bears them. NO sequence_exhausted. */
int amp_sequence_next(struct amp_store *s, struct amp_span source, uint32_t n, const char *actor,
                      int64_t *first, struct amp_error *err);
/* A number for a producer of SW4RM, whose numbers rise and may leave some out: one past its last,
 * or the microseconds of the clock, as those have who keep no state. Key
 * "sequence.rising:<producer>".
 */
int amp_sequence_rise(struct amp_store *s, struct amp_span producer, int64_t now_ms,
                      const char *actor, int64_t *number, struct amp_error *err);
/* The number given last, 0 for none. */
int amp_sequence_last(struct amp_store *s, struct amp_span source, int64_t *last,
                      struct amp_error *err);

#endif
