/* The router's cursors (message/cursor/cursor.h), one for each stream, if --cursor names a
 * consumer. The functions accept NULL, for a router without --cursor. */
#ifndef AMP_MESSAGE_ROUTE_ADMISSION_STREAMS_H
#define AMP_MESSAGE_ROUTE_ADMISSION_STREAMS_H

#include "message/route/admission/source.h"

struct amp_streams;
/* Locks the consumer's name, and opens the streams in which events wait. Without a consumer *out
 * stays NULL. The env must live longer. */
int amp_streams_open(const struct amp_source_env *env, struct amp_streams **out,
                     struct amp_error *err);
/* Releases the cursors; reports waiting events (75). */
void amp_streams_close(struct amp_streams *c);
/* Takes the lock of a consumer, *fd. Its holder is the only live process of this consumer, so it
 * need not wait for the lease of a killed one. 1: taken; 0: another process has it. */
int amp_streams_alone(const struct amp_streams *c, const struct amp_source_env *env,
                      const char *consumer, int *fd, struct amp_error *err);
/* Finds the stream in which the message has a number. */
int amp_streams_admit(struct amp_streams *c, struct parcel *j, const struct amp_view *v,
                      struct amp_error *err);
/* Records the parcels of the batch that have a number. Parcels that wait for a gap, and repeated
 * ones, are freed and leave the batch; parcels that waited for one of the others follow it, by
 * `next`. */
int amp_streams_record(struct amp_streams *c, struct parcel **batch, uint32_t *n,
                       struct amp_error *err);
/* Renews leases, and gives up gaps. */
int amp_streams_turn(struct amp_streams *c, struct amp_error *err);
void amp_streams_watch(const struct amp_streams *c, int *timeout_ms);
void amp_streams_measure(const struct amp_streams *c); /* the gauges */
void amp_streams_say(const struct amp_streams *c);     /* reports the counts */

#endif
