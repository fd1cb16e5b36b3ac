/* Fibers: they run in turns, keep their variables, use their stacks, and many live at once. */
#include "base/process/fiber.h"

#include <string.h>

#include "../tap.h"

struct counting {
    struct amp_fiber *fiber;
    int from, sum, steps;
    char word[16];
};

static void count(void *ctx)
{
    struct counting *c = ctx;
    int local = c->from;

    for (int i = 0; i < 3; i++) {
        local += 10;
        c->steps++;
        amp_fiber_yield(c->fiber);
    }
    c->sum = local;
}

/* Uses most of its stack between two turns. */
static int fill(struct amp_fiber *f, int depth)
{
    char page[4096];
    int below = 0;

    memset(page, depth, sizeof page);
    __asm__ volatile("" : : "r"(page) : "memory"); /* the stack is really used */
    if (depth > 0)
        below = fill(f, depth - 1);
    else
        amp_fiber_yield(f);
    return below + (page[100] == (char)depth);
}

static void deep(void *ctx)
{
    struct counting *c = ctx;
    c->sum = fill(c->fiber, 99);
}

int main(void)
{
    struct counting c[50] = {{0}};
    struct amp_error err;
    bool made = true, yielded = true, ended = true, right = true;

    for (int i = 0; i < 50; i++) {
        c[i].from = i;
        made = made && amp_fiber_new(count, &c[i], 65536, &c[i].fiber, &err) == 0;
    }
    TAP_OK(made, "fifty fibers");
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 50; i++)
            yielded = yielded && amp_fiber_resume(c[i].fiber) && c[i].steps == turn + 1;
    TAP_OK(yielded, "each runs in its turn");
    for (int i = 49; i >= 0; i--)
        ended = ended && !amp_fiber_resume(c[i].fiber);
    TAP_OK(ended, "and ends");
    for (int i = 0; i < 50; i++)
        right = right && c[i].sum == i + 30;
    TAP_OK(right, "with the variables of its own");
    TAP_OK(!amp_fiber_resume(c[0].fiber), "one that has ended does not run again");
    for (int i = 0; i < 50; i++)
        amp_fiber_free(c[i].fiber);

    struct counting d = {0};
    TAP_INT(amp_fiber_new(deep, &d, 1 << 20, &d.fiber, &err), 0, "a fiber with a deep stack");
    TAP_OK(amp_fiber_resume(d.fiber), "waits at the bottom");
    TAP_OK(!amp_fiber_resume(d.fiber), "and returns");
    TAP_INT(d.sum, 100, "with all of its stack");
    amp_fiber_free(d.fiber);

    struct amp_fiber *never;
    TAP_INT(amp_fiber_new(count, &d, 4096, &never, &err), 0, "one that never began");
    amp_fiber_free(never);
    amp_fiber_free(NULL);
    return tap_done();
}
