/* Removing records that are due and no longer needed. */
#ifndef AMP_MESSAGE_DELIVERY_RECORD_FORGET_H
#define AMP_MESSAGE_DELIVERY_RECORD_FORGET_H

#include "message/store/store.h"

struct amp_forgetting {
    const char *kind, *actor;
    int64_t now_ms;
    /* Decides on a record that is due: *until_ms is the next due time, 0 removes it; *state is the
     * state of a record that is kept. NULL: all are removed. */
    int (*decide)(void *ctx, const struct amp_store_rec *rec, int64_t *until_ms, const char **state,
                  struct amp_error *err);
    void *ctx;
};
/* *gone (may be NULL) is the number of removed records. A record that has changed since is kept. */
int amp_forget(struct amp_store *s, const struct amp_forgetting *f, uint32_t *gone,
               struct amp_error *err);

#endif
