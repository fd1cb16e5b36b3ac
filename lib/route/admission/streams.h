/* The router's cursors (message/cursor/cursor.h): one for each stream that it reads, when --cursor
 * names the consumer. */
#ifndef AMP_ROUTE_CURSORS_H
#define AMP_ROUTE_CURSORS_H

#include "route/router/router.h"

struct cursors;
/* After amp_keeper_open: takes the consumer's name, and what an earlier holder left waiting. */
int amp_streams_open(struct router *r, struct amp_error *err);
/* Takes the lock of a consumer, in *fd: who has it is the only one alive, then the lease of who was
 * killed need not run out. 1, 0: somebody else has it. */
int amp_streams_alone(struct router *r, const char *consumer, int *fd, struct amp_error *err);
/* The admit step: in which stream it has a number. */
step_fn amp_streams_admit;
/* Of an event that its stream is past: 1: a person sent it again, it passes beside the cursor. */
int amp_resent_look(struct router *r, struct job *j, struct amp_span id, struct amp_error *err);
/* Records it; *seen: it passed already. */
int amp_resent_take(struct router *r, struct job *j, bool *seen, struct amp_error *err);
/* Records the jobs of the batch that have one. Those that wait, or came before, end here; those
 * that waited for one of the others follow it, by `next`. */
int amp_streams_record(struct router *r, struct job **batch, uint32_t *n, struct amp_error *err);
/* Leases and gaps. */
int amp_streams_turn(struct router *r, struct amp_error *err);
void amp_streams_watch(const struct router *r, int *timeout_ms);
/* Lets them go; tells what still waits (75). */
void amp_streams_close(struct router *r);
void amp_streams_say(const struct router *r); /* what was counted */

#endif
