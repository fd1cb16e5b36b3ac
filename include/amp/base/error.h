/*
 * Errors and exit statuses.
 *
 * Library functions that can fail return 0, or -1 after filling a struct amp_error that the
 * caller owns. They never print or exit. On failure the output arguments are unchanged.
 */
#ifndef AMP_BASE_ERROR_H
#define AMP_BASE_ERROR_H

#include <amp/base/api.h>

AMP_API_BEGIN

/* Exit statuses, one table for every program (amp-exit(7)): X(name, value, meaning). */
#define AMP_STATUS_LIST(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(NO, 1, "a negative result: a line rejected, a decision against, not approved")               \
    X(USAGE, 64, "wrong usage")                                                                    \
    X(DATAERR, 65, "input unusable")                                                               \
    X(UNAVAILABLE, 69, "a service or peer is missing")                                             \
    X(INTERNAL, 70, "internal error")                                                              \
    X(CANTCREAT, 73, "cannot create a file")                                                       \
    X(IOERR, 74, "input/output error")                                                             \
    X(TEMPFAIL, 75, "temporary failure or unknown outcome; try again")                             \
    X(NOPERM, 77, "refused by policy")                                                             \
    X(CONFIG, 78, "configuration error")                                                           \
    X(TIMEDOUT, 124, "timed out")                                                                  \
    X(INTERRUPTED, 130, "interrupted")

enum amp_status {
#define X(name, value, meaning) AMP_##name = (value),
    AMP_STATUS_LIST(X)
#undef X
};

/* An error. `code` is a stable word (a rejection code or the class of failure), `what` a
 * sentence for people without a full stop at its end, `sys` the errno or 0. */
struct amp_error {
    enum amp_status status;
    int sys;
    char code[48];
    char what[416];
};

/* Fills err (which may be NULL) and returns -1, so that callers can `return amp_fail_text(...)`. */
int amp_fail_text(struct amp_error *err, enum amp_status status, const char *code, const char *fmt,
                  ...) __attribute__((format(printf, 4, 5)));

/* Also appends errno as text and keeps it in err->sys. ENOSPC, EDQUOT and EIO keep the
 * given status; the code becomes the errno's name in lower case ("enospc"). */
int amp_fail_errno(struct amp_error *err, enum amp_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports the error of a lower call with another status: keeps its code and errno, and puts
 * "where: " before its text. */
int amp_fail_again(struct amp_error *err, enum amp_status status, const char *where,
                   const struct amp_error *why);

/* For callers that do not treat the status NO as a failure: returns 0 if `why` has it; otherwise
 * copies `why` to err (which may be NULL) and returns -1. */
int amp_fail_unless_no(struct amp_error *err, const struct amp_error *why);

/* Out of memory: AMP_TEMPFAIL with the code "no_memory". The functions above use this status for
 * that code and for the errno ENOMEM, and ignore the status that they are given. */
int amp_fail_memory(struct amp_error *err);

/* The status of a run in which both occurred: the first of 70 74 73 75 69 124 77 130 78 65 64 1 0.
 */
enum amp_status amp_status_worse(enum amp_status a, enum amp_status b);

/* The meaning column of the table; "unknown" for other values. */
const char *amp_status_meaning(int status);

AMP_API_END

#endif
