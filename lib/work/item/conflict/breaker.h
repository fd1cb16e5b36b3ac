/*
 * The circuit breaker of a command: after `most` failures in a row it is not started for `pause_ms`
 * (OPEN); then one start shows whether it works again (TRIAL). All workers of a state share it: key
 * "breaker.<name>". A successful start of a closed breaker writes nothing.
 */
#ifndef AMP_WORK_ITEM_CONFLICT_BREAKER_H
#define AMP_WORK_ITEM_CONFLICT_BREAKER_H

#include "message/store/store.h"
#include "work/item/conflict/machine.h"

#define AMP_BREAKER_KIND "breaker"

struct amp_breaker {
    const char *name;
    int64_t most, pause_ms;
    int64_t limit_ms; /* a trial whose worker is gone is repeated after it */
    const char *actor;
};
struct amp_breaker_now {
    uint8_t state; /* of amp_breaker_fsm */
    int64_t failures;
    int64_t until_ms; /* OPEN: when it is tried again */
    char why[256];    /* the last failure, cut */
};
/* Without a record it is CLOSED. */
int amp_breaker_read(struct amp_store *s, const char *name, struct amp_breaker_now *out,
                     struct amp_error *err);
/* Whether the command may be started: 1; 0: not before now->until_ms. Sync before the start. */
int amp_breaker_try(struct amp_store *s, const struct amp_breaker *b, int64_t now_ms,
                    struct amp_breaker_now *now, struct amp_error *err);
/* Records the end of the start. why: the reason of a failure; NULL: success. */
int amp_breaker_end(struct amp_store *s, const struct amp_breaker *b, const char *why,
                    int64_t now_ms, struct amp_breaker_now *now, struct amp_error *err);

#endif
