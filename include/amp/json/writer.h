/* Writes JSON into a buffer, for programs that do not link jansson. The writer adds the commas.
 * After the first failure nothing is written; amp_jw_end reports it. */
#ifndef AMP_JSON_WRITER_H
#define AMP_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

struct amp_jw {
    struct amp_buf *out;
    size_t start; /* of the text that it wrote */
    bool comma, failed;
    struct amp_error err;
};

void amp_jw_init(struct amp_jw *w, struct amp_buf *out);
void amp_jw_open(struct amp_jw *w, char bracket);  /* '{' or '[' */
void amp_jw_close(struct amp_jw *w, char bracket); /* '}' or ']' */
void amp_jw_key(struct amp_jw *w, const char *key);
void amp_jw_str(struct amp_jw *w, struct amp_span text); /* invalid UTF-8 becomes U+FFFD */
void amp_jw_int(struct amp_jw *w, int64_t n);
void amp_jw_uint(struct amp_jw *w, uint64_t n);
void amp_jw_bool(struct amp_jw *w, bool b);
void amp_jw_null(struct amp_jw *w);
void amp_jw_raw(struct amp_jw *w, struct amp_span json); /* the bytes of a complete JSON value */
/* A member of an object; the `some` functions leave out an empty or 0 value. */
void amp_jw_member_str(struct amp_jw *w, const char *key, struct amp_span text);
void amp_jw_member_text(struct amp_jw *w, const char *key, const char *text);
void amp_jw_member_int(struct amp_jw *w, const char *key, int64_t n);
void amp_jw_member_uint(struct amp_jw *w, const char *key, uint64_t n);
void amp_jw_member_bool(struct amp_jw *w, const char *key, bool b);
void amp_jw_member_raw(struct amp_jw *w, const char *key, struct amp_span json);
void amp_jw_member_open(struct amp_jw *w, const char *key, char bracket);
void amp_jw_some_str(struct amp_jw *w, const char *key, struct amp_span text);
void amp_jw_some_int(struct amp_jw *w, const char *key, int64_t n);
int amp_jw_end(struct amp_jw *w, struct amp_error *err);
/* Also ends the line with LF. On failure the text is removed from the buffer. */
int amp_jw_end_line(struct amp_jw *w, struct amp_error *err);

AMP_API_END

#endif
