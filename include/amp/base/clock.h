/* Time. Instants are milliseconds since the Unix epoch (int64_t); machines get them as arguments.
 */
#ifndef AMP_BASE_CLOCK_H
#define AMP_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

#define AMP_TIME_MAX 32 /* bytes that amp_time_format writes at most, NUL included */

int64_t amp_now_ms(void);
int64_t amp_mono_ms(void);
/* What this thread has computed so far, in nanoseconds. */
int64_t amp_cpu_ns(void);

/* "2026-02-26T14:32:07.123Z". */
void amp_time_format(int64_t ms, char out[AMP_TIME_MAX]);

/* RFC 3339 date-time with an offset or Z (leap second 60 accepted only at 23:59 UTC). Fractions
 * beyond milliseconds are cut. */
bool amp_time_parse(struct amp_span text, int64_t *ms);

AMP_API_END

#endif
