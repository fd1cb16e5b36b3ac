/* New tasks. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/aof/board/private.h"
#include "work/aof/front.h"
#include "json/text.h"

/* Loads the parent of a new task. NO parent_not_found, nested_delegation. */
static int parent_load(struct amp_aof_router *r, const char *id, struct amp_aof_task *parent,
                       struct amp_error *err)
{
    int rc = amp_aof_load(&r->data, id, parent, err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return amp_fail(err, AMP_NO, parent_not_found, "there is no task %s", id);
    if (parent->depth > 0 || parent->parent.n > 0)
        return amp_fail(err, AMP_NO, nested_delegation,
                        "task %s is a child itself; children have no children", id);
    return 0;
}

static int text_write(const struct amp_aof_new *what, const char *id, const char *actor,
                      int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    amp_time_format(now_ms, time);
    const struct amp_aof_set rows[] = {
        {"schemaVersion", AMP_SPAN("1")},
        {"id", amp_span_str(id)},
        {"title", amp_span_str(what->title ? what->title : id)},
        {"status", amp_span_str(what->backlog ? "backlog" : "ready")},
        {"priority", amp_span_str(what->priority ? what->priority : "normal")},
        {what->parent ? "parentId" : NULL, amp_span_str(what->parent)},
        {what->agent ? "routing.agent" : NULL, amp_span_str(what->agent)},
        {what->parent ? "metadata.delegationDepth" : NULL, AMP_SPAN("1")},
        {"createdAt", amp_span_str(time)},
        {"updatedAt", amp_span_str(time)},
        {"lastTransitionAt", amp_span_str(time)},
        {"createdBy", amp_span_str(actor)},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].path && amp_front_set(out, rows[i].path, rows[i].value, err) < 0)
            return -1;
    return amp_buf_str(out, "\n", err) < 0 ||
                   amp_buf_add(out, what->body.p, what->body.n, err) < 0 ||
                   (what->body.n > 0 && what->body.p[what->body.n - 1] != '\n' &&
                    amp_buf_str(out, "\n", err) < 0)
               ? -1
               : 0;
}

/* JSON, in which the change and its events are written, has no other bytes. */
static int utf8_check(const char *what, struct amp_span text, struct amp_error *err)
{
    const unsigned char *p = (const unsigned char *)text.p;
    for (size_t i = 0, n; i < text.n; i += n)
        if ((n = amp_utf8_length(p + i, text.n - i)) == 0)
            return amp_fail(err, AMP_DATAERR, invalid_utf8, "the %s is not UTF-8 at byte %zu", what,
                            i + 1);
    return 0;
}

/* 1: a person took its name at the same moment. */
static int task_make(struct amp_aof_router *r, const struct amp_aof_new *what,
                     char id[AMP_AOF_ID_MAX], struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_AOF_TASK struct amp_aof_task parent = {0};
    AMP_BUF struct amp_buf text = {0}, payload = {0};
    struct amp_jw j;
    amp_aof_task_init(&parent);
    amp_buf_init(&text, AMP_AOF_TASK_BYTES);
    amp_buf_init(&payload, 1 << 20);
    if (amp_aof_work_begin(r, &w, err) < 0 ||
        (what->parent && parent_load(r, what->parent, &parent, err) < 0) ||
        amp_aof_new_id(&r->data, w.c.now_ms, id, err) < 0 ||
        text_write(what, id, r->o.actor, w.c.now_ms, &text, err) < 0)
        return -1;
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_member_text(&j, "title", what->title ? what->title : id);
    amp_jw_member_text(&j, "status", what->backlog ? "backlog" : "ready");
    amp_jw_some_str(&j, "parentTaskId", amp_span_str(what->parent));
    amp_jw_close(&j, '}');
    if (amp_jw_end(&j, err) < 0 ||
        amp_aof_create(&w.c, id, what->backlog ? AMP_AOF_BACKLOG : AMP_AOF_READY,
                       amp_buf_span(&text), err) < 0 ||
        amp_aof_event_add(&w.c, "task.created", amp_span_str(id), amp_buf_span(&payload), err) <
            0 ||
        (what->agent && amp_aof_assigned_event(&w, id, amp_span_str(what->agent), err) < 0) ||
        (what->parent && amp_aof_pointer_put(&w, &parent, id, amp_span_str(what->agent), err) < 0))
        return -1;
    return amp_aof_work_commit(&w, err) < 0 ? -1 : w.cut;
}

int amp_aof_new_task(struct amp_aof_router *r, const struct amp_aof_new *what,
                     char id[AMP_AOF_ID_MAX], struct amp_error *err)
{
    if (utf8_check("title", amp_span_str(what->title), err) < 0 ||
        utf8_check("agent", amp_span_str(what->agent), err) < 0 ||
        utf8_check("text", what->body, err) < 0)
        return -1;
    for (int tries = 0; tries < 8; tries++) {
        int rc = task_make(r, what, id, err);
        if (rc <= 0)
            return rc;
    }
    return amp_fail(err, AMP_TEMPFAIL, name_taken,
                    "the task %s could not be made: see events.ndjson", id);
}
