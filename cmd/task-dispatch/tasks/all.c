/*
 * task-dispatch land --all: a queue with one holder. Each task that is done lands as `land TASK`
 * lands it. One that does not, because the branch has moved on, goes back to its executor, or a
 * person is asked; one that cannot land for another reason stays as it is, with a warning.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"
#include "land.h"
#include "message/delivery/outbox.h"
#include "message/store/history/history.h"
#include "message/store/wake.h"
#include "people/story/story.h"
#include "work/loop/coordinate/unland.h"

#define LOCK_NAME "task-dispatch.land"
#define TRIES     3   /* of a landing during which the branch moved or git-worker ended */
#define CALM_MS   500 /* between two looks at the tasks of a log that is being written */

struct waiting {
    char id[AMP_TASK_ID_MAX];
    int64_t updated_ms;
};

struct queue {
    struct landing *l;
    struct waiting *v; /* done and not landed, the oldest approval first */
    size_t n, cap;
    struct waiting *stuck; /* those that this process could not land */
    size_t n_stuck, cap_stuck;
    /* After a look at all tasks, a follower looks at those only that changed since. */
    struct waiting *changed;
    size_t n_changed, cap_changed;
    struct amp_store_place at; /* in the log */
    bool looked;
    enum amp_status *status;
};

/* ---- which ones ---- */

static bool is_among(const struct waiting *v, size_t n, const struct amp_brief *b)
{
    for (size_t i = 0; i < n; i++)
        if (amp_span_is(b->id, v[i].id) && b->updated_ms == v[i].updated_ms)
            return true;
    return false;
}

static int waiting_add(struct waiting **v, size_t *cap, size_t *n, struct amp_span id,
                       int64_t updated_ms, struct amp_error *err)
{
    if (amp_grow(v, cap, *n, sizeof **v, err) < 0)
        return -1;
    struct waiting *w = &(*v)[*n];
    w->updated_ms = updated_ms;
    *n += amp_span_copy(id, w->id, sizeof w->id);
    return 0;
}

static int task_found(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct queue *q = ctx;

    return is_among(q->stuck, q->n_stuck, b) || is_among(q->v, q->n, b)
               ? 0
               : waiting_add(&q->v, &q->cap, &q->n, b->id, b->updated_ms, err);
}

static int compare(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    return x->updated_ms != y->updated_ms ? (x->updated_ms < y->updated_ms ? -1 : 1)
                                          : strcmp(x->id, y->id);
}

/* The callback of amp_store_changes_on; the id of a task is a part of its key as it is. */
static int task_changed(void *ctx, struct amp_span key, struct amp_error *err)
{
    struct queue *q = ctx;
    struct amp_span id = {key.p + sizeof AMP_TASK_KIND, key.n - sizeof AMP_TASK_KIND};

    return waiting_add(&q->changed, &q->cap_changed, &q->n_changed, id, 0, err);
}

static int tasks_find(struct queue *q, struct amp_error *err)
{
    static const char *const kinds[] = {AMP_TASK_KIND, NULL};
    struct amp_store *s = q->l->store;
    struct amp_brief_filter f = {.state = amp_task_fsm.states[AMP_TASK_DONE].name};
    bool first = !q->looked;
    uint64_t older;

    q->n = q->n_changed = 0;
    q->looked = true;
    int rc = first ? amp_store_place_near_end(s, 1, &q->at, &older, err)
                   : amp_store_changes_on(s, &q->at, kinds, task_changed, q, err);
    if (rc == 0 && first)
        rc = amp_brief_each(s, &f, task_found, q, err);
    for (size_t i = 0; rc == 0 && i < q->n_changed; i++) {
        struct amp_task_status st;
        f.id = amp_span_str(q->changed[i].id);
        rc = amp_task_status(s, f.id, &st, err);
        if (rc == 0 && st.state == AMP_TASK_DONE)
            rc = amp_brief_each(s, &f, task_found, q, err);
    }
    if (rc == 0 && q->n > 1)
        qsort(q->v, q->n, sizeof *q->v, compare);
    return rc;
}

