/* The token bucket, the selection of lanes, and the order keys. */
#include "message/delivery/inbox/lane.h"

#include "base/words.h"

#include <stdlib.h>

enum {
    TOKEN = 1000,
    SCALE = 64, /* a byte is divisible by a weight */
    PRIORITY_URGENT = -10,
    PRIORITY_BULK = 10,
    KEYS_FIRST = 16,
};

const struct amp_lane_rules amp_lane_rules_default = {
    .urgent_to = PRIORITY_URGENT,
    .bulk_from = PRIORITY_BULK,
    .weight = {[AMP_LANE_PRIVILEGED] = 1, [AMP_LANE_STANDARD] = 4, [AMP_LANE_BULK] = 1},
    .urgent_rate = 20,
    .urgent_burst = 40,
    .urgent_run = 8,
    .urgent_places = 2,
    .starved_ms = 30000,
};

AMP_WORDS_OF_NAMES(names, AMP_LANE_LIST);

const char *amp_lane_name(enum amp_lane lane)
{
    return (unsigned)lane < AMP_LANE_COUNT ? names[lane] : "";
}

enum amp_lane amp_lane_find(struct amp_span name)
{
    int i = amp_word_find(names, name);
    return i < 0 ? AMP_LANE_COUNT : (enum amp_lane)i;
}

enum amp_lane amp_lane_of(const struct amp_lane_rules *rules, const struct amp_view *v)
{
    if (v->priority <= rules->urgent_to)
        return AMP_LANE_PRIVILEGED;
    return v->priority >= rules->bulk_from ? AMP_LANE_BULK : AMP_LANE_STANDARD;
}

void amp_lanes_init(struct amp_lanes *l, const struct amp_lane_rules *rules, int64_t now_ms)
{
    *l = (struct amp_lanes){
        .rules = rules, .thousandths = (int64_t)rules->urgent_burst * TOKEN, .filled_ms = now_ms};
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        l->went_ms[i] = INT64_MIN;
}

static void bucket_fill(struct amp_lanes *l, int64_t now_ms)
{
    int64_t most = (int64_t)l->rules->urgent_burst * TOKEN;
    int64_t passed = now_ms - l->filled_ms;
    if (passed <= 0)
        return; /* a clock that went back gives nothing */
    l->filled_ms = now_ms;
    int64_t rate = l->rules->urgent_rate;
    if (rate > 0 && passed >= (most - l->thousandths) / rate)
        l->thousandths = most;
    else
        l->thousandths += passed * rate;
    if (l->thousandths > most)
        l->thousandths = most;
    if (l->thousandths > most / 2)
        l->dry = false;
}

enum amp_lane amp_lanes_admit(struct amp_lanes *l, enum amp_lane wanted, int64_t now_ms)
{
    if (wanted != AMP_LANE_PRIVILEGED)
        return wanted;
    bucket_fill(l, now_ms);
    if (l->thousandths >= TOKEN) {
        l->thousandths -= TOKEN;
        return wanted;
    }
    l->overflowed++;
    if (!l->dry)
        l->bursts++;
    l->dry = true;
    return AMP_LANE_STANDARD;
}

/* The lane below the urgent one that has had the least for its weight. */
static enum amp_lane lane_fair(struct amp_lanes *l, const struct amp_lane_head *heads)
{
    enum amp_lane best = AMP_LANE_COUNT;
    for (int i = AMP_LANE_STANDARD; i < AMP_LANE_COUNT; i++) {
        /* A lane that was empty starts where the others are. */
        if (heads[i].any && !l->busy[i] && l->due[i] < l->clock)
            l->due[i] = l->clock;
        l->busy[i] = heads[i].any;
        if (heads[i].any && (best == AMP_LANE_COUNT || l->due[i] < l->due[best]))
            best = (enum amp_lane)i;
    }
    return best;
}

