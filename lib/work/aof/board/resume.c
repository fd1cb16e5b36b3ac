/*
 * Resume (AOF/1, Protocol 1) and the end of a session (Protocol 3). A poll reads the heartbeats of
 * all tasks in progress without the lock, and decides again about a stale one under the lock.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/aof/board/private.h"

enum { BEAT_BYTES = 65536 };

/* ---- results ---- */

static void finding_ignore(void *ctx, const struct amp_finding *f)
{
    char *field = ctx;
    if (f->severity == AMP_SEV_ERROR && !*field)
        snprintf(field, 128, "%.100s", f->field && *f->field ? f->field : f->code);
}

/* A task's run_result.json; its texts are in text and mem. 1: read; 0: there is none; -1: DATAERR,
 * it is invalid, or failure. */
static int result_read(struct amp_aof_router *r, const char *id, struct amp_buf *text,
                       struct amp_buf *mem, struct amp_aof_said *out, struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX], field[128] = "";
    struct amp_aof_said said;
    struct amp_view v = {0};
    amp_buf_init(text, AMP_AOF_RUN_BYTES + 1);
    amp_buf_init(mem, AMP_AOF_RUN_BYTES * 2);
    amp_aof_run_path(path, id, "run_result.json");
    int rc = amp_aof_get(&r->data, path, AMP_AOF_RUN_BYTES, text, err);
    if (rc <= 0)
        return rc;
    enum amp_aof_line line =
        amp_aof_line_read(r->reader, amp_buf_span(text), &v, finding_ignore, field, err);
    if (line == AMP_AOF_LINE_FAILED ||
        (line == AMP_AOF_LINE_GOOD && amp_aof_said_read(&v, mem, &said, err) < 0))
        return -1;
    if (line != AMP_AOF_LINE_GOOD || said.what != AMP_AOF_OTHER ||
        said.outcome == AMP_AOF_OUTCOME_NONE)
        return amp_fail(err, AMP_DATAERR, invalid_run_result, "%s is not a run result%s%s", path,
                        *field ? ": " : "", field);
    if (!amp_span_is(v.task, id))
        return amp_fail(err, AMP_DATAERR, taskId_mismatch, "%s is the result of another task",
                        path);
    *out = said;
    return 1;
}

/* The transition that a task's result asks for. 1: there is a result; 0: there is none, or it is
 * invalid, which is logged; *valid: there is none. */
static int result_apply(struct amp_aof_work *w, const struct amp_aof_task *t, const char *prefix,
                        bool *none, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, mem = {0}, reason = {0};
    struct amp_aof_said said;
    enum amp_aof_moved moved;
    struct amp_error why;
    int rc = result_read(w->r, t->id, &text, &mem, &said, &why);
    *none = rc == 0;
    if (rc < 0 && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    if (rc < 0) {
        const struct amp_aof_why what = {.reason = why.code, .errors = why.what};
        return amp_aof_why_event(w, "protocol.message.rejected", amp_span_str(t->id), &what, err);
    }
    if (rc == 0)
        return 0;
    amp_buf_init(&reason, AMP_AOF_RUN_BYTES * 2);
    return amp_aof_outcome_reason(&said, prefix, &reason, err) < 0 ||
                   amp_aof_transition(w, t, amp_aof_outcome_event(said.outcome),
                                      amp_buf_span(&reason), amp_aof_outcome_name(said.outcome),
                                      &moved, err) < 0
               ? -1
               : 1;
}

/* ---- heartbeats ---- */

/* Reads when a task's heartbeat expires. 1; 0: there is none; -1: DATAERR or a failure. */
static int beat_read(struct amp_aof_router *r, const char *id, int64_t *expires_ms,
                     struct amp_buf *text, struct amp_buf *mem, struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX];
    struct amp_aof_beat beat;
    amp_aof_run_path(path, id, "run_heartbeat.json");
    amp_buf_reset(text);
    amp_buf_reset(mem);
    int rc = amp_aof_get(&r->data, path, BEAT_BYTES, text, err);
    if (rc > 0 && amp_aof_beat_read(amp_buf_span(text), mem, &beat, err) < 0)
        return -1;
    if (rc > 0 && !amp_span_is(beat.task, id))
        return amp_fail(err, AMP_DATAERR, taskId_mismatch, "%s is of another task", path);
    if (rc > 0)
        *expires_ms = beat.expires_ms;
    return rc;
}

struct poll {
    struct amp_aof_router *r;
    struct amp_aof_polled *out;
    struct amp_buf text, mem;
    char (*stale)[AMP_AOF_ID_MAX];
    uint32_t n, cap;
    int64_t now_ms;
};

static int expiry_read(void *ctx, const char *id, struct amp_span text, int64_t *value,
                       struct amp_error *err)
{
    struct poll *p = ctx;
    struct amp_aof_beat beat;
    amp_buf_reset(&p->mem);
    if (amp_aof_beat_read(text, &p->mem, &beat, err) < 0)
        return -1;
    if (!amp_span_is(beat.task, id))
        return amp_fail(err, AMP_DATAERR, taskId_mismatch, "the heartbeat is of another task");
    *value = beat.expires_ms;
    return 0;
}

