/* --from: what the state's log recorded is delivered again, before the input is read. */
#ifndef AMP_ROUTE_FROM_H
#define AMP_ROUTE_FROM_H

#include "router.h"

extern const char *from_position; /* --from, or NULL */

/* After cursors_open. */
int from_open(struct router *r, struct amp_error *err);
/* Takes a few more messages of the log, where there is room for them. */
int from_step(struct router *r, struct amp_error *err);
/* Whether the log is still being read: the input waits. */
bool from_reads(const struct router *r);
/* Whether it would take some now. */
bool from_may(const struct router *r);
void from_close(struct router *r);

#endif
