/* The verbs of handoffs, and what they share. */
#ifndef TASK_DISPATCH_HANDOFF_H
#define TASK_DISPATCH_HANDOFF_H

#include <amp/base/pipe.h>

#include "cli/cli.h"
#include "message/delivery/outbox.h"
#include "message/delivery/sender/identity.h"
#include "work/handoff/offer/handoff.h"

/* A verb's hold on the state: the outbox with its lock, and standard output. */
struct handoff_desk {
    struct amp_handoffs h;
    char box_name[300];
    int lock;
    struct amp_outq out;
    struct amp_outbox box;
    struct amp_identities *ids;
};
#define HANDOFF_DESK                                                                               \
    {                                                                                              \
        .lock = -1, .out.fd = -1                                                                   \
    }
/* name: of the outbox, and the principal that signs its lines. */
int handoff_desk_open(struct handoff_desk *d, struct amp_store *store, const char *box,
                      const char *principal, struct amp_error *err);
/* Writes and closes the lines of the outbox. */
int handoff_desk_finish(struct handoff_desk *d, struct amp_error *err);
void handoff_desk_close(struct handoff_desk *d);

#endif
