/* Hashes of values. */
#ifndef AMP_JSON_EQUAL_H
#define AMP_JSON_EQUAL_H

#include <amp/json/tape.h>

/* Equal values (amp_tape_equal) have equal hashes: 3.0 and 3, escaped and plain strings, members in
 * any order. */
uint64_t amp_tape_hash(const struct amp_tape *t, uint32_t tok);

#endif
