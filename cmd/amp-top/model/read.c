/* Reads the lists, and follows the log. */
#include "read.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "message/delivery/dead/dead.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "message/delivery/settle/cost.h"
#include "message/pause/watch.h"
#include "people/question/record.h"
#include "work/agent/record.h"
#include "work/git/binding.h"
#include "work/task/record.h"

#define LATEST   2000 /* log entries that are read at the start, for the activity and the rates */
#define BLOB_MAX ((size_t)64 << 20)

/* ---- what changed ---- */

static void change_note(struct top_source *src, enum top_pane pane, struct amp_span id)
{
    struct top_change *c = src->change;
    char text[sizeof c->id];
    if (src->all[pane])
        return;
    if (!amp_span_copy(id, text, sizeof text) || id.n == 0) {
        src->all[pane] = true;
        return;
    }
    for (uint32_t i = 0; i < src->n_change; i++)
        if (c[i].pane == pane && strcmp(c[i].id, text) == 0)
            return;
    if (src->n_change == TOP_CHANGES) {
        src->all[pane] = true;
        return;
    }
    c[src->n_change].pane = (uint8_t)pane;
    snprintf(c[src->n_change].id, sizeof c->id, "%s", text);
    src->n_change++;
}

/* The lists that a row of the log is about. */
static void row_note(struct top_source *src, const struct amp_history_row *r)
{
    static const char result[] = "task_result-";
    if (amp_span_is(r->kind, AMP_TASK_KIND)) {
        change_note(src, TOP_TASKS, r->id);
    } else if (amp_span_is(r->kind, AMP_AGENT_KIND) || amp_span_is(r->kind, AMP_BINDING_KIND)) {
        change_note(src, TOP_AGENTS, r->id);
    } else if (amp_span_is(r->kind, AMP_ESCALATION_KIND)) {
        change_note(src, TOP_QUESTIONS, r->id);
        if (r->task.n)
            change_note(src, TOP_TASKS, r->task);
    } else if (amp_span_is(r->kind, AMP_INBOX_BUFFERS)) {
        change_note(src, TOP_INBOXES, r->id);
    } else if (amp_span_is(r->kind, AMP_PAUSE_KIND)) {
        src->all[TOP_TASKS] = src->all[TOP_AGENTS] = true;
    } else if (amp_span_is(r->kind, AMP_MESSAGE_KIND) || amp_span_is(r->kind, AMP_DEAD_KIND)) {
        src->all[TOP_MESSAGES] = true;
        if (amp_span_starts(r->id, result) && r->task.n)
            change_note(src, TOP_COST, r->task);
    }
    if (amp_span_is(r->kind, AMP_COST_KIND))
        change_note(src, TOP_COST, r->id);
    src->all[TOP_DEADLINES] = true;
}

/* ---- activity ---- */

static enum top_tone event_tone(const struct amp_history_row *r)
{
    static const struct {
        const char *word;
        enum top_tone tone;
    } tones[] = {{"rejected", TOP_BAD},   {"REJECTED", TOP_BAD},   {"FAILED", TOP_BAD},
                 {"failed", TOP_BAD},     {"DEAD", TOP_BAD},       {"TIMED_OUT", TOP_BAD},
                 {"LOCKED", TOP_WARN},    {"locked", TOP_WARN},    {"rework", TOP_WARN},
                 {"REWORK", TOP_WARN},    {"OPEN", TOP_WARN},      {"PAUSED", TOP_WARN},
                 {"suspended", TOP_WARN}, {"SUSPENDED", TOP_WARN}, {"FULFILLED", TOP_GOOD},
                 {"approved", TOP_GOOD},  {"done", TOP_GOOD},      {"DONE", TOP_GOOD},
                 {"completed", TOP_GOOD}, {"RUNNING", TOP_INFO},   {"DECIDED", TOP_GOOD}};
    if (r->code.n)
        return TOP_BAD;
    for (size_t i = 0; i < sizeof tones / sizeof *tones; i++)
        if (amp_span_is(r->to, tones[i].word) || amp_span_is(r->event, tones[i].word))
            return tones[i].tone;
    return TOP_PLAIN;
}

/* True for what a person wants to see: tasks, agents, questions, worktrees, new messages,
 * failures. */
