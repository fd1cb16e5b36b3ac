/* Summaries of tasks. One pass over the agents, bindings and suspensions, which are few, and one
 * over the tasks; of a task's record only the members of a summary are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/pause/pause.h"
#include "message/protocol/amp/compose.h"
#include "people/story/story.h"
#include "work/agent/record.h"
#include "work/git/binding.h"
#include "work/task/activity/activity.h"
#include "json/record.h"

/* ---- what a summary reads of a record ---- */

struct part {
    struct amp_span id, verdict, completion, commit;
    int64_t attempts;
    uint8_t state;
};
#define PART(as, key, member) AMP_REC(as, struct part, key, member)
static const struct amp_rec_field part_fields[] = {
    PART(TEXT, "subtask_id", id),
    AMP_REC_ENUM(struct part, "state", state, &amp_task_qa_words),
    PART(INT, "attempts", attempts),
    PART(TEXT, "verdict", verdict),
    PART(TEXT, "completion_status", completion),
    PART(TEXT, "commit", commit),
};
AMP_REC_TABLE(part_rec, "a subtask's record", struct part, part_fields);

struct asked {
    struct amp_span ref, type, severity, why;
};
static const struct amp_rec_field asked_fields[] = {
    AMP_REC(TEXT, struct asked, "ref", ref),
    AMP_REC(TEXT, struct asked, "type", type),
    AMP_REC(TEXT, struct asked, "severity", severity),
    AMP_REC(TEXT, struct asked, "why", why),
};
AMP_REC_TABLE(asked_rec, "an open escalation", struct asked, asked_fields);

struct record {
    struct amp_span description, repo, branch, base;
    uint8_t risk;
    int64_t rejections, created_ms, updated_ms;
    struct asked *open;
    struct part *parts;
    struct amp_span *agents, *blockers;
    struct amp_span cancelled;
    uint32_t n_open, n_parts, n_agents, n_blockers;
};
#define TASK(as, key, member) AMP_REC(as, struct record, key, member)
static const struct amp_rec_field task_fields[] = {
    TASK(TEXT, "description", description),
    TASK(TEXT, "repo", repo),
    TASK(TEXT, "branch", branch),
    TASK(TEXT, "base", base),
    AMP_REC_ENUM(struct record, "risk_level", risk, &amp_task_risk_words),
    TASK(INT, "reject_count", rejections),
    AMP_REC_MANY(struct record, "escalations", open, &asked_rec, false),
    AMP_REC_WORDS(struct record, "agents", agents, false),
    AMP_REC_WORDS(struct record, "blockers", blockers, false),
    TASK(TEXT, "cancelled", cancelled),
    TASK(TIME, "created", created_ms),
    TASK(TIME, "updated", updated_ms),
    AMP_REC_MANY(struct record, "subtasks", parts, &part_rec, false),
};
AMP_REC_TABLE(task_rec, "a task's record", struct record, task_fields);

/* ---- agents and their worktrees ---- */

struct worker {
    char *name, *task, *last_task; /* task: "" if it has none */
    char *repo, *branch, *worktree;
    int64_t since_ms; /* since when it works on its task; 0: unknown */
};

/* A dispatched task that no agent works on. */
struct queued {
    char id[AMP_TASK_ID_MAX];
    int64_t since_ms;
};

struct landed {
    char id[AMP_TASK_ID_MAX];
    uint8_t state;
};

struct briefing {
    struct amp_store *store;
    const struct amp_brief_filter *f;
    amp_brief_fn fn;
    void *ctx;
    struct worker *workers;
    size_t n_workers, cap_workers;
    struct landed *landed; /* by id */
    size_t n_landed, cap_landed;
    struct queued *queue; /* the longest waiting first */
    size_t n_queue, cap_queue;
    bool has_queue; /* it was read */
    struct amp_pauses pauses;
    struct amp_buf mem;
    bool stopped;
};

static struct worker *worker_find(struct briefing *b, struct amp_span name)
{
    for (size_t i = 0; i < b->n_workers; i++)
        if (amp_span_is(name, b->workers[i].name))
            return &b->workers[i];
    return NULL;
}

