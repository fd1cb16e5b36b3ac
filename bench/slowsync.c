/*
 * For LD_PRELOAD: each fsync and fdatasync takes AMP_SYNC_US microseconds longer, so that a fast
 * disk can be measured as if it were a slow one, by everybody alike. The wait is a sleep: it takes
 * no processor from the others, and syncs of several processes overlap as they do on a disk.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void wait_longer(void)
{
    static long us = -1;
    if (us < 0) {
        const char *text = getenv("AMP_SYNC_US");
        us = text ? strtol(text, NULL, 10) : 0;
        prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    }
    if (us > 0) {
        struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
        nanosleep(&t, NULL);
    }
}

int fsync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    int rc = real(fd);
    wait_longer();
    return rc;
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    int rc = real(fd);
    wait_longer();
    return rc;
}