struct amp_lane_turn amp_lanes_next(struct amp_lanes *l,
                                    const struct amp_lane_head heads[AMP_LANE_COUNT],
                                    int64_t now_ms)
{
    struct amp_lane_turn t = {.lane = lane_fair(l, heads)};
    bool others = t.lane != AMP_LANE_COUNT;
    if (heads[AMP_LANE_PRIVILEGED].any && (!others || l->run < l->rules->urgent_run)) {
        l->run += others;
        t.lane = AMP_LANE_PRIVILEGED;
        t.urgent = true;
        l->urgent++;
    } else {
        l->run = 0;
    }
    if (t.lane == AMP_LANE_COUNT)
        return t;
    if (!t.urgent) {
        l->clock = l->due[t.lane];
        l->due[t.lane] += (heads[t.lane].bytes + 1) * SCALE / l->rules->weight[t.lane];
    }
    int64_t since = heads[t.lane].since_ms;
    t.waited_ms = now_ms > since ? now_ms - since : 0;
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        if (i != (int)t.lane && l->went_ms[i] > since && t.waited_ms > l->rules->starved_ms)
            t.starved = true;
    l->went_ms[t.lane] = now_ms;
    if (t.starved) {
        l->starved++;
        if (t.waited_ms > l->longest_ms)
            l->longest_ms = t.waited_ms;
    }
    return t;
}

/* ---- keys: open addressing, at most half full ---- */

uint64_t amp_lane_key_of(struct amp_span text)
{
    /* FNV-1a: texts with the same number share a lane for a while. */
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 0x100000001b3u;
    return text.n > 0 ? h | 1 : 0;
}

static struct amp_lane_key *key_slot(const struct amp_lane_keys *k, uint64_t key)
{
    uint32_t i = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 32) & (k->cap - 1);
    while (k->v[i].key != 0 && k->v[i].key != key)
        i = (i + 1) & (k->cap - 1);
    return &k->v[i];
}

static int keys_grow(struct amp_lane_keys *k, struct amp_error *err)
{
    struct amp_lane_keys bigger = {.n = k->n, .cap = k->cap ? k->cap * 2 : KEYS_FIRST};
    bigger.v = calloc(bigger.cap, sizeof(*bigger.v));
    if (!bigger.v)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < k->cap; i++)
        if (k->v[i].key != 0)
            *key_slot(&bigger, k->v[i].key) = k->v[i];
    free(k->v);
    *k = bigger;
    return 0;
}

int amp_lane_keys_add(struct amp_lane_keys *k, uint64_t key, enum amp_lane *lane,
                      struct amp_error *err)
{
    if (key == 0)
        return 0;
    if ((k->n + 1) * 2 > k->cap && keys_grow(k, err) < 0)
        return -1;
    struct amp_lane_key *s = key_slot(k, key);
    if (s->key == 0) {
        *s = (struct amp_lane_key){.key = key, .lane = *lane};
        k->n++;
    }
    s->n++;
    *lane = s->lane;
    return 0;
}

bool amp_lane_keys_has(const struct amp_lane_keys *k, uint64_t key)
{
    return key != 0 && k->n > 0 && key_slot(k, key)->key == key;
}

uint32_t amp_lane_keys_count(const struct amp_lane_keys *k, uint64_t key)
{
    return amp_lane_keys_has(k, key) ? key_slot(k, key)->n : 0;
}

void amp_lane_keys_drop(struct amp_lane_keys *k, uint64_t key)
{
    if (key == 0 || k->cap == 0)
        return;
    struct amp_lane_key *s = key_slot(k, key);
    if (s->key == 0 || --s->n > 0)
        return;
    /* The entries behind it move up. */
    s->key = 0;
    k->n--;
    uint32_t i = (uint32_t)(s - k->v);
    while (k->v[i = (i + 1) & (k->cap - 1)].key != 0) {
        struct amp_lane_key moved = k->v[i];
        k->v[i].key = 0;
        *key_slot(k, moved.key) = moved;
    }
}

void amp_lane_keys_release(struct amp_lane_keys *k)
{
    free(k->v);
    *k = (struct amp_lane_keys){0};
}
