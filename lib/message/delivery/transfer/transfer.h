/* The record of one transfer and its bytes, in a store or in memory. For the files of this folder.
 */
#ifndef AMP_MESSAGE_DELIVERY_TRANSFER_TRANSFER_H
#define AMP_MESSAGE_DELIVERY_TRANSFER_TRANSFER_H

#include <amp/base/id.h>

#include "message/delivery/transfer/transfer_fsm.h"
#include "message/store/store.h"

#define AMP_TRANSFER_RECORD_MAX ((size_t)1 << 20)

struct amp_transfer {
    struct amp_span producer, id;                           /* of the chunks */
    struct amp_span ref, from, protocol, correlation, task; /* of the message */
    struct amp_span digest;                                 /* of its line */
    struct amp_span by;                                     /* who gets the message */
    struct amp_span have;                                   /* '1' or '0' for each chunk */
    int64_t count, chunk_size, size, got;                   /* size: of the line */
};
/* Reads a record; spans are in mem. */
int amp_transfer_parse(struct amp_span json, struct amp_buf *mem, struct amp_transfer *out,
                       struct amp_error *err);

/* A transfer in memory. */
struct amp_transfer_held {
    struct amp_transfer_held *next;
    uint8_t state;
    int64_t due_ms;
    char *json, *bytes;
    char name[AMP_KEY_NAME_MAX];
};

/* All transfers, in a store or in memory. */
struct amp_transfers {
    struct amp_store *store; /* NULL: in memory */
    const char *actor;
    struct amp_transfer_held *held;
    struct amp_buf gone; /* names of files to remove after the batch */
};
void amp_transfers_release(struct amp_transfers *all);

/* One transfer between two changes. */
struct amp_transfer_now {
    struct amp_transfer t;
    struct amp_buf mem;
    bool found;
    uint8_t state;
    uint64_t rev;
    int64_t due_ms;
    char name[AMP_KEY_NAME_MAX]; /* the digest of producer and id: its file */
};
#define AMP_TRANSFER_NOW AMP_CLEANUP(amp_transfer_now_release) struct amp_transfer_now
void amp_transfer_now_release(struct amp_transfer_now *n);
int amp_transfer_find(struct amp_transfers *all, struct amp_span producer, struct amp_span id,
                      struct amp_transfer_now *out, struct amp_error *err);
/* Commits the record with a new state. 1: another process changed it since, so find it again. emit
 * may be NULL. */
int amp_transfer_save(struct amp_transfers *all, struct amp_transfer_now *n, uint8_t event,
                      uint8_t to, int64_t due_ms, const struct amp_store_emit *emit,
                      struct amp_error *err);

/* The bytes. A transfer without bytes gets room for all of them at the first write. */
int amp_transfer_write(struct amp_transfers *all, const struct amp_transfer_now *n, uint64_t at,
                       struct amp_span bytes, struct amp_error *err);
/* Appends n bytes from `at`. DATAERR partial_delivery: there are less. */
int amp_transfer_read(struct amp_transfers *all, const struct amp_transfer_now *n, uint64_t at,
                      size_t bytes, struct amp_buf *out, struct amp_error *err);
/* Locks the bytes, so that other processes know that this one has the message. 1: *fd, which the
 * caller closes; 0: another process has it, or there are none; -1: failure. Without a store *fd is
 * -1. */
int amp_transfer_lock(struct amp_transfers *all, const struct amp_transfer_now *n, int *fd,
                      struct amp_error *err);
/* Removes the bytes when the batch, if there is one, has ended: if the process is killed before,
 * its record still needs them. tidy removes what waited for that. */
void amp_transfer_drop(struct amp_transfers *all, const struct amp_transfer_now *n);
void amp_transfers_tidy(struct amp_transfers *all);
/* Removes at once what the sweep finds of a transfer that ended long ago. */
void amp_transfer_clear(struct amp_transfers *all, const struct amp_transfer_now *n);

/* Counts the unfinished transfers and their bytes. */
int amp_transfers_count(struct amp_transfers *all, uint32_t *n, uint64_t *bytes,
                        struct amp_error *err);

#endif
