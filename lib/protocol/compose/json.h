/* Documents of jansson, which messages are composed with. */
#ifndef AMP_PROTOCOL_JSON_H
#define AMP_PROTOCOL_JSON_H

#include <jansson.h>

#include <amp/json/tape.h>

/* jansson with our flags: duplicates refused, compact, keys in insertion order, one line. */
json_t *amp_json_load(struct amp_span text, struct amp_error *err);
/* The same from a token of a tape. */
json_t *amp_json_of(const struct amp_tape *t, uint32_t tok, struct amp_error *err);
/* A member's text, "" where it has none. */
const char *amp_json_str(const json_t *object, const char *key);
int amp_json_dump(const json_t *j, struct amp_buf *out, struct amp_error *err);
/* A string that a buffer's end may have cut within a character: that character is left out. NULL:
 * no memory, or text that is not UTF-8. */
json_t *amp_json_text(const char *s);

#endif
