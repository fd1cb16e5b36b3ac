/* The story of a task, from its record, the messages of the ledger, the questions and the landings.
 */
#include "people/story/story.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/grow.h"
#include "base/words.h"
#include "message/delivery/intake.h"
#include "message/delivery/ledger/ledger.h"
#include "people/question/record.h"
#include "people/story/story.h"

#define MEM_MAX ((size_t)256 << 20)

const char *amp_story_word(enum amp_story_kind kind)
{
    AMP_WORDS(words, AMP_STORY_KINDS);
    return words[kind];
}

struct telling {
    struct amp_story *st;
    struct amp_reader *reader;
    struct amp_buf mem;
    int64_t at_ms;
    struct amp_error *err;
};

/* ---- events ---- */

static char *text_dup(struct telling *t, struct amp_span text)
{
    char *copy = amp_span_dup(text);

    if (!copy)
        amp_fail_memory(t->err);
    return copy;
}

static struct amp_story_event *event_add(struct telling *t, enum amp_story_kind kind, int64_t at_ms)
{
    struct amp_story *st = t->st;

    if (amp_grow(&st->events, &st->cap_events, st->n_events, sizeof *st->events, t->err) < 0)
        return NULL;
    struct amp_story_event *e = &st->events[st->n_events];
    *e = (struct amp_story_event){.kind = kind,
                                  .at_ms = at_ms,
                                  .place = (uint32_t)st->n_events,
                                  .confidence = -1,
                                  .files = -1,
                                  .added = -1,
                                  .removed = -1};
    st->n_events++;
    return e;
}

/* The texts of an event, for all of them. */
#define TEXTS(e)                                                                                   \
    {                                                                                              \
        &(e)->id, &(e)->from, &(e)->to, &(e)->by, &(e)->subtask, &(e)->word, &(e)->text,           \
            &(e)->commit, &(e)->severity, &(e)->line                                               \
    }

/* Texts that were not set become "". */
static int event_end(struct telling *t, struct amp_story_event *e)
{
    char **texts[] = TEXTS(e);

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!*texts[i] && !(*texts[i] = text_dup(t, AMP_SPAN(""))))
            return -1;
    return 0;
}

static struct amp_story_item *item_add(struct telling *t, struct amp_story_event *e,
                                       const char *label, struct amp_span text)
{
    if (amp_grow(&e->items, &e->cap_items, e->n_items, sizeof *e->items, t->err) < 0)
        return NULL;
    struct amp_story_item *i = &e->items[e->n_items++];
    *i = (struct amp_story_item){.label = label};
    i->text = text_dup(t, text);
    i->severity = text_dup(t, AMP_SPAN(""));
    i->file = text_dup(t, AMP_SPAN(""));
    i->fix = text_dup(t, AMP_SPAN(""));
    return i->text && i->severity && i->file && i->fix ? i : NULL;
}

static int items_add(struct telling *t, struct amp_story_event *e, const char *label,
                     const struct amp_spans *texts)
{
    for (uint32_t i = 0; i < texts->n; i++)
        if (!item_add(t, e, label, texts->v[i]))
            return -1;
    return 0;
}

static int text_replace(struct telling *t, char **place, struct amp_span text)
{
    char *copy = text_dup(t, text);

    if (!copy)
        return -1;
    free(*place);
    *place = copy;
    return 0;
}

/* ---- messages ---- */

static int issues_add(struct telling *t, struct amp_story_event *e, const struct amp_view *v)
{
    for (uint32_t i = 0; i < v->body.verdict.n_issues; i++) {
        const struct amp_issue *issue = &v->body.verdict.issues[i];
        struct amp_story_item *item = item_add(t, e, "issue", issue->description);
        if (!item || text_replace(t, &item->severity, issue->severity) < 0 ||
            text_replace(t, &item->file, issue->file) < 0 ||
            text_replace(t, &item->fix, issue->suggested_fix) < 0)
            return -1;
        item->line = issue->line;
    }
    for (uint32_t i = 0; i < v->body.verdict.n_criteria; i++)
        if (v->body.verdict.criteria[i].passed == AMP_TRI_FALSE &&
            !item_add(t, e, "not met", v->body.verdict.criteria[i].criterion))
            return -1;
    return 0;
}

