/*
 * Writes the values to the file, as a JSON object or OpenMetrics 1.0. NDJSON records are appended;
 * if a FIFO has no reader or a slow one, records are lost and nothing else happens. OpenMetrics
 * text replaces the file, so its reader never reads a part of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/metrics/series.h"

#define TEXT_MAX    ((size_t)64 << 20)
#define PENDING_MAX ((size_t)8 << 20) /* of a FIFO whose reader is slow */
#define END_MS      1000              /* the wait for such a reader at the end */

static const char *const kinds[] = {"counter", "gauge", "histogram", "histogram"};

static const char *number_write(double v, char out[40])
{
    snprintf(out, 40, "%.9g", isfinite(v) ? v : 0.0);
    return out;
}

static uint64_t series_total(const struct amp_metric_series *s)
{
    uint64_t n = 0;
    for (int i = 0; i <= AMP_METRIC_BUCKETS; i++)
        n += s->times.bucket[i];
    return n;
}

static void json_values(struct amp_jw *w, const struct amp_metric_series *s)
{
    const struct amp_metric_bounds *b = amp_metric_bounds(s->metric);
    char text[40];
    if (!b) {
        if (amp_metric_specs[s->metric].kind == AMP_METRIC_COUNTER)
            amp_jw_member_uint(w, "value", s->count);
        else
            amp_jw_member_raw(w, "value", amp_span_str(number_write(s->value, text)));
        return;
    }
    uint64_t below = 0;
    amp_jw_member_uint(w, "count", series_total(s));
    amp_jw_member_raw(w, "sum", amp_span_str(number_write(s->times.sum, text)));
    amp_jw_member_open(w, "buckets", '{');
    for (unsigned i = 0; i < b->n; i++) {
        below += s->times.bucket[i];
        amp_jw_member_uint(w, b->text[i], below);
    }
    amp_jw_close(w, '}');
}

static void json_series(struct amp_jw *w, const struct amp_metric_series *s)
{
    const struct amp_metric_spec *spec = &amp_metric_specs[s->metric];
    struct amp_metric_pair pair[AMP_METRIC_LABELS];
    unsigned n = amp_metric_pairs(s, pair);
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "name", amp_span_str(spec->name));
    amp_jw_member_str(w, "type", amp_span_str(kinds[spec->kind]));
    if (n > 0) {
        amp_jw_member_open(w, "labels", '{');
        for (unsigned i = 0; i < n; i++) {
            amp_jw_member_str(w, pair[i].name, pair[i].value);
        }
        amp_jw_close(w, '}');
    }
    json_values(w, s);
    amp_jw_close(w, '}');
}

int amp_metrics_ndjson(const struct amp_metrics *m, int64_t now_ms, bool final, struct amp_buf *out,
                       struct amp_error *err)
{
    struct amp_jw w;
    char at[AMP_TIME_MAX], started[AMP_TIME_MAX];
    amp_time_format(now_ms, at);
    amp_time_format(m->started_ms, started);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "at", amp_span_str(at));
    amp_jw_member_str(&w, "tool", amp_span_str(m->tool));
    amp_jw_member_int(&w, "pid", getpid());
    amp_jw_member_str(&w, "since", amp_span_str(started));
    amp_jw_member_bool(&w, "final", final);
    amp_jw_member_open(&w, "metrics", '[');
    for (int i = 0; i < AMP_METRIC_N; i++)
        for (const struct amp_metric_series *s = m->first[i]; s; s = s->next)
            json_series(&w, s);
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* A family's name: "amp_" and the row's, without the _total of a counter's samples. */
static void family_write(enum amp_metric which, char out[96])
{
    const struct amp_metric_spec *spec = &amp_metric_specs[which];
    size_t n = (size_t)snprintf(out, 96, "amp_%s", spec->name);
    if (spec->kind == AMP_METRIC_COUNTER && n > 6 && strcmp(out + n - 6, "_total") == 0)
        out[n - 6] = 0;
    for (char *c = out; *c; c++)
        if (*c == '.')
            *c = '_';
}

