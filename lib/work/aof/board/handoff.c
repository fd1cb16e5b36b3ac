/* handoff.request, handoff.accepted and handoff.rejected (AOF/1, Protocol 4). */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/aof/board/private.h"

enum { DEPTH_MOST = 1, HANDOFF_BYTES = 16 << 20 /* more than any message has */ };

static int event_add(struct amp_aof_work *w, const struct amp_view *v, const char *type,
                     const struct amp_aof_said *said, const char *reason, int64_t depth,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    amp_buf_init(&payload, 1 << 20);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_some_str(&j, "parentTaskId", said->parent);
    amp_jw_member_str(&j, "fromAgent", v->from);
    amp_jw_some_str(&j, "toAgent", said->to);
    amp_jw_some_int(&j, "delegationDepth", depth);
    amp_jw_some_str(&j, "reason", amp_span_str(reason));
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0
               ? -1
               : amp_aof_event_add(&w->c, type, v->task, amp_buf_span(&payload), err);
}

/* The request is refused: delegation.rejected, a warning, and handoff.rejected to its sender. */
static int request_refuse(struct amp_aof_work *w, const struct amp_view *v,
                          const struct amp_aof_said *said, const char *reason, int64_t depth,
                          struct amp_error *err)
{
    const struct amp_aof_why why = {.reason = reason, .v = v};
    return event_add(w, v, "delegation.rejected", said, reason, depth, err) < 0 ||
                   amp_aof_why_event(w, "protocol.message.warning", v->task, &why, err) < 0
               ? -1
               : amp_aof_decline(v, w->r->o.actor, reason, w->c.now_ms, &w->messages, err);
}

static void input_path(char out[AMP_AOF_PATH_MAX], const struct amp_aof_task *t, const char *name)
{
    snprintf(out, AMP_AOF_PATH_MAX, "tasks/%s/%s/inputs/%s", amp_aof_status_name(t->status), t->id,
             name);
}

static int artifacts_write(struct amp_aof_work *w, const struct amp_view *v,
                           const struct amp_aof_task *child, struct amp_span json,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)32 << 20);
    return amp_aof_put_in(&w->c, child->id, child->status, "inputs/handoff.json", json, err) < 0 ||
                   amp_aof_handoff_text(v, &text, err) < 0
               ? -1
               : amp_aof_put_in(&w->c, child->id, child->status, "inputs/handoff.md",
                                amp_buf_span(&text), err);
}

int amp_aof_pointer_put(struct amp_aof_work *w, const struct amp_aof_task *parent,
                        const char *child, struct amp_span to, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char name[AMP_AOF_PATH_MAX];
    amp_buf_init(&text, 1 << 16);
    snprintf(name, sizeof name, "subtasks/%s.md", child);
    if (amp_buf_fmt(&text, err, "# Subtask %s\n\n- Parent: %s\n", child, parent->id) < 0 ||
        (to.n > 0 && amp_buf_fmt(&text, err, "- To: %.*s\n", AMP_CLIP(to, (size_t)1024)) < 0) ||
        amp_buf_fmt(&text, err,
                    "\nThe folder of tasks/ that has %s.md is its status; its inputs and outputs "
                    "are in %s/ beside that file.\n",
                    child, child) < 0)
        return -1;
    return amp_aof_put_in(&w->c, parent->id, parent->status, name, amp_buf_span(&text), err);
}

static int child_edit(struct amp_aof_work *w, const struct amp_aof_task *child,
                      const struct amp_aof_said *said, int64_t depth, struct amp_error *err)
{
    char time[AMP_TIME_MAX], number[24];
    struct amp_aof_set set[5];
    unsigned n = 0;
    amp_time_format(w->c.now_ms, time);
    snprintf(number, sizeof number, "%lld", (long long)depth);
    set[n++] = (struct amp_aof_set){"parentId", said->parent};
    set[n++] = (struct amp_aof_set){"metadata.delegationDepth", amp_span_str(number)};
    set[n++] = (struct amp_aof_set){"metadata.handoff", AMP_SPAN("requested")};
    set[n++] = (struct amp_aof_set){"updatedAt", amp_span_str(time)};
    if (child->agent.n == 0)
        set[n++] = (struct amp_aof_set){"routing.agent", said->to};
    return amp_aof_edit(&w->c, child->id, child->status, set, n, AMP_SPAN(""), err);
}

