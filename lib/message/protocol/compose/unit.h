/*
 * Units of transport (SW4RM §5.4): a chunk is a part of a message that is too large for one line of
 * its receiver, a batch is several messages. Both are messages of SW4RM with content types of their
 * own (schemas sw4rm/chunk, sw4rm/batch), whatever protocol the messages in them have.
 */
#ifndef AMP_MESSAGE_PROTOCOL_COMPOSE_UNIT_H
#define AMP_MESSAGE_PROTOCOL_COMPOSE_UNIT_H

#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

/* An agent that registers one of these content types among its modalities takes such units. */
#define AMP_UNIT_CHUNK_TYPE "application/vnd.amp.chunk+json"
#define AMP_UNIT_BATCH_TYPE "application/vnd.amp.batch+json"

/* A transfer is one sending of a message in chunks. All chunks but the last have chunk_size bytes
 * of the message. */
struct amp_unit_transfer {
    char id[AMP_UUID_MAX];
    char digest[AMP_SHA256_MAX]; /* SHA-256 of the message's line, in hex */
    struct amp_span line;        /* without LF, as the receiver would get it in one piece */
    size_t chunk_size;
    uint32_t count;
    enum amp_protocol protocol; /* of the message; the spans may be empty */
    struct amp_span ref, from, correlation, task;
};
/* Fills id, digest and count for line and chunk_size. */
void amp_unit_transfer_begin(struct amp_unit_transfer *t);

/* Appends the line of chunk `index`, without LF, said by `by`. id gets its message_id. */
int amp_unit_chunk(const struct amp_unit_transfer *t, uint32_t index, const char *by,
                   int64_t now_ms, char id[AMP_UUID_MAX], struct amp_buf *out,
                   struct amp_error *err);
/* Appends the line of a batch of n lines, in the same way. */
int amp_unit_batch(const struct amp_span *lines, uint32_t n, const char *by, int64_t now_ms,
                   char id[AMP_UUID_MAX], struct amp_buf *out, struct amp_error *err);
/* The digest of a batch: of its lines, each with LF. */
int amp_unit_batch_digest(const struct amp_span *lines, uint32_t n, char out[AMP_SHA256_MAX],
                          struct amp_error *err);

#endif
