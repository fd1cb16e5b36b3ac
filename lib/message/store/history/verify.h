/*
 * Verifying the log with its key (log/chain.h), outside of a turn and without the index.
 *
 * Each frame must have the number and the link that follow from the frame before it, and from the
 * key's first frame on the right m. After a repair frame, exactly the numbers up to its `next` may
 * be missing. The log must begin no later than, and reach at least, what keys/log.end notes.
 */
#ifndef AMP_MESSAGE_STORE_HISTORY_VERIFY_H
#define AMP_MESSAGE_STORE_HISTORY_VERIFY_H

#include "message/store/store.h"

/* Whether sig is a valid signature of text. Returns -1 with the reason. */
typedef int (*amp_store_check_fn)(void *ctx, struct amp_span text, struct amp_span sig,
                                  struct amp_error *err);

struct amp_store_verify {
    amp_store_check_fn check; /* of the seals' signatures; NULL: they are not verified */
    void *ctx;
    /* Something to report that is not an error: a repair, an incomplete last line. May be NULL. */
    void (*note)(void *ctx, uint32_t seg, uint64_t off, const char *what);
    void (*progress)(const char *what, uint64_t done,
                     uint64_t total); /* total 0: unknown; or NULL */
};

struct amp_store_verdict {
    uint32_t segments;
    uint64_t first, last;    /* frames; 0, 0: none */
    uint64_t from;           /* the first frame that the key covers; 0: there is no key */
    uint64_t noted;          /* the last frame that keys/log.end notes; 0: none */
    uint64_t bytes;          /* of all frames */
    uint64_t seals, signed_; /* seals, and those with a signature */
    uint64_t repairs;        /* repair frames */
    uint64_t skipped;        /* frames that repairs recorded as lost */
    /* The place of the first problem, if the function fails with log_tampered. */
    uint32_t seg;
    uint64_t off, n;
};

/* NO log_tampered: a frame was changed, dropped, inserted or moved, or frames are missing at an
 * end; out has the place. CONFIG log_no_key: the log has no key yet. */
int amp_store_verify(struct amp_store *s, const struct amp_store_verify *how,
                     struct amp_store_verdict *out, struct amp_error *err);

/* Reads the complete index, outside of a turn: its structure, the checksums of its pages and of its
 * rows. TEMPFAIL index_failed: it is damaged. 0 also if there is none, or it cannot be opened. */
int amp_store_check_index(struct amp_store *s, struct amp_error *err);

/* Reads all blobs and calls fn for each that is damaged, or that is missing though a frame names
 * it.
 */
typedef void (*amp_store_blob_fn)(void *ctx, const char *name, bool missing);
int amp_store_check_blobs(struct amp_store *s, amp_store_blob_fn fn, void *ctx,
                          struct amp_error *err);

#endif
