/* The parsed scopes of the jobs of an order (work/item/order.h), one for each type and text: many
 * jobs have the same. */
#ifndef AMP_WORK_ITEM_CONFLICT_SCOPES_H
#define AMP_WORK_ITEM_CONFLICT_SCOPES_H

#include <stddef.h>

#include "work/item/scope.h"

struct amp_shared_scope {
    struct amp_shared_scope *next; /* of its bucket */
    struct amp_scope parsed;
    struct amp_buf mem;
    const void *type; /* of the jobs, an address of the owner's */
    char *text;       /* may be empty */
    uint32_t uses;
    /* The result of the table owner's last look for this scope. */
    uint64_t asked;
    const void *found;
};
/* Begins zeroed; its scopes are dropped before its release. */
struct amp_scopes {
    struct amp_shared_scope **table;
    size_t n, n_buckets;
};
void amp_scopes_release(struct amp_scopes *s);
/* The scope of a text, to be dropped again. NO bad_scope. */
int amp_scopes_take(struct amp_scopes *s, const void *type, struct amp_span text,
                    struct amp_shared_scope **out, struct amp_error *err);
void amp_scopes_drop(struct amp_scopes *s, struct amp_shared_scope *scope); /* NULL is allowed */
/* amp_scope_overlap. */
bool amp_scopes_meet(const struct amp_shared_scope *a, const struct amp_shared_scope *b,
                     bool (*patterns)(struct amp_span, struct amp_span));

#endif
