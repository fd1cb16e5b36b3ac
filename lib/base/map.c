/* Open addressing, at most half full. The keys are keyed hashes. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"

enum { FIRST = 256, MOST = 1 << 22 };

void amp_map_init(struct amp_map *t, size_t value_size)
{
    *t = (struct amp_map){.value_size = value_size};
}

void amp_map_release(struct amp_map *t)
{
    free(t->keys);
    free(t->values);
    amp_map_init(t, t->value_size);
}

static uint32_t find_place(const uint64_t *keys, uint32_t cap, uint64_t key)
{
    uint32_t i = (uint32_t)key & (cap - 1);
    while (keys[i] != 0 && keys[i] != key)
        i = (i + 1) & (cap - 1);
    return i;
}

void *amp_map_find(const struct amp_map *t, uint64_t key)
{
    if (t->cap == 0)
        return NULL;
    key = key ? key : 1;
    uint32_t i = find_place(t->keys, t->cap, key);
    return t->keys[i] ? t->values + i * t->value_size : NULL;
}

static int table_grow(struct amp_map *t, struct amp_error *err)
{
    uint32_t cap = t->cap ? t->cap * 2 : FIRST;
    if (cap > MOST)
        return amp_fail(err, AMP_INTERNAL, history_full, "the state directory has too many events");
    uint64_t *keys = calloc(cap, sizeof *keys);
    char *values = calloc(cap, t->value_size);
    if (!keys || !values) {
        free(keys);
        free(values);
        return amp_fail_memory(err);
    }
    for (uint32_t i = 0; i < t->cap; i++) {
        if (t->keys[i] == 0)
            continue;
        uint32_t to = find_place(keys, cap, t->keys[i]);
        keys[to] = t->keys[i];
        memcpy(values + to * t->value_size, t->values + i * t->value_size, t->value_size);
    }
    free(t->keys);
    free(t->values);
    t->keys = keys;
    t->values = values;
    t->cap = cap;
    return 0;
}

void *amp_map_add(struct amp_map *t, uint64_t key, struct amp_error *err)
{
    void *have = amp_map_find(t, key);
    if (have)
        return have;
    if (t->used >= t->cap / 2 && table_grow(t, err) < 0)
        return NULL;
    key = key ? key : 1;
    uint32_t i = find_place(t->keys, t->cap, key);
    t->keys[i] = key;
    t->used++;
    return t->values + i * t->value_size;
}

void amp_map_each(const struct amp_map *t, void (*fn)(void *value))
{
    for (uint32_t i = 0; i < t->cap; i++)
        if (t->keys[i])
            fn(t->values + i * t->value_size);
}

static uint64_t hash_mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

uint64_t amp_keyed_hash(const uint64_t key[2], struct amp_span text)
{
    uint64_t h = key[0] ^ hash_mix(text.n + key[1]);
    while (text.n > 0) {
        uint64_t word = 0;
        size_t n = text.n < sizeof word ? text.n : sizeof word;
        memcpy(&word, text.p, n);
        h = hash_mix(h ^ word) + key[1];
        text.p += n;
        text.n -= n;
    }
    return hash_mix(h);
}
