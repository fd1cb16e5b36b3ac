/* "Did you mean": the nearest allowed word or field name, if one is near. */
#ifndef AMP_PROTOCOL_SUGGEST_H
#define AMP_PROTOCOL_SUGGEST_H

#include "protocol/check.h"

/* Writes `; did you mean "word"?` to out, or leaves it empty. `expected` is a list of words
 * separated by commas or blanks. */
void amp_suggest_word(const char *expected, struct amp_span found, char *out, size_t size);
/* The same for the property names beside the keyword at a place of a schema file. */
void amp_suggest_field(const char *schema_path, struct amp_span schema_at, struct amp_span found,
                       char *out, size_t size);

#endif
