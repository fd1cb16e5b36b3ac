/* A set of hashes with open addressing, and a sorted list. */
#include "message/delivery/history/set.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static uint64_t hash_of(struct amp_span a)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < a.n; i++)
        h = (h ^ (unsigned char)a.p[i]) * 1099511628211u;
    h ^= h >> 29;
    return h ? h : 1; /* 0 is a free place */
}

static size_t slot_of(const struct amp_history_set *s, uint64_t h)
{
    size_t at = h & (s->cap - 1);
    while (s->v[at] && s->v[at] != h)
        at = (at + 1) & (s->cap - 1);
    return at;
}

bool amp_history_set_has(const struct amp_history_set *s, struct amp_span text)
{
    return s->cap > 0 && s->v[slot_of(s, hash_of(text))] != 0;
}

static int set_grow(struct amp_history_set *s, struct amp_error *err)
{
    struct amp_history_set larger = {.cap = s->cap ? 2 * s->cap : 256, .n = s->n};
    larger.v = calloc(larger.cap, sizeof(uint64_t));
    if (!larger.v)
        return amp_fail_memory(err);
    for (size_t i = 0; i < s->cap; i++)
        if (s->v[i])
            larger.v[slot_of(&larger, s->v[i])] = s->v[i];
    free(s->v);
    *s = larger;
    return 0;
}

int amp_history_set_add(struct amp_history_set *s, struct amp_span text, struct amp_error *err)
{
    uint64_t h = hash_of(text);
    if (2 * s->n >= s->cap && set_grow(s, err) < 0)
        return -1;
    size_t at = slot_of(s, h);
    bool is_new = s->v[at] == 0;
    s->n += is_new;
    s->v[at] = h;
    return is_new;
}

void amp_history_set_release(struct amp_history_set *s)
{
    free(s->v);
    *s = (struct amp_history_set){0};
}

int amp_history_places_add(struct amp_history_places *p, uint64_t n, int64_t i, struct amp_span id,
                           struct amp_error *err)
{
    if (amp_grow(&p->v, &p->cap, p->n, sizeof *p->v, err) < 0)
        return -1;
    char *copy = amp_span_dup(id);
    if (!copy)
        return amp_fail_memory(err);
    p->v[p->n++] = (struct amp_history_place){.n = n, .i = i, .id = copy, .id_len = id.n};
    return 0;
}

bool amp_history_places_get(const struct amp_history_places *p, uint64_t n, int64_t i,
                            struct amp_span *id)
{
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct amp_history_place *v = &p->v[mid];
        if (v->n == n && v->i == i) {
            *id = (struct amp_span){v->id, v->id_len};
            return true;
        }
        if (v->n < n || (v->n == n && v->i < i))
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

void amp_history_places_release(struct amp_history_places *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].id);
    free(p->v);
    *p = (struct amp_history_places){0};
}
