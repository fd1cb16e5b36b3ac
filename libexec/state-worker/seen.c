/* The ids of one run. Hashes stand for an id and its bytes. Past the limit the older table is
 * forgotten, so memory is bounded. */
#include "seen.h"

#include <amp/base/id.h>

enum { IDS_MOST = 1 << 18 }; /* of one table */

void seen_init(struct seen_keys *s)
{
    amp_random(s->key, sizeof s->key);
    amp_map_init(&s->recent, sizeof(uint64_t));
    amp_map_init(&s->older, sizeof(uint64_t));
}

void seen_release(struct seen_keys *s)
{
    amp_map_release(&s->recent);
    amp_map_release(&s->older);
}

/* The hash of an id (0) or of a message's bytes (1). */
static uint64_t seen_hash(const struct seen_keys *s, int which, struct amp_span text)
{
    return amp_keyed_hash((const uint64_t[2]){s->key[which], s->key[1 - which]}, text);
}

enum seen_result seen_find(const struct seen_keys *s, struct amp_span id, struct amp_span bytes)
{
    uint64_t key = seen_hash(s, 0, id);
    const uint64_t *known = amp_map_find(&s->recent, key);
    if (!known)
        known = amp_map_find(&s->older, key);
    if (!known)
        return SEEN_NEW;
    return *known == seen_hash(s, 1, bytes) ? SEEN_SAME : SEEN_OTHER;
}

int seen_add(struct seen_keys *s, struct amp_span id, struct amp_span bytes, struct amp_error *err)
{
    if (s->recent.used == IDS_MOST) {
        amp_map_release(&s->older);
        s->older = s->recent;
        amp_map_init(&s->recent, sizeof(uint64_t));
    }
    uint64_t *known = amp_map_add(&s->recent, seen_hash(s, 0, id), err);
    if (!known)
        return -1;
    *known = seen_hash(s, 1, bytes);
    return 0;
}
