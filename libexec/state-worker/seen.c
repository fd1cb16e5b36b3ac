/*
 * A hash table of the ids of one run. Two keyed 64-bit hashes stand for an id and its bytes; at the
 * maximum the oldest half is forgotten, so that memory stays bounded.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "worker.h"

enum { FIRST = 1024, MOST = 1 << 20 };

struct slot {
    uint64_t id, bytes, n; /* n: when it came; 0 is an empty slot */
};

struct seen {
    uint64_t key[2];
    struct slot *slots;
    uint32_t cap, used;
    uint64_t n;
};

struct seen *seen_new(struct amp_error *err)
{
    struct seen *s = calloc(1, sizeof *s);
    if (s)
        s->slots = calloc(FIRST, sizeof *s->slots);
    if (!s || !s->slots) {
        free(s);
        amp_fail_memory(err);
        return NULL;
    }
    s->cap = FIRST;
    amp_random(s->key, sizeof s->key);
    return s;
}

void seen_free(struct seen *s)
{
    if (!s)
        return;
    free(s->slots);
    free(s);
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

uint64_t keyed_hash(const uint64_t key[2], struct amp_span text)
{
    uint64_t h = key[0] ^ mix(text.n + key[1]);
    while (text.n > 0) {
        uint64_t word = 0;
        size_t n = text.n < sizeof word ? text.n : sizeof word;
        memcpy(&word, text.p, n);
        h = mix(h ^ word) + key[1];
        text.p += n;
        text.n -= n;
    }
    return mix(h);
}

static uint64_t hash(const struct seen *s, int which, struct amp_span text)
{
    return keyed_hash((const uint64_t[2]){s->key[which], s->key[1 - which]}, text);
}

static struct slot *place(struct slot *slots, uint32_t cap, uint64_t id)
{
    uint32_t i = (uint32_t)id & (cap - 1);
    while (slots[i].n != 0 && slots[i].id != id)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

int seen_find(const struct seen *s, struct amp_span id, struct amp_span bytes)
{
    const struct slot *at = place(s->slots, s->cap, hash(s, 0, id));
    if (at->n == 0)
        return 0;
    return at->bytes == hash(s, 1, bytes) ? 1 : 2;
}

/* Into a table of twice the size, or, at the maximum, without the older half. */
static int rehash(struct seen *s, struct amp_error *err)
{
    bool forget = s->cap == MOST;
    uint32_t cap = forget ? s->cap : s->cap * 2;
    uint64_t oldest = forget ? s->n - s->used / 2 : 0;
    struct slot *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return amp_fail_memory(err);
    s->used = 0;
    for (uint32_t i = 0; i < s->cap; i++) {
        if (s->slots[i].n == 0 || s->slots[i].n < oldest)
            continue;
        *place(slots, cap, s->slots[i].id) = s->slots[i];
        s->used++;
    }
    free(s->slots);
    s->slots = slots;
    s->cap = cap;
    return 0;
}

int seen_add(struct seen *s, struct amp_span id, struct amp_span bytes, struct amp_error *err)
{
    if (s->used >= s->cap / 2 && rehash(s, err) < 0)
        return -1;
    uint64_t h = hash(s, 0, id);
    struct slot *at = place(s->slots, s->cap, h);
    if (at->n == 0)
        s->used++;
    *at = (struct slot){h, hash(s, 1, bytes), ++s->n};
    return 0;
}