static int text_set(char **place, struct amp_span text, struct amp_error *err)
{
    char *copy = amp_span_dup(text);

    if (!copy)
        return amp_fail_memory(err);
    free(*place);
    *place = copy;
    return 0;
}

static struct worker *worker_add(struct briefing *b, struct amp_span name, struct amp_error *err)
{
    struct worker *w = worker_find(b, name);

    if (w)
        return w;
    if (amp_grow(&b->workers, &b->cap_workers, b->n_workers, sizeof *b->workers, err) < 0)
        return NULL;
    w = &b->workers[b->n_workers++];
    *w = (struct worker){0};
    return text_set(&w->name, name, err) < 0 || text_set(&w->task, AMP_SPAN(""), err) < 0 ||
                   text_set(&w->last_task, AMP_SPAN(""), err) < 0 ||
                   text_set(&w->repo, AMP_SPAN(""), err) < 0 ||
                   text_set(&w->branch, AMP_SPAN(""), err) < 0 ||
                   text_set(&w->worktree, AMP_SPAN(""), err) < 0
               ? NULL
               : w;
}

static int agent_add(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                     struct amp_error *err)
{
    struct worker *w = worker_add(ctx, name, err);

    return !w || text_set(&w->task, amp_span_str(rec->work.task), err) < 0 ||
                   text_set(&w->last_task, amp_span_str(rec->work.last_task), err) < 0
               ? -1
               : 0;
}

static int binding_add(void *ctx, const struct amp_binding *at, struct amp_error *err)
{
    struct briefing *b = ctx;
    struct worker *w;

    if (!amp_binding_is_bound(at))
        return 0;
    w = worker_add(b, amp_span_str(at->agent), err);
    return !w || text_set(&w->repo, amp_span_str(at->repo), err) < 0 ||
                   text_set(&w->branch, amp_span_str(at->branch), err) < 0 ||
                   text_set(&w->worktree, amp_span_str(at->worktree), err) < 0
               ? -1
               : 0;
}

static int activity_add(void *ctx, const struct amp_activity *a, struct amp_error *err)
{
    struct worker *w = worker_find(ctx, a->agent);

    (void)err;
    if (w && amp_span_is(a->task, w->task))
        w->since_ms = a->began_ms;
    return 0;
}

/* Tells who works on the task, or did last, and the worktree that is on its branch. */
static void worker_tell(struct briefing *b, const struct record *r, struct amp_brief *out)
{
    const struct worker *last = NULL;

    for (size_t i = 0; i < b->n_workers; i++) {
        const struct worker *w = &b->workers[i];
        if (amp_span_is(out->id, w->task)) {
            out->working = true;
            out->since_ms = w->since_ms;
            last = w;
        } else if (!out->working && amp_span_is(out->id, w->last_task)) {
            last = w;
        }
        if (*w->worktree && r->branch.n && amp_span_is(r->branch, w->branch))
            out->worktree = amp_span_str(w->worktree);
    }
    out->agent = last          ? amp_span_str(last->name)
                 : r->n_agents ? r->agents[r->n_agents - 1]
                               : AMP_SPAN("");
    out->paused =
        b->pauses.n_v && (amp_pauses_find(&b->pauses, out->id, AMP_SPAN("")) ||
                          (out->working && amp_pauses_find(&b->pauses, AMP_SPAN(""), out->agent)));
}

/* ---- the queue ---- */

static bool is_worked_on(const struct briefing *b, struct amp_span id)
{
    for (size_t i = 0; i < b->n_workers; i++)
        if (amp_span_is(id, b->workers[i].task))
            return true;
    return false;
}

static int queued_add(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct briefing *b = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct record r;

    if (is_worked_on(b, id))
        return 0;
    if (amp_rec_parse(&task_rec, rec->json, &mem, &r, err) < 0 ||
        amp_grow(&b->queue, &b->cap_queue, b->n_queue, sizeof *b->queue, err) < 0)
        return -1;
    struct queued *q = &b->queue[b->n_queue++];
    q->since_ms = r.updated_ms;
    amp_span_copy(id, q->id, sizeof q->id);
    return 0;
}

