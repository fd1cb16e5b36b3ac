/* The router's cursors (message/cursor/cursor.h): one for each stream that it reads, when --cursor
 * names the consumer. */
#ifndef AMP_ROUTE_CURSORS_H
#define AMP_ROUTE_CURSORS_H

#include "router.h"

extern struct cursors_settings {
    const char *consumer; /* NULL: streams are not followed */
    const char *on_gap;
    int64_t gap_ms, lease_ms, waiting;
} cursors_settings;
extern const char *const cursors_gap_words[];

struct cursors;
/* After keep_open: takes the consumer's name, and what an earlier holder left waiting. */
int cursors_open(struct router *r, struct amp_error *err);
/* Takes the lock of a consumer, in *fd: who has it is the only one alive, then the lease of who was
 * killed need not run out. 1, 0: somebody else has it. */
int cursors_alone(struct router *r, const char *consumer, int *fd, struct amp_error *err);
/* The admit step: in which stream it has a number. */
step_fn cursors_admit;
/* Of an event that its stream is past: 1: a person sent it again, it passes beside the cursor. */
int resent_look(struct router *r, struct job *j, struct amp_span id, struct amp_error *err);
/* Records it; *seen: it passed already. */
int resent_take(struct router *r, struct job *j, bool *seen, struct amp_error *err);
/* Records the jobs of the batch that have one. Those that wait, or came before, end here; those
 * that waited for one of the others follow it, by `next`. */
int cursors_record(struct router *r, struct job **batch, uint32_t *n, struct amp_error *err);
/* Leases and gaps. */
int cursors_turn(struct router *r, struct amp_error *err);
void cursors_watch(const struct router *r, int *timeout_ms);
/* Lets them go; tells what still waits (75). */
void cursors_close(struct router *r);
void cursors_say(const struct router *r); /* what was counted */

#endif
