/* Composes the text behind a row. */
#include "detail.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "message/delivery/record/record.h"
#include "people/answer/evidence.h"
#include "people/story/story.h"
#include "questions.h"
#include "work/agent/work.h"
#include "work/git/binding.h"

#define LINES_MAX 20000
#define TEXT_MAX  16384 /* bytes of a paragraph */

void top_text_release(struct top_text *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].text);
        free(t->v[i].key);
    }
    free(t->v);
    *t = (struct top_text){0};
}

void top_text_add(struct top_text *t, uint8_t label_tone, const char *label, uint8_t tone,
                  int indent, struct amp_span text)
{
    struct amp_error err;
    struct amp_span cut = {text.p, text.n > TEXT_MAX ? TEXT_MAX : text.n};
    char *copy = t->n < LINES_MAX ? amp_span_dup(cut) : NULL;
    if (!copy || amp_grow(&t->v, &t->cap, t->n, sizeof *t->v, &err) < 0) {
        free(copy);
        t->failed = true;
        return;
    }
    struct top_line *l = &t->v[t->n++];
    *l = (struct top_line){
        .tone = tone, .label_tone = label_tone, .indent = (uint8_t)indent, .text = copy};
    snprintf(l->label, sizeof l->label, "%s", label);
    int n = top_columns(amp_span_str(l->label));
    t->label = n > t->label ? n : t->label;
}

void top_link_add(struct top_text *t, enum top_link to, struct amp_span key)
{
    struct top_line *l = t->n ? &t->v[t->n - 1] : NULL;
    if (!l || key.n == 0 || l->to != TOP_TO_NOTHING)
        return;
    l->key = amp_span_dup(key);
    if (l->key)
        l->to = (uint8_t)to;
    else
        t->failed = true;
}

void top_fact_add(struct top_text *t, const char *label, const char *text)
{
    if (text && *text)
        top_text_add(t, TOP_DIM, label, TOP_PLAIN, 0, amp_span_str(text));
}

static void blank_add(struct top_text *t)
{
    top_text_add(t, TOP_PLAIN, "", TOP_PLAIN, 0, AMP_SPAN(""));
}

void top_head_add(struct top_text *t, const char *title)
{
    if (t->n)
        blank_add(t);
    top_text_add(t, TOP_ACCENT, title, TOP_PLAIN, 0, AMP_SPAN(""));
}

const char *top_time_text(const struct top_source *src, int64_t ms, char out[32])
{
    struct tm t, today;
    time_t at = (time_t)(ms / 1000), now = (time_t)(src->m->now_ms / 1000);
    *out = '\0';
    if (ms > 0 && localtime_r(&at, &t) && localtime_r(&now, &today))
        strftime(out, 32,
                 t.tm_yday == today.tm_yday && t.tm_year == today.tm_year ? "%H:%M:%S"
                                                                          : "%Y-%m-%d %H:%M",
                 &t);
    return out;
}

void top_failed_add(struct top_text *t, const struct amp_error *err)
{
    top_text_add(t, TOP_BAD, "error", TOP_BAD, 0, amp_span_str(err->what));
}

/* ---- tasks ---- */

static uint8_t event_tone(const struct amp_story_event *e)
{
    if (e->kind == AMP_STORY_VERDICT)
        return strncmp(e->word, "approved", 8) == 0 ? TOP_GOOD : TOP_BAD;
    if (e->kind == AMP_STORY_RESULT)
        return strcmp(e->word, "complete") == 0 ? TOP_INFO
               : strcmp(e->word, "failed") == 0 ? TOP_BAD
                                                : TOP_WARN;
    if (e->kind == AMP_STORY_QUESTION)
        return e->open ? TOP_WARN : TOP_STRONG;
    return e->kind == AMP_STORY_DECISION || e->kind == AMP_STORY_LAND ? TOP_GOOD : TOP_STRONG;
}

