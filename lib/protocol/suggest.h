/* "Did you mean": the nearest allowed word or field name, if one is near. */
#ifndef AMP_PROTOCOL_SUGGEST_H
#define AMP_PROTOCOL_SUGGEST_H

#include "protocol/check.h"

/* Writes `; did you mean "word"?` to out, or leaves it empty. `expected` is a list of words
 * separated by commas or blanks ("one of a, b, c"). */
void amp_suggest_word(const char *expected, struct amp_span found, char *out, size_t size);
#endif
