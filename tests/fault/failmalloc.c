/*
 * A preloaded library that lets one memory allocation of a process fail.
 *
 *   FAILMALLOC_NTH=n    the nth allocation (from 1) fails; 0 or unset: none
 *   FAILMALLOC_ON=1     and so do all that follow it
 *   FAILMALLOC_NAME=x   only in the program of this name; others are left alone
 *   FAILMALLOC_LOG=f    at exit the number of allocations is written to f
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static long count, nth;
static int ready, on;

/* Reads the settings without allocating. */
static void prepare(void)
{
    const char *text = getenv("FAILMALLOC_NTH"), *name = getenv("FAILMALLOC_NAME");
    const char *more = getenv("FAILMALLOC_ON");
    /* Before the C library has set itself up there is no name yet: count nothing. */
    if (!program_invocation_short_name || !*program_invocation_short_name)
        return;
    ready = 1;
    on = more && *more == '1';
    if (text && (!name || strcmp(name, program_invocation_short_name) == 0))
        nth = strtol(text, NULL, 10);
}

static int fails(void)
{
    if (!ready)
        prepare();
    if (!ready)
        return 0;
    long i = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (nth <= 0 || (on ? i < nth : i != nth))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    return fails() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    void *got = fails() ? NULL : __libc_memalign(align, n);
    if (!got)
        return ENOMEM;
    *p = got;
    return 0;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("FAILMALLOC_LOG"), *name = getenv("FAILMALLOC_NAME");
    if (!path || (name && strcmp(name, program_invocation_short_name) != 0))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    dprintf(fd, "%ld\n", count);
    close(fd);
}
