/*
 * Conversion by tables. A message is read into neutral fields by the rows of its shape and written
 * from them by the rows of another protocol's shape of the same kind.
 */
#ifndef AMP_MESSAGE_PROTOCOL_CONVERT_CONVERT_H
#define AMP_MESSAGE_PROTOCOL_CONVERT_CONVERT_H

#include "base/arena.h"
#include "message/protocol/convert/shape.h"

/* Before the origin on the last line of a note. */
#define CV_ORIGIN_MARK "x_amp_origin "

/* Reads all rows that the message has. -1: out of memory. */
int amp_cv_read(const struct cv_shape *s, const struct amp_tape *t, struct amp_arena *arena,
                struct cv_neutral *n, struct amp_error *err);
/* Appends one object. */
int amp_cv_write(const struct cv_shape *s, const struct cv_neutral *n, struct amp_arena *arena,
                 struct amp_buf *out, struct amp_error *err);

struct cv_keeping {
    /* Whether the target has the value at the pointer, so that it need not be derived. */
    bool (*is_carried)(void *ctx, struct amp_span pointer);
    /* Gets each pointer that is kept; `changed`: the target has the member in another form. May be
     * NULL. */
    void (*report)(void *ctx, struct amp_span pointer, bool changed);
    void *ctx;
};
/* Appends the members of `from` that `to` lacks or has changed, as the origin's "fields". */
int amp_cv_keep(const struct amp_tape *from, const struct amp_tape *to, struct amp_buf *fields,
                const struct cv_keeping *how, struct amp_error *err);
/* Appends the message with the origin's fields restored. */
int amp_cv_restore(const struct amp_tape *t, const struct amp_tape *origin, struct amp_buf *out,
                   struct amp_error *err);

/* Ids and times that are derived from a text (derive.c). A text that has the form already is
 * returned; other results are in the arena, and empty with a NULL pointer if out of memory. */
struct amp_span amp_cv_uuid(struct amp_span text, struct amp_arena *arena);
struct amp_span amp_cv_task_amp(struct amp_span text, struct amp_arena *arena);
struct amp_span amp_cv_task_aof(struct amp_span text, struct amp_arena *arena);
struct amp_span amp_cv_msg_id(struct amp_span type, struct amp_span task, struct amp_span id,
                              int64_t ms, struct amp_arena *arena);
/* A text that is not a time, and any text if out of memory, is returned unchanged. */
struct amp_span amp_cv_time_z(struct amp_span text, struct amp_arena *arena);

#endif
