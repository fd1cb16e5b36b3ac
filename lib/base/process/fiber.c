/* Fibers, with the contexts of ucontext.h. */
#include "base/process/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN
#endif
#endif
#ifdef ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* A stack as the address sanitizer knows it. */
struct stack {
    const void *bottom;
    size_t bytes;
    void *fake; /* of its frames, while it is left */
};

struct amp_fiber {
    void (*fn)(void *ctx);
    void *ctx;
    ucontext_t own, caller;
    char *map; /* the page below the stack, and the stack */
    size_t bytes;
    struct stack own_stack, caller_stack;
    bool began, ended;
};

/* The address sanitizer is told about each change of the stack. Its swapcontext warns that it does
 * not know about them. */
#ifdef ASAN
static void context_switch(ucontext_t *from, struct stack *left, const ucontext_t *to,
                           const struct stack *entered)
{
    volatile bool back = false;

    __sanitizer_start_switch_fiber(&left->fake, entered->bottom, entered->bytes);
    getcontext(from);
    if (!back) {
        back = true;
        setcontext(to);
    }
    __sanitizer_finish_switch_fiber(left->fake, NULL, NULL);
}

static void fiber_entered(struct amp_fiber *f)
{
    __sanitizer_finish_switch_fiber(NULL, &f->caller_stack.bottom, &f->caller_stack.bytes);
}

static void fiber_left(struct amp_fiber *f)
{
    __sanitizer_start_switch_fiber(NULL, f->caller_stack.bottom, f->caller_stack.bytes);
}
#else
static void context_switch(ucontext_t *from, struct stack *left, const ucontext_t *to,
                           const struct stack *entered)
{
    (void)left, (void)entered;
    swapcontext(from, to);
}

static void fiber_entered(struct amp_fiber *f)
{
    (void)f;
}

static void fiber_left(struct amp_fiber *f)
{
    (void)f;
}
#endif

/* makecontext passes integers only. */
static void fiber_begin(unsigned high, unsigned low)
{
    struct amp_fiber *f = (struct amp_fiber *)((uintptr_t)high << 32 | low);

    fiber_entered(f);
    f->fn(f->ctx);
    f->ended = true;
    fiber_left(f);
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
    f->own_stack = (struct stack){f->map + page, f->bytes - page, NULL};
    *out = f;
    return 0;
}

void amp_fiber_free(struct amp_fiber *f)
{
    if (!f)
        return;
    if (f->began && !f->ended)
        __builtin_trap(); /* the objects on its stack would leak */
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
    context_switch(&f->caller, &f->caller_stack, &f->own, &f->own_stack);
    return !f->ended;
}

void amp_fiber_yield(struct amp_fiber *f)
{
    context_switch(&f->own, &f->own_stack, &f->caller, &f->caller_stack);
}
