/* Buckets in a hash table with chains; names with one hash share a bucket only if they are equal.
 */
#include "message/route/admission/producers.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN 1000 /* thousandths */
#define SLOTS 1024

struct producer {
    struct producer *next; /* of its slot */
    int64_t thousandths, filled_ms;
    size_t n;
    char name[];
};

struct amp_producers {
    uint32_t rate, burst, n;
    struct producer *slot[SLOTS];
};

int amp_producers_new(uint32_t rate, uint32_t burst, struct amp_producers **out,
                      struct amp_error *err)
{
    struct amp_producers *p = calloc(1, sizeof *p);
    if (!p)
        return amp_fail_memory(err);
    p->rate = rate;
    p->burst = burst > 0 ? burst : 1;
    *out = p;
    return 0;
}

void amp_producers_free(struct amp_producers *p)
{
    for (int i = 0; p && i < SLOTS; i++)
        for (struct producer *one = p->slot[i], *next; one; one = next) {
            next = one->next;
            free(one);
        }
    free(p);
}

static struct producer **slot_of(struct amp_producers *p, struct amp_span name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.p[i]) * 0x100000001b3u;
    return &p->slot[(h >> 32 ^ h) % SLOTS];
}

static void oldest_forget(struct amp_producers *p)
{
    struct producer **oldest = NULL;
    for (int i = 0; i < SLOTS; i++)
        for (struct producer **at = &p->slot[i]; *at; at = &(*at)->next)
            if (!oldest || (*at)->filled_ms < (*oldest)->filled_ms)
                oldest = at;
    if (!oldest)
        return;
    struct producer *gone = *oldest;
    *oldest = gone->next;
    free(gone);
    p->n--;
}

static struct producer *producer_find(struct amp_producers *p, struct amp_span name, int64_t now_ms)
{
    struct producer *one;
    for (one = *slot_of(p, name); one; one = one->next)
        if (one->n == name.n && memcmp(one->name, name.p, name.n) == 0)
            return one;
    if (p->n == AMP_PRODUCERS_MAX)
        oldest_forget(p);
    if (!(one = malloc(sizeof *one + name.n)))
        return NULL;
    struct producer **slot = slot_of(p, name);
    *one = (struct producer){
        .next = *slot, .thousandths = (int64_t)p->burst * TOKEN, .filled_ms = now_ms, .n = name.n};
    if (name.n > 0)
        memcpy(one->name, name.p, name.n);
    *slot = one;
    p->n++;
    return one;
}

int amp_producers_take(struct amp_producers *p, struct amp_span sender, int64_t now_ms,
                       struct amp_error *err)
{
    struct producer *one = producer_find(p, sender, now_ms);
    int64_t most = (int64_t)p->burst * TOKEN;
    if (!one)
        return amp_fail_memory(err);
    int64_t passed = now_ms - one->filled_ms;
    if (passed > 0) {
        one->filled_ms = now_ms;
        bool full = passed >= (most - one->thousandths) / p->rate + 1;
        one->thousandths = full ? most : one->thousandths + passed * p->rate;
        if (one->thousandths > most)
            one->thousandths = most;
    }
    if (one->thousandths < TOKEN)
        return 0;
    one->thousandths -= TOKEN;
    return 1;
}
