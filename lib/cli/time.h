/* Ages, for people. */
#ifndef AMP_CLI_TIME_H
#define AMP_CLI_TIME_H

#include <amp/base/buf.h>

#define AMP_AGE_MAX 24
/* "3s", "5m", "2h", "1d": the largest unit; "0s" for less than nothing. */
struct amp_span amp_age_text(int64_t ms, char out[AMP_AGE_MAX]);

#endif
