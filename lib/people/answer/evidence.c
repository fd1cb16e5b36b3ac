/* Collects the evidence for a question from the task's record and the recorded messages. */
#include "people/answer/evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "message/delivery/ledger/ledger.h"
#include "people/story/story.h"

#define MEM_MAX   ((size_t)256 << 20)
#define ROW_MAX   (64u << 10) /* bytes of a row */
#define TEXT_MOST 2000        /* bytes of a text in a row */

struct gathering {
    struct amp_evidence *ev;
    struct amp_buf mem, text;
};

static int row_add(struct gathering *g, int64_t at_ms, uint32_t depth, struct amp_error *err)
{
    struct amp_evidence *ev = g->ev;

    if (amp_grow(&ev->rows, &ev->cap_rows, ev->n_rows, sizeof *ev->rows, err) < 0)
        return -1;
    char *text = amp_span_dup(amp_buf_span(&g->text));
    if (!text)
        return amp_fail_memory(err);
    ev->rows[ev->n_rows] = (struct amp_evidence_row){
        .at_ms = at_ms, .place = (uint32_t)ev->n_rows, .depth = depth, .text = text};
    ev->n_rows++;
    amp_buf_reset(&g->text);
    return 0;
}

/* Starts a row's text. */
static int row_say(struct gathering *g, struct amp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int row_say(struct gathering *g, struct amp_error *err, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return amp_buf_str(&g->text, text, err);
}

/* Adds text of a message, and counts what is left out. */
static int text_say(struct gathering *g, struct amp_span text, struct amp_error *err)
{
    size_t n = text.n > TEXT_MOST ? TEXT_MOST : text.n;

    while (n < text.n && n && ((unsigned char)text.p[n] & 0xC0) == 0x80)
        n--;
    if (amp_buf_add(&g->text, text.p, n, err) < 0)
        return -1;
    return n < text.n ? row_say(g, err, " … (%zu more bytes)", text.n - n) : 0;
}

static int who_say(struct gathering *g, const struct amp_story_event *e, struct amp_error *err)
{
    if (row_say(g, err, " by %.200s", e->from) < 0)
        return -1;
    return *e->by ? row_say(g, err, " (%.200s)", e->by) : 0;
}

/* A part of an event: "blocker: TEXT", or an issue with its place. */
static int item_gather(struct gathering *g, const struct amp_story_event *e,
                       const struct amp_story_item *item, struct amp_error *err)
{
    if (e->kind == AMP_STORY_RESULT) {
        if (row_say(g, err, "%s: ", item->label) < 0)
            return -1;
    } else if (row_say(g, err, "%.40s, ", item->severity) < 0 ||
               text_say(g, amp_span_str(item->file), err) < 0 ||
               row_say(g, err, ":%lld: ", (long long)item->line) < 0) {
        return -1;
    }
    return text_say(g, amp_span_str(item->text), err) < 0 ? -1 : row_add(g, e->at_ms, 1, err);
}

static int head_gather(struct gathering *g, const struct amp_story_event *e, struct amp_error *err)
{
    switch (e->kind) {
    case AMP_STORY_RESULT:
        if (row_say(g, err, "result: %s, %lld files, +%lld -%lld", e->word, (long long)e->files,
                    (long long)e->added, (long long)e->removed) < 0)
            return -1;
        return *e->commit ? row_say(g, err, ", commit %.12s", e->commit) : 0;
    case AMP_STORY_VERDICT:
        if (row_say(g, err, "verdict: %s", e->word) < 0)
            return -1;
        return e->confidence >= 0 ? row_say(g, err, ", confidence %.2f", e->confidence) : 0;
    default:
        return row_say(g, err, "dispatch to %.200s", *e->to ? e->to : "?");
    }
}

/* Keeps the newest line of a kind. */
static int line_keep(char **place, const struct amp_story_event *e, struct amp_error *err)
{
    free(*place);
    *place = strdup(e->line);
    return *place ? 0 : amp_fail_memory(err);
}

static int event_gather(struct gathering *g, const struct amp_story_event *e, struct amp_error *err)
{
    struct amp_evidence *ev = g->ev;
    bool dispatch = e->kind == AMP_STORY_ASKED || e->kind == AMP_STORY_DISPATCH;

    if (!dispatch && e->kind != AMP_STORY_RESULT && e->kind != AMP_STORY_VERDICT)
        return 0;
    if (line_keep(dispatch                      ? &ev->dispatch
                  : e->kind == AMP_STORY_RESULT ? &ev->work
                                                : &ev->verdict,
                  e, err) < 0 ||
        head_gather(g, e, err) < 0 || who_say(g, e, err) < 0 || row_add(g, e->at_ms, 0, err) < 0)
        return -1;
    for (size_t i = 0; i < e->n_items; i++)
        if ((e->kind == AMP_STORY_RESULT || *e->items[i].severity) &&
            item_gather(g, e, &e->items[i], err) < 0)
            return -1;
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct amp_evidence_row *x = a, *y = b;

    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* The story of the question's task. */
static int task_gather(struct gathering *g, struct amp_store *s, const char *task,
                       struct amp_error *err)
{
    AMP_STORY st = {0};

    if (amp_story_load(s, amp_span_str(task), &st, err) < 0)
        return -1;
    for (size_t i = 0; i < st.n_events; i++)
        if (event_gather(g, &st.events[i], err) < 0)
            return -1;
    g->ev->has_task = st.found;
    g->ev->task = st.task;
    st.task = (struct amp_task){0};
    return 0;
}

/* Attempts and acknowledgements of the message that a question is about. */
static int delivery_gather(struct gathering *g, struct amp_store *s, const char *id,
                           struct amp_error *err)
{
    struct amp_message_rec m;

    if (amp_message_find(s, amp_span_str(id), &g->mem, &m, err) < 0)
        return -1;
    if (!m.found)
        return 0;
    for (uint32_t i = 0; i < m.n_tries; i++)
        if (row_say(g, err, "attempt: %s%s%s", m.tries[i].code, m.tries[i].why ? ": " : "",
                    m.tries[i].why ? m.tries[i].why : "") < 0 ||
            row_add(g, m.tries[i].at_ms, 0, err) < 0)
            return -1;
    if (row_say(g, err, "sent to %.*s", AMP_CLIP(m.to, 200)) < 0 ||
        row_add(g, m.sent_ms, 0, err) < 0)
        return -1;
    for (uint32_t i = 0; i < m.n_acks; i++)
        if (row_say(g, err, "%s by %s%s%.*s%s", m.acks[i].stage, m.acks[i].by,
                    m.acks[i].code.n ? ": " : "", AMP_CLIP(m.acks[i].code, 200),
                    m.acks[i].late ? " (late)" : "") < 0 ||
            row_add(g, m.acks[i].at_ms, 0, err) < 0)
            return -1;
    if (m.timed_out_ms &&
        (row_say(g, err, "timed out") < 0 || row_add(g, m.timed_out_ms, 0, err) < 0))
        return -1;
    return 0;
}

/* The commits of the diff: from the task's base to the last commit of the current subtask, else of
 * the last one that has any. */
static void diff_find(struct amp_evidence *ev)
{
    const struct amp_task *t = &ev->task;
    const struct amp_task_part *turn = ev->has_task ? amp_task_turn(t) : NULL;
    const char *commit = turn ? turn->commit : "";

    for (size_t i = t->n_parts; !*commit && i-- > 0;)
        commit = t->parts[i].commit;
    ev->why_no_diff = !ev->has_task ? "the question is not about a task of this state directory"
                      : !*t->repo   ? "the task's repository is not known here"
                      : !*commit    ? "the task has no commit yet"
                      : !*t->base   ? "the task's base is not known here"
                                    : NULL;
    if (ev->why_no_diff)
        return;
    if (!amp_span_copy(amp_span_str(t->repo), ev->repo, sizeof ev->repo) ||
        !amp_span_copy(amp_span_str(t->base), ev->base, sizeof ev->base) ||
        !amp_span_copy(amp_span_str(commit), ev->commit, sizeof ev->commit))
        ev->why_no_diff = "the task's repository or commits have too long names";
}

static int record_gather(struct amp_store *s, const struct amp_question *q, struct gathering *g,
                         struct amp_error *err)
{
    struct amp_evidence *ev = g->ev;
    struct amp_question_rec r;
    int found = amp_question_find(s, amp_span_str(q->key), &g->mem, &r, err);

    if (found <= 0)
        return found;
    ev->deadline_ms = r.deadline_ms;
    ev->extensions = r.extensions;
    ev->n_votes = r.n_votes;
    amp_span_copy(r.fallback, ev->fallback, sizeof ev->fallback);
    amp_span_copy(r.risk, ev->risk, sizeof ev->risk);
    amp_span_copy(r.reason, ev->reason, sizeof ev->reason);
    return 0;
}

static int evidence_gather(struct amp_store *s, const struct amp_question *q, struct gathering *g,
                           struct amp_error *err)
{
    struct amp_evidence *ev = g->ev;

    amp_buf_init(&g->mem, MEM_MAX);
    amp_buf_init(&g->text, ROW_MAX);
    if (record_gather(s, q, g, err) < 0)
        return -1;
    if (q->about.kind == AMP_ABOUT_TASK && task_gather(g, s, q->about.task, err) < 0)
        return -1;
    if (q->about.kind == AMP_ABOUT_MESSAGE && delivery_gather(g, s, q->about.id, err) < 0)
        return -1;
    if (ev->n_rows)
        qsort(ev->rows, ev->n_rows, sizeof *ev->rows, compare_rows);
    diff_find(ev);
    return 0;
}

int amp_evidence_load(struct amp_store *s, const struct amp_question *q, struct amp_evidence *ev,
                      struct amp_error *err)
{
    struct gathering g = {.ev = ev};

    *ev = (struct amp_evidence){0};
    int rc = evidence_gather(s, q, &g, err);
    amp_buf_release(&g.mem);
    amp_buf_release(&g.text);
    return rc;
}

size_t amp_evidence_recent(const struct amp_evidence *ev)
{
    size_t events = 0, first = 0;

    for (size_t i = ev->n_rows; i-- > 0 && events < AMP_EVIDENCE_EVENTS;)
        if (!ev->rows[i].depth) {
            events++;
            first = i;
        }
    return first;
}

int amp_evidence_row_text(const struct amp_evidence_row *row, struct amp_buf *out,
                          struct amp_error *err)
{
    char at[AMP_TIME_MAX] = "";

    if (row->at_ms && !row->depth) {
        amp_time_format(row->at_ms, at);
        at[10] = ' ';
        at[16] = '\0'; /* to the minute */
    }
    return amp_buf_fmt(out, err, "%s%s%s", at, row->depth ? "  - " : " ", row->text);
}

void amp_evidence_release(struct amp_evidence *ev)
{
    amp_task_release(&ev->task);
    for (size_t i = 0; i < ev->n_rows; i++)
        free(ev->rows[i].text);
    free(ev->rows);
    free(ev->dispatch);
    free(ev->work);
    free(ev->verdict);
    ev->rows = NULL;
    ev->dispatch = ev->work = ev->verdict = NULL;
    ev->n_rows = 0;
}