static int text_write_quoted(struct amp_buf *out, struct amp_span text, struct amp_error *err)
{
    if (amp_buf_add(out, "\"", 1, err) < 0)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        const char *esc = text.p[i] == '"'    ? "\\\""
                          : text.p[i] == '\\' ? "\\\\"
                          : text.p[i] == '\n' ? "\\n"
                                              : NULL;
        if ((esc ? amp_buf_str(out, esc, err) : amp_buf_add(out, text.p + i, 1, err)) < 0)
            return -1;
    }
    return amp_buf_add(out, "\"", 1, err);
}

/* NAME SUFFIX {tool="…",…,le="…"} VALUE */
static int sample_write(const struct amp_metrics *m, const struct amp_metric_series *s,
                        const char *suffix, const char *le, const char *value, struct amp_buf *out,
                        struct amp_error *err)
{
    struct amp_metric_pair pair[AMP_METRIC_LABELS];
    char name[96];
    unsigned n = amp_metric_pairs(s, pair);
    family_write(s->metric, name);
    if (amp_buf_fmt(out, err, "%s%s{tool=", name, suffix) < 0 ||
        text_write_quoted(out, amp_span_str(m->tool), err) < 0)
        return -1;
    for (unsigned i = 0; i < n; i++)
        if (amp_buf_fmt(out, err, ",%s=", pair[i].name) < 0 ||
            text_write_quoted(out, pair[i].value, err) < 0)
            return -1;
    if (le && amp_buf_fmt(out, err, ",le=\"%s\"", le) < 0)
        return -1;
    return amp_buf_fmt(out, err, "} %s\n", value);
}

static int histogram_write(const struct amp_metrics *m, const struct amp_metric_series *s,
                           struct amp_buf *out, struct amp_error *err)
{
    const struct amp_metric_bounds *b = amp_metric_bounds(s->metric);
    uint64_t below = 0;
    char text[40];
    for (unsigned i = 0; i <= b->n; i++) {
        below = i < b->n ? below + s->times.bucket[i] : series_total(s);
        snprintf(text, sizeof(text), "%" PRIu64, below);
        if (sample_write(m, s, "_bucket", i < b->n ? b->text[i] : "+Inf", text, out, err) < 0)
            return -1;
    }
    if (sample_write(m, s, "_count", NULL, text, out, err) < 0)
        return -1;
    return sample_write(m, s, "_sum", NULL, number_write(s->times.sum, text), out, err);
}

static int series_write(const struct amp_metrics *m, const struct amp_metric_series *s,
                        struct amp_buf *out, struct amp_error *err)
{
    char text[40];
    switch (amp_metric_specs[s->metric].kind) {
    case AMP_METRIC_COUNTER:
        snprintf(text, sizeof(text), "%" PRIu64, s->count);
        return sample_write(m, s, "_total", NULL, text, out, err);
    case AMP_METRIC_GAUGE:
        return sample_write(m, s, "", NULL, number_write(s->value, text), out, err);
    default:
        return histogram_write(m, s, out, err);
    }
}

int amp_metrics_openmetrics(const struct amp_metrics *m, struct amp_buf *out, struct amp_error *err)
{
    for (int i = 0; i < AMP_METRIC_N; i++) {
        const struct amp_metric_spec *spec = &amp_metric_specs[i];
        char name[96];
        family_write((enum amp_metric)i, name);
        if (!m->first[i])
            continue;
        if (amp_buf_fmt(out, err, "# TYPE %s %s\n", name, kinds[spec->kind]) < 0 ||
            (*spec->unit && amp_buf_fmt(out, err, "# UNIT %s %s\n", name, spec->unit) < 0) ||
            amp_buf_fmt(out, err, "# HELP %s %s.\n", name, spec->help) < 0)
            return -1;
        for (const struct amp_metric_series *s = m->first[i]; s; s = s->next)
            if (series_write(m, s, out, err) < 0)
                return -1;
    }
    return amp_buf_str(out, "# EOF\n", err);
}

