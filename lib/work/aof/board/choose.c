/* Chooses the task that an executor gets next. The tasks in ready are looked at once for a poll,
 * and again when all that were found are given out; the one that is chosen is read again under the
 * lock. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/codes.h"
#include "base/words.h"
#include "work/aof/board/private.h"
#include "work/aof/front.h"

enum {
    NOTED_MOST = 100, /* events of a kind in one look; the others are counted in one more */
    RANKS = 4,
    NOBODY = 16, /* added to the rank of a task whose routing names no agent */
};

struct amp_aof_candidate {
    char id[AMP_AOF_ID_MAX];
    int rank;
};

static int rank_of(struct amp_span priority)
{
    static const char *const words[RANKS + 1] = {"critical", "high", "normal", "low"};
    int found = amp_word_find(words, priority);
    return found < 0 ? 2 : found;
}

void amp_aof_queue_release(struct amp_aof_queue *q)
{
    amp_aof_seen_release(&q->seen);
    free(q->v);
    free(q->noted);
    *q = (struct amp_aof_queue){0};
}

struct scan {
    struct amp_aof_work *w;
    const struct amp_aof_lease *how;
    struct amp_aof_queue *q;
    struct amp_buf mem;
    char (*noted)[AMP_AOF_ID_MAX]; /* of this look, in the order of ids */
    uint32_t n_noted, cap_noted, cap, at;
    uint32_t unmatched, invalid; /* new ones */
};

static bool agent_fits(struct amp_span agent, struct amp_error *err)
{
    if (agent.n < AMP_AOF_AGENT_MAX)
        return true;
    amp_fail(err, AMP_DATAERR, agent_too_long, "the name of an agent has at most %d bytes",
             AMP_AOF_AGENT_MAX - 1);
    return false;
}

static int weight_read(void *ctx, const char *id, struct amp_span text, int64_t *value,
                       struct amp_error *err)
{
    struct scan *s = ctx;
    struct amp_span own = {"", 0}, priority = {"", 0}, agent = {"", 0};
    amp_buf_reset(&s->mem);
    if (amp_buf_reserve(&s->mem, text.n * 2 + 64, err) < 0 ||
        amp_front_get(text, "id", &s->mem, &own, err) < 0 ||
        amp_front_get(text, "priority", &s->mem, &priority, err) < 0 ||
        amp_front_get(text, "routing.agent", &s->mem, &agent, err) < 0)
        return -1;
    if (own.n > 0 && !amp_span_is(own, id))
        return amp_fail(err, AMP_DATAERR, id_mismatch, "the file has another id");
    if (!agent_fits(agent, err))
        return -1;
    *value = rank_of(priority) + (agent.n == 0 ? NOBODY : 0);
    return 0;
}

/* Whether an earlier look of this process noted the task. From now on it is noted. 1: it was; -1.
 */
static int was_noted(struct scan *s, const char *id, struct amp_error *err)
{
    struct amp_aof_queue *q = s->q;
    if (s->n_noted == s->cap_noted) {
        uint32_t cap = s->cap_noted ? s->cap_noted * 2 : 64;
        void *v = realloc(s->noted, cap * sizeof *s->noted);
        if (!v)
            return amp_fail_memory(err);
        s->noted = v;
        s->cap_noted = cap;
    }
    snprintf(s->noted[s->n_noted++], AMP_AOF_ID_MAX, "%s", id);
    while (s->at < q->n_noted && strcmp(q->noted[s->at], id) < 0)
        s->at++;
    return s->at < q->n_noted && strcmp(q->noted[s->at], id) == 0;
}

static int unmatched_note(struct scan *s, const char *id, struct amp_error *err)
{
    const struct amp_aof_why why = {.reason = "no_agent"};
    int rc = was_noted(s, id, err);
    if (rc != 0 || ++s->unmatched > NOTED_MOST)
        return rc < 0 ? -1 : 0;
    return amp_aof_why_event(s->w, "dispatch.no-match", amp_span_str(id), &why, err);
}

