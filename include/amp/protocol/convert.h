/*
 * Conversion of messages between protocols; see amp-convert(7).
 *
 * The target has what it cannot express under x_amp_origin, with the original of each value that
 * changed its form, so that the way back restores both. A value that the target requires and the
 * source lacks is derived from the message, the same each time, or taken from `fill`. Facts are not
 * invented: if one is missing, the message cannot be converted.
 */
#ifndef AMP_PROTOCOL_CONVERT_H
#define AMP_PROTOCOL_CONVERT_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

struct amp_convert; /* one per thread */
/* check: the options for the check of the result (copied; NULL: the defaults). */
struct amp_convert *amp_convert_new(const struct amp_json_limits *limits,
                                    const struct amp_check_options *check, struct amp_error *err);
void amp_convert_free(struct amp_convert *c);

/* Checks one "name=value" of a fill list. 0; -1: no such name, or no '='. */
int amp_convert_fill_check(const char *pair, struct amp_error *err);

enum amp_convert_result {
    AMP_CONVERT_FAILED = -1, /* an internal failure */
    AMP_CONVERT_REFUSED,     /* cannot_convert was reported */
    AMP_CONVERT_SAME,        /* the message is of that protocol; nothing was written */
    AMP_CONVERT_DONE,        /* one line with LF was appended, valid in its protocol */
};

/* Converts a checked, valid message. Warnings: kept_in_extension and not_carried, each with the
 * field of the source. `fill`: NULL-terminated "name=value" for fields that the source lacks, or
 * NULL. The strings of findings live until the next call. */
enum amp_convert_result amp_convert_message(struct amp_convert *c, const struct amp_view *v,
                                            enum amp_protocol to, const char *const *fill,
                                            struct amp_buf *out, amp_finding_fn fn, void *ctx,
                                            struct amp_error *err);

AMP_API_END

#endif
