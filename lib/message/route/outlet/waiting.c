/* The lanes of one port. */
#include "message/route/outlet/waiting.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/route/outlet/units.h"

#define HELD AMP_LANE_COUNT

void amp_waiting_init(struct amp_waiting *w, const struct amp_lane_rules *rules)
{
    *w = (struct amp_waiting){0};
    amp_lanes_init(&w->lanes, rules, amp_mono_ms());
    for (int i = 0; i <= HELD; i++)
        w->line[i].last = &w->line[i].first;
}

int amp_waiting_share(struct amp_waiting *w, struct amp_error *err)
{
    w->shares = calloc(1, sizeof *w->shares);
    return w->shares ? 0 : amp_fail_memory(err);
}

/* 0: it has none. */
static uint64_t producer_of(const struct parcel *j)
{
    const struct parcel *of = j->address.of ? j->address.of : j;
    return amp_lane_key_of(of->summary.known ? of->summary.from : AMP_SPAN(""));
}

uint32_t amp_waiting_of(const struct amp_waiting *w, const struct parcel *j)
{
    return w->counts ? amp_lane_keys_count(&w->producers, producer_of(j)) : 0;
}

static struct amp_waiting_share *share_of(struct amp_waiting *w, const struct parcel *j, int lane)
{
    uint64_t key = producer_of(j);
    return &w->shares->of[lane][(key ^ key >> 32) % AMP_WAITING_SHARES];
}

/* Inserts the message into its producer's next turn. Messages with one order keep their sequence:
 * follows is true if another one waits. */
static void place_insert(struct amp_waiting *w, struct amp_waiting_place *p, int lane, bool follows)
{
    struct amp_waiting_share *s = share_of(w, p->parcel, lane);
    struct amp_waiting_place **at = &w->line[lane].first;
    uint64_t now = w->shares->round[lane], tail = now;
    if (*at)
        tail = ((struct amp_waiting_place *)((char *)w->line[lane].last -
                                             offsetof(struct amp_waiting_place, next)))
                   ->round;
    p->round = s->n > 0 && s->round >= now ? s->round + 1 : now;
    if (follows && p->round < tail)
        p->round = tail;
    s->round = p->round;
    s->n++;
    if (!*at || p->round >= tail)
        at = w->line[lane].last;
    else
        while ((*at)->round <= p->round)
            at = &(*at)->next;
    p->next = *at;
    *at = p;
    if (!p->next)
        w->line[lane].last = &p->next;
}

static void places_free(struct amp_waiting_place *p)
{
    for (struct amp_waiting_place *next; p; p = next) {
        next = p->next;
        free(p);
    }
}

void amp_waiting_release(struct amp_waiting *w)
{
    for (int i = 0; i <= HELD; i++)
        places_free(w->line[i].first);
    places_free(w->spare);
    free(w->shares);
    amp_lane_keys_release(&w->keys);
    amp_lane_keys_release(&w->held_keys);
    amp_lane_keys_release(&w->producers);
}

static int place_make(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t now_ms,
                      struct amp_waiting_place **out, struct amp_error *err)
{
    struct amp_waiting_place *p = w->spare;
    if (!p && !(w->spare = p = calloc(1, sizeof(*p))))
        return amp_fail_memory(err);
    enum amp_lane any = lane;
    if (w->counts && amp_lane_keys_add(&w->producers, producer_of(j), &any, err) < 0)
        return -1;
    if (amp_lane_keys_add(&w->keys, j->order, &lane, err) < 0) {
        if (w->counts)
            amp_lane_keys_drop(&w->producers, producer_of(j));
        return -1;
    }
    w->spare = p->next;
    *p = (struct amp_waiting_place){
        .parcel = j, .since_ms = now_ms, .lane = lane, .number = ++w->newest};
    w->bytes += j->n + 1;
    *out = p;
    return 0;
}