/* Whether the child has this request already. 1; 0; -1. */
static int has_request(struct amp_aof_work *w, const struct amp_aof_task *child,
                       struct amp_span json, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char path[AMP_AOF_PATH_MAX];
    struct amp_error why;
    amp_buf_init(&text, (size_t)32 << 20);
    input_path(path, child, "handoff.json");
    int rc = amp_aof_get(&w->r->data, path, HANDOFF_BYTES, &text, &why);
    return rc > 0 ? amp_span_eq(amp_buf_span(&text), json) : amp_aof_if_usable(rc, &why, err);
}

static int request_take(struct amp_aof_work *w, const struct amp_view *v,
                        const struct amp_aof_said *said, const struct amp_aof_task *child,
                        const struct amp_aof_task *parent, struct amp_error *err)
{
    AMP_BUF struct amp_buf json = {0};
    /* A task with a parent has a depth, also if nobody wrote it down. */
    int64_t depth = parent->depth > 0 ? parent->depth + 1 : 1 + (parent->parent.n > 0);
    if (depth > DEPTH_MOST)
        return request_refuse(w, v, said, AMP_CODE(nested_delegation), depth, err);
    if (child->parent.n > 0 && !amp_span_eq(child->parent, said->parent))
        return request_refuse(w, v, said, AMP_CODE(parent_mismatch), depth, err);
    if (child->status == AMP_AOF_DONE || child->status == AMP_AOF_CANCELLED ||
        child->status == AMP_AOF_DEADLETTER)
        return request_refuse(w, v, said, AMP_CODE(task_ended), depth, err);
    amp_buf_init(&json, (size_t)32 << 20);
    if (amp_aof_handoff_write(v, &json, err) < 0)
        return -1;
    int known = has_request(w, child, amp_buf_span(&json), err);
    if (known != 0)
        return known < 0 ? -1 : 0;
    if (artifacts_write(w, v, child, amp_buf_span(&json), err) < 0 ||
        child_edit(w, child, said, depth, err) < 0 ||
        event_add(w, v, "delegation.requested", said, NULL, depth, err) < 0 ||
        (child->agent.n == 0 && amp_aof_assigned_event(w, child->id, said->to, err) < 0))
        return -1;
    /* The last step: if a person moves the parent right now, only the pointer is missing. */
    return amp_aof_pointer_put(w, parent, child->id, said->to, err);
}

