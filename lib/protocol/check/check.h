/*
 * One line's findings while they are gathered: from the scanner, the schemas and the rules. They
 * are told at the end, the weightiest first, one for each field and code.
 */
#ifndef AMP_PROTOCOL_CHECK_H
#define AMP_PROTOCOL_CHECK_H

#include <amp/protocol/protocol.h>

#include "protocol/view/pool.h"

struct amp_kind_row;
struct amp_spec;
struct amp_check {
    const struct amp_view *v;
    const struct amp_spec *spec;    /* NULL before the protocol is known */
    const struct amp_kind_row *row; /* the message's shape; NULL: its type is unknown */
    const struct amp_check_options *opt;
    struct amp_pool *arena;
    const char *schema; /* file of the schema that is being checked, NULL before */
    struct amp_finding found[AMP_FINDINGS_MOST];
    unsigned n;
    unsigned untold; /* findings past that many, */
    bool refuses;    /* and one of them is an error */
    bool failed;     /* memory was short while gathering */
    bool waived;     /* a finding was left out for what waives said, */
    bool asked;      /* which it was asked, */
    unsigned waives; /* and this is the answer */
};

/* Forgets the line before. */
void amp_check_start(struct amp_check *c, const struct amp_view *v,
                     const struct amp_check_options *opt);

/* What is at fault: a token of the view's tape, or a property that its object lacks or should not
 * have. */
struct amp_fault {
    enum amp_severity severity;
    const char *code, *rule;
    uint32_t tok;         /* AMP_TOK_NONE: the line as a whole */
    struct amp_span name; /* the property, or empty */
    const char *expected; /* or NULL */
    bool show_found;      /* quote the value */
};

/* Adds a finding; fmt makes the sentence. Everything is copied. */
void amp_check_add(struct amp_check *c, const struct amp_fault *fault, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a rule about the value at a pointer of the view's document ("/payload/branch"). */
void amp_check_rule(struct amp_check *c, enum amp_severity severity, const char *code,
                    const char *rule, const char *pointer, const char *expected, const char *fmt,
                    ...) __attribute__((format(printf, 7, 8)));

/* A schema violation, turned into the protocol's code. */
struct amp_violation;
struct amp_code_row;
void amp_check_violation(struct amp_check *c, const struct amp_violation *v,
                         const struct amp_code_row *codes);

/* Whether the options waive this requirement of an AOP RESPONSE (AMP_WAIVES_). */
bool amp_check_waives(struct amp_check *c, unsigned what);

/* Copies into the arena: shortened to `most` bytes, control characters made visible. */
const char *amp_check_text(struct amp_check *c, struct amp_span text, size_t most);
/* What stands from `at` on, without secrets, also one that `at` lies within. */
const char *amp_check_excerpt(struct amp_check *c, struct amp_span text, size_t at, size_t most);

/* Whether a decoded text has no character that one can see: ASCII blanks, or the spaces of Unicode.
 */
bool amp_check_blank(struct amp_span text);

/* Thins the findings, applies --strict, tells them and at the end how many more there are. Returns
 * how many errors there are. */
int amp_check_tell(struct amp_check *c, amp_finding_fn fn, void *ctx);

#endif
