/*
 * task-dispatch retry and edit: a person sends a task again. An open task gets its new text under
 * its id; one that has ended is a new task with the same text, because an id is used once.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "../verbs.h"
#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "people/question/question.h"
#include "people/story/story.h"
#include "work/task/new.h"

#define TEXT_MAX ((size_t)8 << 20)
/* A retry adds a text that begins with these words to the description, in place of an earlier one.
 */
#define AGAIN "\n\nThis task is tried again."

static const char *hint;

static const struct amp_opt tasks_retry_opts[] = {
    {0, "hint", AMP_OPT_STRING, &hint, "TEXT", "tell the agent what to do otherwise"},
    AMP_OPT_END,
};
static const struct amp_opt tasks_edit_opts[] = {AMP_OPT_END};

struct again {
    struct amp_store *store;
    struct amp_task task;
    bool working, asks;
    char words[AMP_BRIEF_WORDS_MAX];
};

static int brief_take(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct again *a = ctx;

    (void)err;
    a->working = b->working;
    a->asks = b->questions > 0 || b->state == AMP_TASK_WAITING || b->state == AMP_TASK_LOCKED ||
              b->state == AMP_TASK_SUSPENDED;
    amp_brief_words(b, amp_now_ms(), a->words);
    return 0;
}

static int task_read(struct again *a, const char *name, struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX];

    if (amp_story_find(a->store, name, id, err) < 0)
        return -1;
    const struct amp_brief_filter f = {.ended = true, .id = amp_span_str(id)};
    return amp_brief_each(a->store, &f, brief_take, a, err) < 0
               ? -1
               : amp_task_load(a->store, amp_span_str(id), &a->task, NULL, err);
}

/* ---- the task as a document of work/task/new.h ---- */

/* The subtasks; without the approved ones if it becomes a new task. NULL: one with the task's own
 * description. */
static json_t *parts_json(const struct amp_task *t, bool ended)
{
    if (t->n_parts == 1 && strcmp(t->parts[0].description, t->description) == 0)
        return NULL;
    json_t *all = json_array();
    for (size_t i = 0; i < t->n_parts; i++)
        if (!ended || t->parts[i].state != AMP_QA_APPROVED)
            json_array_append_new(all, json_pack("{s:s, s:I}", "description",
                                                 t->parts[i].description, "estimated_lines",
                                                 (json_int_t)t->parts[i].estimated_lines));
    return all;
}

static json_t *task_json(const struct amp_task *t)
{
    bool ended = amp_task_ended(t->state);
    json_t *constraints = json_copy(t->constraints), *parts = parts_json(t, ended);

    json_object_del(constraints, "base");
    json_t *j = json_pack("{s:s, s:s, s:s, s:O, s:O, s:o*}", "description", t->description, "repo",
                          t->repo, "branch", t->branch, "acceptance_criteria", t->criteria,
                          "forbidden_actions", t->forbidden, "tech_constraints", constraints);
    if (parts)
        json_object_set_new(j, "subtasks", parts);
    if (*t->base)
        json_object_set_new(j, "base", json_string(t->base));
    if (t->risk != AMP_RISK_NONE)
        json_object_set_new(j, "risk_level", json_string(amp_risk_name(t->risk)));
    if (!ended)
        json_object_set_new(j, "task_id", json_string(t->id));
    return j;
}

