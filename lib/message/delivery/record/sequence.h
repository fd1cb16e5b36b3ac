/*
 * Sequence numbers of composed messages, over processes and crashes. The numbers of an outbox have
 * no gaps. Key "sequence.<source>".
 */
#ifndef AMP_MESSAGE_DELIVERY_RECORD_SEQUENCE_H
#define AMP_MESSAGE_DELIVERY_RECORD_SEQUENCE_H

#include "message/protocol/compose/answer.h"
#include "message/store/store.h"

/* Reserves n numbers of the outbox, from *first on. They are durable at the next amp_store_sync, as
 * are the lines with these numbers. NO sequence_exhausted. */
int amp_sequence_next(struct amp_store *s, struct amp_span source, uint32_t n, const char *actor,
                      int64_t *first, struct amp_error *err);
/* Reserves one number of the outbox `actor` and puts the line that compose makes with it into that
 * outbox, in one commit: a process that is killed leaves no gap. compose works under the store's
 * lock (amp_store_fn); its line and id must stay valid until this function returns. */
typedef int (*amp_sequence_compose)(void *ctx, int64_t number, struct amp_store_emit *out,
                                    struct amp_error *err);
int amp_sequence_emit(struct amp_store *s, struct amp_span source, const char *actor,
                      amp_sequence_compose compose, void *ctx, struct amp_error *err);
/* Reserves n numbers of a SW4RM producer, which increase and may have gaps. They begin with the
 * clock's number (amp_id_number) if it is higher, so they are also above those that the producer
 * used without a state directory. */
int amp_sequence_rise(struct amp_store *s, struct amp_span producer, uint32_t n, int64_t now_ms,
                      const char *actor, int64_t *first, struct amp_error *err);

/* Sets the number of an answer to `of` as its protocol requires: in the outbox of its node (Runtime
 * Protocol) or of its producer (SW4RM). No number without a store (NULL) and in other protocols. */
int amp_sequence_answer(struct amp_store *s, const struct amp_view *of, const char *actor,
                        struct amp_answer *a, struct amp_error *err);

#endif
