/* Reads answers from a file or a FIFO and matches them to questions. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/file/own.h"
#include "base/grow.h"
#include "hitl.h"
#include "message/protocol/amp/compose.h"

#define ANSWERS_MAX  (1u << 20)
#define PIPEFS_MAGIC 0x50495045 /* statfs(2) of a pipe without a name */

int answers_open(struct answers *a, const char *path, struct amp_error *err)
{
    struct statfs fs;
    struct stat st;

    *a = (struct answers){.path = path, .fd = -1, .hold = -1};
    amp_buf_init(&a->text, ANSWERS_MAX);
    a->fd = amp_own_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (a->fd < 0 || fstat(a->fd, &st) || fstatfs(a->fd, &fs))
        return amp_fail_errno(err, AMP_DATAERR, "%s", path);
    a->pipe = S_ISFIFO(st.st_mode);
    /* A pipe without a name, such as <(...) or /dev/stdin, ends when its writers close it. */
    a->fifo = a->pipe && fs.f_type != PIPEFS_MAGIC;
    /* A spare writer, because several processes may write answers one after another. */
    if (a->fifo)
        a->hold = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return 0;
}

void answers_release(struct answers *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i].line);
    free(a->v);
    amp_buf_release(&a->text);
    if (a->fd >= 0)
        close(a->fd);
    if (a->hold >= 0)
        close(a->hold);
    a->fd = a->hold = -1;
}

static int line_add(struct answers *a, struct amp_span line, struct amp_error *err)
{
    while (line.n && strchr(" \t\r", line.p[0]))
        line = (struct amp_span){line.p + 1, line.n - 1};
    if (!line.n || line.p[0] == '#')
        return 0;
    if (amp_grow(&a->v, &a->cap, a->n, sizeof *a->v, err) < 0)
        return -1;
    a->v[a->n].used = false;
    if (!(a->v[a->n].line = amp_span_dup(line)))
        return amp_fail_memory(err);
    a->n++;
    return 0;
}

int answers_read(struct answers *a, struct amp_error *err)
{
    while (!a->done) {
        if (amp_buf_reserve(&a->text, 4096, err) < 0)
            return -1;
        ssize_t n = read(a->fd, a->text.data + a->text.len, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "%s", a->path);
        a->done = n == 0 && !a->fifo;
        a->text.len += (size_t)n;
        for (;;) {
            char *nl = memchr(a->text.data, '\n', a->text.len);
            if (!nl && !(a->done && a->text.len))
                break;
            size_t len = nl ? (size_t)(nl - a->text.data) : a->text.len;
            if (line_add(a, (struct amp_span){a->text.data, len}, err))
                return -1;
            amp_buf_drop(&a->text, nl ? len + 1 : len);
        }
        if (n == 0)
            return 0;
    }
    return 0;
}

bool answers_wait(const struct answers *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (!a->v[i].used)
            return true;
    return a->done;
}

/* Whether the member is absent, or is a pattern that matches the id. */
static bool is_named(const json_t *j, const char *key, const char *id)
{
    const json_t *pattern = json_object_get(j, key);
    return !pattern || (json_is_string(pattern) &&
                        amp_span_glob(amp_span_str(id), amp_span_str(json_string_value(pattern))));
}

/* 1: it answers q, 0: another question, -1: it is invalid. */
static int answer_match(const char *line, const struct amp_question *q,
                        struct amp_operator_answer *out, json_t **keep, struct amp_error *err)
{
    char word[512];
    struct amp_operator_answer a;
    json_auto_t *j = amp_json_load(amp_span_str(line), err);

    if (!json_is_object(j))
        return amp_fail(err, AMP_DATAERR, bad_answer, "an answer is not a JSON object");
    if (!is_named(j, "ref_msg_id", q->id) || !is_named(j, "task_id", q->about.task) ||
        !is_named(j, "protocol", q->about.protocol) ||
        !is_named(j, "invocation_id", amp_question_invocation(q)))
        return 0;
    if (!amp_span_copy(amp_span_str(amp_json_str(j, "decision")), word, sizeof word) ||
        !amp_answer_parse(q, word, &a))
        return amp_fail(err, AMP_DATAERR, bad_answer, "%s: an answer's decision is not %s", q->name,
                        amp_answer_words(q));
    a.note = json_string_value(json_object_get(j, "note"));
    if (!a.note)
        a.note = json_string_value(json_object_get(j, "rationale"));
    a.patch = json_string_value(json_object_get(j, "patch_b64"));
    a.commit = json_string_value(json_object_get(j, "commit"));
    a.op = json_string_value(json_object_get(j, "operator"));
    *out = a;
    *keep = json_incref(j);
    return 1;
}

int answers_find(struct answers *a, const struct amp_question *q, struct amp_operator_answer *out,
                 json_t **keep, struct amp_error *err)
{
    *keep = NULL;
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].used)
            continue;
        int rc = 1;
        if (a->v[i].line[0] == '{')
            rc = answer_match(a->v[i].line, q, out, keep, err);
        else if (!amp_answer_parse(q, a->v[i].line, out))
            rc = amp_fail(err, AMP_DATAERR, bad_answer, "%s: an answer is not %s", q->name,
                          amp_answer_words(q));
        a->v[i].used = rc != 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}