static int queued_compare(const void *a, const void *b)
{
    const struct queued *x = a, *y = b;

    return x->since_ms != y->since_ms ? (x->since_ms < y->since_ms ? -1 : 1) : strcmp(x->id, y->id);
}

/* The queue is read once, for the first task that is in it. */
static int queue_read(struct briefing *b, struct amp_error *err)
{
    static const uint8_t states[] = {AMP_TASK_DISPATCHED, AMP_TASK_REWORK};

    for (size_t i = 0; i < sizeof states; i++)
        if (amp_store_each(b->store, AMP_TASK_KIND, amp_task_fsm.states[states[i]].name, queued_add,
                           b, err) < 0)
            return -1;
    if (b->n_queue)
        qsort(b->queue, b->n_queue, sizeof *b->queue, queued_compare);
    b->has_queue = true;
    return 0;
}

static int place_tell(struct briefing *b, struct amp_brief *out, struct amp_error *err)
{
    if (out->working || (out->state != AMP_TASK_DISPATCHED && out->state != AMP_TASK_REWORK))
        return 0;
    if (!b->has_queue && queue_read(b, err) < 0)
        return -1;
    for (size_t i = 0; i < b->n_queue && !out->place; i++)
        if (amp_span_is(out->id, b->queue[i].id))
            out->place = (uint32_t)i + 1;
    return 0;
}

/* ---- landings ---- */

static int landed_add(void *ctx, struct amp_span task, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct briefing *b = ctx;
    int state = amp_fsm_state(&amp_landing_fsm, rec->state);

    if (amp_grow(&b->landed, &b->cap_landed, b->n_landed, sizeof *b->landed, err) < 0)
        return -1;
    struct landed *l = &b->landed[b->n_landed++];
    l->state = state < 0 ? AMP_LANDING_NONE : (uint8_t)state;
    amp_span_copy(task, l->id, sizeof l->id);
    return 0;
}

static int landed_compare(const void *a, const void *b)
{
    return strcmp(((const struct landed *)a)->id, ((const struct landed *)b)->id);
}

static uint8_t landing_state(const struct briefing *b, struct amp_span id)
{
    struct landed key;

    if (b->n_landed == 0 || !amp_span_copy(id, key.id, sizeof key.id))
        return AMP_LANDING_NONE;
    const struct landed *l =
        bsearch(&key, b->landed, b->n_landed, sizeof *b->landed, landed_compare);
    return l ? l->state : AMP_LANDING_NONE;
}

const char *amp_brief_state(const struct amp_brief *b)
{
    return b->landing == AMP_LANDING_MOVING   ? "landing"
           : b->landing == AMP_LANDING_LANDED ? "landed"
                                              : amp_task_fsm.states[b->state].name;
}

/* ---- the summaries ---- */

static void part_tell(const struct record *r, struct amp_brief *out)
{
    const struct part *turn = NULL;

    for (uint32_t i = 0; i < r->n_parts; i++) {
        out->approved += r->parts[i].state == AMP_QA_APPROVED;
        if (!turn && r->parts[i].state != AMP_QA_APPROVED && r->parts[i].state != AMP_QA_ABANDONED)
            turn = &r->parts[i];
    }
    out->subtasks = r->n_parts;
    if (!turn && r->n_parts)
        turn = &r->parts[r->n_parts - 1];
    if (!turn)
        return;
    out->subtask = turn->id;
    out->subtask_state = turn->state;
    out->attempts = turn->attempts;
    out->completion = turn->completion;
    out->commit = turn->commit;
    out->verdict = turn->verdict;
}

static void question_tell(const struct record *r, struct amp_brief *out)
{
    const struct asked *first = NULL;

    for (uint32_t i = 0; i < r->n_open; i++)
        if (!first || (amp_span_is(r->open[i].severity, "critical") &&
                       !amp_span_is(first->severity, "critical")))
            first = &r->open[i];
    out->questions = r->n_open;
    if (!first)
        return;
    out->question = first->ref;
    out->question_type = first->type;
    out->question_why = first->why.n ? first->why : first->type;
    out->severity = first->severity;
}

