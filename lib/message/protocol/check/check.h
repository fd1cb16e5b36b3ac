/*
 * The findings about one line, from the scanner, the schemas and the rules. They are reported at
 * the end; a finding that follows from another one is left out.
 */
#ifndef AMP_MESSAGE_PROTOCOL_CHECK_CHECK_H
#define AMP_MESSAGE_PROTOCOL_CHECK_CHECK_H

#include <amp/protocol/protocol.h>

#include "base/arena.h"

struct amp_kind_row;
struct amp_spec;
struct amp_check {
    const struct amp_view *v;
    const struct amp_spec *spec;    /* NULL before the protocol is known */
    const struct amp_kind_row *row; /* of the message's type; NULL: unknown */
    const struct amp_check_options *opt;
    struct amp_arena *arena;
    const char *schema; /* file of the schema of the line; NULL before its check */
    struct amp_finding found[AMP_FINDINGS_MOST];
    unsigned n;
    unsigned untold; /* findings above that limit */
    bool refuses;    /* one of the untold findings is an error */
    bool failed;     /* out of memory while adding findings */
    bool waived;     /* a finding was left out because of `waives` */
    bool asked;      /* opt->waives was called, and `waives` is its result */
    unsigned waives;
};

/* Starts a line: clears the findings. */
void amp_check_start(struct amp_check *c, const struct amp_view *v,
                     const struct amp_check_options *opt);

/* The place of a finding: a token of the view's tape, or a property that its object lacks or should
 * not have. */
struct amp_fault {
    enum amp_severity severity;
    const char *code, *rule;
    uint32_t tok;         /* AMP_TOK_NONE: the complete line */
    struct amp_span name; /* the property, or empty */
    const char *expected; /* or NULL */
    bool show_found;      /* quote the value */
};

/* Adds a finding with the sentence of fmt. All texts are copied, except code and rule. */
void amp_check_add(struct amp_check *c, const struct amp_fault *fault, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a finding about the value at a pointer of the view's document ("/payload/branch"). */
void amp_check_rule(struct amp_check *c, enum amp_severity severity, const char *code,
                    const char *rule, const char *pointer, const char *expected, const char *fmt,
                    ...) __attribute__((format(printf, 7, 8)));

/* Adds a finding about a token of the view's tape. */
void amp_check_token(struct amp_check *c, enum amp_severity severity, const char *code,
                     const char *rule, uint32_t tok, const char *expected, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* Adds a finding for a schema violation, with the protocol's code. */
struct amp_violation;
struct amp_code_row;
void amp_check_violation(struct amp_check *c, const struct amp_violation *v,
                         const struct amp_code_row *codes);

/* Reads the decoded text of a string token. False: AMP_TOK_NONE, another type, or no memory, which
 * is remembered in `failed`. */
bool amp_check_string(struct amp_check *c, uint32_t tok, struct amp_span *out);

/* Whether the options waive this requirement of an AOP RESPONSE (AMP_WAIVES_). */
bool amp_check_waives(struct amp_check *c, unsigned what);

/* A copy in the arena, shortened to `most` bytes, with control characters as \uXXXX. */
const char *amp_check_text(struct amp_check *c, struct amp_span text, size_t most);
/* Copies the text from `at` on in the same way. Secrets are redacted, also one around `at`. */
const char *amp_check_excerpt(struct amp_check *c, struct amp_span text, size_t at, size_t most);

/* Whether a decoded text has no visible character, only blanks of ASCII or Unicode. */
bool amp_check_blank(struct amp_span text);

/* Reports the findings that do not follow from others, after --strict, and the number of findings
 * above the limit. Returns the number of errors. */
int amp_check_report(struct amp_check *c, amp_finding_fn fn, void *ctx);

#endif
