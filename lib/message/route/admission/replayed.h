/* --from: messages of the state's log are delivered again, before the input is read. The functions
 * accept NULL, for a router without --from. */
#ifndef AMP_MESSAGE_ROUTE_ADMISSION_REPLAYED_H
#define AMP_MESSAGE_ROUTE_ADMISSION_REPLAYED_H

#include "message/route/admission/streams.h"

struct amp_replayed;
/* Without a position *out stays NULL. USAGE no_state, bad_position. */
int amp_replayed_open(const struct amp_source_env *env, const struct amp_streams *streams,
                      struct amp_replayed **out, struct amp_error *err);
void amp_replayed_close(struct amp_replayed *f);
/* Routes a few more messages of the log, if there is room. */
int amp_replayed_step(struct amp_replayed *f, bool room, struct amp_error *err);
/* Whether the log is still being read; the input waits. */
bool amp_replayed_reads(const struct amp_replayed *f);

#endif
