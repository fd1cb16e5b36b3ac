/* Times in lists: ages for people, members of JSON for programs. */
#ifndef CLI_TIME_H
#define CLI_TIME_H

#include <amp/json/writer.h>

#define AMP_AGE_MAX 24
/* "3s", "5m", "2h", "1d": the largest unit; "0s" for less than nothing. */
struct amp_span amp_age_text(int64_t ms, char out[AMP_AGE_MAX]);
/* The member as RFC 3339; none if ms <= 0. */
void amp_time_member(struct amp_jw *w, const char *key, int64_t ms);

#endif