static int invalid_note(struct scan *s, const char *id, struct amp_error *err)
{
    AMP_AOF_TASK struct amp_aof_task t = {0};
    struct amp_error why = {0};
    amp_aof_task_init(&t);
    int rc = amp_aof_load(&s->w->r->data, id, &t, &why);
    if (rc == 0 || (rc > 0 && agent_fits(t.agent, &why)))
        return 0; /* a person moved or repaired it */
    if (why.status != AMP_NO && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    rc = was_noted(s, id, err);
    if (rc != 0 || ++s->invalid > NOTED_MOST)
        return rc < 0 ? -1 : 0;
    return amp_aof_invalid_event(s->w, id, &why, err);
}

static int task_weigh(void *ctx, const char *id, const int64_t *value, struct amp_error *err)
{
    struct scan *s = ctx;
    struct amp_aof_queue *q = s->q;
    if (!value)
        return invalid_note(s, id, err);
    if (*value >= NOBODY && !s->how->agent)
        return unmatched_note(s, id, err);
    if (q->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 64;
        struct amp_aof_candidate *v = realloc(q->v, cap * sizeof *v);
        if (!v)
            return amp_fail_memory(err);
        q->v = v;
        s->cap = cap;
    }
    snprintf(q->v[q->n].id, AMP_AOF_ID_MAX, "%s", id);
    q->v[q->n++].rank = (int)(*value % NOBODY);
    return 0;
}

static int candidate_compare(const void *a, const void *b)
{
    const struct amp_aof_candidate *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : strcmp(x->id, y->id);
}

/* The rest of many events in one without a task. */
static int rest_note(struct scan *s, const char *type, const char *reason, uint32_t n,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    if (n <= NOTED_MOST)
        return 0;
    amp_buf_init(&payload, 256);
    return amp_buf_fmt(&payload, err, "{\"reason\":\"%s\",\"tasks\":%u}", reason, n - NOTED_MOST) <
                   0
               ? -1
               : amp_aof_event_add(&s->w->c, type, AMP_SPAN(""), amp_buf_span(&payload), err);
}

static int queue_fill(struct amp_aof_work *w, const struct amp_aof_lease *how,
                      struct amp_error *err)
{
    struct amp_aof_queue *q = &w->r->queue;
    struct scan s = {.w = w, .how = how, .q = q};
    const struct amp_aof_look look = {.status = AMP_AOF_READY,
                                      .max = AMP_AOF_TASK_BYTES,
                                      .read = weight_read,
                                      .each = task_weigh,
                                      .ctx = &s};
    free(q->v);
    q->v = NULL;
    q->n = q->at = 0;
    amp_buf_init(&s.mem, (size_t)AMP_AOF_TASK_BYTES * 2 + 64);
    int rc = amp_aof_look(&w->r->data, &look, &q->seen, err);
    amp_buf_release(&s.mem);
    if (rc == 0)
        rc = rest_note(&s, "dispatch.no-match", "no_agent", s.unmatched, err);
    if (rc == 0)
        rc = rest_note(&s, "task.validation.failed", "invalid_task", s.invalid, err);
    free(q->noted);
    q->noted = s.noted;
    q->n_noted = s.n_noted;
    if (rc == 0 && q->n > 1)
        qsort(q->v, q->n, sizeof *q->v, candidate_compare);
    q->filled = rc == 0;
    return rc;
}

/* Whether tasks came or went since `was`, which is brought up to date. */
static bool folder_changed(const struct amp_aof_data *a, struct timespec *was)
{
    struct stat st;
    if (fstatat(a->dir, "tasks/ready", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    bool same = was->tv_sec == st.st_mtim.tv_sec && was->tv_nsec == st.st_mtim.tv_nsec;
    *was = st.st_mtim;
    return !same;
}

/* The queue had no task any more, the next one as it is now, or one whose priority has changed. */
enum taken { TAKEN_NONE, TAKEN_TASK, TAKEN_CHANGED };

/* An enum taken, or -1. */
static int candidate_take(struct amp_aof_work *w, const struct amp_aof_lease *how,
                          struct amp_aof_task *out, struct amp_error *err)
{
    struct amp_aof_queue *q = &w->r->queue;
    struct amp_error why;
    while (q->at < q->n) {
        const struct amp_aof_candidate *c = &q->v[q->at++];
        int rc = amp_aof_load(&w->r->data, c->id, out, &why);
        if (rc < 0 && why.status != AMP_NO && why.status != AMP_DATAERR) {
            *err = why;
            return -1;
        }
        if (rc < 0 && amp_aof_invalid_event(w, c->id, &why, err) < 0)
            return -1;
        if (rc <= 0 || out->status != AMP_AOF_READY || (out->agent.n == 0 && !how->agent) ||
            !agent_fits(out->agent, &why))
            continue;
        return rank_of(out->priority) == c->rank ? TAKEN_TASK : TAKEN_CHANGED;
    }
    return TAKEN_NONE;
}

int amp_aof_choose(struct amp_aof_work *w, const struct amp_aof_lease *how,
                   struct amp_aof_task *out, struct amp_error *err)
{
    struct amp_aof_queue *q = &w->r->queue;
    for (int tries = 0; tries < 8; tries++) {
        if (!q->filled) {
            folder_changed(&w->r->data, &q->modified);
            if (queue_fill(w, how, err) < 0)
                return -1;
        }
        int rc = candidate_take(w, how, out, err);
        if (rc < 0 || rc == TAKEN_TASK ||
            (rc == TAKEN_NONE && !folder_changed(&w->r->data, &q->modified)))
            return rc;
        q->filled = false;
    }
    return 0;
}
