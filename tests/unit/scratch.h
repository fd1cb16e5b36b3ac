/* A directory of its own for a unit test, removed at exit. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_dir[64];
static pid_t scratch_owner;

static int scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

static void scratch_remove(void)
{
    if (getpid() == scratch_owner)
        nftw(scratch_dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Its path; the program ends when it cannot be made. */
static const char *scratch(void)
{
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/amp-unit-XXXXXX");
    if (!mkdtemp(scratch_dir)) {
        printf("Bail out! no scratch directory\n");
        exit(1);
    }
    scratch_owner = getpid();
    atexit(scratch_remove);
    return scratch_dir;
}

#endif
