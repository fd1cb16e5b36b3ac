/* Counts by protocol, type and code, of a result or of the complete run. */
#ifndef AMP_VALIDATE_STATS_H
#define AMP_VALIDATE_STATS_H

#include "validate.h"

/* Freed with free(3); NULL if out of memory. */
struct stats *stats_new(void);
void stats_reset(struct stats *s);
void stats_line(struct stats *s, const struct line_verdict *v);
void stats_add(struct stats *to, const struct stats *from);
void stats_print(struct stats *s, const struct validate_options *opt, int64_t ms);
/* Writes the line on a terminal, at most four times a second; returns whether it did. */
bool stats_progress(const struct stats *s, int64_t ms, int64_t *last_ms);

#endif