static void event_show(const struct top_source *src, const struct amp_story_event *e,
                       struct top_text *t)
{
    AMP_BUF struct amp_buf b = {.max = TEXT_MAX};
    struct amp_error err;
    char at[32];
    int rc = amp_buf_fmt(&b, &err, "%s%s%s", amp_story_word(e->kind), *e->word ? " " : "", e->word);
    if (rc == 0 && (*e->from || *e->to))
        rc = amp_buf_fmt(&b, &err, "  %s%s%s", e->from, *e->from && *e->to ? " → " : "", e->to);
    if (rc == 0 && *e->commit)
        rc = amp_buf_fmt(&b, &err, "  %.10s", e->commit);
    if (rc == 0 && (e->files || e->added || e->removed))
        rc = amp_buf_fmt(&b, &err, "  %lld file%s +%lld -%lld", (long long)e->files,
                         e->files == 1 ? "" : "s", (long long)e->added, (long long)e->removed);
    if (rc == 0 && e->kind == AMP_STORY_VERDICT && e->confidence >= 0)
        rc = amp_buf_fmt(&b, &err, "  confidence %.2f", e->confidence);
    if (rc == 0 && e->open)
        rc = amp_buf_str(&b, "  — waits for a person", &err);
    if (rc < 0)
        return;
    top_text_add(t, TOP_DIM, top_time_text(src, e->at_ms, at), event_tone(e), 0, amp_buf_span(&b));
    if (*e->text)
        top_text_add(t, TOP_PLAIN, "", TOP_PLAIN, 2, amp_span_str(e->text));
    for (size_t i = 0; i < e->n_items; i++) {
        const struct amp_story_item *it = &e->items[i];
        bool bad = strcmp(it->label, "issue") == 0 || strcmp(it->label, "blocker") == 0;
        amp_buf_reset(&b);
        rc = amp_buf_fmt(&b, &err, "%s%s%s: ", it->severity, *it->severity ? " " : "", it->label);
        if (rc == 0 && *it->file && it->line > 0)
            rc = amp_buf_fmt(&b, &err, "%s:%lld: ", it->file, (long long)it->line);
        else if (rc == 0 && *it->file)
            rc = amp_buf_fmt(&b, &err, "%s: ", it->file);
        if (rc == 0)
            rc = amp_buf_fmt(&b, &err, "%s%s%s", it->text, *it->fix ? " — fix: " : "", it->fix);
        if (rc == 0)
            top_text_add(t, TOP_PLAIN, "", bad ? TOP_WARN : TOP_DIM, 2, amp_buf_span(&b));
    }
}

void top_task_show(struct top_source *src, const char *id, struct top_text *t)
{
    AMP_STORY st = {0};
    struct amp_error err;
    char text[600];

    snprintf(t->title, sizeof t->title, "%.100s", id);
    if (amp_story_load(src->store, amp_span_str(id), &st, &err) < 0) {
        top_failed_add(t, &err);
        return;
    }
    if (st.found) {
        const struct amp_task *k = &st.task;
        const struct amp_task_part *part = amp_task_turn(k);
        top_fact_add(t, "state", amp_task_fsm.states[k->state].name);
        top_fact_add(t, "task", k->description);
        bool oid = strlen(k->base) >= 40 && strspn(k->base, "0123456789abcdef") == strlen(k->base);
        snprintf(text, sizeof text, "%s%s%.*s", k->branch, *k->base ? " from " : "", oid ? 12 : 400,
                 k->base);
        top_fact_add(t, "branch", text);
        top_fact_add(t, "repository", k->repo);
        if (part && part->commit)
            top_fact_add(t, "commit", part->commit);
        if (amp_task_is_suspended(k))
            top_fact_add(t, "suspended", k->suspended.ref);
    }
    top_cost_text(src->m, id, text);
    top_fact_add(t, "cost", text);
    if (st.n_attempts)
        top_fact_add(t, "log", st.attempts[st.n_attempts - 1].dir);
    top_head_add(t, "story");
    for (size_t i = 0; i < st.n_events; i++)
        event_show(src, &st.events[i], t);
    if (!st.n_events)
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("nothing is recorded"));
}

/* ---- agents ---- */