static bool is_news(const struct amp_history_row *r)
{
    if (r->what != AMP_HISTORY_STEP)
        return false;
    if (amp_span_is(r->kind, AMP_MESSAGE_KIND))
        return amp_span_is(r->event, "record") || event_tone(r) == TOP_BAD;
    return amp_span_is(r->kind, AMP_TASK_KIND) || amp_span_is(r->kind, AMP_ESCALATION_KIND) ||
           amp_span_is(r->kind, AMP_PAUSE_KIND) || amp_span_is(r->kind, AMP_DEAD_KIND) ||
           amp_span_is(r->kind, AMP_BINDING_KIND) ||
           (amp_span_is(r->kind, AMP_AGENT_KIND) && !amp_span_eq(r->from, r->to));
}

static void event_add(struct top_model *m, const struct amp_history_row *r, int64_t at_ms)
{
    struct top_event *e = top_feed_add(m);
    struct amp_span who = r->sender.n ? r->sender : r->actor;
    char id[80];
    int n;
    e->at_ms = at_ms;
    e->tone = (uint8_t)event_tone(r);
    snprintf(id, sizeof id, "%.*s", AMP_CLIP(r->id, 78));
    if (amp_span_is(r->kind, AMP_MESSAGE_KIND)) {
        amp_span_copy(r->type, e->what, sizeof e->what);
        if (amp_span_is(r->event, "record"))
            n = snprintf(e->text, sizeof e->text, "%.*s → %.*s  %.*s", AMP_CLIP(who, 40),
                         AMP_CLIP(r->recipient, 40), AMP_CLIP(r->task.n ? r->task : r->id, 80));
        else
            n = snprintf(e->text, sizeof e->text, "%.*s  %.*s  %s", AMP_CLIP(r->to, 20),
                         AMP_CLIP(r->code, 40), id);
    } else {
        amp_span_copy(r->kind, e->what, sizeof e->what);
        n = r->to.n && !amp_span_eq(r->from, r->to)
                ? snprintf(e->text, sizeof e->text, "%s  %.*s%s%.*s  %.*s", id,
                           AMP_CLIP(r->from, 32), r->from.n ? " → " : "", AMP_CLIP(r->to, 32),
                           AMP_CLIP(r->code, 40))
                : snprintf(e->text, sizeof e->text, "%s  %.*s", id, AMP_CLIP(r->event, 40));
    }
    if (n < 0)
        e->text[0] = '\0';
}

/* ---- the log ---- */

static int row_take(void *ctx, const struct amp_history_row *r, struct amp_error *err)
{
    struct top_source *src = ctx;
    struct top_model *m = src->m;
    int64_t at_ms = 0;
    (void)err;

    src->rows++;
    if (!amp_time_parse(r->at, &at_ms))
        at_ms = m->now_ms;
    if (r->what == AMP_HISTORY_STEP) {
        bool message = amp_span_is(r->kind, AMP_MESSAGE_KIND);
        top_count(m, at_ms, message && amp_span_is(r->event, "record"));
        if (src->loaded)
            row_note(src, r);
    }
    if (is_news(r))
        event_add(m, r, at_ms);
    return 0;
}

static int frame_take(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    struct top_source *src = ctx;
    return n <= src->after ? 0 : amp_history_frame(src->history, n, frame, row_take, src, err);
}

static int blob_read(void *ctx, struct amp_span name, struct amp_buf *out, struct amp_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/blob/%.*s", amp_store_dir(ctx), AMP_CLIP(name, 100));
    return amp_file_read(AT_FDCWD, path, BLOB_MAX, out, err);
}

/* ---- reading ---- */

static int pauses_read(struct top_source *src, struct amp_error *err)
{
    struct top_model *m = src->m;
    if (amp_pauses_read(src->store, &src->pauses, err) < 0)
        return -1;
    const struct amp_pause *all = amp_pauses_find(&src->pauses, AMP_SPAN(""), AMP_SPAN(""));
    m->n_paused = src->pauses.n_v;
    m->paused[0] = '\0';
    if (all)
        snprintf(m->paused, sizeof m->paused, "%.*s%s%.*s", AMP_CLIP(all->person, 60),
                 all->reason.n ? ": " : "", AMP_CLIP(all->reason, 120));
    return 0;
}

