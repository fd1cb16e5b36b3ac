/* Errors and exit statuses. */
#include <amp/base/error.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char no_memory[] = "no_memory";

static void error_fill(struct amp_error *err, enum amp_status status, int sys, const char *code,
                       const char *what)
{
    err->status = strcmp(code, no_memory) == 0 ? AMP_TEMPFAIL : status;
    err->sys = sys;
    snprintf(err->code, sizeof err->code, "%s", code);
    snprintf(err->what, sizeof err->what, "%s", what);
}

int amp_fail_text(struct amp_error *err, enum amp_status status, const char *code, const char *fmt,
                  ...)
{
    if (!err)
        return -1;
    int saved = errno;
    /* Formatted into a copy, because the arguments may be err's own texts. */
    char what[sizeof err->what];
    char word[sizeof err->code];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(word, sizeof word, "%s", code ? code : "error");
    error_fill(err, status, 0, word, what);
    errno = saved;
    return -1;
}

int amp_fail_errno(struct amp_error *err, enum amp_status status, const char *fmt, ...)
{
    if (!err)
        return -1;
    int saved = errno;
    char what[sizeof err->what];
    char word[sizeof err->code] = "errno";
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    const char *text = strerrordesc_np(saved);
    if (n >= 0 && (size_t)n < sizeof what)
        snprintf(what + n, sizeof what - (size_t)n, ": %s", text ? text : "unknown error");
    const char *name = strerrorname_np(saved);
    if (saved == ENOMEM) {
        snprintf(word, sizeof word, "%s", no_memory);
    } else if (name) {
        size_t i = 0;
        for (; name[i] && i < sizeof word - 1; i++)
            word[i] = (char)tolower((unsigned char)name[i]);
        word[i] = '\0';
    }
    error_fill(err, status, saved, word, what);
    errno = saved;
    return -1;
}

int amp_fail_again(struct amp_error *err, enum amp_status status, const char *where,
                   const struct amp_error *why)
{
    int sys = why->sys;
    amp_fail_text(err, status, why->code, "%s: %s", where, why->what);
    if (err)
        err->sys = sys;
    return -1;
}

int amp_fail_unless_no(struct amp_error *err, const struct amp_error *why)
{
    if (why->status == AMP_NO)
        return 0;
    if (err)
        *err = *why;
    return -1;
}

int amp_fail_memory(struct amp_error *err)
{
    if (err)
        error_fill(err, AMP_TEMPFAIL, 0, no_memory, "out of memory");
    return -1;
}

enum amp_status amp_status_worse(enum amp_status a, enum amp_status b)
{
    static const enum amp_status order[] = {
        AMP_INTERNAL, AMP_IOERR,       AMP_CANTCREAT, AMP_TEMPFAIL, AMP_UNAVAILABLE, AMP_TIMEDOUT,
        AMP_NOPERM,   AMP_INTERRUPTED, AMP_CONFIG,    AMP_DATAERR,  AMP_USAGE,       AMP_NO,
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return a ? a : b;
}

const char *amp_status_meaning(int status)
{
    switch (status) {
#define X(name, value, meaning)                                                                    \
    case value:                                                                                    \
        return meaning;
        AMP_STATUS_LIST(X)
#undef X
    }
    return "unknown";
}
