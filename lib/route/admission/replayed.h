/* --from: what the state's log recorded is delivered again, before the input is read. NULL: it is
 * not. */
#ifndef AMP_ROUTE_REPLAYED_H
#define AMP_ROUTE_REPLAYED_H

#include "route/admission/streams.h"

struct amp_replayed;
/* *out stays NULL where no position is given. USAGE no_state, bad_position. */
int amp_replayed_open(const struct amp_source_env *env, const struct amp_streams *streams,
                      struct amp_replayed **out, struct amp_error *err);
void amp_replayed_close(struct amp_replayed *f);
/* Takes a few more messages of the log, where there is room for them. */
int amp_replayed_step(struct amp_replayed *f, bool room, struct amp_error *err);
/* Whether the log is still being read: the input waits. */
bool amp_replayed_reads(const struct amp_replayed *f);

#endif
