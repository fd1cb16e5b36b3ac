/*
 * The lines of the control FIFO in the work on a TASK. Each is a sign of life. An error that the
 * agent reports becomes one of the RESPONSE, and a critical one ends the run; a TASK that it
 * delegates goes to the worker's output, as a child of its own.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/protocol/aop/fallback.h"
#include "message/protocol/compose/json.h"
#include "work/aop/run/private.h"
#include "work/aop/session/delegate.h"
#include "json/text.h"

enum {
    ACTIONS_MOST = 200, /* AOP §4 */
    ERRORS_MOST = 100,
    DELEGATED_MOST = 32,
    CHILD_MAX = 1 << 20, /* a line of the FIFO, and the parent's header and session */
    NESTING_MOST = 64,
};

static int line_refuse(struct amp_tasking *t, const struct amp_control_line *l, const char *code,
                       const char *why, struct amp_error *err)
{
    return amp_control_refuse(&t->of.words.control, l->id, code, why, err) < 0 ? -1 : 1;
}

static int line_answer(struct amp_tasking *t, const struct amp_control_line *l, json_t *more,
                       struct amp_error *err)
{
    return amp_control_answer(&t->of.words.control, l->id, more, err) < 0 ? -1 : 1;
}

/* ---- progress and errors ---- */

static int action_add(struct amp_tasking *t, const json_t *in, struct amp_error *err)
{
    if (json_array_size(t->actions) >= ACTIONS_MOST)
        return 0;
    return json_array_append(t->actions, json_object_get(in, "detail")) < 0 ? amp_fail_memory(err)
                                                                            : 0;
}

static int error_take(struct amp_tasking *t, const struct amp_control_line *l,
                      struct amp_error *err)
{
    const char *code = amp_json_str(l->in, "code"), *detail = amp_json_str(l->in, "detail");
    const json_t *critical = json_object_get(l->in, "critical");
    char text[700];

    if (!amp_tasking_code(t, code))
        return line_refuse(t, l, AMP_CODE(bad_value), "code is none of AOP's error taxonomy", err);
    if (json_array_size(t->errors) >= ERRORS_MOST)
        return line_refuse(t, l, AMP_CODE(control_limit), "at most 100 errors in an attempt", err);
    snprintf(text, sizeof text, "%s: %.600s", code, detail);
    amp_utf8_clean(text);
    if (json_array_append_new(t->errors, json_string(text)) < 0)
        return amp_fail_memory(err);
    t->w->opt->note("%s: %s reports %s", t->of.task, t->w->opt->agent, text);
    if (critical ? json_is_true(critical) : amp_aop_is_critical(code))
        amp_tasking_fail(t, code, true, "%.500s", detail);
    return line_answer(t, l, NULL, err);
}

/* ---- delegation ---- */

/* Puts the TASK's paths into the places of those of this machine, which the agent was given. */
static int paths_restore(const struct amp_tasking *t, json_t *in, int depth, struct amp_error *err)
{
    char path[PATH_MAX];
    const char *text = json_string_value(in), *key;
    size_t n = strlen(t->place), i;
    json_t *member;

    if (depth > NESTING_MOST)
        return amp_fail(err, AMP_NO, bad_value, "the TASK is nested deeper than %d levels",
                        NESTING_MOST);
    if (text && strncmp(text, t->place, n) == 0 && (text[n] == '/' || !text[n]))
        return amp_tasking_path_back(t, text, path, sizeof path, err) < 0 ? -1
               : json_string_set(in, path) < 0                            ? amp_fail_memory(err)
                                                                          : 0;
    json_object_foreach (in, key, member)
        if (paths_restore(t, member, depth + 1, err) < 0)
            return -1;
    json_array_foreach (in, i, member)
        if (paths_restore(t, member, depth + 1, err) < 0)
            return -1;
    return 0;
}

/* Makes a child from what the agent gives of a TASK, with the header and session of its own. */
static int child_make(const struct amp_tasking *t, const json_t *given, json_t **out,
                      struct amp_error *err)
{
    static const char *const ours[] = {"aop_version", "schema_version", "protocol_family",
                                       "message_type", "session"};
    json_auto_t *child = json_object();
    json_auto_t *copy = json_deep_copy(given);
    const char *mine = amp_json_str(json_object_get(t->task, "task"), "task_id");

    if (!child || !copy)
        return amp_fail_memory(err);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (json_object_get(copy, ours[i]))
            return amp_fail(err, AMP_NO, bad_value, "%s is added here; leave it out", ours[i]);
        json_t *own = json_object_get(t->task, ours[i]);
        if (own && json_object_set(child, ours[i], own) < 0)
            return amp_fail_memory(err);
    }
    json_t *task = json_object_get(copy, "task");
    const json_t *parent = json_object_get(task, "parent_task_id"),
                 *attempt = json_object_get(task, "attempt");
    if (!json_is_object(task))
        return amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION, "task is missing");
    if (parent && (!json_is_string(parent) || strcmp(json_string_value(parent), mine) != 0))
        return amp_fail(err, AMP_NO, bad_value, "parent_task_id is not \"%.100s\"", mine);
    if (attempt && json_integer_value(attempt) != 1)
        return amp_fail(err, AMP_NO, bad_value, "attempt is not 1");
    if (json_object_set_new(task, "parent_task_id", json_string(mine)) < 0 ||
        json_object_update(child, copy) < 0)
        return amp_fail_memory(err);
    if (strcmp(t->root, t->place) != 0 && paths_restore(t, child, 0, err) < 0)
        return -1;
    *out = json_incref(child);
    return 0;
}