/* at: a lane, or HELD. */
static void place_append(struct amp_waiting *w, struct amp_waiting_place *p, int at)
{
    p->next = NULL;
    *w->line[at].last = p;
    w->line[at].last = &p->next;
}

int amp_waiting_join(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err)
{
    struct amp_waiting_place *p = NULL;
    bool follows = w->shares && amp_lane_keys_has(&w->keys, j->order);
    if (place_make(w, j, lane, now_ms, &p, err) < 0)
        return -1;
    if (w->shares)
        place_insert(w, p, (int)p->lane, follows);
    else
        place_append(w, p, (int)p->lane);
    w->n++;
    return 0;
}

static void place_first(struct amp_waiting *w, struct amp_waiting_place *p)
{
    int lane = (int)p->lane;
    struct amp_waiting_place **at = &w->line[lane].first;
    if (w->shares) {
        struct amp_waiting_share *s = share_of(w, p->parcel, lane);
        p->round = w->shares->round[lane] + 1;
        s->n++;
        s->round = s->round > p->round ? s->round : p->round;
        while (*at && (*at)->round <= p->round && share_of(w, (*at)->parcel, lane) != s)
            at = &(*at)->next;
    }
    p->next = *at;
    *at = p;
    if (!p->next)
        w->line[lane].last = &p->next;
}

int amp_waiting_again(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t since_ms,
                      struct amp_error *err)
{
    struct amp_waiting_place *p = NULL;
    if (place_make(w, j, lane, since_ms, &p, err) < 0)
        return -1;
    p->number = 0;
    place_first(w, p);
    w->n++;
    return 0;
}

/* Removes the first message of a lane, or of the held ones. */
static struct parcel *lane_leave(struct amp_waiting *w, int at)
{
    struct amp_waiting_place *p = w->line[at].first;
    struct parcel *j = p->parcel;
    w->line[at].first = p->next;
    if (!p->next)
        w->line[at].last = &w->line[at].first;
    if (at == HELD) {
        w->n_held--;
        amp_lane_keys_drop(&w->held_keys, j->order);
    } else {
        w->n--;
        if (w->shares) {
            w->shares->round[at] = p->round;
            share_of(w, j, at)->n--;
        }
    }
    w->bytes -= j->n + 1;
    amp_lane_keys_drop(&w->keys, j->order);
    if (w->counts)
        amp_lane_keys_drop(&w->producers, producer_of(j));
    p->next = w->spare;
    w->spare = p;
    return j;
}

/* ---- held back ---- */

bool amp_waiting_follows(const struct amp_waiting *w, const struct parcel *j)
{
    return amp_lane_keys_has(&w->held_keys, j->order);
}

void amp_waiting_earlier(struct amp_waiting *w)
{
    w->oldest -= (int64_t)1 << 32;
    w->next_earlier = w->oldest;
}

int amp_waiting_hold(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err)
{
    enum amp_lane any = lane;
    struct amp_waiting_place *p = NULL;
    if (amp_lane_keys_add(&w->held_keys, j->order, &any, err) < 0)
        return -1;
    if (place_make(w, j, lane, now_ms, &p, err) < 0) {
        amp_lane_keys_drop(&w->held_keys, j->order);
        return -1;
    }
    if (w->next_earlier < 0)
        p->number = w->next_earlier++;
    place_append(w, p, HELD); /* the next amp_waiting_sort puts it to the front */
    w->n_held++;
    return 0;
}

