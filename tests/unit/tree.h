/* Temporary directories for unit tests. */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((unused)) static void tree_temporary(char *out, size_t size)
{
    const char *base = getenv("TMPDIR");
    snprintf(out, size, "%s/amp-unit-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(out)) {
        perror(out);
        exit(1);
    }
}

__attribute__((unused)) static int tree_unlink(const char *path, const struct stat *st, int type,
                                               struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

__attribute__((unused)) static void tree_remove(const char *dir)
{
    nftw(dir, tree_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

__attribute__((unused)) static int tree_remove_file(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return unlink(path);
}

__attribute__((unused)) static bool tree_has(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

#endif
