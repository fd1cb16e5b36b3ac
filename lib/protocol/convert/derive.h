/* What conversions derive. */
#ifndef PROTOCOL_CONVERT_DERIVE_H
#define PROTOCOL_CONVERT_DERIVE_H

#include "protocol/view/pool.h"

/* Ids and times that are derived; the texts are the pool's or the value's. */
struct amp_span amp_cv_uuid(struct amp_span text, struct amp_pool *pool);
struct amp_span amp_cv_task_amp(struct amp_span text, struct amp_pool *pool);
struct amp_span amp_cv_task_aof(struct amp_span text, struct amp_pool *pool);
struct amp_span amp_cv_msg_id(const char *type, struct amp_span task, struct amp_span id,
                              int64_t ms, struct amp_pool *pool);
struct amp_span amp_cv_time_z(struct amp_span text, struct amp_pool *pool);

#endif