/* ---- what does not land ---- */

/* text may be NULL: it was not UTF-8. */
static int why_add(json_t *list, json_t *text, struct amp_error *err)
{
    return json_array_append_new(list, text ? text : json_string("(not UTF-8)")) < 0
               ? amp_fail_memory(err)
               : 0;
}

/* The reasons in words, for the executor or the person. */
static json_t *why_make(struct landing *l, const struct amp_error *cause, struct amp_error *err)
{
    char at[AMP_OID_MAX];
    json_t *why = json_array();
    int rc = why ? 0 : amp_fail_memory(err);

    if (rc == 0)
        rc = amp_git_resolve(l->git, l->repo, l->branch, at, err);
    if (rc == 0)
        rc = why_add(why,
                     json_sprintf("The branch %s has moved to %s. Merge it into your branch (git "
                                  "merge %s), so that your work lands on top of it.",
                                  l->branch, at, at),
                     err);
    if (rc == 0 && amp_code_is(cause->code, check_failed))
        rc = why_add(why,
                     json_sprintf("They merge without a conflict, but then the check fails: %s",
                                  l->checked.why),
                     err);
    for (char *p = l->plan.conflicts; rc == 0 && l->plan.n_conflicts && *p; p += strcspn(p, "\n")) {
        p += *p == '\n';
        if (*p)
            rc = why_add(why, json_sprintf("Conflict in %.*s", (int)strcspn(p, "\n"), p), err);
    }
    if (rc == 0)
        return why;
    json_decref(why);
    return NULL;
}

static int send_back(struct queue *q, bool ask, const struct amp_error *cause,
                     struct amp_error *err)
{
    struct landing *l = q->l;
    struct amp_task_policy policy;
    uint8_t state;
    json_auto_t *why = why_make(l, cause, err);

    if (!why || task_policy(&policy, err) < 0)
        return -1;
    const struct amp_unland u = {.task = amp_span_str(l->task.id),
                                 .verdict = l->v.verdict,
                                 .why = why,
                                 .ask = ask,
                                 .policy = &policy,
                                 .now_ms = amp_now_ms()};
    if (amp_task_unland(l->store, &u, &state, err) < 0)
        return -1;
    amp_warn("%s does not land: %s; %s", l->task.id, cause->what,
             state == AMP_TASK_WAITING ? "a person is asked (hitl-prompt)"
                                       : "it is sent back to its executor");
    *q->status = amp_status_worse(*q->status, AMP_TEMPFAIL);
    return 0;
}

/* Whether the branch is the reason, which rework or a person's decision removes. *ask: the latter.
 */
static bool goes_back(const struct landing *l, const struct amp_error *cause, bool *ask)
{
    bool moved = amp_code_is(cause->code, target_moved);

    *ask = moved && l->by == LAND_BY_PERSON;
    return amp_code_is(cause->code, merge_conflict) || amp_code_is(cause->code, check_failed) ||
           (moved && !*l->v.from && l->by != LAND_BY_NOBODY);
}

/* ---- one after the other ---- */

static void task_forget(struct landing *l)
{
    amp_task_release(&l->task);
    l->task = (struct amp_task){0};
    l->v = (struct amp_verified){0};
    l->plan = (struct amp_git_land){0};
    l->by_commit = false;
}

/* rc, cause: of its landing. The queue goes on after what concerns this task only. */
static int task_judge(struct queue *q, const struct waiting *w, int rc, struct amp_error *cause,
                      struct amp_error *err)
{
    bool ask, own = rc == 0 || cause->status == AMP_NO || cause->status == AMP_DATAERR ||
                    cause->status == AMP_USAGE;

