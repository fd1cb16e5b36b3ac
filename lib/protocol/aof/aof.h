/* What the files of AOF/1 share. */
#ifndef AMP_PROTOCOL_AOF_H
#define AMP_PROTOCOL_AOF_H

#include "protocol/check/check.h"

void amp_aof_rules(struct amp_check *c);

/* An event record "protocol.message.rejected" (or unknown). */
int amp_aof_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err);

#endif
