/*
 * A preloaded library that lets one memory allocation of a process fail.
 *
 *   FAILMALLOC_NTH=n    the nth allocation (from 1) fails; 0 or unset: none
 *   FAILMALLOC_ON=1     and so do all that follow it
 *   FAILMALLOC_NAME=x   only in the program of this name; others are left alone
 *   FAILMALLOC_SECONDS=s   that program is killed by SIGALRM after s seconds
 *   FAILMALLOC_LOG=f    at exit the number of allocations is written to f
 *   FAILMALLOC_STACKS=1 and after it the numbers of those that no earlier one equals: their chain
 * of callers is new
 */
#include <errno.h>
#include <execinfo.h>
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

#define FRAMES 48
#define STACKS 16384 /* a power of two */

static long count, nth;
static int ready, on, stacks, inside;
static unsigned long seen[STACKS];
static long news[STACKS / 2];
static size_t n_news;
static pid_t reporter;

/* Reads the settings without allocating. */
static void prepare(void)
{
    const char *text = getenv("FAILMALLOC_NTH"), *name = getenv("FAILMALLOC_NAME");
    const char *more = getenv("FAILMALLOC_ON");
    /* Before the C library has set itself up there is no name yet: count nothing. */
    if (!program_invocation_short_name || !*program_invocation_short_name)
        return;
    ready = 1;
    stacks = getenv("FAILMALLOC_STACKS") != NULL;
    on = more && *more == '1';
    reporter = getpid();
    if (name && strcmp(name, program_invocation_short_name) != 0)
        return;
    if (text)
        nth = strtol(text, NULL, 10);
    text = getenv("FAILMALLOC_SECONDS");
    if (text)
        alarm((unsigned)strtoul(text, NULL, 10));
}

/* Notes allocation i if its callers are new. The first use of backtrace allocates itself. */
static void stack_note(long i)
{
    void *frames[FRAMES];
    unsigned long hash = 1469598103934665603u;
    inside = 1;
    int n = backtrace(frames, FRAMES);
    inside = 0;
    for (int f = 0; f < n; f++)
        hash = (hash ^ (unsigned long)frames[f]) * 1099511628211u;
    size_t at = hash % STACKS;
    while (seen[at] && seen[at] != hash)
        at = (at + 1) % STACKS;
    if (seen[at] || n_news == STACKS / 2)
        return;
    seen[at] = hash;
    news[n_news++] = i;
}

static int fails(void)
{
    if (inside)
        return 0;
    if (!ready)
        prepare();
    if (!ready)
        return 0;
    long i = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (stacks)
        stack_note(i);
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
    /* Not a process that it forked. */
    if (!path || getpid() != reporter || (name && strcmp(name, program_invocation_short_name) != 0))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    dprintf(fd, "%ld\n", count);
    for (size_t i = 0; i < n_news; i++)
        dprintf(fd, "%ld\n", news[i]);
    close(fd);
}
