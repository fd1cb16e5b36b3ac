/*
 * The standard output format of JSON Schema (2020-12, section 12): the result of a check as output
 * units, which are errors of an invalid value or annotations of a valid one. Slower than the check.
 */
#ifndef AMP_SCHEMA_OUTPUT_H
#define AMP_SCHEMA_OUTPUT_H

#include <amp/base/api.h>
#include <amp/schema/schema.h>

AMP_API_BEGIN

#define AMP_OUTPUT_LIST(X)                                                                         \
    X(FLAG, "flag")   /* {"valid":…} */                                                          \
    X(BASIC, "basic") /* all units in one list */

enum amp_output {
#define X(id, name) AMP_OUTPUT_##id,
    AMP_OUTPUT_LIST(X)
#undef X
};

/* Appends the output for one value as one JSON object. Past 10,000 units it is cut, with
 * "truncated":true. Returns as amp_schema_check; on failure out is unchanged. */
int amp_schema_output(const struct amp_schema *s, struct amp_schema_run *r,
                      const struct amp_tape *t, uint32_t tok, enum amp_output form,
                      struct amp_buf *out, struct amp_error *err);

AMP_API_END

#endif
