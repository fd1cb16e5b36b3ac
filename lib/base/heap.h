/* A heap of deadlines: what comes first is found at once, and each can be moved or taken out in
 * O(log n) wherever it stands. The nodes are the callers'; one stands inside what it is for. */
#ifndef AMP_BASE_HEAP_H
#define AMP_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include <amp/base/error.h>

struct amp_heap_node {
    int64_t due;
    size_t place; /* in the heap, from 1 on; 0: not in it */
};

struct amp_heap {
    struct amp_heap_node **node;
    size_t n, cap;
};

/* A heap of zeros is empty. Release forgets the nodes. */
void amp_heap_release(struct amp_heap *h);
/* Puts the node in, or moves it. On failure (no memory) it stays as it is. */
int amp_heap_set(struct amp_heap *h, struct amp_heap_node *node, int64_t due,
                 struct amp_error *err);
/* Takes the node out; nothing happens when it is not in. */
void amp_heap_drop(struct amp_heap *h, struct amp_heap_node *node);
/* The node that is due first, NULL when empty. */
struct amp_heap_node *amp_heap_first(const struct amp_heap *h);

#endif
