/* Documents of jansson, for composing messages. */
#ifndef AMP_MESSAGE_PROTOCOL_COMPOSE_JSON_H
#define AMP_MESSAGE_PROTOCOL_COMPOSE_JSON_H

#include <jansson.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

/* Duplicate keys are refused. Written documents are one compact line, with keys in their order. */
json_t *amp_json_load(struct amp_span text, struct amp_error *err);
/* Makes a document from a token of a tape. */
json_t *amp_json_of(const struct amp_tape *t, uint32_t tok, struct amp_error *err);
/* A member's text, "" if it has none. */
const char *amp_json_str(const json_t *object, const char *key);
/* Sets a member to a text, unless the text is empty. */
void amp_json_put(json_t *object, const char *key, const char *text);
int amp_json_dump(const json_t *j, struct amp_buf *out, struct amp_error *err);
/* Does the same with flags of jansson. Both write a real number with the fewest digits, of 15 or
 * more, that read back as the same value. DATAERR buffer_full. */
int amp_json_dump_as(const json_t *j, size_t flags, struct amp_buf *out, struct amp_error *err);
/* Writes a document as a value; NULL fails, out of memory. */
void amp_jw_json(struct amp_jw *w, const json_t *j);
/* Appends a document and LF; NULL fails, out of memory. On failure the buffer is unchanged. */
int amp_json_line(const json_t *j, struct amp_buf *out, struct amp_error *err);
/* A string that may have been cut inside its last character, which is then left out. NULL: out of
 * memory, or text that is not UTF-8. */
json_t *amp_json_text(const char *s);

#endif
