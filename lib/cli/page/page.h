/*
 * Pages for a person: lines of our own, and texts of others. Every line of text that others wrote
 * begins with a bar, so that it cannot look like a line of this program, and its control characters
 * and direction overrides are visible escapes. Lines are wrapped here, because a line that the
 * terminal wraps would continue without a bar. Nothing is left out without a line that says how
 * much.
 */
#ifndef AMP_CLI_PAGE_PAGE_H
#define AMP_CLI_PAGE_PAGE_H

#include "cli/cli.h"

/* The output of text. */
struct amp_page {
    int width;  /* columns, at least 40 */
    bool color; /* SGR sequences around text; the text itself never has any */
    struct amp_buf *out;
    struct amp_error *err;
    const char *more; /* behind the count of what was left out, "s shows everything"; or NULL */
};

#define AMP_PAGE_LABEL 12 /* columns of a label */
enum amp_tint {
    AMP_TINT_NONE,
    AMP_TINT_HEAD,
    AMP_TINT_DIM,
    AMP_TINT_OLD,
    AMP_TINT_NEW,
    AMP_TINT_HUNK,
    AMP_TINT_FILE,
    AMP_TINT_WARN,
    AMP_TINT_COUNT
};
/* The sequences before and after text; "" without colour. */
const char *amp_tint_on(bool color, enum amp_tint t);
const char *amp_tint_off(bool color, enum amp_tint t);

/* A line of our own. */
int amp_page_say(const struct amp_page *page, enum amp_tint tint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Text of others with a label, at most `most` bytes (0: all); the rest is counted. */
int amp_page_quote(const struct amp_page *page, const char *label, struct amp_span text,
                   size_t most);
/* One line of others behind a bar without a label, as of a diff. */
int amp_page_line(const struct amp_page *page, enum amp_tint tint, struct amp_span text);

/* The columns of a terminal; 0: it is not one. */
int amp_page_columns(int fd);

#endif
