/* The lanes of one port. */
#include "route/outlet/waiting.h"

#include <stdlib.h>

#include <amp/base/clock.h>

void amp_waiting_init(struct amp_waiting *w, const struct amp_lane_rules *rules)
{
    *w = (struct amp_waiting){0};
    amp_lanes_init(&w->lanes, rules, amp_mono_ms());
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        w->line[i].last = &w->line[i].first;
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
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        places_free(w->line[i].first);
    places_free(w->spare);
    amp_lane_keys_release(&w->keys);
}

int amp_waiting_join(struct amp_waiting *w, struct job *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err)
{
    struct amp_waiting_place *p = w->spare;
    if (!p && !(w->spare = p = calloc(1, sizeof(*p))))
        return amp_fail_memory(err);
    if (amp_lane_keys_add(&w->keys, j->order, &lane, err) < 0)
        return -1;
    w->spare = p->next;
    *p = (struct amp_waiting_place){.job = j, .since_ms = now_ms};
    *w->line[lane].last = p;
    w->line[lane].last = &p->next;
    w->n++;
    w->bytes += j->n + 1;
    return 0;
}

/* Removes the first message of a lane. */
static struct job *lane_leave(struct amp_waiting *w, int lane)
{
    struct amp_waiting_place *p = w->line[lane].first;
    struct job *j = p->job;
    w->line[lane].first = p->next;
    if (!p->next)
        w->line[lane].last = &w->line[lane].first;
    w->n--;
    w->bytes -= j->n + 1;
    amp_lane_keys_drop(&w->keys, j->order);
    p->next = w->spare;
    w->spare = p;
    return j;
}

struct job *amp_waiting_next(struct amp_waiting *w, int64_t now_ms, struct amp_lane_turn *turn,
                             int64_t *since_ms)
{
    struct amp_lane_head heads[AMP_LANE_COUNT] = {{0}};
    for (int i = 0; i < AMP_LANE_COUNT; i++) {
        const struct amp_waiting_place *p = w->line[i].first;
        if (p)
            heads[i] = (struct amp_lane_head){true, p->job->n, p->since_ms};
    }
    *turn = amp_lanes_next(&w->lanes, heads, now_ms);
    *since_ms = w->line[turn->lane].first->since_ms;
    return lane_leave(w, turn->lane);
}

struct job *amp_waiting_expired(struct amp_waiting *w)
{
    for (int i = 0; i < AMP_LANE_COUNT; i++) {
        const struct amp_waiting_place *p = w->line[i].first;
        if (p && p->job->expires_ms > 0 && p->job->expires_ms <= amp_now_ms())
            return lane_leave(w, i);
    }
    return NULL;
}

struct job *amp_waiting_first(struct amp_waiting *w)
{
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        if (w->line[i].first)
            return lane_leave(w, i);
    return NULL;
}

int64_t amp_waiting_expiry(const struct amp_waiting *w)
{
    int64_t first = INT64_MAX;
    for (int i = 0; i < AMP_LANE_COUNT; i++) {
        const struct amp_waiting_place *p = w->line[i].first;
        if (p && p->job->expires_ms > 0 && p->job->expires_ms < first)
            first = p->job->expires_ms;
    }
    if (first == INT64_MAX)
        return -1;
    int64_t wait = first - amp_now_ms();
    return wait > 0 ? wait : 0;
}

int64_t amp_waiting_oldest(const struct amp_waiting *w, int64_t now_ms)
{
    int64_t oldest = now_ms;
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        if (w->line[i].first && w->line[i].first->since_ms < oldest)
            oldest = w->line[i].first->since_ms;
    return oldest;
}
