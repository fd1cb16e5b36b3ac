/* Fibers, with the contexts of ucontext.h. */
#include "base/process/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct amp_fiber {
    void (*fn)(void *ctx);
    void *ctx;
    ucontext_t own, caller;
    char *map; /* the page below the stack, and the stack */
    size_t bytes;
    bool began, ended;
};

/* makecontext passes integers only. */
static void fiber_begin(unsigned high, unsigned low)
{
    struct amp_fiber *f = (struct amp_fiber *)((uintptr_t)high << 32 | low);

    f->fn(f->ctx);
    f->ended = true;
}

int amp_fiber_new(void (*fn)(void *ctx), void *ctx, size_t stack, struct amp_fiber **out,
                  struct amp_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct amp_fiber *f = calloc(1, sizeof *f);

    if (!f)
        return amp_fail_memory(err);
    f->fn = fn;
    f->ctx = ctx;
    f->bytes = page + (stack + page - 1) / page * page;
    f->map = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                  -1, 0);
    if (f->map == MAP_FAILED) {
        free(f);
        return amp_fail_memory(err);
    }
    if (mprotect(f->map, page, PROT_NONE) < 0 || getcontext(&f->own) < 0) {
        amp_fail_errno(err, AMP_INTERNAL, "cannot make a stack");
        munmap(f->map, f->bytes);
        free(f);
        return -1;
    }
    f->own.uc_stack.ss_sp = f->map + page;
    f->own.uc_stack.ss_size = f->bytes - page;
    f->own.uc_link = &f->caller;
    *out = f;
    return 0;
}

void amp_fiber_free(struct amp_fiber *f)
{
    if (!f)
        return;
    if (f->began && !f->ended)
        __builtin_trap(); /* what is on its stack would leak */
    munmap(f->map, f->bytes);
    free(f);
}

bool amp_fiber_resume(struct amp_fiber *f)
{
    if (f->ended)
        return false;
    if (!f->began) {
        uintptr_t p = (uintptr_t)f;
        f->began = true;
        makecontext(&f->own, (void (*)(void))fiber_begin, 2, (unsigned)(p >> 32),
                    (unsigned)(p & UINT32_MAX));
    }
    swapcontext(&f->caller, &f->own);
    return !f->ended;
}

void amp_fiber_yield(struct amp_fiber *f)
{
    swapcontext(&f->own, &f->caller);
}
