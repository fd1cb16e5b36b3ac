/* Values compared and hashed by what they mean. */
#ifndef JSON_EQUAL_H
#define JSON_EQUAL_H

#include <amp/json/tape.h>

/* Equal values have equal hashes: 3.0 and 3, escaped and plain, members in any order. */
uint64_t amp_tape_hash(const struct amp_tape *t, uint32_t tok);

#endif
