/* --from: what the state's log recorded is delivered again, before the input is read. */
#ifndef AMP_ROUTE_FROM_H
#define AMP_ROUTE_FROM_H

#include "route/router/router.h"

extern const char *from_position; /* --from, or NULL */

/* After amp_streams_open. */
int amp_from_open(struct router *r, struct amp_error *err);
/* Takes a few more messages of the log, where there is room for them. */
int amp_from_step(struct router *r, struct amp_error *err);
/* Whether the log is still being read: the input waits. */
bool amp_from_reads(const struct router *r);
/* Whether it would take some now. */
bool amp_from_may(const struct router *r);
void amp_from_close(struct router *r);

#endif
