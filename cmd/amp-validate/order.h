/*
 * The numbers of messages whose sender numbers them so that they only rise. A chunk is judged
 * without knowing what came before, and its numbers are noted. The main thread compares them with
 * those of earlier chunks, and judges a chunk again in which a number falls.
 */
#ifndef AMP_VALIDATE_ORDER_H
#define AMP_VALIDATE_ORDER_H

#include "base/map.h"
#include "message/protocol/spec.h"

struct line_number {
    uint64_t sender; /* a keyed hash of its name */
    int64_t n;
    bool falls; /* it is lower than the last one before it, `last` */
    int64_t last;
};

struct order {
    struct amp_map last; /* number of each sender */
};
void order_init(struct order *o);
void order_release(struct order *o);

/* The number of a message; false: it has none, or is a further attempt, which may repeat one. */
bool order_number(const struct amp_view *v, struct line_number *out);
/* Compares the numbers, in the order of the stream. strict: a message whose number falls is
 * refused, so the next one is compared with the one before it. 1: one of them falls; 0: none does;
 * -1: out of memory. */
int order_take(struct order *o, struct line_number *v, size_t n, bool strict,
               struct amp_error *err);

#endif
