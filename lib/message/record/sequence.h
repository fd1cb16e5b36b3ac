/*
 * Numbers for what we send in our own name: strictly rising per outbox, without a gap, over
 * processes and crashes. Key "sequence.<source>".
 */
#ifndef AMP_MESSAGE_RECORD_SEQUENCE_H
#define AMP_MESSAGE_RECORD_SEQUENCE_H

#include "protocol/compose/answer.h"
#include "store/store.h"

/* Takes n numbers of the outbox: *first and those behind it are the caller's alone. They are
 * durable at the next amp_store_sync, as is what bears them. NO sequence_exhausted. */
int amp_sequence_next(struct amp_store *s, struct amp_span source, uint32_t n, const char *actor,
                      int64_t *first, struct amp_error *err);
/* A number for what SW4RM's producer says, above all that it was given before: it must rise and may
 * skip. It is the clock's (amp_id_number) where that is higher, so that it also rises over what the
 * producer numbered without a state. */
int amp_sequence_rise(struct amp_store *s, struct amp_span producer, int64_t now_ms,
                      const char *actor, int64_t *number, struct amp_error *err);

/* n such numbers, the first of which is in *first. */
int amp_sequence_rise_by(struct amp_store *s, struct amp_span producer, uint32_t n, int64_t now_ms,
                         const char *actor, int64_t *first, struct amp_error *err);

/* Numbers an answer to `of` as its protocol requires: in the outbox of its node (Runtime Protocol),
 * or among the producer's messages (SW4RM). Other protocols have no numbers. Without a store (NULL)
 * there are none either. */
int amp_sequence_answer(struct amp_store *s, const struct amp_view *of, const char *actor,
                        struct amp_answer *a, struct amp_error *err);

#endif
