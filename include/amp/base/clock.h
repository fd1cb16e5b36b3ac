/* Time. Instants are milliseconds since the Unix epoch (int64_t); machines get them as arguments.
 */
#ifndef AMP_BASE_CLOCK_H
#define AMP_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

#define AMP_TIME_MAX 32 /* the most bytes that amp_time_format writes, including the NUL */

int64_t amp_now_ms(void);
int64_t amp_mono_ms(void);
/* The CPU time of this thread, in nanoseconds. */
int64_t amp_cpu_ns(void);

/* "2026-02-26T14:32:07.123Z". */
void amp_time_format(int64_t ms, char out[AMP_TIME_MAX]);

/* Parses an RFC 3339 date-time with an offset or Z. Second 60 is accepted at 23:59 UTC only.
 * Fractions are truncated to milliseconds. */
bool amp_time_parse(struct amp_span text, int64_t *ms);

AMP_API_END

#endif
