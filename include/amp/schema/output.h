/*
 * The standard output format of JSON Schema (2020-12, section 12): what a check found, as output
 * units. Errors of what is invalid, annotations of what is valid. Slower than the check, which
 * stays as it is.
 */
#ifndef AMP_SCHEMA_OUTPUT_H
#define AMP_SCHEMA_OUTPUT_H

#include <amp/base/api.h>
#include <amp/schema/schema.h>

AMP_API_BEGIN

#define AMP_OUTPUT_LIST(X)                                                                         \
    X(FLAG, "flag")         /* {"valid":…} */                                                    \
    X(BASIC, "basic")       /* all units in one list */                                            \
    X(DETAILED, "detailed") /* a tree, without what has one child or none */

enum amp_output {
#define X(id, name) AMP_OUTPUT_##id,
    AMP_OUTPUT_LIST(X)
#undef X
};

/* Appends the output for one value as one JSON object. A value with more than 10,000 units gets
 * those and "truncated":true. 1 valid, 0 invalid, -1 as amp_schema_check; out is unchanged then. */
int amp_schema_output(const struct amp_schema *s, struct amp_schema_run *r,
                      const struct amp_tape *t, uint32_t tok, enum amp_output form,
                      struct amp_buf *out, struct amp_error *err);

AMP_API_END

#endif
