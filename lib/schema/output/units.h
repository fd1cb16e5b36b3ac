/* Output units while they are gathered: a list in the order of a walk, with depths. */
#ifndef SCHEMA_UNITS_H
#define SCHEMA_UNITS_H

#include <amp/schema/output.h>

#include "schema/check/run.h"

enum amp_unit_kind {
    UNIT_GROUP, /* a subschema, or a keyword that applies several: has units below it */
    UNIT_ERROR,
    UNIT_ANNOTATION,
};

/* Texts are places in amp_units.texts. */
struct amp_unit {
    uint32_t kind, depth;
    uint32_t keyword, keyword_n, instance, instance_n;
    uint32_t absolute, absolute_n; /* n is 0 where there is no absolute URI */
    uint32_t says, says_n;         /* the error's sentence, or the annotation as JSON */
};

struct amp_units {
    struct amp_unit *v;
    uint32_t n, depth;
    size_t cap;
    bool truncated;
    struct amp_buf texts;
    struct amp_buf keyword, instance; /* where the walk is, as pointers */
};

void amp_units_init(struct amp_units *u);
void amp_units_release(struct amp_units *u);
/* A unit at the present place, or below it at the keyword. The schema is n's. */
int amp_units_add(struct amp_units *u, enum amp_unit_kind kind, const struct amp_schema *s,
                  const struct amp_node *n, const char *keyword, struct amp_span says,
                  struct amp_error *err);
/* Forgets the units of a kind from an index on, and the groups that become empty. */
void amp_units_drop(struct amp_units *u, uint32_t from, enum amp_unit_kind kind);
/* The finished list as one JSON object. */
int amp_units_write(const struct amp_units *u, bool valid, enum amp_output form,
                    struct amp_buf *out, struct amp_error *err);

/* Goes one step down; returns what to give to the function that goes back. */
size_t amp_pointer_push(struct amp_buf *pointer, struct amp_span name, struct amp_error *err);
size_t amp_pointer_push_index(struct amp_buf *pointer, uint32_t index, struct amp_error *err);
static inline void amp_pointer_pop(struct amp_buf *pointer, size_t before)
{
    pointer->len = before;
}

#endif
