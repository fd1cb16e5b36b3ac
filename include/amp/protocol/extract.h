/*
 * Messages where they hide: JSON objects of the five protocols in any text that comes in pieces.
 *
 * Found are objects in prose, in Markdown fences, behind log prefixes and "AOF/1 ", spread over
 * lines (also where each of them bears the first one's prefix, as quoting and log collectors do),
 * with terminal colours between, inside other JSON objects, and escaped inside their strings.
 * Whether one is valid is for the checks: handed on is what claims to be a message. The text is
 * passed over once, up to a small factor, and memory stays within limits->max_bytes.
 */
#ifndef AMP_PROTOCOL_EXTRACT_H
#define AMP_PROTOCOL_EXTRACT_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

/* Where a message stood: X(id, name). */
#define AMP_FOUND_LIST(X)                                                                          \
    X(LINE, "line")     /* at the start of a line, nothing but messages and white space before */  \
    X(FENCE, "fence")   /* in a Markdown fence */                                                  \
    X(PROSE, "prose")   /* in other text */                                                        \
    X(OBJECT, "object") /* a value inside another object */                                        \
    X(STRING, "string") /* escaped, in a string of another object */

#define X(id, name) AMP_FOUND_##id,
enum amp_found_in { AMP_FOUND_LIST(X) };
#undef X
const char *amp_found_name(enum amp_found_in in);

/* The place of the first byte; for what stood in a string, of that string. Line and column count
 * from 1, the column in bytes; the offset from 0. */
struct amp_found {
    uint64_t line, column, offset;
    enum amp_found_in in;
    /* It passed max_bytes: only its beginning is given, and it was not looked into. Such an object
     * is told of whether it is a message or not. */
    bool too_long;
};

/* Takes one: a whole object as one line (white space between tokens, colours and line prefixes
 * taken out, all other bytes as they stood), or text that claims to be a message and is no JSON, up
 * to the byte where that shows. Not 0 ends the extraction with that value. */
typedef int (*amp_found_fn)(void *ctx, struct amp_span text, const struct amp_found *at,
                            struct amp_error *err);

struct amp_extract;
struct amp_extract *amp_extract_new(const struct amp_json_limits *limits, enum amp_protocol only,
                                    amp_found_fn fn, void *ctx, struct amp_error *err);
void amp_extract_free(struct amp_extract *x);
/* More of the text, cut anywhere. 0, -1 on failure, or what fn returned. */
int amp_extract_feed(struct amp_extract *x, struct amp_span part, struct amp_error *err);
/* The text is at its end; the next part begins another one. */
int amp_extract_end(struct amp_extract *x, struct amp_error *err);

AMP_API_END

#endif
