/* A binary heap, children of i at 2i+1 and 2i+2. */
#include "base/heap.h"

#include <stdlib.h>

static void put(struct amp_heap *h, size_t i, struct amp_heap_node *node)
{
    h->node[i] = node;
    node->place = i + 1;
}

static void up(struct amp_heap *h, size_t i)
{
    struct amp_heap_node *node = h->node[i];
    for (; i > 0 && h->node[(i - 1) / 2]->due > node->due; i = (i - 1) / 2)
        put(h, i, h->node[(i - 1) / 2]);
    put(h, i, node);
}

static void down(struct amp_heap *h, size_t i)
{
    struct amp_heap_node *node = h->node[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < h->n && h->node[child + 1]->due < h->node[child]->due)
            child++;
        if (child >= h->n || h->node[child]->due >= node->due)
            break;
        put(h, i, h->node[child]);
        i = child;
    }
    put(h, i, node);
}

void amp_heap_release(struct amp_heap *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->node[i]->place = 0;
    free(h->node);
    *h = (struct amp_heap){0};
}

int amp_heap_set(struct amp_heap *h, struct amp_heap_node *node, int64_t due, struct amp_error *err)
{
    if (node->place == 0) {
        if (h->n == h->cap) {
            size_t cap = h->cap ? 2 * h->cap : 16;
            struct amp_heap_node **p = realloc(h->node, cap * sizeof(struct amp_heap_node *));
            if (!p)
                return amp_fail_memory(err);
            h->node = p;
            h->cap = cap;
        }
        put(h, h->n++, node);
    }
    node->due = due;
    up(h, node->place - 1);
    down(h, node->place - 1);
    return 0;
}

void amp_heap_drop(struct amp_heap *h, struct amp_heap_node *node)
{
    if (node->place == 0)
        return;
    size_t hole = node->place - 1;
    struct amp_heap_node *last = h->node[--h->n];
    node->place = 0;
    if (last == node)
        return;
    put(h, hole, last);
    up(h, hole);
    down(h, last->place - 1);
}

struct amp_heap_node *amp_heap_first(const struct amp_heap *h)
{
    return h->n ? h->node[0] : NULL;
}