static void agent_show(struct top_source *src, const char *name, struct top_text *t)
{
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    AMP_FREE struct amp_binding *b = calloc(1, sizeof *b);
    struct amp_agent_rec r;
    struct amp_error err;
    char text[300], at[32];

    snprintf(t->title, sizeof t->title, "%.100s", name);
    if (!b || amp_agent_find(src->store, amp_span_str(name), &mem, &r, &err) < 0 ||
        amp_binding_get(src->store, name, b, &err) < 0) {
        top_failed_add(t, b ? &err : &(struct amp_error){.what = "no memory is left"});
        return;
    }
    top_head_add(t, "work");
    if (amp_agent_has_work(&r)) {
        top_fact_add(t, "state", amp_agent_word(&r.work));
        top_fact_add(t, "role", r.work.role);
        top_fact_add(t, "task", r.work.task);
        top_fact_add(t, "last task", r.work.last_task);
        top_fact_add(t, "failed", r.work.code);
        top_fact_add(t, "seen", top_time_text(src, r.work.last_seen_ms, at));
        if (r.work.pid > 0) {
            snprintf(text, sizeof text, "%lld", (long long)r.work.pid);
            top_fact_add(t, "process", text);
        }
        top_fact_add(t, "time limit", top_time_text(src, r.work.limit_ms, at));
    } else {
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("it has not worked here"));
    }
    const char *task = r.work.task && *r.work.task ? r.work.task : r.work.last_task;
    const struct amp_pause *p =
        amp_pauses_find(&src->pauses, amp_span_str(task), amp_span_str(name));
    if (p) {
        char said[AMP_PAUSE_TEXT_MAX + 300];
        snprintf(said, sizeof said, "by %.*s%s%.*s", AMP_CLIP(p->person, 100),
                 p->reason.n ? ": " : "", AMP_CLIP(p->reason, AMP_PAUSE_TEXT_MAX));
        top_text_add(t, TOP_WARN, "paused", TOP_WARN, 0, amp_span_str(said));
    }
    if (amp_agent_is_suspended(&r))
        top_text_add(t, TOP_WARN, "suspended", TOP_WARN, 0, r.work.suspended.ref);
    if (r.reach.state != AMP_REACH_ABSENT) {
        top_head_add(t, "registered");
        top_fact_add(t, "state", amp_reach_fsm.states[r.reach.state].name);
        top_fact_add(t, "since", top_time_text(src, r.reach.joined_ms, at));
        top_fact_add(t, "seen", top_time_text(src, r.reach.seen_ms, at));
        top_fact_add(t, "node", r.reach.node);
    }
    top_head_add(t, "worktree");
    if (b->rev) {
        top_fact_add(t, "state", amp_binding_fsm.states[b->state].name);
        top_fact_add(t, "path", b->worktree);
        top_fact_add(t, "visits", b->other);
        top_fact_add(t, "branch", b->branch);
        top_fact_add(t, "base", b->base);
        top_fact_add(t, "repository", b->repo);
        top_fact_add(t, "since", top_time_text(src, b->since_ms, at));
        top_fact_add(t, "problem", b->why);
    } else {
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("it is bound to none"));
    }
    if (!task || !*task)
        return;
    AMP_STORY st = {0};
    if (amp_story_load(src->store, amp_span_str(task), &st, &err) < 0)
        return;
    top_head_add(t, "attempts");
    for (size_t i = 0; i < st.n_attempts; i++)
        if (strcmp(st.attempts[i].agent, name) == 0)
            top_text_add(t, TOP_DIM, top_time_text(src, st.attempts[i].at_ms, at), TOP_PLAIN, 0,
                         amp_span_str(st.attempts[i].dir));
    top_head_add(t, "the task");
    for (size_t i = 0; i < st.n_events; i++)
        event_show(src, &st.events[i], t);
}

/* ---- questions ---- */

static void fields_show(const struct amp_question *q, struct top_text *t)
{
    const struct amp_question_field *f = amp_question_terms(q)->fields;
    for (; f && f->label; f++) {
        const json_t *v = *f->path ? top_member_at(q->message, f->path) : NULL;
        size_t i;
        const json_t *e;
        if (!*f->path)
            top_fact_add(t, f->label, amp_question_invocation(q));
        else if (json_is_string(v))
            top_text_add(t, TOP_DIM, f->label, TOP_STRONG, 0, amp_span_str(json_string_value(v)));
        json_array_foreach (v, i, e)
            if (json_is_string(e))
                top_fact_add(t, i ? "" : f->label, json_string_value(e));
    }
}

