/*
 * Finding messages of the five protocols in any text, which is given in pieces.
 *
 * JSON objects are found in prose, in Markdown fences, after log prefixes and "AOF/1 ", spread over
 * lines (also if each line starts with the prefix of the first, as in quotations and logs), with
 * terminal colours between tokens, inside other JSON objects, and escaped in their strings. An
 * object that claims to be a message is returned; it is not checked. Each byte is read a few times
 * at most, and memory stays within limits->max_bytes.
 */
#ifndef AMP_PROTOCOL_EXTRACT_H
#define AMP_PROTOCOL_EXTRACT_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

/* The place where a message was found: X(id, name). */
#define AMP_FOUND_LIST(X)                                                                          \
    X(LINE, "line")     /* on a line, with only messages and white space before it */              \
    X(FENCE, "fence")   /* in a Markdown fence */                                                  \
    X(PROSE, "prose")   /* in other text */                                                        \
    X(OBJECT, "object") /* a value inside another object */                                        \
    X(STRING, "string") /* escaped, in a string of another object */

#define X(id, name) AMP_FOUND_##id,
enum amp_found_in { AMP_FOUND_LIST(X) };
#undef X
const char *amp_found_name(enum amp_found_in in);

/* The place of the first byte; of a message in a string: that of the string. Line and column count
 * from 1, the column in bytes; the offset from 0. */
struct amp_found {
    uint64_t line, column, offset;
    enum amp_found_in in;
    /* The object is longer than max_bytes: it is not searched, and only its beginning is returned.
     * It may not be a message. */
    bool too_long;
};

/* Gets an object as one line (without white space between tokens, colours and line prefixes; all
 * other bytes unchanged), or text that claims to be a message and is not JSON, up to the first byte
 * that is not JSON. A return value other than 0 ends the extraction with that value. */
typedef int (*amp_found_fn)(void *ctx, struct amp_span text, const struct amp_found *at,
                            struct amp_error *err);

struct amp_extract;
struct amp_extract *amp_extract_new(const struct amp_json_limits *limits, enum amp_protocol only,
                                    amp_found_fn fn, void *ctx, struct amp_error *err);
void amp_extract_free(struct amp_extract *x);
/* Takes a piece of the text. 0, -1 on failure, or the value that fn returned. */
int amp_extract_feed(struct amp_extract *x, struct amp_span part, struct amp_error *err);
/* Ends the text; the next piece begins another one. Returns the same values. */
int amp_extract_end(struct amp_extract *x, struct amp_error *err);

AMP_API_END

#endif
