/*
 * Conversion by tables. A message is read into neutral fields by the rows of its shape and written
 * from them by the rows of another protocol's shape of the same kind.
 */
#ifndef PROTOCOL_CONVERT_H
#define PROTOCOL_CONVERT_H

#include "protocol/convert/shape.h"
#include "protocol/view/pool.h"

/* Reads all rows that the message has. -1: no memory. */
int amp_cv_read(const struct cv_shape *s, const struct amp_tape *t, struct amp_pool *pool,
                struct cv_neutral *n, struct amp_error *err);
/* Writes one object. */
int amp_cv_write(const struct cv_shape *s, const struct cv_neutral *n, struct amp_pool *pool,
                 struct amp_buf *out, struct amp_error *err);
/* What of `from` is not in `to`: members of objects, appended as the origin's "fields" by pointer.
 * `said` tells whether what `to` has at a pointer is what the other protocol says, and not only
 * derived; `tell`, unless NULL, hears each pointer. */
struct cv_keeping {
    bool (*said)(void *ctx, struct amp_span pointer);
    void (*tell)(void *ctx, struct amp_span pointer, bool changed);
    void *ctx;
};
int amp_cv_keep(const struct amp_tape *from, const struct amp_tape *to, struct amp_buf *fields,
                const struct cv_keeping *how, struct amp_error *err);
/* The message with the origin's fields put back. */
int amp_cv_restore(const struct amp_tape *t, const struct amp_tape *origin, struct amp_buf *out,
                   struct amp_error *err);

#endif