/* ---- the file ---- */

const char *const amp_metrics_formats[] = {"ndjson", "openmetrics", NULL};

static bool is_openmetrics(const struct amp_metrics *m)
{
    return m->o.format && strcmp(m->o.format, amp_metrics_formats[1]) == 0;
}

/* Returns 0 also if a FIFO has no reader; q.fd is -1 then. */
static int queue_open(struct amp_metrics *m, struct amp_error *err)
{
    if (m->q.fd >= 0)
        return 0;
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(m->path, flags, 0666);
    if (fd < 0 && errno == ENXIO)
        return 0;
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot write the metrics to %s", m->path);
    if (amp_outq_open(&m->q, fd, true, PENDING_MAX, err) == 0)
        return 0;
    close(fd);
    m->q.fd = -1;
    return -1;
}

static void queue_drop(struct amp_metrics *m)
{
    if (m->q.fd >= 0)
        amp_outq_close(&m->q);
    m->q.fd = -1;
}

static int record_append(struct amp_metrics *m, struct amp_span text, struct amp_error *err)
{
    struct amp_error why;
    if (queue_open(m, err) < 0)
        return -1;
    if (m->q.fd < 0)
        return 0;
    if (amp_outq_add(&m->q, text, &why) < 0 && !amp_code_is(why.code, buffer_full)) {
        *err = why;
        return -1;
    }
    if (amp_outq_flush(&m->q, &why) >= 0)
        return 0;
    queue_drop(m);
    if (amp_code_is(why.code, closed_pipe))
        return 0;
    *err = why;
    return -1;
}

static int metrics_write(struct amp_metrics *m, bool final, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, TEXT_MAX);
    if (is_openmetrics(m)) {
        if (amp_metrics_openmetrics(m, &text, err) < 0)
            return -1;
        return amp_file_write_atomic(AT_FDCWD, m->path, 0644, amp_buf_span(&text), err);
    }
    if (amp_metrics_ndjson(m, amp_now_ms(), final, &text, err) < 0)
        return -1;
    return record_append(m, amp_buf_span(&text), err);
}

int amp_metrics_open(const struct amp_metrics_options *o, struct amp_metrics **out,
                     struct amp_error *err)
{
    if (!o->path) {
        *out = NULL;
        return 0;
    }
    struct amp_metrics *m = amp_metrics_make(o);
    if (!m)
        return amp_fail_memory(err);
    /* Reports a path that cannot be written, and replaces the text of an earlier run. */
    if ((is_openmetrics(m) ? metrics_write(m, false, err) : queue_open(m, err)) < 0) {
        amp_metrics_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

int amp_metrics_timeout(const struct amp_metrics *m)
{
    if (!m || m->due_ms == INT64_MAX)
        return -1;
    int64_t left = m->due_ms - amp_mono_ms();
    return left <= 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

int amp_metrics_tick(struct amp_metrics *m, struct amp_error *err)
{
    struct amp_error why;
    int64_t now = amp_mono_ms();
    if (!m || now < m->due_ms)
        return 0;
    /* From now, not from the due time, so that there is one record after a stop, not many. */
    m->due_ms = now + m->o.interval_ms;
    if (metrics_write(m, false, &why) == 0) {
        m->failing = false;
        return 0;
    }
    bool told = m->failing;
    m->failing = true;
    if (told)
        return 0;
    *err = why;
    return -1;
}

int amp_metrics_close(struct amp_metrics *m, struct amp_error *err)
{
    if (!m)
        return 0;
    int rc = metrics_write(m, true, err);
    if (rc == 0 && m->q.fd >= 0 && amp_outq_pending(&m->q) > 0) {
        struct amp_error why;
        /* It is not a failure if the reader of a FIFO does not read. */
        if (amp_outq_drain(&m->q, END_MS, NULL, &why) < 0 && !m->q.fifo) {
            *err = why;
            rc = -1;
        }
    }
    queue_drop(m);
    amp_metrics_free(m);
    return rc;
}
