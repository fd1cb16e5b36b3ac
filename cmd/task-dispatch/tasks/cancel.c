/*
 * task-dispatch cancel: a person ends tasks and their jobs. A task is suspended first, which ends
 * its attempt in every tool; then it is terminated, and the suspension is removed. Each step may be
 * repeated, so a cancel that was killed is completed by the next one.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/compose.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "people/pause/end.h"
#include "people/pause/publish.h"
#include "people/question/question.h"
#include "people/story/story.h"
#include "shared/work/cancel.h"
#include "shared/work/person.h"
#include "work/loop/coordinate/cancel.h"

#define LINE_MAX_BYTES (1u << 20)

static const char *reason, *as = AMP_COORDINATE_CONSUMER;

static const struct amp_opt tasks_cancel_opts[] = {
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", "record why"},
    {0, "as", AMP_OPT_STRING, &as, "NAME", "name of the coordinator, if it has another one"},
    AMP_TOOL_OPT_KEY,
    AMP_OPT_END,
};

struct cancelling {
    struct amp_store *store;
    const struct amp_tool_person *person;
    struct amp_task task;
    struct amp_tool_signature sig;
    char dir[PATH_MAX];
    bool dirty;
};

/* The decision of the person, signed by the operator's key. */
static int decision_make(struct cancelling *c, struct amp_buf *line, struct amp_error *err)
{
    AMP_BUF struct amp_buf plain = {0};
    const struct amp_task *t = &c->task;
    const char *ref = amp_json_str(json_array_get(t->open, 0), "ref");
    const struct amp_decision_args args = {
        .ref_msg_id = *ref             ? ref
                      : *t->source_ref ? t->source_ref
                                       : t->id,
        .task_id = t->id,
        .word = AMP_DO_TERMINATE,
        .note = reason,
        .op = c->person->name,
        .now_ms = amp_now_ms(),
    };

    amp_buf_init(&plain, LINE_MAX_BYTES);
    if (amp_compose_decision(&args, &plain, err) < 0)
        return -1;
    plain.len--; /* LF */
    return amp_identities_sign(c->person->ids, amp_buf_span(&plain), line, err);
}

/* Suspends the task, or ends its suspension. */
static int pause_set(struct cancelling *c, bool resume, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_pause p = {.scope = AMP_PAUSE_TASK,
                          .name = amp_span_str(c->task.id),
                          .person = amp_span_str(c->person->name),
                          .by = amp_span_str(c->person->by),
                          .channel = AMP_SPAN("command"),
                          .reason = amp_span_str(reason ? reason : "cancelled"),
                          .since_ms = amp_now_ms()};
    bool changed;
    uint32_t n;

    if (p.reason.n > AMP_PAUSE_TEXT_MAX)
        p.reason = AMP_SPAN("cancelled");
    amp_buf_init(&text, LINE_MAX_BYTES);
    if (amp_pause_text(&p, resume, &text, err) < 0)
        return -1;
    if (amp_tool_sign(c->person, AMP_PAUSE_NAMESPACE, amp_buf_span(&text), &c->sig)) {
        p.alg = amp_span_str(c->sig.alg);
        p.key = amp_span_str(c->sig.key);
        p.signature = amp_span_str(c->sig.value);
    }
    return (resume ? amp_pause_resume(c->store, &p, &n, err)
                   : amp_pause_suspend(c->store, &p, &changed, err)) < 0
               ? -1
               : amp_store_sync(c->store, err);
}

static int questions_end(struct cancelling *c, struct amp_error *err)
{
    struct amp_hitl h = {
        .store = c->store, .actor = "hitl-prompt", .dirty = &c->dirty, .note = amp_note};
    uint32_t n;

    return amp_question_end_task(&h, amp_span_str(c->task.id), &n, err) < 0
               ? -1
               : amp_store_sync(c->store, err);
}

static int processes_end(struct cancelling *c, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};

    amp_pauses_init(&now);
    if (amp_pauses_read(c->store, &now, err) < 0 ||
        amp_pause_publish(c->store, &now, amp_warn, err) < 0)
        return -1;
    /* Only those of this task: others that are suspended were ended by their own command. */
    for (uint32_t i = 0; i < now.n_v; i++) {
        struct amp_pauses one = {.v = &now.v[i], .n_v = 1};
        if (now.v[i].scope != AMP_PAUSE_TASK || !amp_span_is(now.v[i].name, c->task.id))
            continue;
        int left = amp_pause_end(c->dir, &one, amp_note);
        if (left)
            return amp_fail(err, AMP_TEMPFAIL, still_running,
                            "%d process%s of the task still run%s; cancel it again", left,
                            left == 1 ? "" : "es", left == 1 ? "s" : "");
    }
    return 0;
}