static int dispatch_tell(struct telling *t, struct amp_story_event *e, const struct amp_view *v)
{
    const struct amp_subtask *only =
        v->body.dispatch.n_subtasks == 1 ? v->body.dispatch.subtasks : NULL;

    e->text = text_dup(t, v->body.dispatch.description);
    if (only && e->kind == AMP_STORY_DISPATCH)
        e->subtask = text_dup(t, only->id);
    return e->text ? items_add(t, e, "criterion", &v->body.dispatch.criteria) : -1;
}

static int result_tell(struct telling *t, struct amp_story_event *e, const struct amp_view *v)
{
    e->subtask = text_dup(t, v->body.result.subtask);
    e->word = text_dup(t, amp_span_str(amp_completion_name(v->body.result.completion)));
    e->commit = text_dup(t, v->body.result.commit);
    e->files = v->body.result.files_changed.n;
    e->added = v->body.result.lines_added;
    e->removed = v->body.result.lines_removed;
    return e->subtask && e->word && e->commit ? items_add(t, e, "blocker", &v->body.result.blockers)
                                              : -1;
}

static int verdict_tell(struct telling *t, struct amp_story_event *e, const struct amp_view *v)
{
    e->word = text_dup(t, amp_span_str(amp_verdict_name(v->body.verdict.decision)));
    e->confidence = v->body.verdict.confidence;
    return e->word ? issues_add(t, e, v) : -1;
}

static int question_tell(struct telling *t, struct amp_story_event *e, const struct amp_view *v)
{
    e->word = text_dup(t, v->body.escalation.type);
    e->text = text_dup(t, v->body.escalation.description);
    e->severity = text_dup(t, amp_span_str(amp_level_name(v->body.escalation.severity)));
    return e->word && e->text && e->severity
               ? items_add(t, e, "proposal", &v->body.escalation.suggested)
               : -1;
}

/* The kind of event that a message is; -1: none. */
static int message_kind(const struct amp_view *v)
{
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
        return amp_span_is(v->from, "admin") ? AMP_STORY_ASKED : AMP_STORY_DISPATCH;
    case AMP_KIND_RESULT:
        return AMP_STORY_RESULT;
    case AMP_KIND_REVIEW:
        return AMP_STORY_REVIEW;
    case AMP_KIND_VERDICT:
        return AMP_STORY_VERDICT;
    case AMP_KIND_ESCALATION: /* one to another role is forwarded under another id */
        return amp_intake_is_to(v, "admin") ? AMP_STORY_QUESTION : -1;
    default:
        return -1;
    }
}

static int message_tell(struct telling *t, const struct amp_view *v)
{
    int kind = message_kind(v);

    if (kind < 0)
        return 0;
    struct amp_story_event *e = event_add(t, (enum amp_story_kind)kind, t->at_ms);
    if (!e || !(e->id = text_dup(t, v->id)) || !(e->from = text_dup(t, v->from)) ||
        !(e->to = text_dup(t, v->n_to ? v->to[0] : AMP_SPAN(""))) ||
        !(e->by = text_dup(t, v->sig.key)) || !(e->line = text_dup(t, v->message)))
        return -1;
    int rc = 0;
    switch (e->kind) {
    case AMP_STORY_ASKED:
    case AMP_STORY_DISPATCH:
        rc = dispatch_tell(t, e, v);
        break;
    case AMP_STORY_RESULT:
        rc = result_tell(t, e, v);
        break;
    case AMP_STORY_REVIEW:
        e->word =
            text_dup(t, v->body.review.incremental ? AMP_SPAN("incremental") : AMP_SPAN("full"));
        break;
    case AMP_STORY_VERDICT:
        rc = verdict_tell(t, e, v);
        break;
    default:
        rc = question_tell(t, e, v);
    }
    return rc < 0 ? -1 : event_end(t, e);
}

