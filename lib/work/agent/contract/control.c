/* The control FIFO: its lines, their limits, and the files with the answers. */
#include "work/agent/contract/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/schema/schema.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/compose/json.h"

AMP_WORDS(words, AMP_CONTROL_LIST);

int amp_control_open(struct amp_control *c, const struct amp_attempt *a, struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int dir = open(a->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", a->dir);
    if (mkfifo(a->control, 0600) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", a->control);
    /* For writing too, so that the agent's closing is no end of file. */
    AMP_CLOSE int fd = open(a->control, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", a->control);
    *c = (struct amp_control){
        .fd = fd, .dir = dir, .tokens = AMP_CONTROL_BURST, .filled_ms = amp_mono_ms()};
    fd = dir = -1;
    amp_buf_init(&c->line, AMP_CONTROL_LINE_MAX + 1);
    return 0;
}

void amp_control_close(struct amp_control *c)
{
    if (c->fd >= 0)
        close(c->fd);
    if (c->dir >= 0) {
        unlinkat(c->dir, "control", 0); /* the last part of amp_attempt.control */
        close(c->dir);
    }
    c->fd = c->dir = -1;
    amp_buf_release(&c->line);
}

int64_t amp_control_wait(const struct amp_control *c, int64_t now_ms)
{
    return c->next_ms > now_ms ? c->next_ms - now_ms : 0;
}

/* Whether one more line is within the rate. */
static bool rate_allows(struct amp_control *c, int64_t now_ms)
{
    int64_t more = (now_ms - c->filled_ms) * AMP_CONTROL_RATE / 1000;

    if (more > 0) {
        c->tokens = c->tokens + more > AMP_CONTROL_BURST ? AMP_CONTROL_BURST : c->tokens + more;
        c->filled_ms = now_ms;
    }
    if (c->tokens > 0) {
        c->tokens--;
        return true;
    }
    c->next_ms = now_ms + AMP_CONTROL_PAUSE_MS;
    return false;
}

static int line_refuse(struct amp_control *c, const struct amp_control_calls *calls,
                       struct amp_span line, const json_t *in, const char *code, const char *why,
                       struct amp_error *err)
{
    const char *id = json_string_value(json_object_get(in, "id"));

    c->refused++;
    return calls->refuse(calls->ctx, line, id && amp_id_is_safe(amp_span_str(id)) ? id : "", code,
                         why, err);
}

static int line_take(struct amp_control *c, const struct amp_control_calls *calls,
                     struct amp_span line, int64_t now_ms, struct amp_error *err)
{
    struct amp_error why;

    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    if (!line.n)
        return 0;
    if (!rate_allows(c, now_ms))
        return line_refuse(c, calls, line, NULL, AMP_CODE(rate_limited), "too many lines", err);
    if (c->accepted >= AMP_CONTROL_LINES)
        return line_refuse(c, calls, line, NULL, AMP_CODE(control_limit),
                           "too many lines in this attempt", err);
    json_auto_t *in = amp_json_load(line, &why);
    if (!in)
        return why.status == AMP_TEMPFAIL
                   ? amp_fail_memory(err)
                   : line_refuse(c, calls, line, NULL, AMP_CODE(invalid_json), why.what, err);
    if (amp_schema_check_text("agent/control.json", line, &why) < 0) {
        if (why.status != AMP_DATAERR && why.status != AMP_NO) {
            *err = why;
            return -1;
        }
        return line_refuse(c, calls, line, in, AMP_CODE(schema_violation), why.what, err);
    }
    struct amp_span word = amp_span_str(amp_json_str(in, "type"));
    struct amp_control_line l = {.kind = (enum amp_control_kind)amp_word_find(words, word),
                                 .id = amp_json_str(in, "id"),
                                 .in = in};
    c->accepted++;
    return calls->take(calls->ctx, &l, err);
}

/* Takes the complete lines of the buffer; keeps the rest. */
static int lines_take(struct amp_control *c, const struct amp_control_calls *calls, const char *p,
                      size_t n, int64_t now_ms, struct amp_error *err)
{
    while (n) {
        const char *nl = memchr(p, '\n', n);
        size_t part = nl ? (size_t)(nl - p) : n;
        if (!c->skipping && c->line.len + part > AMP_CONTROL_LINE_MAX) {
            c->skipping = true;
            if (line_refuse(c, calls, (struct amp_span){0}, NULL, AMP_CODE(line_too_long),
                            "the line is longer than 16384 bytes", err) < 0)
                return -1;
        }
        if (!c->skipping && amp_buf_add(&c->line, p, part, err) < 0)
            return -1;
        if (nl && !c->skipping && line_take(c, calls, amp_buf_span(&c->line), now_ms, err) < 0)
            return -1;
        if (nl || c->skipping)
            amp_buf_reset(&c->line);
        if (nl)
            c->skipping = false;
        part += nl != NULL;
        p += part;
        n -= part;
    }
    return 0;
}

int amp_control_read(struct amp_control *c, const struct amp_control_calls *calls, int64_t now_ms,
                     struct amp_error *err)
{
    char in[AMP_CONTROL_TURN];

    if (c->fd < 0 || amp_control_wait(c, now_ms) > 0)
        return 0;
    ssize_t n = read(c->fd, in, sizeof in);
    return n > 0 ? lines_take(c, calls, in, (size_t)n, now_ms, err) : 0;
}

/* ---- answers ---- */

/* Takes the reference. */
static int answer_write(struct amp_control *c, const char *id, json_t *answer,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char name[96];
    json_auto_t *owned = answer;

    if (!owned)
        return amp_fail_memory(err);
    if (!*id)
        return 0;
    amp_buf_init(&text, AMP_CONTROL_ANSWER);
    snprintf(name, sizeof name, "answer-%s.json", id);
    struct amp_error e;
    if (amp_json_line(owned, &text, &e) < 0)
        return amp_code_is(e.code, no_memory) ? amp_fail_memory(err)
                                              : amp_control_refuse(c, id, AMP_CODE(buffer_full),
                                                                   "the answer is too large", err);
    return amp_file_write_atomic(c->dir, name, 0600, amp_buf_span(&text), NULL) < 0 ? 1 : 0;
}

int amp_control_answer(struct amp_control *c, const char *id, json_t *more, struct amp_error *err)
{
    json_t *answer = json_pack("{s:s, s:b}", "id", id, "ok", 1);

    if (answer && more && json_object_update(answer, more) < 0) {
        json_decref(answer);
        answer = NULL;
    }
    return answer_write(c, id, answer, err);
}

int amp_control_refuse(struct amp_control *c, const char *id, const char *code, const char *why,
                       struct amp_error *err)
{
    return answer_write(
        c, id, json_pack("{s:s, s:b, s:s, s:s}", "id", id, "ok", 0, "code", code, "message", why),
        err);
}
