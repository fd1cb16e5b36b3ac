/* Parsing numbers, with bounds. No other file parses numbers. */
#ifndef AMP_BASE_NUM_H
#define AMP_BASE_NUM_H

#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

/* A decimal integer within [min, max], with an optional minus and no other characters. */
int amp_num_parse(struct amp_span text, int64_t min, int64_t max, int64_t *out,
                  struct amp_error *err);
/* "250ms", "30s", "5m", "2h", "1d" or a bare number of seconds; result in milliseconds. */
int amp_num_duration(struct amp_span text, int64_t min_ms, int64_t max_ms, int64_t *ms,
                     struct amp_error *err);
/* "4096", "64K", "32M", "1G" (powers of 1024); result in bytes. */
int amp_num_size(struct amp_span text, int64_t min, int64_t max, int64_t *bytes,
                 struct amp_error *err);
int amp_num_real(struct amp_span text, double min, double max, double *out, struct amp_error *err);

AMP_API_END

#endif
