/* Strings as bytes: escapes, UTF-8, comparisons without a copy. */
#ifndef AMP_JSON_TEXT_H
#define AMP_JSON_TEXT_H

#include <amp/json/tape.h>

/* The character of each escape of two characters, by the second one; 0: there is no such escape. */
extern const char amp_json_escapes[128];
/* The value of four hexadecimal digits, or -1. */
int32_t amp_json_hex4(const unsigned char *p);
/* Length of the UTF-8 character at p (1 to 4); 0: there is none. */
size_t amp_utf8_length(const unsigned char *p, size_t n);
/* Replaces each byte of a text that belongs to no UTF-8 character by '?', as after a cut. */
void amp_utf8_clean(char *text);
/* Refuses a path that JSON cannot carry: messages, records and the requests to helpers would name
 * another path. DATAERR path_not_utf8. */
int amp_utf8_path(const char *path, struct amp_error *err);
/* Writes a code point as UTF-8 (at most 4 bytes); returns the length. */
size_t amp_utf8_put(uint32_t c, char *dst);
/* Decodes a scanned string without its quotes; dst has room for n bytes. Returns the length. */
size_t amp_json_decode(const char *raw, size_t n, char *dst);
/* Decodes one character or escape at *p, which moves past it. Returns its bytes in dst (1 to 4). */
size_t amp_json_decode_one(const char **p, const char *end, char dst[4]);
/* Whether two string tokens have the same decoded text. */
bool amp_json_same_text(const struct amp_tape *a, uint32_t x, const struct amp_tape *b, uint32_t y);
/* The number of code points of a string token; an escape or a pair of them counts as one. */
uint32_t amp_json_length(const struct amp_tape *t, uint32_t tok);

/* Appends the bytes in base64 (RFC 4648 §4, padded). */
int amp_base64_add(struct amp_buf *out, struct amp_span bytes, struct amp_error *err);
/* Appends the bytes of such a text. DATAERR bad_value: it is not base64. */
int amp_base64_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err);

#endif
