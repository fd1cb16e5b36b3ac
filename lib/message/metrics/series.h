/* Shared by the files of the metrics. */
#ifndef AMP_MESSAGE_METRICS_SERIES_H
#define AMP_MESSAGE_METRICS_SERIES_H

#include <amp/base/pipe.h>

#include "message/metrics/metrics.h"

enum { AMP_METRIC_BUCKETS = 14, AMP_METRIC_LABELS = 4 };

/* One label set of one metric. */
struct amp_metric_series {
    struct amp_metric_series *next; /* of the metric, in the order of their creation */
    uint64_t hash;
    uint32_t len;
    enum amp_metric metric;
    union {
        uint64_t count;
        double value;
        struct {
            double sum;
            uint64_t bucket[AMP_METRIC_BUCKETS + 1]; /* not cumulative; last: above all bounds */
        } times;
    };
    char labels[]; /* protocol NUL agent NUL lane NUL code NUL */
};

struct amp_metrics {
    struct amp_metrics_options o;
    char *path, *tool;
    struct amp_metric_series *first[AMP_METRIC_N], *last[AMP_METRIC_N];
    struct amp_metric_series *other[AMP_METRIC_N]; /* created first, so counting never fails */
    uint32_t sets[AMP_METRIC_N];
    uint8_t mask[AMP_METRIC_N]; /* bit i: the row has label i of a series' text */
    struct amp_metric_series **slot;
    uint32_t slots, used;
    int64_t started_ms, due_ms; /* due: monotonic clock; INT64_MAX: never */
    bool failing;
    struct amp_outq q; /* ndjson; fd -1 while a FIFO has no reader */
};

/* The upper bounds of a histogram's buckets, as numbers and as OpenMetrics writes them. */
struct amp_metric_bounds {
    unsigned n;
    const double *le;
    const char *const *text;
};
const struct amp_metric_bounds *amp_metric_bounds(enum amp_metric which);
/* Fills the labels of a series that are not empty, in the order of its text. Returns their number.
 */
struct amp_metric_pair {
    const char *name;
    struct amp_span value;
};
unsigned amp_metric_pairs(const struct amp_metric_series *s,
                          struct amp_metric_pair out[AMP_METRIC_LABELS]);

/* Creates a handle without opening its file; NULL: out of memory. */
struct amp_metrics *amp_metrics_make(const struct amp_metrics_options *o);
void amp_metrics_free(struct amp_metrics *m);

#endif
