/*
 * Takes units of transport apart (SW4RM §5.4; protocol/compose/unit.h): reassembles messages from
 * chunks and splits batches, before the ledger sees a message. Chunks may arrive in any order and
 * repeatedly. With a store, unfinished messages outlive the process, also under kill -9:
 *
 *   transfer.<producer>.<transfer>   the record of one transfer (transfer_fsm.c)
 *   STATE/transfers/<digest>         the bytes that have arrived, each at its place
 *
 * Without one they are in memory. Nothing is acknowledged before the complete message is: a message
 * whose chunks were lost fails after the time limit, and its sender is told.
 */
#ifndef AMP_MESSAGE_DELIVERY_TRANSFER_UNITS_H
#define AMP_MESSAGE_DELIVERY_TRANSFER_UNITS_H

#include <amp/protocol/protocol.h>

#include "message/delivery/transfer/transfer_fsm.h"
#include "message/store/store.h"

/* The limits of this process (transport.* in amp.json(5)), and their codes. */
struct amp_unit_limits {
    int64_t timeout_ms;  /* between two chunks of a message: partial_delivery */
    uint32_t unfinished; /* messages at once: buffer_full */
    size_t waiting;      /* bytes of all of them: buffer_full */
    size_t message;      /* bytes of one message: oversize_payload */
    uint32_t chunks;     /* of one message: oversize_payload */
    uint32_t batch;      /* messages of a batch: oversize_payload */
};
extern struct amp_unit_limits amp_unit_limits;

/* Rows for the settings; arg is ignored. USAGE, the codes of amp_num. */
int amp_unit_set_timeout(void *arg, const char *text, struct amp_error *err);
int amp_unit_set_unfinished(void *arg, const char *text, struct amp_error *err);
int amp_unit_set_waiting(void *arg, const char *text, struct amp_error *err);
int amp_unit_set_message(void *arg, const char *text, struct amp_error *err);
int amp_unit_set_chunks(void *arg, const char *text, struct amp_error *err);
int amp_unit_set_batch(void *arg, const char *text, struct amp_error *err);
#define AMP_UNIT_SETTINGS                                                                          \
    {"transport.chunk_timeout", amp_unit_set_timeout},                                             \
        {"transport.unfinished", amp_unit_set_unfinished},                                         \
        {"transport.unfinished_bytes", amp_unit_set_waiting},                                      \
        {"transport.message_bytes", amp_unit_set_message},                                         \
        {"transport.chunks", amp_unit_set_chunks},                                                 \
    {                                                                                              \
        "transport.batch", amp_unit_set_batch                                                      \
    }

struct amp_units;
/* actor: for the log. by: resumes the transfers of this process if it is killed. The store (NULL:
 * none) and both texts are borrowed. */
int amp_units_new(struct amp_store *s, const char *actor, const char *by, struct amp_units **out,
                  struct amp_error *err);
void amp_units_free(struct amp_units *u);

/* Whether a process of the same `by` was killed between the last chunk of a message and the moment
 * when it had the message: 1, and amp_units_next begins with those messages; 0; or -1. */
int amp_units_leftovers(struct amp_units *u, struct amp_error *err);

/* The refusal of a message in chunks, or of a batch: chunk_corrupt, chunk_mismatch, batch_corrupt,
 * partial_delivery, oversize_payload, buffer_full. */
struct amp_unit_refusal {
    struct amp_error why;
    struct amp_view of; /* the message for the answer: protocol, id, sender, correlation, task;
                           spans are valid until the next call. Of a batch: the batch itself. */
};

enum amp_unit_took {
    AMP_UNIT_FAILED = -1,
    AMP_UNIT_TAKEN, /* lines may be ready */
    AMP_UNIT_REFUSED,
};
/* Takes a message of kind CHUNK or BATCH. The view may become invalid with the next line. */
enum amp_unit_took amp_units_take(struct amp_units *u, const struct amp_view *v, int64_t now_ms,
                                  struct amp_unit_refusal *why, struct amp_error *err);
/* The next complete message: 1: *line, valid until the next call; 0: none; -1: failure. Asking for
 * the next one says that the last one needs no repetition if this process dies: commit it before.
 */
int amp_units_next(struct amp_units *u, int64_t now_ms, struct amp_span *line,
                   struct amp_error *err);
/* For a caller that takes every message in a batch of the store: after the batch, removes the bytes
 * of the messages that ended in it. */
void amp_units_settled(struct amp_units *u);
/* Whether the last line is a message from chunks that was not yet followed by another call. */
bool amp_units_hold(const struct amp_units *u);
/* Without a store: drops a message whose time limit passed, or (end) any unfinished one. REFUSED:
 * one was dropped, call again; TAKEN: there is none. */
enum amp_unit_took amp_units_expire(struct amp_units *u, int64_t now_ms, bool end,
                                    struct amp_unit_refusal *why, struct amp_error *err);

/* The deadline row: drops the messages whose time limit passed, with answers in the outbox of
 * `actor`, and removes the records of ended transfers. */
int amp_transfers_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                        struct amp_error *err);

#endif
