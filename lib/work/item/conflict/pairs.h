/* The pairs with a record (work/item/conflict/conflict.h) in the memory of one process, for the
 * order (work/item/order.h). */
#ifndef AMP_WORK_ITEM_CONFLICT_PAIRS_H
#define AMP_WORK_ITEM_CONFLICT_PAIRS_H

#include "work/item/conflict/conflict.h"

struct amp_pair {
    struct amp_pair *next;           /* of its bucket */
    struct amp_pair *before, *after; /* of all */
    char id[AMP_CONFLICT_ID_MAX];
    char a[AMP_QUEUE_ID_MAX], b[AMP_QUEUE_ID_MAX];
    char first[AMP_QUEUE_ID_MAX]; /* SERIAL: the job that goes first; "": either */
    uint8_t state;
    int64_t until_ms;
};

/* Begins zeroed. */
struct amp_pairs {
    struct amp_pair **table, *first;
    size_t n, n_buckets;
    uint32_t n_ordered; /* pairs with `first` */
};
void amp_pairs_release(struct amp_pairs *p);
/* Reads all records. */
int amp_pairs_load(struct amp_pairs *p, struct amp_store *s, struct amp_error *err);
/* Reads the record of a pair again, which may be gone. */
int amp_pairs_reread(struct amp_pairs *p, struct amp_store *s, const char *id, struct amp_buf *mem,
                     struct amp_error *err);
/* The pair of two jobs, in any order; NULL: it has no record. */
const struct amp_pair *amp_pairs_find(const struct amp_pairs *p, const char *x, const char *y);

#endif