static int list_read(struct top_source *src, enum top_pane p, struct amp_error *err)
{
    src->reads++;
    switch (p) {
    case TOP_TASKS:
        return top_tasks_read(src, AMP_SPAN(""), err);
    case TOP_AGENTS:
        return top_agents_read(src, AMP_SPAN(""), err);
    case TOP_QUESTIONS:
        return top_questions_read(src, NULL, err);
    case TOP_INBOXES:
        return top_inboxes_read(src, AMP_SPAN(""), err);
    case TOP_MESSAGES:
        return top_messages_read(src, err);
    case TOP_DEADLINES:
        return top_deadlines_read(src, err);
    case TOP_COST:
        return top_costs_read(src, AMP_SPAN(""), err);
    default:
        return 0;
    }
}

int top_source_open(struct top_source *src, struct amp_store *s, struct top_model *m,
                    struct amp_error *err)
{
    const struct amp_history_filter f = {.blob = blob_read, .blob_ctx = s};
    *src = (struct top_source){.store = s, .m = m};
    amp_buf_init(&src->mem, AMP_RECORD_MAX);
    amp_pauses_init(&src->pauses);
    m->now_ms = amp_now_ms();
    m->dir = amp_store_dir(s);
    /* Open the log first, so that changes during the reading of the lists are read afterwards. */
    if (!(src->history = amp_history_new(&f, err)) ||
        amp_store_place_near_end(s, LATEST, &src->at, &src->after, err) < 0 ||
        amp_store_frames_on(s, &src->at, frame_take, src, err) < 0 || pauses_read(src, err) < 0)
        return -1;
    src->after = 0;
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        if (list_read(src, (enum top_pane)p, err) < 0)
            return -1;
    src->loaded = true;
    return 0;
}

void top_source_close(struct top_source *src)
{
    amp_history_free(src->history);
    amp_pauses_release(&src->pauses);
    amp_buf_release(&src->mem);
    *src = (struct top_source){0};
}

static int change_read(struct top_source *src, const struct top_change *c, struct amp_error *err)
{
    struct amp_span id = amp_span_str(c->id);
    if (src->all[c->pane])
        return 0;
    src->reads++;
    switch (c->pane) {
    case TOP_TASKS:
        return top_tasks_read(src, id, err);
    case TOP_AGENTS:
        return top_agents_read(src, id, err);
    case TOP_QUESTIONS:
        return top_questions_read(src, c->id, err);
    case TOP_INBOXES:
        return top_inboxes_read(src, id, err);
    case TOP_COST:
        return top_costs_read(src, id, err);
    default:
        return 0;
    }
}

/* The task of an agent shows who works on it, and that of a question that it asks. */
static void tasks_note(struct top_source *src)
{
    uint32_t n = src->n_change;
    for (uint32_t i = 0; i < n; i++) {
        const struct top_change *c = &src->change[i];
        if (c->pane != TOP_AGENTS && c->pane != TOP_QUESTIONS)
            continue;
        const struct top_list *l = &src->m->list[c->pane];
        int64_t at = top_list_find(l, c->id);
        if (at >= 0 && *l->v[at].of)
            change_note(src, TOP_TASKS, amp_span_str(l->v[at].of));
    }
}

static int changes_read(struct top_source *src, struct amp_error *err)
{
    tasks_note(src);
    for (uint32_t i = 0; i < src->n_change; i++)
        if (src->change[i].pane != TOP_TASKS && change_read(src, &src->change[i], err) < 0)
            return -1;
    tasks_note(src); /* the new records may name another task */
    for (uint32_t i = 0; i < src->n_change; i++)
        if (src->change[i].pane == TOP_TASKS && change_read(src, &src->change[i], err) < 0)
            return -1;
    for (int p = 0; p < TOP_PANE_COUNT; p++) {
        if (!src->all[p])
            continue;
        if (p == TOP_QUESTIONS) /* the ended ones are not read */
            top_list_clear(&src->m->list[p]);
        if (list_read(src, (enum top_pane)p, err) < 0)
            return -1;
        src->all[p] = false;
    }
    src->n_change = 0;
    return 0;
}

int top_source_follow(struct top_source *src, struct amp_error *err)
{
    uint64_t rows = src->rows;
    src->m->now_ms = amp_now_ms();
    if (amp_store_frames_on(src->store, &src->at, frame_take, src, err) < 0)
        return -1;
    if (rows == src->rows)
        return 0;
    return pauses_read(src, err) < 0 ? -1 : changes_read(src, err);
}
