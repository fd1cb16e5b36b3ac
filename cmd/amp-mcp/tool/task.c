/* my_task with a state directory: from the records of the state. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "../mcp.h"
#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "people/story/story.h"
#include "work/task/machines.h"

struct chosen {
    char id[AMP_TASK_ID_MAX];
    bool working;
    uint32_t n;
};

/* The task that the agent works on now, else the last one of its open tasks. */
static int task_choose(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct chosen *c = ctx;

    (void)err;
    c->n++;
    if (!c->working && amp_span_copy(b->id, c->id, sizeof c->id))
        c->working = b->working;
    return 0;
}

static void span_put(json_t *o, const char *name, struct amp_span text)
{
    if (text.n)
        json_object_set_new(o, name, json_stringn(text.p, text.n));
}

static int brief_put(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    json_t *o = ctx;

    (void)err;
    span_put(o, "task_id", b->id);
    json_object_set_new(o, "state", json_string(amp_task_fsm.states[b->state].name));
    span_put(o, "description", b->description);
    span_put(o, "subtask_id", b->subtask);
    span_put(o, "branch", b->branch);
    span_put(o, "base", b->base);
    span_put(o, "worktree", b->worktree);
    span_put(o, "verdict", b->verdict);
    span_put(o, "question", b->question);
    json_object_set_new(o, "attempt", json_integer(b->attempts));
    json_object_set_new(o, "rejections", json_integer(b->rejections));
    json_object_set_new(o, "paused", json_boolean(b->paused));
    return 1;
}

static int details_put(struct mcp *m, json_t *o, const char *id, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    bool found;

    if (amp_task_load(m->store, amp_span_str(id), &t, &found, err) < 0)
        return -1;
    if (!found)
        return 0;
    json_object_set(o, "criteria", t.criteria);
    json_object_set(o, "forbidden", t.forbidden);
    if (json_array_size(t.issues))
        json_object_set(o, "issues", t.issues);
    if (json_array_size(t.notes))
        json_object_set(o, "notes", t.notes);
    return 0;
}

json_t *mcp_task_read(struct mcp *m, const char *id, struct amp_error *err)
{
    struct chosen c = {0};
    struct amp_brief_filter mine = {.agent = m->agent};
    char found[AMP_TASK_ID_MAX];

    if (mcp_store(m, err) < 0)
        return NULL;
    if (*id && amp_story_find(m->store, id, found, err) < 0)
        return NULL;
    if (!*id) {
        if (amp_brief_each(m->store, &mine, task_choose, &c, err) < 0)
            return NULL;
        if (!c.n) {
            amp_fail(err, AMP_NO, no_task, "the agent %s has no open task", m->agent);
            return NULL;
        }
        memcpy(found, c.id, sizeof found);
    }
    const struct amp_brief_filter one = {.ended = true, .id = amp_span_str(found)};
    json_t *o = json_pack("{s:s}", "agent", m->agent);
    if (o && amp_brief_each(m->store, &one, brief_put, o, err) >= 0 &&
        details_put(m, o, found, err) == 0)
        return o;
    if (!o)
        amp_fail_memory(err);
    json_decref(o);
    return NULL;
}

enum mcp_step mcp_task(struct mcp_call *call, struct amp_error *err)
{
    call->result = mcp_task_read(call->m, amp_json_str(call->args, "task_id"), err);
    return call->result ? MCP_DONE : MCP_FAILED;
}