    if (rc < 0 && goes_back(q->l, cause, &ask)) {
        struct amp_error why;
        if (send_back(q, ask, cause, &why) == 0)
            return 0;
        *cause = why; /* such as: a person has cancelled it */
        own = why.status == AMP_NO;
    }
    if (!own) {
        *err = *cause;
        return -1;
    }
    if (rc < 0)
        amp_warn("%s does not land: %s: %s", w->id, cause->code, cause->what);
    *q->status = amp_status_worse(*q->status, AMP_NO);
    return waiting_add(&q->stuck, &q->cap_stuck, &q->n_stuck, amp_span_str(w->id), w->updated_ms,
                       err);
}

static int task_land(struct queue *q, const struct waiting *w, struct amp_error *err)
{
    struct amp_error cause = {0};
    int rc = -1;

    for (int i = 0; i < TRIES && rc < 0; i++) {
        task_forget(q->l);
        rc = land_one(q->l, w->id, &cause);
        if (rc > 0)
            break;
        if (rc < 0 && i < TRIES - 1 && amp_code_is(cause.code, branch_moved))
            continue;
        rc = task_judge(q, w, rc, &cause, err);
        if (rc < 0 && !amp_code_is(err->code, git_crashed))
            break;
    }
    task_forget(q->l);
    return rc < 0 ? -1 : 0;
}

static int pass(struct queue *q, struct amp_error *err)
{
    /* The keys of agents that started meanwhile. */
    if (amp_identities_refresh(q->l->person->ids, err) < 0 || tasks_find(q, err) < 0)
        return -1;
    for (size_t i = 0; i < q->n && !amp_stop; i++)
        if (task_land(q, &q->v[i], err) < 0)
            return amp_stop ? 0 : -1;
    return 0;
}

static int tasks_follow(struct queue *q, struct amp_error *err)
{
    struct amp_wake wake;
    const struct amp_wake_for f = {.log = true, .out_fd = -1, .timeout_ms = -1, .stop = &amp_stop};
    const struct amp_wake_for calm = {.out_fd = -1, .timeout_ms = CALM_MS, .stop = &amp_stop};
    unsigned why;

    if (amp_wake_open(&wake, amp_store_dir(q->l->store), err) < 0)
        return -1;
    int rc = 0;
    while (rc == 0 && !amp_stop)
        if ((rc = amp_wake_drain(&wake, err) < 0 ? -1 : pass(q, err)) == 0 &&
            (rc = amp_out_flush(err)) == 0 && (rc = amp_wake_wait(&wake, &calm, &why, err)) == 0 &&
            !amp_stop)
            rc = amp_wake_wait(&wake, &f, &why, err);
    amp_wake_close(&wake);
    return rc;
}

/* A follower waits for its turn until a signal. */
static int queue_lock(struct landing *l, bool follow, int *lock, struct amp_error *err)
{
    int64_t wait_ms = follow ? 1000 : amp_tool_lock_timeout;

    if (amp_outbox_lock(l->store, LOCK_NAME, 0, lock, err) == 0)
        return 0;
    if (amp_code_is(err->code, lock_timeout))
        amp_note("another process lands what was approved: waiting for it");
    do {
        if (!amp_code_is(err->code, lock_timeout))
            return -1;
        if (amp_outbox_lock(l->store, LOCK_NAME, wait_ms, lock, err) == 0)
            return 0;
    } while (follow && !amp_stop);
    return -1;
}

int land_all(struct landing *l, bool follow, enum amp_status *status, struct amp_error *err)
{
    struct queue q = {.l = l, .status = status};
    AMP_CLOSE int lock = -1;
    int rc = queue_lock(l, follow, &lock, err);

    if (rc == 0)
        rc = follow ? tasks_follow(&q, err) : pass(&q, err);
    if (rc == 0 && amp_stop && !follow)
        *status = amp_status_worse(*status, AMP_INTERRUPTED);
    /* A follower runs until a signal ends it, and has reported each task that did not land. */
    if (follow)
        *status = AMP_OK;
    free(q.v);
    free(q.stuck);
    free(q.changed);
    return rc;
}
