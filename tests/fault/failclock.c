/*
 * A clock that is wrong: FAIL_CLOCK_SHIFT seconds are added to the wall's clock, FAIL_CLOCK_JUMP
 * milliseconds more at each look; FAIL_CLOCK_SYNC=0 says that it is not synchronised, 1 that it is.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>

static long setting(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    static long looks;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, ts);
    if (rc != 0 || id != CLOCK_REALTIME)
        return rc;
    long ms = setting("FAIL_CLOCK_JUMP") * looks++;
    ts->tv_sec += setting("FAIL_CLOCK_SHIFT") + ms / 1000;
    return 0;
}

int adjtimex(struct timex *tx)
{
    tx->status = setting("FAIL_CLOCK_SYNC") ? 0 : STA_UNSYNC;
    return setting("FAIL_CLOCK_SYNC") ? TIME_OK : TIME_ERROR;
}
