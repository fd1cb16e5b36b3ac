/* A line of an allowed_signers file, and a line of revocations. */
#ifndef AMP_MESSAGE_IDENTITY_TRUST_LINE_H
#define AMP_MESSAGE_IDENTITY_TRUST_LINE_H

#include "message/identity/trust.h"

enum trust_line_is { TRUST_LINE_EMPTY, TRUST_LINE_ENTRY, TRUST_LINE_BAD };

struct trust_line {
    struct amp_span principals, namespaces, comment; /* within the line */
    int64_t valid_after_s, valid_before_s;
    struct amp_pubkey key;
    const char *code, *what; /* of a bad line */
    char why[416];
};
enum trust_line_is identity_trust_line(struct amp_span line, struct trust_line *out);
/* Appends a line with LF. */
int identity_trust_line_write(const struct trust_line *l, struct amp_buf *out,
                              struct amp_error *err);

/* Cuts the next line, without its end, from the front. False: the text is empty. */
bool identity_line_cut(struct amp_span *text, struct amp_span *line);

/* FINGERPRINT TIME [REASON]. */
struct revocation {
    struct amp_span fingerprint, reason;
    int64_t from_ms;
};
enum trust_line_is identity_revocation_line(struct amp_span line, struct revocation *out);

enum identity_match {
    IDENTITY_NO_MATCH,
    IDENTITY_MATCH,
    IDENTITY_NEGATED, /* a negated pattern matches, which counts more than others */
};
enum identity_match identity_patterns(struct amp_span text, struct amp_span patterns);
/* Cuts the next pattern of a list. False: the list is empty. */
bool identity_pattern_cut(struct amp_span *list, struct amp_span *pattern);

#endif