static void finding_keep(void *ctx, const struct amp_finding *f)
{
    struct amp_error *first = ctx;

    if (f->severity == AMP_SEV_ERROR && first->status == AMP_OK)
        amp_fail_text(first, AMP_NO, f->code, "%.100s: %.250s", f->field, f->message);
}

/* Views the line as its receiver does. NO: the code of its first error. */
static int child_view(struct amp_tasking *t, struct amp_span line, struct amp_view *v,
                      struct amp_error *err)
{
    const struct amp_check_options opt = {.only = t->v->protocol, .now_ms = amp_now_ms()};
    struct amp_error first = {0};
    int rc = amp_reader_line(t->w->own_reader, line, &opt, v, finding_keep, &first, err);

    if (rc == 0 && first.status != AMP_OK)
        *err = first;
    else if (rc == 0)
        amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION, "it is not a valid TASK");
    return rc > 0 ? 0 : -1;
}

/* 1: this TASK delegated it before, in a run that was repeated; 0: it is new. NO
 * E_SCHEMA_VALIDATION: the session has another TASK of this name. */
static int child_known(struct amp_tasking *t, const struct amp_view *child, const char *name,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = 1u << 22};
    AMP_BUF struct amp_buf line = {.max = 1u << 22};
    struct amp_session_task rec;
    struct amp_view sent;

    int known = amp_session_task_find(t->w->store, child->session, child->task, &mem, &rec, err);
    if (known < 0)
        return -1;
    bool mine = known && amp_span_eq(rec.parent, t->v->task);
    if (!known && amp_worker_find(t->w, t->w->ref_reader, amp_span_str(name), &line, &sent, err)) {
        if (err->status != AMP_NO)
            return -1;
    } else if (!known) {
        json_auto_t *was = amp_json_load(sent.text, err);
        if (!was)
            return -1;
        known = 1;
        mine =
            amp_span_is(t->v->task, amp_json_str(json_object_get(was, "task"), "parent_task_id"));
    }
    return !known || mine
               ? known
               : amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION, "the session has a TASK %.*s already",
                          AMP_CLIP(child->task, 100));
}

static int child_send(struct amp_tasking *t, const json_t *child, char name[AMP_MSG_ID_MAX],
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = CHILD_MAX};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_SAY};
    struct amp_view v;

    if (amp_json_dump(child, &line, err) < 0 || child_view(t, amp_buf_span(&line), &v, err) < 0 ||
        amp_session_delegates(t->w->store, t->v, &v, err) < 0)
        return -1;
    if (!amp_message_name(&v, name))
        return amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION, "its ids are too long");
    int known = child_known(t, &v, name, err);
    if (known)
        return known < 0 ? -1 : 0;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    /* In this order: a TASK that is in the ledger was sent. */
    if (amp_worker_step(t->w, t->job, &step, &lines, err) < 0 ||
        child_view(t, amp_buf_span(&line), &v, err) < 0)
        return -1;
    v.id = amp_span_str(name);
    return amp_message_record(t->w->store, &v, amp_now_ms(), NULL, err);
}

static int delegate_take(struct amp_tasking *t, const struct amp_control_line *l,
                         struct amp_error *err)
{
    json_auto_t *child = NULL;
    char name[AMP_MSG_ID_MAX];
    struct amp_error why;

    if (t->delegated >= DELEGATED_MOST)
        return line_refuse(t, l, AMP_CODE(control_limit),
                           "at most 32 TASKs are delegated in an attempt", err);
    if (!t->policy.delegation.value)
        return line_refuse(t, l, AMP_CODE(E_PERMISSION_DENIED),
                           "constraints.delegation_allowed of the TASK is not true", err);
    if (child_make(t, json_object_get(l->in, "task"), &child, &why) < 0 ||
        child_send(t, child, name, &why) < 0) {
        if (why.status == AMP_NO)
            return line_refuse(t, l, why.code, why.what, err);
        *err = why;
        return -1;
    }
    t->delegated++;
    const char *id = amp_json_str(json_object_get(child, "task"), "task_id");
    t->w->opt->note("%s: %s delegates %.100s", t->of.task, t->w->opt->agent, id);
    json_auto_t *more = json_pack("{s:s, s:s}", "task_id", id, "msg_id", name);
    return more ? line_answer(t, l, more, err) : amp_fail_memory(err);
}

int amp_tasking_line(struct amp_worker *w, struct amp_assignment *k,
                     const struct amp_control_line *l, struct amp_error *err)
{
    struct amp_tasking *t = (struct amp_tasking *)k; /* `of` is its first member */
    (void)w;

    if (amp_beats_line(t, l, err) < 0 || amp_expense_line(t, l, err) < 0)
        return -1;
    switch (l->kind) {
    case AMP_CONTROL_PROGRESS:
        return action_add(t, l->in, err);
    case AMP_CONTROL_USAGE: /* w->left.usage is that of all runs */
        return line_answer(t, l, NULL, err);
    case AMP_CONTROL_CHECKPOINT:
        return amp_phases_line(t, l, err);
    case AMP_CONTROL_ERROR:
        return error_take(t, l, err);
    case AMP_CONTROL_DELEGATE:
        return delegate_take(t, l, err);
    default:
        return 0;
    }
}
