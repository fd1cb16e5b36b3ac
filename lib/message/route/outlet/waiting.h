/* The messages that wait for one port, in its lanes; message/inbox/lane.h selects the next one.
 * Beside the lanes are the messages that people hold back, in the order of their arrival. Only
 * outlets.c and give.c use it and its members. */
#ifndef AMP_MESSAGE_ROUTE_OUTLET_WAITING_H
#define AMP_MESSAGE_ROUTE_OUTLET_WAITING_H

#include "message/delivery/inbox/lane.h"
#include "message/route/parcel.h"

/* Fair share (SW4RM §13.1): each producer's messages of a lane get rising rounds, and the lane is
 * in the order of the rounds, so the producers take turns. */
#define AMP_WAITING_SHARES 256 /* slots; producers of one slot share a turn */
struct amp_waiting_shares {
    struct amp_waiting_share {
        uint32_t n;     /* waiting messages */
        uint64_t round; /* of the last one */
    } of[AMP_LANE_COUNT][AMP_WAITING_SHARES];
    uint64_t round[AMP_LANE_COUNT]; /* of the message that was sent last */
};

struct amp_waiting {
    struct amp_lanes lanes; /* their limits and counts */
    struct amp_lane_keys keys;
    struct {
        struct amp_waiting_place {
            struct amp_waiting_place *next;
            struct parcel *parcel;
            int64_t since_ms;
            int64_t number; /* among all messages of this port */
            uint64_t round;
            enum amp_lane lane;
        } * first, **last;
    } line[AMP_LANE_COUNT + 1];      /* the last one: held */
    struct amp_waiting_place *spare; /* unused ones */
    uint32_t n;                      /* in the lanes */
    uint32_t n_held;
    struct amp_lane_keys held_keys;    /* the orders of the held messages */
    int64_t newest, oldest;            /* numbers */
    int64_t next_earlier;              /* of a message that came before all others; 0: none comes */
    size_t bytes;                      /* of both */
    bool counts;                       /* the messages of each producer, */
    struct amp_lane_keys producers;    /* by the producer's name */
    struct amp_waiting_shares *shares; /* NULL: a lane is in the order of arrival */
};
/* The caller owns the rules and may change them. The struct must not move. */
int amp_waiting_share(struct amp_waiting *w, struct amp_error *err); /* after init: fair shares */
void amp_waiting_init(struct amp_waiting *w, const struct amp_lane_rules *rules);
void amp_waiting_release(struct amp_waiting *w); /* does not free the parcels */

/* The waiting messages of the parcel's producer, if `counts` was set after init. */
uint32_t amp_waiting_of(const struct amp_waiting *w, const struct parcel *j);
/* Adds a message. Messages with one order stay in the lane of the first of them. */
int amp_waiting_join(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err);
/* Adds a message of which a part was sent: it is the next one of its lane; with fair shares after
 * one of each other producer. */
int amp_waiting_again(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t since_ms,
                      struct amp_error *err);
/* Adds a message that is held back. */
int amp_waiting_hold(struct amp_waiting *w, struct parcel *j, enum amp_lane lane, int64_t now_ms,
                     struct amp_error *err);
/* The messages that are held from now on came before all others, until next_earlier is 0. */
void amp_waiting_earlier(struct amp_waiting *w);
/* Whether a held message has the same order, so that this one must not overtake it. */
bool amp_waiting_follows(const struct amp_waiting *w, const struct parcel *j);
/* Holds the messages for which `held` returns true, and those with an order of theirs that came
 * later; moves the others to their lanes, in the order of their arrival. */
int amp_waiting_sort(struct amp_waiting *w, bool (*held)(void *ctx, const struct parcel *j),
                     void *ctx, struct amp_error *err);
/* Removes the next of at least one message; *since_ms is when it was added. */
struct parcel *amp_waiting_next(struct amp_waiting *w, int64_t now_ms, struct amp_lane_turn *turn,
                                int64_t *since_ms);
/* Remove an expired message at the head of a lane, or of the held ones; or the first of any lane.
 * NULL: there is none. */
struct parcel *amp_waiting_expired(struct amp_waiting *w);
struct parcel *amp_waiting_first(struct amp_waiting *w);
/* Milliseconds until the first message at the head of a lane, or of the held ones, expires; -1:
 * none does. */
int64_t amp_waiting_expiry(const struct amp_waiting *w);
/* The time at which the oldest message was added; now_ms if none waits. */
int64_t amp_waiting_oldest(const struct amp_waiting *w, int64_t now_ms);

#endif
