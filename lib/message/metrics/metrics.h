/*
 * Counters, gauges and histograms of a process (SW4RM §13, §19), written to a file at an interval
 * and at the end. With a NULL handle the functions do nothing. A metric is counted by the labels of
 * its row; label texts are untrusted, so they are shortened and control characters are replaced.
 * Past a limit the label sets of a metric are counted together under "other".
 */
#ifndef AMP_MESSAGE_METRICS_METRICS_H
#define AMP_MESSAGE_METRICS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>
#include <amp/protocol/protocol.h>

#include "message/metrics/list.h"

struct amp_metrics;

struct amp_metrics_options {
    const char *path;    /* NULL: no metrics */
    const char *format;  /* of amp_metrics_formats; NULL: the first */
    const char *tool;    /* "amp-route" */
    int64_t interval_ms; /* 0: only at the end */
    int64_t sets_max;    /* label sets of each metric; 0: 1000 */
};
extern const char *const amp_metrics_formats[]; /* "ndjson", "openmetrics", NULL */

/* *out is NULL if there is no path. Codes: those of opening a file. */
int amp_metrics_open(const struct amp_metrics_options *o, struct amp_metrics **out,
                     struct amp_error *err);
/* For the poll loop: milliseconds until tick writes; -1: never. */
int amp_metrics_timeout(const struct amp_metrics *m);
/* Writes at the interval; never blocks on a reader. A failure is reported once; counting continues.
 */
int amp_metrics_tick(struct amp_metrics *m, struct amp_error *err);
/* Writes the last values, then frees everything, also on failure. */
int amp_metrics_close(struct amp_metrics *m, struct amp_error *err);

/* Labels that the row does not have are ignored; empty ones are left out. */
struct amp_metric_labels {
    struct amp_span agent; /* the owner of the buffer, port or message */
    struct amp_span code;  /* the row's own label: error_code, reason, stage … */
    const char *protocol, *lane;
};
void amp_metrics_add(struct amp_metrics *m, enum amp_metric which,
                     const struct amp_metric_labels *l, uint64_t n);
void amp_metrics_set(struct amp_metrics *m, enum amp_metric which,
                     const struct amp_metric_labels *l, double value);
/* Times in seconds. */
void amp_metrics_observe(struct amp_metrics *m, enum amp_metric which,
                         const struct amp_metric_labels *l, double value);

/* Counts the message if it is a frame of a tool's stream. */
void amp_metrics_tool(struct amp_metrics *m, const struct amp_view *v);

/* The current values: one JSON object and LF; or OpenMetrics text from "# TYPE" to "# EOF". */
int amp_metrics_ndjson(const struct amp_metrics *m, int64_t now_ms, bool final, struct amp_buf *out,
                       struct amp_error *err);
int amp_metrics_openmetrics(const struct amp_metrics *m, struct amp_buf *out,
                            struct amp_error *err);

#define AMP_METRICS_INTERVAL_MS 10000
/* Rows for a tool's option table; o is its struct amp_metrics_options. */
#define AMP_METRICS_OPTS(o)                                                                        \
    {0, "metrics", AMP_OPT_PATH, &(o).path, "FILE", .doc = "write metrics to FILE"},               \
        {0,                                                                                        \
         "metrics-format",                                                                         \
         AMP_OPT_CHOICE,                                                                           \
         &(o).format,                                                                              \
         "FORMAT",                                                                                 \
         .doc = "ndjson appends records; openmetrics replaces the file",                           \
         .choices = amp_metrics_formats},                                                          \
        {0,                                                                                        \
         "metrics-interval",                                                                       \
         AMP_OPT_DURATION,                                                                         \
         &(o).interval_ms,                                                                         \
         "TIME",                                                                                   \
         .doc = "how often the values are written; 0: at the end only"},                           \
    {                                                                                              \
        0, "metrics-sets", AMP_OPT_INT, &(o).sets_max, "N",                                        \
            .doc = "label sets kept per metric; others are counted together", .min = 1,            \
            .max = 1000000                                                                         \
    }

#endif
