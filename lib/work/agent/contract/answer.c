/* The results of an attempt: exit status, answer, work log, last line of output. All of them are
 * untrusted: files may be links, devices or invalid. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/schema/schema.h>

#include "base/codes.h"
#include "message/protocol/amp/compose.h"
#include "work/agent/contract/contract.h"

enum amp_attempt_end amp_attempt_read_end(const struct amp_child_end *end, char *why, size_t size)
{
    if (end->timed_out) {
        snprintf(why, size, "it exceeded its time limit of %lld s",
                 (long long)(end->wall_ms / 1000));
        return AMP_END_MACHINERY;
    }
    if (end->stopped_by_us) {
        snprintf(why, size, "it was stopped");
        return AMP_END_STOPPED;
    }
    if (end->signaled) {
        snprintf(why, size, "it was killed by signal %d (%s)", end->signal, strsignal(end->signal));
        return AMP_END_MACHINERY;
    }
    int code = end->exit_code;
    snprintf(why, size, "exit %d", code);
    if (code == 0)
        return AMP_END_DONE;
    if (code == AMP_TEMPFAIL)
        return AMP_END_REPEAT;
    if (code == 126 || code == 127) {
        snprintf(why, size, "its command %s (status %d)",
                 code == 127 ? "was not found" : "could not be executed", code);
        return AMP_END_MACHINERY;
    }
    /* A shell reports a child that a signal killed as 128 + signal. */
    if (code > 128 && code <= 128 + 64) {
        snprintf(why, size, "its command was killed by signal %d (status %d)", code - 128, code);
        return AMP_END_MACHINERY;
    }
    return AMP_END_FAILED;
}

/* 0: read; 1: there is no such file; -1: failure. */
static int file_read(const char *path, size_t max, struct amp_buf *out, struct amp_error *err)
{
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0 || fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_DATAERR, "%s", path);
    if (!S_ISREG(st.st_mode))
        return amp_fail(err, AMP_DATAERR, bad_answer, "%s: not a regular file", path);
    if (st.st_size > (off_t)max)
        return amp_fail(err, AMP_DATAERR, bad_answer, "%s: larger than %zu bytes", path, max);
    for (;;) {
        if (amp_buf_reserve(out, 65536, err) < 0)
            return -1;
        ssize_t n = read(fd, out->data + out->len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_DATAERR, "%s", path);
        if (!n)
            return 0;
        out->len += (size_t)n;
    }
}

int amp_answer_read(const struct amp_attempt *a, const char *schema, json_t **out,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};

    amp_buf_init(&b, AMP_ANSWER_MAX + 65537);
    int rc = file_read(a->result, AMP_ANSWER_MAX, &b, err);
    if (rc < 0)
        return -1;
    if (rc == 1) {
        *out = NULL;
        return 0;
    }
    if (schema) {
        char path[64];
        snprintf(path, sizeof path, "agent/%s", schema);
        if (amp_schema_check_text(path, amp_buf_span(&b), err) < 0) {
            struct amp_error why = *err;
            return amp_fail(err, why.status, bad_answer, "%s (schemas/%s, in %s)", why.what, path,
                            a->result);
        }
    }
    json_t *j = amp_json_load(amp_buf_span(&b), err);
    if (!json_is_object(j)) {
        json_decref(j);
        return amp_fail(err, AMP_DATAERR, bad_answer, "%s: expected a JSON object", a->result);
    }
    *out = j;
    return 0;
}

static json_t *text_or(const json_t *entry, const char *key, const char *otherwise)
{
    json_t *v = json_object_get(entry, key);
    return json_is_string(v) ? json_incref(v) : json_string(otherwise);
}

int amp_work_log_add(json_t *log, const json_t *entry, int64_t now_ms, struct amp_error *err)
{
    char now[AMP_TIME_MAX];
    int64_t t;
    json_t *when = json_object_get(entry, "timestamp");

    amp_time_format(now_ms, now);
    if (json_is_string(when) && !amp_time_parse(amp_span_str(json_string_value(when)), &t))
        when = NULL;
    json_t *e = json_pack("{s:o, s:o, s:o, s:o}", "timestamp",
                          json_is_string(when) ? json_incref(when) : json_string(now), "action",
                          text_or(entry, "action", "note"), "file", text_or(entry, "file", ""),
                          "detail", text_or(entry, "detail", ""));
    if (!e || json_array_append_new(log, e))
        return amp_fail_memory(err);
    return 0;
}

static int log_line(json_t *log, struct amp_span line, int64_t now_ms, struct amp_error *err)
{
    json_t *j = line.p[0] == '{' ? amp_json_load(line, NULL) : NULL;

    if (!json_is_object(j)) {
        json_decref(j);
        char text[2048];
        amp_span_copy(line, text, sizeof text);
        for (char *p = text; *p; p++)
            if ((unsigned char)*p < 32 || *p == 127)
                *p = ' ';
        j = json_pack("{s:s, s:s}", "action", "note", "detail", text);
        if (!j) /* not UTF-8 */
            return 0;
    }
    int rc = amp_work_log_add(log, j, now_ms, err);
    json_decref(j);
    return rc;
}

int amp_work_log_read(const struct amp_attempt *a, int64_t now_ms, json_t *log,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};

    amp_buf_init(&b, AMP_WORK_LOG_MAX + 65537);
    int rc = file_read(a->work_log, AMP_WORK_LOG_MAX, &b, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    for (size_t at = 0; at < b.len && json_array_size(log) < 4096;) {
        char *nl = memchr(b.data + at, '\n', b.len - at);
        size_t end = nl ? (size_t)(nl - b.data) : b.len;
        struct amp_span line = {b.data + at, end - at};
        at = end + 1;
        if (line.n && log_line(log, line, now_ms, err))
            return -1;
    }
    return 0;
}

int amp_attempt_output(const char *path, size_t max, struct amp_buf *out)
{
    return file_read(path, max, out, NULL) == 0 ? 0 : -1;
}

void amp_attempt_last_line(const char *path, char *out, size_t size)
{
    AMP_BUF struct amp_buf b = {0};
    size_t end, from;

    out[0] = 0;
    amp_buf_init(&b, (8u << 20) + 65537);
    if (file_read(path, 8u << 20, &b, NULL))
        return;
    for (end = b.len; end && (unsigned char)b.data[end - 1] <= ' ';)
        end--;
    for (from = end; from && b.data[from - 1] != '\n';)
        from--;
    amp_span_copy((struct amp_span){b.data + from, end - from}, out, size);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 32 || (unsigned char)*p > 126)
            *p = '?';
}
