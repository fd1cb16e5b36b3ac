/* Errors: texts, codes, and which status counts. */
#include <errno.h>

#include <amp/base/error.h>

#include "../tap.h"

int main(void)
{
    struct amp_error e;
    TAP_INT(amp_fail_text(&e, AMP_DATAERR, "bad_line", "line %d", 7), -1, "amp_fail_text is -1");
    TAP_STR(e.code, "bad_line", "code");
    TAP_STR(e.what, "line 7", "what");
    TAP_INT(e.status, 65, "status");
    TAP_INT(amp_fail_text(NULL, AMP_NO, "x", "y"), -1, "without an error to fill");
    amp_fail_text(&e, AMP_NO, e.code, "again: %s", e.what);
    TAP_STR(e.what, "again: line 7", "an error's own text as argument");
    TAP_STR(e.code, "bad_line", "an error's own code as argument");
    errno = ENOSPC;
    TAP_INT(amp_fail_errno(&e, AMP_IOERR, "cannot write %s", "f"), -1, "errno");
    TAP_STR(e.code, "enospc", "its name in lower case");
    TAP_INT(e.sys, ENOSPC, "kept");
    TAP_INT(errno, ENOSPC, "errno itself too");
    TAP_STR(e.what, "cannot write f: No space left on device", "its text");
    TAP_INT(amp_fail_memory(&e), -1, "out of memory");
    TAP_INT(e.status, AMP_TEMPFAIL, "may work another time");
    TAP_STR(e.code, "no_memory", "its code");
    amp_fail_memory(NULL);
    struct amp_error above;
    amp_fail_again(&above, AMP_CONFIG, "amp.json", &e);
    TAP_INT(above.status, AMP_TEMPFAIL, "also where a higher call reports it");
    struct amp_error no = {.status = AMP_NO};
    TAP_INT(amp_fail_unless_no(&above, &no), 0, "a negative result is passed over");
    TAP_STR(above.code, "no_memory", "and leaves the error as it was");
    TAP_INT(amp_fail_unless_no(&no, &above), -1, "another error is not");
    TAP_STR(no.code, "no_memory", "but copied");
    TAP_INT(amp_fail_unless_no(NULL, &above), -1, "without an error to fill");
    errno = ENOMEM;
    amp_fail_errno(&e, AMP_INTERNAL, "cannot map f");
    TAP_INT(e.status, AMP_TEMPFAIL, "also by its errno");
    TAP_STR(e.code, "no_memory", "with the same code");
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    errno = EIO;
    amp_fail_errno(&e, AMP_IOERR, "%s", big);
    TAP_OK(strlen(e.what) == sizeof e.what - 1, "long texts are cut");

    /* Each pair in the written order: the first of 70 74 73 75 69 124 77 130 78 65 64 1 0. */
    static const int order[] = {70, 74, 73, 75, 69, 124, 77, 130, 78, 65, 64, 1, 0};
    const size_t n = sizeof order / sizeof order[0];
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            TAP_OK((int)amp_status_worse((enum amp_status)order[i], (enum amp_status)order[j]) ==
                           order[i] &&
                       (int)amp_status_worse((enum amp_status)order[j],
                                             (enum amp_status)order[i]) == order[i],
                   "%d counts before %d", order[i], order[j]);
    TAP_STR(amp_status_meaning(64), "wrong usage", "meanings");
    TAP_STR(amp_status_meaning(99), "unknown", "of what is no status");
    return tap_done();
}