static int beat_look(void *ctx, const char *id, const int64_t *expires, struct amp_error *err)
{
    struct poll *p = ctx;
    p->out->in_progress++;
    /* Without a heartbeat, or with one that cannot be read, it is not judged. */
    if (!expires || *expires > p->now_ms)
        return 0;
    if (p->n == p->cap) {
        uint32_t cap = p->cap ? p->cap * 2 : 16;
        void *v = realloc(p->stale, cap * sizeof *p->stale);
        if (!v)
            return amp_fail_memory(err);
        p->stale = v;
        p->cap = cap;
    }
    memcpy(p->stale[p->n++], id, strnlen(id, AMP_AOF_ID_MAX - 1) + 1);
    return 0;
}

static int reclaim(struct amp_aof_work *w, const struct amp_aof_task *t, struct amp_error *err)
{
    enum amp_aof_moved moved;
    w->expired = true;
    return amp_aof_run_end(w, t->id, "stale_heartbeat", err) < 0 ||
                   amp_aof_transition(w, t, AMP_AOF_TASK_EV_READY,
                                      AMP_SPAN("stale_heartbeat_reclaim"), "", &moved, err) < 0
               ? -1
               : 0;
}

/* A task whose heartbeat was stale: by its result, or back to ready. */
static int stale_take(struct poll *p, const char *id, struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_AOF_TASK struct amp_aof_task t = {0};
    struct amp_error why;
    int64_t expires = 0;
    bool none;
    amp_aof_task_init(&t);
    if (amp_aof_work_begin(p->r, &w, err) < 0)
        return -1;
    int rc = amp_aof_load(&p->r->data, id, &t, &why);
    if (rc < 0 && why.status != AMP_NO && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    if (rc < 0) {
        return amp_aof_invalid_event(&w, id, &why, err) < 0 ? -1 : amp_aof_work_commit(&w, err);
    }
    /* Another router, or a person, was faster. */
    if (rc == 0 || t.status != AMP_AOF_IN_PROGRESS)
        return 0;
    rc = beat_read(p->r, id, &expires, &p->text, &p->mem, &why);
    rc = amp_aof_if_usable(rc, &why, err);
    if (rc <= 0 || expires > w.c.now_ms)
        return rc < 0 ? -1 : 0;
    p->out->stale++;
    rc = result_apply(&w, &t, "stale_heartbeat_", &none, err);
    if (rc == 0 && none)
        rc = reclaim(&w, &t, err);
    if (rc < 0 || amp_aof_work_commit(&w, err) < 0)
        return -1;
    p->out->finished += rc > 0;
    p->out->reclaimed += none;
    return 0;
}

static int poll_event(struct amp_aof_router *r, const struct amp_aof_polled *p,
                      struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_BUF struct amp_buf payload = {0};
    amp_buf_init(&payload, 4096);
    if (amp_aof_work_begin(r, &w, err) < 0 ||
        amp_buf_fmt(&payload, err,
                    "{\"inProgress\":%u,\"stale\":%u,\"reclaimed\":%u,\"finished\":%u}",
                    p->in_progress, p->stale, p->reclaimed, p->finished) < 0 ||
        amp_aof_event_add(&w.c, "scheduler.poll", AMP_SPAN(""), amp_buf_span(&payload), err) < 0)
        return -1;
    return amp_aof_work_commit(&w, err);
}

int amp_aof_poll(struct amp_aof_router *r, struct amp_aof_polled *out, struct amp_error *err)
{
    struct poll p = {.r = r, .out = out, .now_ms = amp_now_ms()};
    *out = (struct amp_aof_polled){0};
    r->queue.filled = false;
    if (amp_aof_notices_send(r, err) < 0)
        return -1;
    amp_buf_init(&p.text, BEAT_BYTES + 1);
    amp_buf_init(&p.mem, BEAT_BYTES * 2);
    const struct amp_aof_look how = {.status = AMP_AOF_IN_PROGRESS,
                                     .file = "run_heartbeat.json",
                                     .max = BEAT_BYTES,
                                     .read = expiry_read,
                                     .each = beat_look,
                                     .ctx = &p};
    int rc = amp_aof_look(&r->data, &how, &r->beats, err);
    for (uint32_t i = 0; i < p.n && rc == 0; i++)
        rc = stale_take(&p, p.stale[i], err);
    free(p.stale);
    amp_buf_release(&p.text);
    amp_buf_release(&p.mem);
    return rc < 0 ? -1 : poll_event(r, out, err);
}

int amp_aof_end(struct amp_aof_router *r, const char *id, struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_AOF_TASK struct amp_aof_task t = {0};
    struct amp_error why;
    bool none = false;
    amp_aof_task_init(&t);
    if (amp_aof_work_begin(r, &w, err) < 0)
        return -1;
    int rc = amp_aof_load(&r->data, id, &t, &why);
    if (rc < 0 && why.status != AMP_NO && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    if (rc <= 0) {
        const struct amp_aof_why what = {.reason = rc < 0 ? why.code : "task_not_found",
                                         .errors = rc < 0 ? why.what : ""};
        return amp_aof_alert(&w, id, what.reason, err) < 0 ||
                       amp_aof_why_event(&w, "protocol.message.rejected", amp_span_str(id), &what,
                                         err) < 0
                   ? -1
                   : amp_aof_work_commit(&w, err);
    }
    rc = result_apply(&w, &t, "", &none, err);
    return rc < 0 || amp_aof_work_commit(&w, err) < 0 ? -1 : rc;
}
