/*
 * Conversion of messages between protocols; see amp-convert(7).
 *
 * What the target has no place for is kept in it under x_amp_origin, together with the original of
 * whatever had to change its form, so that the way back restores both. Values that the target
 * demands and the source lacks are derived from the message alone, the same each time, or taken
 * from `fill`; facts are never made up: what is then missing makes the message inconvertible.
 */
#ifndef AMP_PROTOCOL_CONVERT_H
#define AMP_PROTOCOL_CONVERT_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

struct amp_convert; /* one a thread */
/* What comes out is checked with the same options as what goes in (borrowed; NULL: the defaults).
 */
struct amp_convert *amp_convert_new(const struct amp_json_limits *limits,
                                    const struct amp_check_options *check, struct amp_error *err);
void amp_convert_free(struct amp_convert *c);

/* One "name=value" of a fill list: what the source may not say. 0; -1: no such name, or no '='. */
int amp_convert_fill_check(const char *pair, struct amp_error *err);

enum amp_convert_result {
    AMP_CONVERT_FAILED = -1, /* an internal failure */
    AMP_CONVERT_REFUSED,     /* cannot_convert was reported */
    AMP_CONVERT_SAME,        /* it is of that protocol already; nothing was written */
    AMP_CONVERT_DONE,        /* one line with LF was appended, valid in its protocol */
};

/* Converts a checked, valid message. Reported as warnings: kept_in_extension and not_carried, each
 * with the field of the source. `fill`: NULL-terminated "name=value", or NULL; used where the
 * source says nothing. Findings' strings live until the next call. */
enum amp_convert_result amp_convert_message(struct amp_convert *c, const struct amp_view *v,
                                            enum amp_protocol to, const char *const *fill,
                                            struct amp_buf *out, amp_finding_fn fn, void *ctx,
                                            struct amp_error *err);

AMP_API_END

#endif
