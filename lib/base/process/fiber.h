/*
 * A fiber: a function with a stack of its own that another one of the same thread resumes, and that
 * gives control back where it would wait. So code that waits in the middle of its work, such as a
 * worker for the end of an agent, can run several times in one event loop.
 *
 * Only the caller of amp_fiber_resume runs while a fiber is suspended, and only the fiber runs
 * while it is resumed: nothing is concurrent. A fiber must have ended before it is freed; the
 * caller resumes it until then.
 */
#ifndef AMP_BASE_PROCESS_FIBER_H
#define AMP_BASE_PROCESS_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#include <amp/base/error.h>

struct amp_fiber;

/* A fiber that runs fn(ctx) from its first resume on. stack is in bytes; below it is a page that
 * nothing may touch. Its memory is used as the function needs it. */
int amp_fiber_new(void (*fn)(void *ctx), void *ctx, size_t stack, struct amp_fiber **out,
                  struct amp_error *err);
/* The fiber has ended, or never began. */
void amp_fiber_free(struct amp_fiber *f);
/* Runs the fiber until it yields (true) or ends (false). Not from inside of this fiber. */
bool amp_fiber_resume(struct amp_fiber *f);
/* Inside of the fiber: returns to its caller; continues at the next resume. */
void amp_fiber_yield(struct amp_fiber *f);

#endif