static void quiet(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void quiet(const char *fmt, ...)
{
    (void)fmt;
}

/* Sends it, and ends the questions about what it was before. text: see task_send. */
static int task_again(struct again *a, json_t *task, struct amp_span text, struct amp_error *err)
{
    bool dirty = false;
    struct amp_hitl h = {.store = a->store, .actor = "hitl-prompt", .dirty = &dirty, .note = quiet};
    uint32_t n;

    int rc = task_send(a->store, task, text, err);
    return rc != 0 || amp_task_ended(a->task.state) ? rc
           : amp_question_end_task(&h, amp_span_str(a->task.id), &n, err) < 0
               ? -1
               : amp_store_sync(a->store, err);
}

/* ---- retry ---- */

static int reasons_add(struct amp_buf *b, const struct amp_task *t, struct amp_error *err)
{
    const struct amp_task_part *p = amp_task_turn(t);
    bool rejected = p && strcmp(p->verdict, "rejected") == 0 && json_array_size(t->issues);
    const json_t *list = rejected ? t->issues : t->blockers;

    if (json_array_size(list) &&
        amp_buf_str(b, rejected ? " It was rejected:" : " It failed:", err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        const char *text = rejected ? amp_json_str(e, "description") : json_string_value(e);
        struct amp_span why = amp_story_reason(amp_span_str(text ? text : ""));
        if (amp_buf_str(b, "\n- ", err) < 0 || amp_buf_add(b, why.p, why.n, err) < 0)
            return -1;
    }
    return 0;
}

/* The description, why it is tried again, and the hint. */
static int text_again(const struct amp_task *t, struct amp_buf *b, struct amp_error *err)
{
    const char *before = strstr(t->description, AGAIN);
    size_t n = before ? (size_t)(before - t->description) : strlen(t->description);

    if (amp_buf_add(b, t->description, n, err) < 0 || amp_buf_str(b, AGAIN, err) < 0 ||
        reasons_add(b, t, err) < 0)
        return -1;
    return hint ? amp_buf_fmt(b, err, "\nHint: %s", hint) : 0;
}

static int retry_check(const struct again *a, struct amp_error *err)
{
    const struct amp_task *t = &a->task;

    if (t->state == AMP_TASK_DONE)
        return amp_fail(err, AMP_NO, ended, "task %s is %s: there is nothing to retry", t->id,
                        a->words);
    if (a->working || (!a->asks && !amp_task_ended(t->state)))
        return amp_fail(err, AMP_NO, already_in_progress, "task %s is %s%s", t->id, a->words,
                        a->working ? "; task-dispatch cancel ends it" : "");
    return 0;
}

static int retry_do(struct again *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = TEXT_MAX};

    if (retry_check(a, err) < 0 || text_again(&a->task, &text, err) < 0)
        return -1;
    json_auto_t *task = task_json(&a->task);
    if (!task || json_object_set_new(task, "description", json_stringn(text.data, text.len)) < 0)
        return amp_fail(err, AMP_USAGE, bad_value, "--hint: the value is not UTF-8");
    /* The file of one that has ended also has the subtasks that were approved. */
    return task_again(a, task, amp_span_str(amp_task_ended(a->task.state) ? "" : a->task.text),
                      err);
}

/* ---- edit ---- */

/* Runs the person's editor on the file. */
static int editor_run(const char *path, struct amp_error *err)
{
    const char *editor = getenv("VISUAL");
    char line[PATH_MAX];
    struct amp_child child;
    struct amp_child_end end;

    if (!editor || !*editor)
        editor = getenv("EDITOR");
    if (!editor || !*editor)
        editor = "vi";
    /* As git runs it: words for the shell, which the path follows. */
    if (snprintf(line, sizeof line, "%s \"$@\"", editor) >= (int)sizeof line)
        return amp_fail(err, AMP_USAGE, bad_value, "VISUAL or EDITOR: too long");
    const char *const argv[] = {"sh", "-c", line, editor, path, NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true};
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, &amp_stop, &end, err) < 0)
        return -1;
    return end.exited && end.exit_code == 0
               ? 0
               : amp_fail(err, AMP_NO, command_failed, "the editor failed; nothing is changed");
}

/* Sends the text of the file. What the text does not have is that of the task. */
static int text_send(struct again *a, struct amp_span text, const json_t *old,
                     struct amp_error *err)
{
    static const char *const kept[] = {"task_id", "repo",       "branch",
                                       "base",    "risk_level", "tech_constraints"};
    struct amp_new_fault at = {0};
    json_auto_t *task = amp_new_read(text, &at, err);

