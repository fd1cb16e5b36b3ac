/* The output units of a walk: a list in the walk's order. */
#ifndef AMP_SCHEMA_OUTPUT_UNITS_H
#define AMP_SCHEMA_OUTPUT_UNITS_H

#include <amp/schema/output.h>

#include "schema/check/run.h"

enum amp_unit_kind {
    UNIT_ROOT, /* the first one, which has the others */
    UNIT_ERROR,
    UNIT_ANNOTATION,
};

struct amp_unit_text {
    uint32_t at, n; /* in amp_units.texts */
};

struct amp_unit {
    uint32_t kind;
    struct amp_unit_text keyword, instance;
    struct amp_unit_text absolute; /* empty if there is no absolute URI */
    struct amp_unit_text content;  /* the error's sentence, or the annotation as JSON */
};

struct amp_output_units {
    struct amp_unit *v;
    uint32_t n;
    size_t cap;
    bool truncated;
    struct amp_buf texts;
    struct amp_buf keyword, instance; /* the walk's position, as pointers */
};

void amp_units_init(struct amp_output_units *u);
void amp_units_release(struct amp_output_units *u);
/* Adds a unit at the walk's position, or below it at the keyword, which may be NULL. Past the
 * limits it adds none and sets `truncated`. */
int amp_units_add(struct amp_output_units *u, enum amp_unit_kind kind, const struct amp_schema *s,
                  const struct amp_node *n, const char *keyword, struct amp_span content,
                  struct amp_error *err);
/* Removes the units of a kind from an index on. */
void amp_units_drop(struct amp_output_units *u, uint32_t from, enum amp_unit_kind kind);
/* Appends the list as one JSON object; on failure out is unchanged. */
int amp_units_write(const struct amp_output_units *u, bool valid, enum amp_output form,
                    struct amp_buf *out, struct amp_error *err);

/* Appends a step to a pointer; returns the value for amp_pointer_pop. */
size_t amp_pointer_push(struct amp_buf *pointer, struct amp_span name);
size_t amp_pointer_push_index(struct amp_buf *pointer, uint32_t index);
static inline void amp_pointer_pop(struct amp_buf *pointer, size_t before)
{
    pointer->len = before;
}

#endif
