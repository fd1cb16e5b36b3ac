/* What waits for one port, in its lanes: message/inbox/lane.h decides which goes next. */
#ifndef AMP_ROUTE_WAITING_H
#define AMP_ROUTE_WAITING_H

#include "message/inbox/lane.h"
#include "route/job.h"

struct amp_waiting;
/* The rules are the caller's, and may change. */
int amp_waiting_new(const struct amp_lane_rules *rules, struct amp_waiting **out,
                    struct amp_error *err);
void amp_waiting_free(struct amp_waiting *w); /* not the jobs */
uint32_t amp_waiting_n(const struct amp_waiting *w);
size_t amp_waiting_bytes(const struct amp_waiting *w);
/* Its limits, and what they counted. */
struct amp_lanes *amp_waiting_lanes(struct amp_waiting *w);

/* Messages of one order stay in the lane of the first of them. */
int amp_waiting_join(struct amp_waiting *w, struct job *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err);
/* Takes out the next, of at least one; since when it waited. */
struct job *amp_waiting_next(struct amp_waiting *w, int64_t now_ms, struct amp_lane_turn *turn,
                             int64_t *since_ms);
/* Takes out one at the head of a lane whose time has passed, or the first of any lane; NULL: there
 * is none. */
struct job *amp_waiting_expired(struct amp_waiting *w);
struct job *amp_waiting_first(struct amp_waiting *w);
/* Until the first at the head of a lane expires; -1: none does. */
int64_t amp_waiting_expiry(const struct amp_waiting *w);
/* Since when the oldest waits, or `now_ms`. */
int64_t amp_waiting_oldest(const struct amp_waiting *w, int64_t now_ms);

#endif
