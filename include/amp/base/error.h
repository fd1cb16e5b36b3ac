/*
 * Errors and exit statuses.
 *
 * Library functions that can fail return 0 or -1 and fill a struct amp_error that the
 * caller owns; they never print and never exit. An output argument is untouched on failure.
 */
#ifndef AMP_BASE_ERROR_H
#define AMP_BASE_ERROR_H

#include <amp/base/api.h>

AMP_API_BEGIN

/* Exit statuses, one table for every program (amp-exit(7)): X(name, value, meaning). */
#define AMP_STATUS_LIST(X)                                                                         \
    X(OK, 0, "good")                                                                               \
    X(NO, 1, "a \"no\" about data: a line rejected, a human said no, a verdict")                   \
    X(USAGE, 64, "wrong usage")                                                                    \
    X(DATAERR, 65, "input unusable")                                                               \
    X(UNAVAILABLE, 69, "a service or peer is absent")                                              \
    X(INTERNAL, 70, "internal error")                                                              \
    X(CANTCREAT, 73, "cannot create a file")                                                       \
    X(IOERR, 74, "input/output error")                                                             \
    X(TEMPFAIL, 75, "try again, outcome unknown")                                                  \
    X(NOPERM, 77, "policy refuses")                                                                \
    X(CONFIG, 78, "configuration")                                                                 \
    X(TIMEDOUT, 124, "timed out")                                                                  \
    X(INTERRUPTED, 130, "interrupted")

enum amp_status {
#define X(name, value, meaning) AMP_##name = (value),
    AMP_STATUS_LIST(X)
#undef X
};

/* One error. `code` is a stable word (a rejection code or the class of failure), `what` a
 * sentence for people without a trailing full stop, `sys` the errno or 0. */
struct amp_error {
    enum amp_status status;
    int sys;
    char code[48];
    char what[416];
};

/* Fills err (which may be NULL) and returns -1, so that callers can `return amp_fail(...)`. */
int amp_fail(struct amp_error *err, enum amp_status status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same, with errno appended as text and kept in err->sys. ENOSPC, EDQUOT and EIO keep the
 * given status; the code becomes the errno's name in lower case ("enospc"). */
int amp_fail_errno(struct amp_error *err, enum amp_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A failure of a lower call, reported by a higher one: its code and errno, another status, and
 * "where: " before what it says. */
int amp_fail_again(struct amp_error *err, enum amp_status status, const char *where,
                   const struct amp_error *why);

/* Out of memory, the same everywhere: AMP_TEMPFAIL with the code "no_memory". The functions above
 * keep to it: they report that code, and the errno ENOMEM, with that status, whatever status they
 * are given. */
int amp_fail_memory(struct amp_error *err);

/* The status that a run reports when both happened: first of 70 74 73 75 69 124 77, then the
 * remaining usage-class ones (130, 78, 65, 64), then 1, then 0. */
enum amp_status amp_status_worse(enum amp_status a, enum amp_status b);

/* The meaning column of the table; "unknown" for other values. */
const char *amp_status_meaning(int status);

AMP_API_END

#endif
