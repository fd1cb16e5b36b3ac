/*
 * Secrets in text that people and logs see. A secret becomes "[redacted:KIND]": well-known shapes
 * of keys, values with the name of a secret (password=…, "api_key":"…", Authorization: …), user and
 * password in a URL, PEM private keys, and matches of the user's patterns. The scanner reads the
 * text once, without a regular expression; the patterns run on PCRE2 under limits, and text that
 * exceeds these limits counts as secret.
 */
#ifndef AMP_MESSAGE_PROTOCOL_REDACT_REDACT_H
#define AMP_MESSAGE_PROTOCOL_REDACT_REDACT_H

#include <amp/base/buf.h>
#include <amp/json/tape.h>

/* Adds a pattern for this process; call it before threads start. "(?#name)" at its beginning sets
 * its KIND (default: "pattern"). USAGE bad_pattern; USAGE too_many above 64. */
int amp_redact_pattern(const char *regex, struct amp_error *err);
/* Adds the patterns of a NULL-terminated list. */
int amp_redact_pattern_list(const char *const *v, struct amp_error *err);

/* Appends the text redacted. cut: the text was cut off, so the beginning of a secret at its end
 * counts as one. A beginning before "…" or "..." always does. */
int amp_redact_text(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err);

/* Appends a line, which may be JSON. JSON stays JSON. */
int amp_redact_line(struct amp_span line, struct amp_buf *out, struct amp_error *err);

/* Appends the line redacted and with control characters as \xHH, cut with "…" after about `most`
 * bytes, but not inside a replaced secret or a character. */
int amp_redact_excerpt(struct amp_span line, size_t most, struct amp_buf *out,
                       struct amp_error *err);

/* The KIND of values with this name ("password"), or NULL. */
const char *amp_redact_name(struct amp_span name);

/* ---- private to this folder */

static inline bool amp_redact_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static inline bool amp_redact_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static inline bool amp_redact_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Appends the text with secrets of the built-in shapes replaced. */
int amp_redact_shapes(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err);
/* Whether a name ("key") may be of a secret: it is if the value looks generated. */
bool amp_redact_may_name(struct amp_span name);
bool amp_redact_keylike(struct amp_span value);
bool amp_redact_has_patterns(void);
/* Appends the text with matches of the patterns replaced. */
int amp_redact_patterns(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err);

#endif
