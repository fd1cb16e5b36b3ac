/* After a failed write all processes stop: the watermark and the file log/FAILED record it. */
#include "message/store/store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"

int amp_store_fail(struct amp_store *s, const struct amp_error *err)
{
    if (!s->failed) {
        char text[600], at[AMP_TIME_MAX];
        s->failed = true;
        if (err)
            s->why = *err;
        else
            amp_fail(&s->why, AMP_TEMPFAIL, log_failed, "a write failed");
        s->why.status = AMP_TEMPFAIL;
        amp_wm_set_failed(&s->wm, true);
        amp_time_format(amp_now_ms(), at);
        int n = snprintf(text, sizeof text, "%s %s: %s\n", at, s->why.code, s->why.what);
        AMP_CLOSE int fd =
            amp_file_open(s->logfd, "FAILED", O_WRONLY | O_CREAT | O_APPEND, 0600, NULL);
        /* The text is for people; the existence of the file counts. */
        if (fd >= 0 &&
            (n < 0 || write(fd, text, strlen(text)) < 0 || fsync(fd) != 0 || fsync(s->logfd) != 0))
            n = -1;
    }
    return -1;
}

int amp_store_failed_before(const struct amp_store *s, bool look, struct amp_error *err)
{
    if (!amp_wm_failed(&s->wm) && !(look && faccessat(s->logfd, "FAILED", F_OK, 0) == 0))
        return 0;
    return amp_fail(err, AMP_TEMPFAIL, log_failed,
                    "a write to the log failed (see %s/log/FAILED); run amp-ack repair", s->dir);
}

int amp_store_check_failed(struct amp_store *s, bool look, struct amp_error *err)
{
    if (s->opt.read_only)
        return 0;
    if (s->failed) {
        if (err)
            *err = s->why;
        return -1;
    }
    return amp_store_failed_before(s, look, err);
}
