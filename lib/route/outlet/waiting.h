/* The messages that wait for one port, in its lanes; message/inbox/lane.h selects the next one.
 * Only outlet.c uses it and its members. */
#ifndef AMP_ROUTE_WAITING_H
#define AMP_ROUTE_WAITING_H

#include "message/inbox/lane.h"
#include "route/job.h"

struct amp_waiting {
    struct amp_lanes lanes; /* their limits and counts */
    struct amp_lane_keys keys;
    struct {
        struct amp_waiting_place {
            struct amp_waiting_place *next;
            struct job *job;
            int64_t since_ms;
        } * first, **last;
    } line[AMP_LANE_COUNT];
    struct amp_waiting_place *spare; /* unused ones */
    uint32_t n;
    size_t bytes;
};
/* The caller owns the rules and may change them. The struct must not move. */
void amp_waiting_init(struct amp_waiting *w, const struct amp_lane_rules *rules);
void amp_waiting_release(struct amp_waiting *w); /* does not free the jobs */

/* Adds a message. Messages with one order stay in the lane of the first of them. */
int amp_waiting_join(struct amp_waiting *w, struct job *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err);
/* Removes the next of at least one message; *since_ms is when it was added. */
struct job *amp_waiting_next(struct amp_waiting *w, int64_t now_ms, struct amp_lane_turn *turn,
                             int64_t *since_ms);
/* Remove an expired message at the head of a lane, or the first of any lane; NULL: there is none.
 */
struct job *amp_waiting_expired(struct amp_waiting *w);
struct job *amp_waiting_first(struct amp_waiting *w);
/* Milliseconds until the first message at the head of a lane expires; -1: none does. */
int64_t amp_waiting_expiry(const struct amp_waiting *w);
/* When the oldest message was added; now_ms if none waits. */
int64_t amp_waiting_oldest(const struct amp_waiting *w, int64_t now_ms);

#endif