static void question_show(struct top_source *src, const char *key, struct top_text *t)
{
    TOP_QUESTION of = {.mem = {0}};
    const struct amp_question *q = &of.q;
    struct amp_error err = {0};
    struct amp_evidence ev = {0};
    char at[32];

    snprintf(t->title, sizeof t->title, "question");
    int rc = top_question_load(src->store, key, &of, &err);
    if (rc <= 0) {
        if (rc < 0)
            top_failed_add(t, &err);
        else
            top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("it was decided, or has ended"));
        return;
    }
    snprintf(t->title, sizeof t->title, "%.100s", q->name);
    snprintf(t->question, sizeof t->question, "%s", key);
    snprintf(t->answers, sizeof t->answers, "%s", amp_answer_words(q));
    snprintf(t->form, sizeof t->form, "%s", amp_answer_form(q));
    fields_show(q, t);
    top_fact_add(t, "severity", q->severity);
    top_fact_add(t, "why", q->why);
    top_fact_add(t, "reason", q->reason);
    top_fact_add(t, "risk", q->risk);
    top_fact_add(t, "asked", top_time_text(src, q->arrived_ms, at));
    top_fact_add(t, "deadline", top_time_text(src, q->deadline_ms, at));
    if (q->deadline_ms)
        top_fact_add(t, "then", amp_fallback_name(q->fallback));
    top_fact_add(t, "refused", q->refused);
    top_head_add(t, "answers");
    const struct amp_action *a = amp_question_actions(q);
    for (int i = 0; a && a[i].name; i++)
        top_text_add(t, TOP_ACCENT, a[i].name, TOP_PLAIN, 0, amp_span_str(a[i].effect));
    if (amp_evidence_load(src->store, q, &ev, &err) < 0) {
        top_failed_add(t, &err);
    } else {
        top_head_add(t, "evidence");
        if (*ev.commit) {
            char diff[300];
            snprintf(diff, sizeof diff, "%.12s..%.12s in %.200s", ev.base, ev.commit, ev.repo);
            top_fact_add(t, "changes", diff);
        }
        for (size_t i = 0; i < ev.n_rows; i++)
            top_text_add(t, TOP_DIM,
                         ev.rows[i].depth ? "" : top_time_text(src, ev.rows[i].at_ms, at),
                         ev.rows[i].depth ? TOP_PLAIN : TOP_STRONG, ev.rows[i].depth ? 2 : 0,
                         amp_span_str(ev.rows[i].text));
    }
    amp_evidence_release(&ev);
}

/* A deadline leads to its record. */
static void deadline_show(struct top_source *src, const char *key, bool opened, struct top_text *t)
{
    static const char *const words[] = {"question ", "agent ", "worktree ", "inbox ",
                                        "acknowledgement "};
    size_t i = 0, n = sizeof words / sizeof *words;
    while (i < n && strncmp(key, words[i], strlen(words[i])) != 0)
        i++;
    const char *id = i < n ? key + strlen(words[i]) : key;
    if (i == 0)
        question_show(src, id, t);
    else if (i == 1 || i == 2)
        agent_show(src, id, t);
    else if (i == 3)
        top_inbox_show(src, id, t);
    else if (i == 4)
        top_message_show(src, AMP_KEY_NAMED(AMP_MESSAGE_KIND, amp_span_str(id)), id, opened, t);
    else
        snprintf(t->title, sizeof t->title, "%.100s", key);
}

void top_detail_read(struct top_source *src, enum top_pane p, const struct top_row *row,
                     bool opened, struct top_text *t)
{
    top_text_release(t);
    switch (p) {
    case TOP_COST:
        if (strchr(row->key, '/')) {
            top_message_show(src, AMP_KEY_NAMED(AMP_MESSAGE_KIND, amp_span_str(row->key)), row->key,
                             opened, t);
            break;
        }
        /* fallthrough */
    case TOP_TASKS:
        top_task_show(src, row->key, t);
        break;
    case TOP_AGENTS:
        agent_show(src, row->key, t);
        break;
    case TOP_QUESTIONS:
        question_show(src, row->key, t);
        break;
    case TOP_INBOXES:
        top_inbox_show(src, row->key, t);
        break;
    case TOP_LANES:
        top_lane_show(src, row->key, t);
        break;
    case TOP_MESSAGES:
        top_message_show(src, AMP_KEY_TEXT(amp_span_str(row->key)), row->value[7].text, opened, t);
        break;
    default:
        deadline_show(src, row->key, opened, t);
    }
}
