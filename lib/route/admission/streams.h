/* The router's cursors (message/cursor/cursor.h): one for each stream that it reads, when --cursor
 * names the consumer. A stream of NULL follows nothing. */
#ifndef AMP_ROUTE_STREAMS_H
#define AMP_ROUTE_STREAMS_H

#include "route/admission/source.h"

struct amp_streams;
/* Takes the consumer's name, and what an earlier holder left waiting; *out stays NULL where no
 * consumer is named. The env lives longer. */
int amp_streams_open(const struct amp_source_env *env, struct amp_streams **out,
                     struct amp_error *err);
/* Lets the cursors go; reports what still waits (75). */
void amp_streams_close(struct amp_streams *c);
/* Takes the lock of a consumer, in *fd: its holder is the only one alive, then the lease of one
 * that was killed need not run out. 1; 0: another process has it. */
int amp_streams_alone(const struct amp_streams *c, const struct amp_source_env *env,
                      const char *consumer, int *fd, struct amp_error *err);
/* In which stream the message has a number. */
int amp_streams_admit(struct amp_streams *c, struct job *j, const struct amp_view *v,
                      struct amp_error *err);
/* Records the jobs of the batch that have one. Those that wait, or came before, end here; those
 * that waited for one of the others follow it, by `next`. */
int amp_streams_record(struct amp_streams *c, struct job **batch, uint32_t *n,
                       struct amp_error *err);
/* Leases and gaps. */
int amp_streams_turn(struct amp_streams *c, struct amp_error *err);
void amp_streams_watch(const struct amp_streams *c, int *timeout_ms);
void amp_streams_measure(const struct amp_streams *c); /* the gauges */
void amp_streams_say(const struct amp_streams *c);     /* what was counted */

#endif
