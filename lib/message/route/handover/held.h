/* Messages that stay in the inbox, because their task or their agent is suspended. */
#ifndef AMP_MESSAGE_ROUTE_HANDOVER_HELD_H
#define AMP_MESSAGE_ROUTE_HANDOVER_HELD_H

#include "message/pause/watch.h"

struct amp_inbox_held {
    struct amp_store *store;
    const char *name; /* the agent's */
    struct amp_reader *reader;
    struct amp_pause_watch pauses;
    bool holds;                 /* set by the check; the caller resets it */
    struct amp_buf said, notes; /* ids that were reported; lines to report now */
};
int amp_held_open(struct amp_inbox_held *h, struct amp_store *s, const char *agent,
                  struct amp_error *err);
void amp_held_close(
    struct amp_inbox_held *h); /* also of a zeroed struct, and after a failed open */
/* The callback `held` of struct amp_inbox_turn; ctx: the struct amp_inbox_held. */
int amp_held_check(void *ctx, struct amp_span line, struct amp_error *err);
/* Reports what the checks noted, once for each message; after the turn, in which no write may
 * block. */
void amp_held_report(struct amp_inbox_held *h,
                     void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))));

#endif