static int message_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct telling *t = ctx;
    struct amp_message_rec m;
    struct amp_view v;

    (void)id;
    if (amp_message_parse(rec, &t->mem, &m, err) < 0)
        return -1;
    if (m.line.n == 0)
        return 0;
    t->at_ms = m.sent_ms;
    int rc = amp_reader_line(t->reader, m.line, &any, &v, NULL, NULL, err);
    return rc <= 0 ? rc : message_tell(t, &v);
}

/* ---- questions and decisions ---- */

static int decision_tell(struct telling *t, struct amp_span key, const struct amp_question_rec *r)
{
    struct amp_story_event *e = event_add(t, AMP_STORY_DECISION, r->decided_ms);

    if (!e || !(e->id = text_dup(t, key)) || !(e->from = text_dup(t, r->operator)) ||
        !(e->by = text_dup(t, r->key)) || !(e->word = text_dup(t, r->decision)) ||
        !(e->text = text_dup(t, r->note)))
        return -1;
    return event_end(t, e);
}

static int question_fn(void *ctx, struct amp_span key, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct telling *t = ctx;
    struct amp_question_rec r;
    int state = amp_fsm_state(&amp_escalation_fsm, rec->state);

    if (amp_question_rec_read(rec->json, &t->mem, &r, err) < 0)
        return -1;
    bool open = state == AMP_ESC_OPEN || state == AMP_ESC_ASKED || state == AMP_ESC_DEFERRED;
    for (size_t i = 0; i < t->st->n_events; i++)
        if (t->st->events[i].kind == AMP_STORY_QUESTION && amp_span_is(key, t->st->events[i].id))
            t->st->events[i].open = open;
    return state == AMP_ESC_DECIDED ? decision_tell(t, key, &r) : 0;
}

/* The decision with which a person ended the task; it names no question. */
static int cancel_tell(struct telling *t)
{
    static const struct amp_check_options any = {0};
    struct amp_span line = amp_span_str(t->st->task.cancelled);
    struct amp_view v;

    if (line.n == 0)
        return 0;
    int rc = amp_reader_line(t->reader, line, &any, &v, NULL, NULL, t->err);
    if (rc <= 0)
        return rc;
    struct amp_story_event *e = event_add(t, AMP_STORY_CANCEL, t->st->task.updated_ms);
    if (!e || !(e->from = text_dup(t, v.body.decision.op)) || !(e->by = text_dup(t, v.sig.key)) ||
        !(e->text = text_dup(t, v.body.decision.note)))
        return -1;
    return event_end(t, e);
}

static int landings_tell(struct telling *t, struct amp_store *s, struct amp_span task)
{
    AMP_LANDINGS all = {0};

    amp_landings_init(&all);
    if (amp_landings_read(s, task, &all, t->err) < 0)
        return -1;
    t->st->landing = all.state;
    for (uint32_t i = 0; i < all.n_v; i++) {
        const struct amp_landing *l = &all.v[i];
        struct amp_story_event *e = event_add(t, AMP_STORY_LAND, l->at_ms);
        if (!e || !(e->from = text_dup(t, l->person)) || !(e->by = text_dup(t, l->key)) ||
            !(e->to = text_dup(t, l->branch)) || !(e->commit = text_dup(t, l->to)) ||
            event_end(t, e) < 0)
            return -1;
    }
    return 0;
}

/* A question of the coordinator that hitl-prompt has not seen is open, too. */
static void questions_open(struct amp_story *st)
{
    for (size_t i = 0; i < st->n_events; i++)
        if (st->events[i].kind == AMP_STORY_QUESTION &&
            amp_task_waits_for(&st->task, st->events[i].id))
            st->events[i].open = true;
}