static int pause_end(struct cancelling *c, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};

    amp_pauses_init(&now);
    return pause_set(c, true, err) < 0 || amp_pauses_read(c->store, &now, err) < 0 ||
                   amp_pause_publish(c->store, &now, amp_warn, err) < 0
               ? -1
               : 0;
}

static int task_end(struct cancelling *c, bool *changed, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};

    amp_buf_init(&line, LINE_MAX_BYTES);
    if (decision_make(c, &line, err) < 0)
        return -1;
    const struct amp_cancel by = {.task = amp_span_str(c->task.id),
                                  .line = amp_buf_span(&line),
                                  .consumer = as,
                                  .now_ms = amp_now_ms()};
    return amp_task_cancel(c->store, &by, changed, err);
}

/* Whether there is something to cancel, before anything changes. */
static int task_check(const struct cancelling *c, struct amp_error *err)
{
    const struct amp_task *t = &c->task;

    return !amp_task_ended(t->state) || *t->cancelled
               ? 0
               : amp_fail(err, AMP_NO, ended, "task %s has ended: it is %s", t->id,
                          amp_task_fsm.states[t->state].name);
}

static int task_cancel(struct cancelling *c, const char *id, struct amp_error *err)
{
    bool changed;

    if (amp_task_load(c->store, amp_span_str(id), &c->task, NULL, err) < 0 ||
        task_check(c, err) < 0 || pause_set(c, false, err) < 0)
        return -1;
    if (task_end(c, &changed, err) < 0) {
        struct amp_error ignored; /* it ended in the meantime */
        pause_end(c, &ignored);
        return -1;
    }
    if (processes_end(c, err) < 0 || questions_end(c, err) < 0 || pause_end(c, err) < 0)
        return -1;
    if (!changed)
        amp_note("%s was cancelled before", id);
    else
        amp_note("%s is cancelled%s%s%s", id, *c->task.branch ? "; its branch " : "",
                 c->task.branch, *c->task.branch ? " stays" : "");
    return 0;
}

/* Cancels a task and its jobs. */
static int name_cancel(struct cancelling *c, const char *name, struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX];
    struct amp_tool_cancelled jobs;
    struct amp_error why = {0};

    if (amp_story_find(c->store, name, id, err) < 0)
        return -1;
    int rc = task_cancel(c, id, &why);
    if (rc < 0 && why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    const struct amp_tool_cancel who = {
        .name = name, .task = id, .why = reason, .person = c->person};
    if (amp_tool_jobs_cancel(c->store, &who, &jobs, err) < 0)
        return -1;
    if (rc == 0 || jobs.cancelled)
        return 0;
    *err = why;
    return -1;
}

/* The others are cancelled also if one cannot be. */
static int names_cancel(struct cancelling *c, char **name, int n, struct amp_error *err)
{
    for (int i = 0; i < n; i++) {
        int rc = name_cancel(c, name[i], err);
        amp_task_release(&c->task);
        c->task = (struct amp_task){0};
        if (rc == 0)
            continue;
        if (err->status != AMP_NO || i == n - 1)
            return -1;
        amp_status_note(amp_complain(err));
    }
    return 0;
}

static int tasks_cancel(struct amp_command *c, struct amp_error *err)
{
    struct cancelling run = {.store = c->store, .person = c->own};

    return realpath(c->state, run.dir) ? names_cancel(&run, c->argv, c->argc, err)
                                       : amp_fail_errno(err, AMP_IOERR, "%s", c->state);
}

const struct amp_verb cancel_verbs[] = {
    {"cancel", "TASK…", "end tasks and their jobs", tasks_cancel_opts, tasks_cancel,
     .opens = AMP_OPENS_FOUND | AMP_TOOL_OPENS_PERSON, .act = "cancel a task", .signals = true,
     .least = 1,
     .usage = "no task: give its id (task-dispatch list shows them; task-queue cancel ends jobs)",
     .finds_state = true, .values = "task", .who = AMP_WHO_PERSON},
    {0},
};