static bool is_wanted(const struct amp_brief_filter *f, const struct record *r)
{
    bool agent = !f->agent;

    for (uint32_t i = 0; !agent && i < r->n_agents; i++)
        agent = amp_span_is(r->agents[i], f->agent);
    return agent && (!f->question || r->n_open);
}

static int brief_tell(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct briefing *b = ctx;
    struct record r;
    int state = amp_fsm_state(&amp_task_fsm, rec->state);

    if (state < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "a task's record has no usable state");
    uint8_t landing = state == AMP_TASK_DONE ? landing_state(b, id) : AMP_LANDING_NONE;
    if (amp_span_is(id, AMP_TASK_NONE) || (!b->f->ended && landing == AMP_LANDING_LANDED))
        return 0;
    if (amp_rec_parse(&task_rec, rec->json, &b->mem, &r, err) < 0)
        return -1;
    if (!is_wanted(b->f, &r))
        return 0;
    struct amp_brief out = {
        .id = id,
        .description = r.description,
        .repo = r.repo,
        .branch = r.branch,
        .base = r.base,
        .state = (uint8_t)state,
        .ended = amp_task_ended((uint8_t)state),
        .risk = (enum amp_risk)r.risk,
        .rejections = r.rejections,
        .landing = landing,
        .created_ms = r.created_ms,
        .updated_ms = r.updated_ms,
        .reason = r.n_blockers ? r.blockers[0] : AMP_SPAN(""),
        .cancelled = r.cancelled.n > 0,
    };
    part_tell(&r, &out);
    question_tell(&r, &out);
    worker_tell(b, &r, &out);
    if (place_tell(b, &out, err) < 0)
        return -1;
    int rc = b->fn(b->ctx, &out, err);
    b->stopped = rc == 1;
    return rc;
}

/* Whether tasks in a state are read. */
static bool is_read(const struct amp_brief_filter *f, uint8_t state)
{
    if (f->state)
        return strcmp(amp_task_fsm.states[state].name, f->state) == 0;
    return !amp_task_ended(state) || f->ended || (f->unlanded && state == AMP_TASK_DONE);
}

static int one_tell(struct briefing *b, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(b->store, AMP_KEY(AMP_TASK_KIND, b->f->id), &rec, err) < 0)
        return -1;
    int state = rec.found ? amp_fsm_state(&amp_task_fsm, rec.state) : -1;
    if (state < 0 || !is_read(b->f, (uint8_t)state))
        return 0;
    return brief_tell(b, b->f->id, &rec, err) < 0 ? -1 : 0;
}

static int all_tell(struct briefing *b, struct amp_error *err)
{
    for (uint8_t i = 0; i < amp_task_fsm.n_states && !b->stopped; i++) {
        const char *name = amp_task_fsm.states[i].name;
        if (is_read(b->f, i) &&
            amp_store_each(b->store, AMP_TASK_KIND, name, brief_tell, b, err) < 0)
            return -1;
    }
    return 0;
}

int amp_brief_each(struct amp_store *s, const struct amp_brief_filter *f, amp_brief_fn fn,
                   void *ctx, struct amp_error *err)
{
    struct briefing b = {.store = s, .f = f, .fn = fn, .ctx = ctx};
    int rc = -1;

    amp_buf_init(&b.mem, AMP_REC_MAX);
    amp_pauses_init(&b.pauses);
    if (amp_agent_records(s, agent_add, &b, err) == 0 &&
        amp_binding_each(s, binding_add, &b, err) == 0 &&
        amp_activity_each(s, &(struct amp_activity_filter){0}, activity_add, &b, err) == 0 &&
        amp_pauses_read(s, &b.pauses, err) == 0 &&
        amp_store_each(s, AMP_LANDING_KIND, NULL, landed_add, &b, err) == 0)
        rc = f->id.n ? one_tell(&b, err) : all_tell(&b, err);
    for (size_t i = 0; i < b.n_workers; i++) {
        struct worker *w = &b.workers[i];
        char *texts[] = {w->name, w->task, w->last_task, w->repo, w->branch, w->worktree};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
    }
    free(b.workers);
    free(b.landed);
    free(b.queue);
    amp_pauses_release(&b.pauses);
    amp_buf_release(&b.mem);
    return rc;
}
