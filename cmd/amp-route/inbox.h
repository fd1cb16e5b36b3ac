/* The parts of the verb inbox: inbox.c the options and the turns, hand.c how one message reaches
 * the agent. */
#ifndef AMP_ROUTE_INBOX_H
#define AMP_ROUTE_INBOX_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "cli/cli.h"
#include "message/inbox.h"

extern const struct amp_opt inbox_opts[];
int route_inbox(int argc, char **argv);

enum hand_outcome {
    HAND_TAKEN,
    HAND_AGAIN,   /* the command could not do it now */
    HAND_REFUSED, /* nor ever */
};

/* Where messages go: a line on an output, or a command for each. */
struct hand {
    const char *format;      /* line, text or wrap */
    const char *const *argv; /* NULL: the output */
    const char *agent;
    int64_t attempt_timeout_ms;
    struct amp_outq out;
    bool fifo, file; /* what the output is */
    char why[200];   /* of HAND_AGAIN and HAND_REFUSED */
    char code[32];
};
int hand_open(struct hand *h, const char *path, int64_t open_timeout_ms, struct amp_error *err);
void hand_close(struct hand *h);
/* Returns when the agent has it: on a pipe, when its reader took it. */
int hand_over(struct hand *h, const struct amp_inbox_msg *m, enum hand_outcome *how,
              struct amp_error *err);
/* poll without missing a signal: INTERRUPTED when one came. */
int hand_wait(struct pollfd *fds, unsigned n, int64_t timeout_ms, struct amp_error *err);
/* The descriptor that says by POLLERR that the reader is gone, or -1. */
int hand_reader(const struct hand *h);

#endif
