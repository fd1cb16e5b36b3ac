/*
 * The file of the metrics. NDJSON records are appended; a FIFO without a reader, or one whose
 * reader is slow, costs records and nothing else. OpenMetrics text replaces the file, so that who
 * reads it never sees half of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "metrics/series.h"

#define TEXT_MAX    ((size_t)64 << 20)
#define PENDING_MAX ((size_t)8 << 20) /* of a FIFO whose reader is slow */
#define END_MS      1000              /* how long such a reader is waited for at the end */

const char *const amp_metrics_formats[] = {"ndjson", "openmetrics", NULL};

static bool is_openmetrics(const struct amp_metrics *m)
{
    return m->o.format && strcmp(m->o.format, amp_metrics_formats[1]) == 0;
}

/* 0 also where a FIFO has no reader: then q.fd stays -1. */
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
    if (amp_outq_add(&m->q, text, &why) < 0 && strcmp(why.code, "buffer_full") != 0) {
        *err = why;
        return -1;
    }
    if (amp_outq_flush(&m->q, &why) >= 0)
        return 0;
    queue_drop(m);
    if (strcmp(why.code, "closed_pipe") == 0)
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
    /* A path that cannot be written is told now, and an old text does not pass for this run's. */
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
    /* From now on, not from when it was due: after a stop there is one record, not many. */
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
        /* A reader that does not read is no failure of ours. */
        if (amp_outq_drain(&m->q, END_MS, NULL, &why) < 0 && !m->q.fifo) {
            *err = why;
            rc = -1;
        }
    }
    queue_drop(m);
    amp_metrics_free(m);
    return rc;
}
