/* The agent's side of the control FIFO. */
#include "work/agent/contract/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "base/loop.h"
#include "message/protocol/compose/json.h"
#include "work/agent/contract/control.h"

#define POLL_MS 200 /* where the system has no more inotify instances */

static int worker_gone(const char *path, const char *why, struct amp_error *err)
{
    return amp_fail(err, AMP_UNAVAILABLE, no_worker, "%.300s: %s", path, why);
}

int amp_ask_open(struct amp_ask_control *c, const char *path, struct amp_error *err)
{
    char name[PATH_MAX], watched[48];
    struct stat st;
    AMP_CLOSE int fifo = -1, dir = -1;

    *c = (struct amp_ask_control){-1, -1, -1};
    if (!path || !*path || strlen(path) >= sizeof name)
        return worker_gone(path ? path : "", "there is no control FIFO", err);
    fifo = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fifo < 0 && errno == ENXIO)
        return worker_gone(path, "the worker does not read it any more", err);
    if (fifo < 0 || fstat(fifo, &st) < 0 || !S_ISFIFO(st.st_mode))
        return worker_gone(path, "is not a FIFO that can be opened", err);
    memcpy(name, path, strlen(path) + 1);
    dir = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "%.300s", path);
    c->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    snprintf(watched, sizeof watched, "/proc/self/fd/%d", dir);
    if (c->changes >= 0 &&
        inotify_add_watch(c->changes, watched, IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
        close(c->changes);
        c->changes = -1;
    }
    c->fifo = fifo;
    c->dir = dir;
    fifo = dir = -1;
    return 0;
}

void amp_ask_close(struct amp_ask_control *c)
{
    int *all[] = {&c->fifo, &c->dir, &c->changes};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

int amp_ask_send(struct amp_ask_control *c, json_t *request, char id[AMP_ASK_ID_MAX],
                 struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char uuid[AMP_UUID_MAX];
    struct amp_error why;

    amp_uuid4(uuid);
    snprintf(id, AMP_ASK_ID_MAX, "%s", uuid);
    amp_buf_init(&line, AMP_CONTROL_LINE_MAX);
    if (json_object_set_new(request, "id", json_string(id)) < 0)
        return amp_fail_memory(err);
    if (amp_json_line(request, &line, &why) < 0)
        return amp_code_is(why.code, buffer_full)
                   ? amp_fail(err, AMP_DATAERR, line_too_long,
                              "the request is longer than %d bytes", AMP_CONTROL_LINE_MAX)
                   : amp_fail_memory(err);
    /* One write of at most PIPE_BUF bytes is not mixed with those of other writers; a longer one
     * may be, and the worker refuses what it cannot read. */
    ssize_t n = write(c->fifo, line.data, line.len);
    if (n == (ssize_t)line.len)
        return 0;
    if (n > 0) { /* the worker drops the rest of the line */
        n = write(c->fifo, "\n", 1);
        return amp_fail(err, AMP_TEMPFAIL, control_full, "the control FIFO is full");
    }
    if (errno == EAGAIN)
        return amp_fail(err, AMP_TEMPFAIL, control_full, "the control FIFO is full");
    return errno == EPIPE ? worker_gone("AMP_CONTROL", "the worker does not read it any more", err)
                          : amp_fail_errno(err, AMP_IOERR, "AMP_CONTROL");
}

void amp_ask_drain(struct amp_ask_control *c)
{
    char events[4096];

    while (c->changes >= 0 && read(c->changes, events, sizeof events) > 0)
        ;
}

int amp_ask_answer(struct amp_ask_control *c, const char *id, json_t **out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char name[AMP_ASK_ID_MAX + 16];

    snprintf(name, sizeof name, "answer-%s.json", id);
    AMP_CLOSE int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    amp_buf_init(&text, AMP_CONTROL_ANSWER);
    if (fd < 0 || amp_file_read(c->dir, name, AMP_CONTROL_ANSWER, &text, err) < 0)
        return amp_fail(err, AMP_DATAERR, bad_answer, "%s cannot be read", name);
    json_t *answer = amp_json_load(amp_buf_span(&text), err);
    if (!answer)
        return err->status == AMP_TEMPFAIL
                   ? -1
                   : amp_fail(err, AMP_DATAERR, bad_answer, "%s is not JSON", name);
    const json_t *ok = json_object_get(answer, "ok");
    if (json_is_true(ok)) {
        *out = answer;
        return 1;
    }
    if (json_is_false(ok))
        amp_fail_text(err, AMP_NO,
                      *amp_json_str(answer, "code") ? amp_json_str(answer, "code")
                                                    : AMP_CODE(bad_answer),
                      "%s", amp_json_str(answer, "message"));
    else
        amp_fail(err, AMP_DATAERR, bad_answer, "%s has no ok", name);
    json_decref(answer);
    return -1;
}

int amp_ask_wait(struct amp_ask_control *c, const char *id, const char *member, int64_t until_ms,
                 volatile const int *stop, json_t **out, struct amp_error *err)
{
    for (;;) {
        json_t *answer = NULL;
        struct pollfd fd;

        amp_ask_drain(c);
        int rc = amp_ask_answer(c, id, &answer, err);
        if (rc < 0)
            return -1;
        if (rc > 0 && (!member || json_object_get(answer, member))) {
            *out = answer;
            return 1;
        }
        json_decref(answer);
        int64_t left = until_ms - amp_now_ms();
        if (left <= 0)
            return 0;
        struct amp_loop turn = amp_loop_turn(&fd, 1, stop, NULL);
        amp_loop_add(&turn, c->changes, POLLIN);
        amp_loop_within(&turn, left);
        if (c->changes < 0)
            amp_loop_within(&turn, POLL_MS);
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
        if (stop && *stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    }
}

int amp_ask_withdraw(struct amp_ask_control *c, const char *question, const char *why,
                     char wid[AMP_ASK_ID_MAX], struct amp_error *err)
{
    json_auto_t *request =
        json_pack("{s:s, s:s, s:s}", "type", "withdraw", "question", question, "reason", why);

    return request ? amp_ask_send(c, request, wid, err) : amp_fail_memory(err);
}
