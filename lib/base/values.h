/*
 * Values for the completion of operands and options. The rows of the option tables (struct amp_opt,
 * struct amp_verb) name kinds of values; a function of the tool finds them (struct amp_tool).
 */
#ifndef AMP_BASE_VALUES_H
#define AMP_BASE_VALUES_H

#include <amp/base/buf.h>

/* Completion prints at most this many values of a kind. */
#define AMP_VALUES_MOST 1000

/* Takes one value, and what it is or "". 0: continue; 1: stop; -1: failure. */
typedef int (*amp_value_fn)(void *ctx, struct amp_span value, struct amp_span doc,
                            struct amp_error *err);
struct amp_values_ask {
    struct amp_span what;   /* "task" */
    const char *state;      /* the state directory, or NULL */
    struct amp_span prefix; /* the word so far; a hint: others may be offered as well */
    amp_value_fn fn;
    void *ctx;
};

#endif
