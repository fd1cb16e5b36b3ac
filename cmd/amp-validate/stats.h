/* Counts by protocol, type and code, of a result or of the whole run. */
#ifndef AMP_VALIDATE_STATS_H
#define AMP_VALIDATE_STATS_H

#include "validate.h"

struct stats *stats_new(void);
void stats_free(struct stats *s);
void stats_reset(struct stats *s);
void stats_line(struct stats *s, const struct verdict *v);
void stats_add(struct stats *to, const struct stats *from);
void stats_tell(struct stats *s, const struct validate_options *opt, int64_t ms);
/* The line on a terminal, a few times a second; whether it was written. */
bool stats_progress(const struct stats *s, int64_t ms, int64_t *last_ms);

#endif
