/*
 * Secrets in text that people and logs see. What looks like one becomes "[redacted:KIND]":
 * well-known shapes of keys, values under a telling name (password=…, "api_key":"…",
 * Authorization: …), user and password in a URL, PEM private keys, and what patterns of one's own
 * match. The scanner goes over the text once, without a regular expression; the patterns run on
 * PCRE2 under limits, and text that they could not judge within them counts as secret.
 */
#ifndef PROTOCOL_REDACT_H
#define PROTOCOL_REDACT_H

#include <amp/base/buf.h>
#include <amp/json/tape.h>

/* Adds a pattern for the whole process, before threads start. "(?#name)" at its beginning gives its
 * KIND, else it is "pattern". USAGE bad_pattern; USAGE too_many past 64. */
int amp_redact_pattern(const char *regex, struct amp_error *err);
/* The same for a list that NULL ends. */
int amp_redact_pattern_list(const char *const *v, struct amp_error *err);

/* Appends the text. cut: it was cut off at its end, where the beginning of a secret counts as one;
 * so does what stands before "…" or "...". */
int amp_redact_text(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err);

/* One line that may be JSON or not. */
int amp_redact_line(struct amp_span line, struct amp_buf *out, struct amp_error *err);

/* Appends the line redacted, its control characters neutralised, cut with "…" after about `most`
 * bytes: never inside of what was redacted or of a character. */
int amp_redact_excerpt(struct amp_span line, size_t most, struct amp_buf *out,
                       struct amp_error *err);

/* The KIND of values under this name ("password"), or NULL. */
const char *amp_redact_name(struct amp_span name);

/* ---- of this room's files ---- */

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

/* What the built-in shapes know; the text with theirs replaced. */
int amp_redact_shapes(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err);
/* Whether the value under a name that need not tell ("key") looks generated. */
bool amp_redact_maybe(struct amp_span name, struct amp_span value);
bool amp_redact_may_name(struct amp_span name);
bool amp_redact_keylike(struct amp_span value);
/* Whether patterns were given; the text with theirs replaced. */
bool amp_redact_has_patterns(void);
int amp_redact_patterns(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err);

#endif