/* The ledger has messages without signatures; the task's record has those of the last ones. */
static int keys_tell(struct telling *t)
{
    const struct amp_task *task = &t->st->task;

    for (size_t i = 0; i < task->n_parts; i++) {
        const struct amp_task_part *p = &task->parts[i];
        json_auto_t *sig = *p->verdict_sig ? json_loads(p->verdict_sig, 0, NULL) : NULL;
        for (size_t k = 0; k < t->st->n_events; k++) {
            struct amp_story_event *e = &t->st->events[k];
            const char *key = *e->by || !*e->id                    ? ""
                              : strcmp(e->id, p->result_ref) == 0  ? p->executor
                              : strcmp(e->id, p->verdict_ref) == 0 ? amp_json_str(sig, "key")
                                                                   : "";
            if (*key && text_replace(t, &e->by, amp_span_str(key)) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- all of it ---- */

/* A message that follows from another one has the same time; the order of kinds tells them apart.
 */
static int compare_events(const void *a, const void *b)
{
    static const uint8_t rank[] = {
        [AMP_STORY_ASKED] = 4,    [AMP_STORY_RESULT] = 0, [AMP_STORY_VERDICT] = 1,
        [AMP_STORY_DECISION] = 2, [AMP_STORY_REVIEW] = 5, [AMP_STORY_QUESTION] = 6,
        [AMP_STORY_DISPATCH] = 7, [AMP_STORY_CANCEL] = 8, [AMP_STORY_LAND] = 9};
    const struct amp_story_event *x = a, *y = b;

    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    if (rank[x->kind] != rank[y->kind])
        return rank[x->kind] < rank[y->kind] ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* The ids of the messages of a task begin with their type and the task. */
static int messages_read(struct telling *t, struct amp_store *s, const char *task)
{
    static const char *const types[] = {"task_dispatch", "task_result", "review_request",
                                        "review_verdict", "escalation"};
    char prefix[AMP_TASK_ID_MAX + 32];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(prefix, sizeof prefix, "%s-%s-", types[i], task);
        if (amp_store_each_of(s, AMP_MESSAGE_KIND, amp_span_str(prefix), message_fn, t, t->err) < 0)
            return -1;
    }
    snprintf(prefix, sizeof prefix, "escalation-%s-", task);
    return amp_store_each_of(s, AMP_ESCALATION_KIND, amp_span_str(prefix), question_fn, t, t->err);
}

static int story_read(struct telling *t, struct amp_store *s, struct amp_span task)
{
    struct amp_story *st = t->st;
    char id[AMP_TASK_ID_MAX];

    amp_buf_init(&t->mem, MEM_MAX);
    if (amp_task_load(s, task, &st->task, &st->found, t->err) < 0)
        return -1;
    if (!amp_id_is_safe(task) || !amp_span_copy(task, id, sizeof id))
        return 0;
    if (!(t->reader = amp_reader_new(NULL, t->err)) || messages_read(t, s, id) < 0 ||
        keys_tell(t) < 0 || cancel_tell(t) < 0 || landings_tell(t, s, task) < 0 ||
        amp_story_attempts(amp_store_dir(s), id, st, t->err) < 0)
        return -1;
    questions_open(st);
    if (st->n_events)
        qsort(st->events, st->n_events, sizeof *st->events, compare_events);
    return 0;
}

int amp_story_load(struct amp_store *s, struct amp_span task, struct amp_story *st,
                   struct amp_error *err)
{
    struct telling t = {.st = st, .err = err};

    *st = (struct amp_story){0};
    int rc = story_read(&t, s, task);
    amp_reader_free(t.reader);
    amp_buf_release(&t.mem);
    return rc;
}

void amp_story_release(struct amp_story *st)
{
    for (size_t i = 0; i < st->n_events; i++) {
        struct amp_story_event *e = &st->events[i];
        char **texts[] = TEXTS(e);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(*texts[k]);
        for (size_t k = 0; k < e->n_items; k++) {
            free(e->items[k].text);
            free(e->items[k].severity);
            free(e->items[k].file);
            free(e->items[k].fix);
        }
        free(e->items);
    }
    for (size_t i = 0; i < st->n_attempts; i++) {
        free(st->attempts[i].dir);
        free(st->attempts[i].agent);
        free(st->attempts[i].subtask);
    }
    free(st->events);
    free(st->attempts);
    amp_task_release(&st->task);
    *st = (struct amp_story){0};
}
