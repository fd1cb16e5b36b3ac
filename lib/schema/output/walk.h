/* The state of a walk for the standard output, shared by output.c and applicators.c. */
#ifndef AMP_SCHEMA_OUTPUT_WALK_H
#define AMP_SCHEMA_OUTPUT_WALK_H

#include "schema/check/run.h"
#include "schema/compile/compiler.h"
#include "schema/output/units.h"

struct amp_output_walk {
    const struct amp_schema *s;
    struct amp_schema_run *r;
    struct amp_error *err;
    struct amp_output_units units;
    uint32_t depth;
};

/* Adds the units of a node at a value; returns whether the value is valid. */
bool amp_walk_node(struct amp_output_walk *w, const struct amp_node *n, uint32_t tok,
                   const struct amp_marks *m);

/* applicators.c: one keyword that has subschemas or a rule of its own; true for all others. Each
 * keyword has its turn: those that concern what others left come later. */
enum { AMP_WALK_TURNS = 3 };
bool amp_walk_keyword(struct amp_output_walk *w, const struct amp_node *n,
                      const struct amp_keyword *key, int turn, uint32_t value, uint32_t tok,
                      const struct amp_marks *m);

/* Adds an error unit of this keyword and returns false. The arguments are a note's. */
bool amp_walk_wrong(struct amp_output_walk *w, const struct amp_node *n, const char *keyword,
                    uint32_t tok, const void *detail, struct amp_span name);
/* Adds an annotation unit with a JSON value. */
void amp_walk_annotate(struct amp_output_walk *w, const struct amp_node *n, const char *keyword,
                       struct amp_span json);

#endif