int amp_aof_request(struct amp_aof_work *w, const struct amp_view *v,
                    const struct amp_aof_said *said, struct amp_error *err)
{
    AMP_AOF_TASK struct amp_aof_task child = {0}, parent = {0};
    char id[AMP_AOF_ID_MAX], above[AMP_AOF_ID_MAX];
    amp_aof_task_init(&child);
    amp_aof_task_init(&parent);
    amp_span_copy(v->task, id, sizeof id);
    if (!amp_span_copy(said->parent, above, sizeof above))
        return request_refuse(w, v, said, AMP_CODE(parent_not_found), 0, err);
    int rc = amp_aof_task_for(w, v, id, &child, err);
    if (rc <= 0)
        return rc < 0 ? -1 : request_refuse(w, v, said, AMP_CODE(task_not_found), 0, err);
    struct amp_error why;
    rc = strcmp(id, above) == 0 ? 0 : amp_aof_load(&w->r->data, above, &parent, &why);
    if (rc < 0 && why.status != AMP_NO && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    if (rc <= 0) {
        return amp_aof_alert(w, above, AMP_CODE(parent_not_found), err) < 0
                   ? -1
                   : request_refuse(w, v, said, AMP_CODE(parent_not_found), 0, err);
    }
    rc = amp_aof_may_speak(w, v, &parent, AMP_SPAN(""), err);
    return rc <= 0 ? rc : request_take(w, v, said, &child, &parent, err);
}

/* The toAgent of the child's handoff.json, in mem. */
static int receiver_read(struct amp_aof_work *w, const struct amp_aof_task *t, struct amp_buf *mem,
                         struct amp_span *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_TAPE struct amp_tape tape = {0};
    char path[AMP_AOF_PATH_MAX];
    struct amp_json_fault fault;
    struct amp_error why;
    struct amp_span to;
    *out = (struct amp_span){"", 0};
    amp_buf_init(&text, HANDOFF_BYTES + 1);
    amp_tape_init(&tape, NULL);
    input_path(path, t, "handoff.json");
    int rc = amp_aof_get(&w->r->data, path, HANDOFF_BYTES, &text, &why);
    if (rc <= 0)
        return amp_aof_if_usable(rc, &why, err);
    if (amp_tape_scan(&tape, text.data, text.len, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err) : 0;
    if (tape.tok[0].type != AMP_JSON_OBJECT)
        return 0;
    uint32_t tok = amp_tape_get(&tape, 0, AMP_SPAN("toAgent"));
    if (tok == AMP_TOK_NONE || tape.tok[tok].type != AMP_JSON_STRING)
        return 0;
    if (amp_tok_text(&tape, tok, mem, &to, err) < 0 ||
        (to.p != mem->data && amp_buf_add(mem, to.p, to.n, err) < 0))
        return -1;
    *out = (struct amp_span){mem->data, to.n};
    return 0;
}

static int state_edit(struct amp_aof_work *w, const struct amp_aof_task *t, uint8_t at,
                      const char *state, struct amp_error *err)
{
    const struct amp_aof_set set = {"metadata.handoff", amp_span_str(state)};
    return amp_aof_edit(&w->c, t->id, at, &set, 1, AMP_SPAN(""), err);
}

int amp_aof_answer(struct amp_aof_work *w, const struct amp_view *v,
                   const struct amp_aof_said *said, struct amp_error *err)
{
    AMP_AOF_TASK struct amp_aof_task t = {0};
    AMP_BUF struct amp_buf mem = {0};
    char id[AMP_AOF_ID_MAX];
    struct amp_span to;
    enum amp_aof_moved moved = AMP_AOF_SAME;
    bool accepts = said->what == AMP_AOF_ACCEPTED;
    struct amp_span reason = said->reason.n > 0 ? said->reason : AMP_CODE_SPAN(handoff_rejected);
    amp_aof_task_init(&t);
    amp_buf_init(&mem, 1 << 20);
    amp_span_copy(v->task, id, sizeof id);
    int rc = amp_aof_task_for(w, v, id, &t, err);
    if (rc <= 0)
        return rc;
    if (receiver_read(w, &t, &mem, &to, err) < 0)
        return -1;
    rc = amp_aof_may_speak(w, v, &t, to, err);
    if (rc <= 0)
        return rc;
    /* Idempotent: the task says which answer it had. */
    if (amp_span_is(t.handoff, accepts ? "accepted" : "rejected"))
        return 0;
    if (accepts)
        return state_edit(w, &t, t.status, "accepted", err) < 0
                   ? -1
                   : event_add(w, v, "delegation.accepted", said, NULL, 0, err);
    if (amp_aof_transition(w, &t, AMP_AOF_TASK_EV_BLOCK, reason, "", &moved, err) < 0)
        return -1;
    if (moved == AMP_AOF_BARRED)
        return amp_aof_refuse_review(w, v, err);
    char *why = amp_span_dup(reason);
    if (!why)
        return amp_fail_memory(err);
    rc = state_edit(w, &t, moved == AMP_AOF_MOVED ? AMP_AOF_BLOCKED : t.status, "rejected", err) < 0
             ? -1
             : event_add(w, v, "delegation.rejected", said, why, 0, err);
    amp_auto_free(&why);
    return rc;
}
