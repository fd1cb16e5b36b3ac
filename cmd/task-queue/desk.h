/* The verbs about the queue share this: the state, its settings, the order of the jobs, and what
 * keeps jobs from starting. */
#ifndef TASK_DISPATCH_QUEUE_DESK_H
#define TASK_DISPATCH_QUEUE_DESK_H

#include "message/pause/pause.h"
#include "work/item/claim/account.h"

struct queue_staff {
    char type[AMP_QUEUE_TYPE_MAX];
    int64_t agents;
};

struct queue_desk {
    struct amp_store *store;
    struct amp_order *order;
    struct amp_queue_settings set;
    struct amp_pauses pauses;
    struct amp_accounts accounts;
    struct amp_buf staff; /* the types of the pools: struct queue_staff */
    json_t *config;
};

/* Close it also after a failure. */
int queue_desk_open(struct queue_desk *d, struct amp_store *store, struct amp_error *err);
void queue_desk_close(struct queue_desk *d);
/* Reads what changed: jobs, suspensions, pools. */
int queue_desk_look(struct queue_desk *d, struct amp_error *err);
/* The agents of a type in all pools; their types, i from 0, and false if there are no more. */
int64_t queue_desk_staff(const struct queue_desk *d, struct amp_span type);
bool queue_desk_type(const struct queue_desk *d, size_t i, struct amp_span *out);
/* Why a waiting job waits: the place's reason, or no_worker if it could start but no pool has
 * agents of its type. */
enum amp_waits queue_desk_waits(const struct queue_desk *d, struct amp_span type,
                                const struct amp_order_place *p);

#endif