    if (!task) {
        struct amp_error why = *err;
        return amp_fail_text(err, why.status, why.code, "line %u: %s", at.line, why.what);
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (json_object_get(old, kept[i]) && !json_object_get(task, kept[i]))
            json_object_set(task, kept[i], json_object_get(old, kept[i]));
    return task_again(a, task, text, err);
}

static int edit_check(const struct again *a, struct amp_error *err)
{
    const struct amp_task *t = &a->task;

    if (amp_task_ended(t->state))
        return amp_fail(err, AMP_NO, ended, "task %s has ended: it is %s", t->id, a->words);
    /* The coordinator takes no result of a dispatch that another one has replaced. */
    return a->working
               ? amp_fail(err, AMP_NO, already_in_progress,
                          "task %s is %s: the agent has the text as it is, and its result would be "
                          "refused; edit the task when the attempt has ended",
                          t->id, a->words)
               : 0;
}

/* The file of the task, or the task as JSON if no file has it. */
static int text_make(const struct again *a, const json_t *task, struct amp_buf *out,
                     struct amp_error *err)
{
    if (*a->task.text)
        return amp_buf_str(out, a->task.text, err);
    AMP_FREE char *text = json_dumps(task, JSON_INDENT(2));
    return text ? amp_buf_fmt(out, err, "%s\n", text) : amp_fail_memory(err);
}

static int edit_do(struct again *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf before = {.max = TEXT_MAX}, after = {.max = TEXT_MAX};
    char path[PATH_MAX];
    const char *tmp = getenv("TMPDIR");

    if (edit_check(a, err) < 0)
        return -1;
    json_auto_t *task = task_json(&a->task);
    if (!task)
        return amp_fail_memory(err);
    snprintf(path, sizeof path, "%.4000s/%s.XXXXXX.md", tmp && *tmp == '/' ? tmp : "/tmp",
             a->task.id);
    AMP_CLOSE int fd = mkstemps(path, 3);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
    int rc = text_make(a, task, &before, err) < 0 ||
                     amp_write_all(fd, amp_buf_span(&before), err) < 0 ||
                     editor_run(path, err) < 0 ||
                     amp_file_read(AT_FDCWD, path, TEXT_MAX, &after, err) < 0
                 ? -1
                 : 0;
    bool same = rc == 0 && amp_span_eq(amp_buf_span(&before), amp_buf_span(&after));
    if (same)
        amp_note("%s is not changed", a->task.id);
    else if (rc == 0 && (rc = text_send(a, amp_buf_span(&after), task, err)) != 0)
        amp_note("your text is in %s", path);
    if (same || rc == 0 || !after.len)
        unlink(path);
    return rc;
}

/* ---- the verbs ---- */

static int again_run(struct amp_command *c, int (*run)(struct again *a, struct amp_error *err),
                     struct amp_error *err)
{
    struct again a = {.store = c->store};
    int rc = task_read(&a, c->argv[0], err);

    if (rc == 0)
        rc = run(&a, err);
    amp_task_release(&a.task);
    return rc < 0 ? -1 : rc > 0 ? AMP_NO : AMP_OK;
}

static int tasks_retry(struct amp_command *c, struct amp_error *err)
{
    return again_run(c, retry_do, err);
}

static int tasks_edit(struct amp_command *c, struct amp_error *err)
{
    return again_run(c, edit_do, err);
}

#define VERB                                                                                       \
    .opens = AMP_OPENS_FOUND, .signals = true, .least = 1, .most = 1,                              \
    .usage = "give one task (task-dispatch list shows them)", .finds_state = true,                 \
    .values = "task", .who = AMP_WHO_PERSON

const struct amp_verb again_verbs[] = {
    {"edit", "TASK", "change the text of a task and send it again", tasks_edit_opts, tasks_edit,
     .act = "edit a task", VERB},
    {"retry", "TASK", "send a task again that failed, was ended, or asks", tasks_retry_opts,
     tasks_retry, .act = "retry a task", VERB},
    {0},
};
