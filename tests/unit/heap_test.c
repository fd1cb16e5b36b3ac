/* The heap of deadlines against a plain search, through many random changes. */
#include "base/heap.h"
#include "tap.h"

enum { NODES = 300, CHANGES = 20000 };

static struct amp_heap heap;
static struct amp_heap_node node[NODES];
static int64_t due[NODES]; /* 0: not in the heap */

static uint32_t chance(void)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    return x ^= x << 5;
}

static bool agrees(void)
{
    int64_t least = 0;
    size_t n = 0;
    for (int i = 0; i < NODES; i++) {
        n += due[i] > 0;
        if (due[i] > 0 && (least == 0 || due[i] < least))
            least = due[i];
        if ((node[i].place > 0) != (due[i] > 0) ||
            (due[i] > 0 && (node[i].due != due[i] || heap.node[node[i].place - 1] != &node[i])))
            return false;
    }
    const struct amp_heap_node *first = amp_heap_first(&heap);
    return heap.n == n && (first ? first->due : 0) == least;
}

int main(void)
{
    struct amp_error err;
    bool good = true, sorted = true;
    TAP_OK(amp_heap_first(&heap) == NULL, "an empty heap has no first");
    amp_heap_drop(&heap, &node[0]);
    for (int i = 0; i < CHANGES && good; i++) {
        uint32_t k = chance() % NODES;
        if (chance() % 3 == 0) {
            amp_heap_drop(&heap, &node[k]);
            due[k] = 0;
        } else {
            due[k] = 1 + chance() % 1000; /* many are equal */
            good = amp_heap_set(&heap, &node[k], due[k], &err) == 0;
        }
        good = good && agrees();
    }
    TAP_OK(good, "%d changes: the first, the count and every place are right", CHANGES);
    int64_t last = 0;
    for (struct amp_heap_node *f; (f = amp_heap_first(&heap)) != NULL; last = f->due) {
        sorted = sorted && f->due >= last;
        amp_heap_drop(&heap, f);
    }
    TAP_OK(sorted && last > 0, "taken out one by one they come in order");
    amp_heap_set(&heap, &node[1], 5, &err);
    amp_heap_release(&heap);
    TAP_OK(node[1].place == 0 && heap.n == 0, "a released heap has forgotten its nodes");
    return tap_done();
}