static int number_compare(const void *a, const void *b)
{
    const struct amp_waiting_place *const *x = a, *const *y = b;
    return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

/* Sorted messages are in the order of arrival, and all later turns come after them. */
static void share_move(struct amp_waiting *w, struct amp_waiting_place *p, bool hold)
{
    if (!w->shares)
        return;
    p->round = w->shares->round[p->lane];
    if (!hold)
        share_of(w, p->parcel, (int)p->lane)->n++;
}

int amp_waiting_sort(struct amp_waiting *w, bool (*held)(void *ctx, const struct parcel *j),
                     void *ctx, struct amp_error *err)
{
    uint32_t n = 0, all = w->n + w->n_held;
    if (all == 0)
        return 0;
    AMP_FREE struct amp_waiting_place **v = calloc(all, sizeof(struct amp_waiting_place *));
    if (!v)
        return amp_fail_memory(err);
    for (int i = 0; i <= HELD; i++) {
        for (struct amp_waiting_place *p = w->line[i].first; p; p = p->next)
            v[n++] = p;
        w->line[i].first = NULL;
        w->line[i].last = &w->line[i].first;
    }
    qsort(v, n, sizeof(struct amp_waiting_place *), number_compare);
    amp_lane_keys_release(&w->held_keys);
    if (w->shares)
        memset(w->shares->of, 0, sizeof w->shares->of);
    w->n = w->n_held = 0;
    int rc = 0;
    for (uint32_t i = 0; i < n; i++) {
        enum amp_lane any = v[i]->lane;
        bool hold = held(ctx, v[i]->parcel) || amp_waiting_follows(w, v[i]->parcel);
        if (hold && rc == 0)
            rc = amp_lane_keys_add(&w->held_keys, v[i]->parcel->order, &any, err);
        share_move(w, v[i], hold);
        place_append(w, v[i], hold ? HELD : (int)v[i]->lane);
        w->n += !hold;
        w->n_held += hold;
    }
    return rc;
}

/* ---- leaving ---- */

/* The bytes that the parcel's turn sends. */
static size_t turn_bytes(const struct parcel *j)
{
    const struct parcel_chunks *c = (const struct parcel_chunks *)(const void *)j->notes;
    return c && j->n > c->t.chunk_size ? c->t.chunk_size : j->n;
}

struct parcel *amp_waiting_next(struct amp_waiting *w, int64_t now_ms, struct amp_lane_turn *turn,
                                int64_t *since_ms)
{
    struct amp_lane_head heads[AMP_LANE_COUNT] = {{0}};
    for (int i = 0; i < AMP_LANE_COUNT; i++) {
        const struct amp_waiting_place *p = w->line[i].first;
        if (p)
            heads[i] = (struct amp_lane_head){true, turn_bytes(p->parcel), p->since_ms};
    }
    *turn = amp_lanes_next(&w->lanes, heads, now_ms);
    *since_ms = w->line[turn->lane].first->since_ms;
    return lane_leave(w, turn->lane);
}

struct parcel *amp_waiting_expired(struct amp_waiting *w)
{
    for (int i = 0; i <= HELD; i++) {
        const struct amp_waiting_place *p = w->line[i].first;
        if (p && p->parcel->expires_ms > 0 && p->parcel->expires_ms <= amp_now_ms())
            return lane_leave(w, i);
    }
    return NULL;
}

struct parcel *amp_waiting_first(struct amp_waiting *w)
{
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        if (w->line[i].first)
            return lane_leave(w, i);
    return NULL;
}

int64_t amp_waiting_expiry(const struct amp_waiting *w)
{
    int64_t first = INT64_MAX;
    for (int i = 0; i <= HELD; i++) {
        const struct amp_waiting_place *p = w->line[i].first;
        if (p && p->parcel->expires_ms > 0 && p->parcel->expires_ms < first)
            first = p->parcel->expires_ms;
    }
    if (first == INT64_MAX)
        return -1;
    int64_t wait = first - amp_now_ms();
    return wait > 0 ? wait : 0;
}

int64_t amp_waiting_oldest(const struct amp_waiting *w, int64_t now_ms)
{
    int64_t oldest = now_ms;
    for (int i = 0; i <= HELD; i++)
        if (w->line[i].first && w->line[i].first->since_ms < oldest)
            oldest = w->line[i].first->since_ms;
    return oldest;
}
