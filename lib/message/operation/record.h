/* The record of an operation: written and read here only. */
#ifndef AMP_MESSAGE_OPERATION_RECORD_H
#define AMP_MESSAGE_OPERATION_RECORD_H

#include "store/store.h"

struct amp_operation_rec {
    struct amp_span producer, token;
    int64_t sequence; /* of an operation without a token */
    int64_t attempt;  /* the highest count seen */
    struct amp_span original;
    struct amp_span *attempts; /* ids: the first, and the newest */
    uint32_t n_attempts;
    int64_t answered;
    struct amp_operation_last {
        struct amp_span id, correlation;
        const char *decision, *original_status;
        int64_t at_ms;
    } last;
    int64_t cached_ms;
};

/* Empty where the record does not exist. What is read lives in mem. */
int amp_operation_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                       struct amp_operation_rec *out, struct amp_error *err);
int amp_operation_write(const struct amp_operation_rec *r, struct amp_buf *out,
                        struct amp_error *err);

#endif
