/*
 * Waiting jobs by type and priority, in the order of submission; jobs at work; parked jobs. The
 * lists are those of the records as of the last look, and the log says which records to read again.
 */
#include "work/item/order.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"
#include "base/words.h"
#include "message/store/history/history.h"
#include "work/item/conflict/pairs.h"
#include "work/item/conflict/scopes.h"
#include "work/item/follow.h"
#include "work/item/priority.h"
#include "json/record.h"

#define TABLE_MIN  1024
#define MEETS_LOOK 1000 /* jobs that a search for conflicts looks at */

struct type {
    char name[AMP_QUEUE_TYPE_MAX];
    struct entry *first[AMP_QUEUE_LEVELS], *last[AMP_QUEUE_LEVELS]; /* waiting, by seq */
    uint64_t level[AMP_QUEUE_LEVELS];                               /* their number */
    struct amp_order_counts n;
};

struct entry {
    struct entry *next;           /* of its bucket */
    struct entry *before, *after; /* in its list */
    char id[AMP_QUEUE_ID_MAX], worker[AMP_QUEUE_WORKER_MAX], asked_by[AMP_QUEUE_ID_MAX];
    struct type *type;
    struct amp_shared_scope *scope;
    char *task;    /* NULL: none */
    char *follows; /* NULL: none */
    int64_t seq, priority, submitted_ms, until_ms;
    uint8_t state;
};

/* A key that the log has since the last look. */
struct changed {
    bool pair;
    char id[AMP_CONFLICT_ID_MAX];
};

struct amp_order {
    struct amp_store *store;
    struct amp_order_options opt;
    struct amp_store_place place;
    struct type **types;
    size_t n_types, cap_types;
    struct entry **table, *parked, *held;
    struct amp_scopes scopes;
    struct amp_pairs pairs;
    size_t n_entries, n_buckets; /* n_buckets: a power of two */
    uint64_t works;              /* changes with the jobs at work */
    int64_t now_ms;              /* of the look */
    int64_t wake_ms;             /* when the next parked job is due, if wake_known */
    bool wake_known;
    bool loading;                /* entries are in the table only */
    struct amp_buf changed, mem; /* changed: struct changed each */
};

/* ---- the table ---- */

static size_t text_hash(struct amp_span text)
{
    uint64_t h = 1469598103934665603u;

    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static struct entry **entry_place(struct amp_order *o, struct amp_span id)
{
    struct entry **e = &o->table[text_hash(id) & (o->n_buckets - 1)];

    while (*e && !amp_span_is(id, (*e)->id))
        e = &(*e)->next;
    return e;
}

static int table_grow(struct amp_order *o, struct amp_error *err)
{
    size_t was = o->n_buckets, n = was ? was * 2 : TABLE_MIN;
    struct entry **table = calloc(n, sizeof *table);

    if (!table)
        return amp_fail_memory(err);
    for (size_t i = 0; i < was; i++)
        for (struct entry *e = o->table[i], *next; e; e = next) {
            struct entry **at = &table[text_hash(amp_span_str(e->id)) & (n - 1)];
            next = e->next;
            e->next = *at;
            *at = e;
        }
    free(o->table);
    o->table = table;
    o->n_buckets = n;
    return 0;
}

static struct type *type_find(const struct amp_order *o, struct amp_span name)
{
    for (size_t i = 0; i < o->n_types; i++)
        if (amp_span_is(name, o->types[i]->name))
            return o->types[i];
    return NULL;
}

static struct type *type_take(struct amp_order *o, struct amp_span name, struct amp_error *err)
{
    struct type *t = type_find(o, name);

    if (t)
        return t;
    if (amp_grow(&o->types, &o->cap_types, o->n_types, sizeof *o->types, err) < 0)
        return NULL;
    if (!(t = calloc(1, sizeof *t))) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_span_copy(name, t->name, sizeof t->name);
    return o->types[o->n_types++] = t;
}

/* ---- lists ---- */

static size_t level_of(const struct entry *e)
{
    return (size_t)(e->priority - AMP_QUEUE_HIGHEST);
}

/* Most jobs are the last of their level; one that was given back is near the front. */
static void waiting_add(struct entry *e)
{
    struct entry **first = &e->type->first[level_of(e)], **last = &e->type->last[level_of(e)];
    struct entry *after = *first;

    if (*last && (*last)->seq < e->seq)
        after = NULL;
    while (after && after->seq < e->seq)
        after = after->after;
    e->after = after;
    e->before = after ? after->before : *last;
    *(e->before ? &e->before->after : first) = e;
    *(after ? &after->before : last) = e;
    e->type->n.waiting++;
    e->type->level[level_of(e)]++;
}

static void list_add(struct entry **list, struct entry *e)
{
    e->before = NULL;
    e->after = *list;
    if (*list)
        (*list)->before = e;
    *list = e;
}

static void entry_link(struct amp_order *o, struct entry *e)
{
    if (e->state == AMP_QUEUE_QUEUED) {
        waiting_add(e);
        return;
    }
    if (e->state == AMP_QUEUE_PARKED)
        o->wake_known = false;
    else
        o->works++;
    list_add(e->state == AMP_QUEUE_PARKED ? &o->parked : &o->held, e);
    *(e->state == AMP_QUEUE_PARKED ? &e->type->n.parked : &e->type->n.working) += 1;
}

static void entry_unlink(struct amp_order *o, struct entry *e)
{
    bool waits = e->state == AMP_QUEUE_QUEUED;

    if (amp_queue_held(e->state))
        o->works++;
    struct entry **first = waits                          ? &e->type->first[level_of(e)]
                           : e->state == AMP_QUEUE_PARKED ? &o->parked
                                                          : &o->held;

    *(e->before ? &e->before->after : first) = e->after;
    if (e->after)
        e->after->before = e->before;
    else if (waits)
        e->type->last[level_of(e)] = e->before;
    e->type->level[level_of(e)] -= waits;
    *(waits                          ? &e->type->n.waiting
      : e->state == AMP_QUEUE_PARKED ? &e->type->n.parked
                                     : &e->type->n.working) -= 1;
}

/* ---- records ---- */

static void entry_free(struct amp_order *o, struct entry *e)
{
    amp_scopes_drop(&o->scopes, e->scope);
    free(e->task);
    free(e->follows);
    free(e);
}

static void entry_remove(struct amp_order *o, struct amp_span id)
{
    struct entry **at = entry_place(o, id), *e = *at;

    if (!e)
        return;
    if (!o->loading)
        entry_unlink(o, e);
    *at = e->next;
    o->n_entries--;
    entry_free(o, e);
}

static int entry_fill(struct amp_order *o, struct entry *e, const struct amp_queue_job *job,
                      struct amp_error *err)
{
    amp_span_copy(job->id, e->id, sizeof e->id);
    amp_span_copy(job->worker, e->worker, sizeof e->worker);
    amp_span_copy(job->asked_by, e->asked_by, sizeof e->asked_by);
    e->seq = job->seq;
    e->submitted_ms = job->submitted_ms;
    e->until_ms = job->until_ms;
    e->state = job->state;
    e->priority = job->priority < AMP_QUEUE_HIGHEST  ? AMP_QUEUE_HIGHEST
                  : job->priority > AMP_QUEUE_LOWEST ? AMP_QUEUE_LOWEST
                                                     : job->priority;
    if (!(e->type = type_take(o, job->type, err)) ||
        amp_scopes_take(&o->scopes, e->type, job->scope, &e->scope, err) < 0)
        return -1;
    return (job->task.n && !(e->task = amp_span_dup(job->task))) ||
                   (job->follows.n && !(e->follows = amp_span_dup(job->follows)))
               ? amp_fail_memory(err)
               : 0;
}

/* Replaces what is known of the job. */
static int entry_put(struct amp_order *o, const struct amp_queue_job *job, struct amp_error *err)
{
    entry_remove(o, job->id);
    if (amp_queue_ended(job->state))
        return 0;
    if (o->n_entries >= o->n_buckets && table_grow(o, err) < 0)
        return -1;
    struct entry *e = calloc(1, sizeof *e);
    if (!e)
        return amp_fail_memory(err);
    if (entry_fill(o, e, job, err) < 0) {
        entry_free(o, e);
        return -1;
    }
    struct entry **at = entry_place(o, job->id);
    e->next = *at;
    *at = e;
    o->n_entries++;
    if (!o->loading)
        entry_link(o, e);
    return 0;
}

static int job_load(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *job = rec;
    return entry_put(ctx, job, err);
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *const *x = a, *const *y = b;

    return ((*x)->seq > (*y)->seq) - ((*x)->seq < (*y)->seq);
}

/* Links all entries, in the order of submission: the records come in the order of their ids. */
static int entries_link(struct amp_order *o, struct amp_error *err)
{
    AMP_FREE struct entry **all = calloc(o->n_entries + 1, sizeof *all);
    size_t n = 0;

    if (!all)
        return amp_fail_memory(err);
    for (size_t i = 0; i < o->n_buckets; i++)
        for (struct entry *e = o->table[i]; e; e = e->next)
            all[n++] = e;
    qsort(all, n, sizeof(struct entry *), entry_compare);
    for (size_t i = 0; i < n; i++)
        entry_link(o, all[i]);
    return 0;
}

static int jobs_read(struct amp_order *o, struct amp_error *err)
{
    static const uint8_t states[] = {AMP_QUEUE_QUEUED, AMP_QUEUE_PARKED, AMP_QUEUE_CLAIMED,
                                     AMP_QUEUE_RUNNING, AMP_QUEUE_PREEMPTING};

    for (size_t i = 0; i < sizeof states; i++)
        if (amp_queue_each(o->store, amp_queue_fsm.states[states[i]].name, job_load, o, err) < 0)
            return -1;
    return 0;
}

/* A job that changes its state between two of the reads may come twice: the look after the load
 * replaces it. */
static int jobs_load(struct amp_order *o, struct amp_error *err)
{
    o->loading = true;
    int rc = jobs_read(o, err);
    o->loading = false;
    return rc < 0 ? -1 : entries_link(o, err);
}

/* ---- the log ---- */

static const char *const kinds[] = {AMP_QUEUE_KIND, AMP_CONFLICT_KIND, NULL};

static int change_note(void *ctx, struct amp_span key, struct amp_error *err)
{
    struct amp_order *o = ctx;
    struct changed c = {.pair = key.p[0] == AMP_CONFLICT_KIND[0]};
    size_t kind = c.pair ? sizeof AMP_CONFLICT_KIND : sizeof AMP_QUEUE_KIND;

    if (!c.pair && memchr(key.p + kind, '.', key.n - kind)) /* a worker's own */
        return 0;

    amp_span_copy((struct amp_span){key.p + kind, key.n - kind}, c.id, sizeof c.id);
    /* A claim, a start and an end often follow each other: one read shows the last of them. */
    if (o->changed.len && memcmp(o->changed.data + o->changed.len - sizeof c, &c, sizeof c) == 0)
        return 0;
    return amp_buf_add(&o->changed, &c, sizeof c, err);
}

static int job_reread(struct amp_order *o, const char *id, struct amp_error *err)
{
    struct amp_queue_job job;
    int found = amp_queue_read(o->store, amp_span_str(id), &o->mem, &job, err);

    if (found > 0)
        return entry_put(o, &job, err);
    if (found == 0)
        entry_remove(o, amp_span_str(id));
    return found;
}

int amp_order_look(struct amp_order *o, struct amp_error *err)
{
    amp_buf_reset(&o->changed);
    if (amp_store_changes_on(o->store, &o->place, kinds, change_note, o, err) < 0)
        return -1;
    for (size_t i = 0; i < o->changed.len; i += sizeof(struct changed)) {
        struct changed c;
        memcpy(&c, o->changed.data + i, sizeof c);
        if ((c.pair ? amp_pairs_reread(&o->pairs, o->store, c.id, &o->mem, err)
                    : job_reread(o, c.id, err)) < 0)
            return -1;
    }
    return 0;
}

int amp_order_open(struct amp_order **out, struct amp_store *s, const struct amp_order_options *opt,
                   struct amp_error *err)
{
    struct amp_order *o = calloc(1, sizeof *o);
    uint64_t after;

    if (!o)
        return amp_fail_memory(err);
    o->store = s;
    o->opt = *opt;
    o->works = 1; /* no scope was asked */
    amp_buf_init(&o->changed, SIZE_MAX / 2);
    amp_buf_init(&o->mem, AMP_REC_MAX);
    /* The place first: what changes during the load is read again at the first look. */
    if (table_grow(o, err) < 0 || amp_store_place_near_end(s, 1, &o->place, &after, err) < 0 ||
        jobs_load(o, err) < 0 || amp_pairs_load(&o->pairs, s, err) < 0 ||
        amp_order_look(o, err) < 0) {
        amp_order_close(o);
        return -1;
    }
    *out = o;
    return 0;
}

void amp_order_close(struct amp_order *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_buckets; i++)
        for (struct entry *e = o->table[i], *next; e; e = next) {
            next = e->next;
            entry_free(o, e);
        }
    for (size_t i = 0; i < o->n_types; i++)
        free(o->types[i]);
    amp_pairs_release(&o->pairs);
    free(o->types);
    free(o->table);
    amp_scopes_release(&o->scopes);
    amp_buf_release(&o->changed);
    amp_buf_release(&o->mem);
    free(o);
}

/* ---- what may start ---- */

static int64_t rank_of(const struct amp_order *o, const struct entry *e)
{
    return o->opt.ageing_ms > 0 ? e->priority * o->opt.ageing_ms + e->submitted_ms : e->priority;
}

static bool is_before(const struct amp_order *o, const struct entry *a, const struct entry *b)
{
    int64_t x = rank_of(o, a), y = rank_of(o, b);

    return x < y || (x == y && a->seq < b->seq);
}

static bool is_permitted(const struct amp_order *o, const struct entry *e,
                         const struct entry *other)
{
    const struct amp_pair *p = amp_pairs_find(&o->pairs, e->id, other->id);

    return p && p->state == AMP_CONFLICT_PARALLEL && (!p->until_ms || p->until_ms > o->now_ms);
}

/* The job that goes before e, as a person decided; NULL: none. */
static const struct entry *first_of(struct amp_order *o, const struct entry *e)
{
    for (const struct amp_pair *p = o->pairs.n_ordered ? o->pairs.first : NULL; p; p = p->after)
        if (*p->first && strcmp(p->first, e->id) != 0 &&
            (strcmp(p->a, e->id) == 0 || strcmp(p->b, e->id) == 0)) {
            const struct entry *first = *entry_place(o, amp_span_str(p->first));
            if (first)
                return first;
        }
    return NULL;
}

/* Like first_of, but breaks cycles: the oldest job of a circular order goes first. */
static const struct entry *before_find(struct amp_order *o, const struct entry *e)
{
    const struct entry *first = first_of(o, e), *x = first;
    bool oldest = true;

    for (uint32_t i = 0; x && x != e && i < o->pairs.n_ordered; i++) {
        oldest = oldest && e->seq < x->seq;
        x = first_of(o, x);
    }
    return x == e && first && oldest ? NULL : first;
}

/* The first job at work that the scope overlaps, except `since` and those before it. */
static const struct entry *overlap_find(const struct amp_order *o, const struct amp_shared_scope *s,
                                        const struct entry *since)
{
    for (const struct entry *h = since ? since->after : o->held; h; h = h->after)
        if (amp_scopes_meet(s, h->scope, o->opt.patterns))
            return h;
    return NULL;
}

/* The job at work that keeps e from starting, or NULL. The answer for a scope is kept until other
 * jobs are at work, since many jobs have the same, and most looks change nothing. */
static const struct entry *blocker_find(struct amp_order *o, const struct entry *e)
{
    const struct entry *first = o->pairs.n_ordered ? before_find(o, e) : NULL;
    if (first)
        return first;
    if (e->scope->asked != o->works) {
        e->scope->asked = o->works;
        e->scope->found = overlap_find(o, e->scope, NULL);
    }
    const struct entry *b = e->scope->found;
    while (b && is_permitted(o, e, b))
        b = overlap_find(o, e->scope, b);
    return b;
}

/* <= 0: no limit. */
static int64_t type_most(const struct amp_order *o, const struct type *t)
{
    return o->opt.most ? o->opt.most(o->opt.ctx, amp_span_str(t->name)) : 0;
}

static bool is_full(const struct amp_order *o, const struct type *t)
{
    int64_t most = type_most(o, t);

    return most > 0 && t->n.working >= (uint64_t)most;
}

static int64_t type_closed(const struct amp_order *o, const struct type *t)
{
    return o->opt.closed ? o->opt.closed(o->opt.ctx, amp_span_str(t->name)) : 0;
}

static bool is_held(const struct amp_order *o, const struct entry *e)
{
    return e->task && o->opt.held && o->opt.held(o->opt.ctx, amp_span_str(e->task));
}

/* Whether a person or a command decides about the two. */
static bool is_asked(const struct amp_order *o, const struct entry *e, const struct entry *behind)
{
    const struct amp_pair *p = amp_pairs_find(&o->pairs, e->id, behind->id);

    return p && (p->state == AMP_CONFLICT_ASKED || p->state == AMP_CONFLICT_CHECKING);
}

/* The first job that e follows and that has not ended, or NULL. */
static const struct entry *followed_find(struct amp_order *o, const struct entry *e)
{
    struct amp_span list = amp_span_str(e->follows ? e->follows : ""), id;
    const struct entry *found = NULL;

    while (!found && amp_follow_next(&list, &id))
        found = *entry_place(o, id);
    return found;
}

/* The reason why e cannot start; TURN: it can. */
static enum amp_waits entry_waits(struct amp_order *o, const struct entry *e,
                                  const struct entry **behind)
{
    *behind = NULL;
    if (e->state == AMP_QUEUE_PARKED)
        return AMP_WAITS_PARKED;
    if (is_held(o, e))
        return AMP_WAITS_HELD;
    if (e->follows && (*behind = followed_find(o, e)))
        return AMP_WAITS_FOLLOWS;
    if (type_closed(o, e->type))
        return AMP_WAITS_ACCOUNT;
    if (is_full(o, e->type))
        return AMP_WAITS_LIMIT;
    if (!(*behind = blocker_find(o, e)))
        return AMP_WAITS_TURN;
    return is_asked(o, e, *behind) ? AMP_WAITS_CONFLICT : AMP_WAITS_SCOPE;
}

/* ---- in order ---- */

enum { TYPES_MAX = 64 };

/* The waiting jobs of several types in order: a heap of the next one of each level of each type. */
struct walk {
    const struct amp_order *o;
    struct entry *heap[TYPES_MAX * AMP_QUEUE_LEVELS]; /* the first is before all others */
    uint32_t n;
};

/* Moves the entry at i down until it is before those below it. */
static void walk_sift(struct walk *w, uint32_t i)
{
    struct entry *e = w->heap[i];

    for (uint32_t below; (below = 2 * i + 1) < w->n; i = below) {
        if (below + 1 < w->n && is_before(w->o, w->heap[below + 1], w->heap[below]))
            below++;
        if (!is_before(w->o, w->heap[below], e))
            break;
        w->heap[i] = w->heap[below];
    }
    w->heap[i] = e;
}

static void walk_sort(struct walk *w)
{
    for (uint32_t i = w->n / 2; i-- > 0;)
        walk_sift(w, i);
}

static void walk_begin(struct walk *w, const struct amp_order *o, const struct amp_span *types,
                       uint32_t n_types)
{
    w->o = o;
    w->n = 0;
    for (uint32_t i = 0; i < n_types && i < TYPES_MAX; i++) {
        const struct type *t = type_find(o, types[i]);
        for (size_t k = 0; t && k < AMP_QUEUE_LEVELS; k++)
            if (t->first[k])
                w->heap[w->n++] = t->first[k];
    }
    walk_sort(w);
}

static struct entry *walk_next(struct walk *w)
{
    struct entry *e = w->n ? w->heap[0] : NULL;

    if (!e)
        return NULL;
    w->heap[0] = e->after ? e->after : w->heap[--w->n];
    if (w->n)
        walk_sift(w, 0);
    return e;
}

/* No job of a full or closed type can start. */
static void walk_leave(struct walk *w, const struct type *t)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < w->n; i++)
        if (w->heap[i]->type != t)
            w->heap[kept++] = w->heap[i];
    w->n = kept;
    walk_sort(w);
}

static struct entry *entry_pick(struct amp_order *o, const struct amp_order_want *want)
{
    const struct entry *behind;
    struct entry *e;
    struct walk w;

    o->now_ms = want->now_ms;
    walk_begin(&w, o, want->types, want->n_types);
    while ((e = walk_next(&w))) {
        enum amp_waits why = entry_waits(o, e, &behind);
        if (why == AMP_WAITS_TURN)
            return e;
        if (why == AMP_WAITS_LIMIT || why == AMP_WAITS_ACCOUNT)
            walk_leave(&w, e->type);
    }
    return NULL;
}

int amp_order_pick(struct amp_order *o, const struct amp_order_want *want, struct amp_span *id,
                   struct amp_error *err)
{
    const struct entry *e = entry_pick(o, want);

    if (want->n_types > TYPES_MAX)
        return amp_fail(err, AMP_USAGE, too_many_types, "a worker takes at most %d types",
                        TYPES_MAX);
    *id = e ? amp_span_str(e->id) : AMP_SPAN("");
    return e != NULL;
}

/* ---- claims ---- */

/* Parked jobs whose time has come wait again. *wake: the earliest time of the others. */
static int parked_wake(struct amp_order *o, const struct amp_order_want *want,
                       struct amp_error *err)
{
    bool woken = false;

    if (o->wake_known && (!o->wake_ms || o->wake_ms > want->now_ms))
        return 0;
    o->wake_ms = 0;
    for (struct entry *e = o->parked; e; e = e->after) {
        struct amp_queue_step st = {.event = AMP_QUEUE_EV_WAKE,
                                    .id = amp_span_str(e->id),
                                    .actor = want->actor,
                                    .now_ms = want->now_ms};
        if (e->until_ms > want->now_ms || !e->until_ms) {
            if (e->until_ms && (!o->wake_ms || e->until_ms < o->wake_ms))
                o->wake_ms = e->until_ms;
            continue;
        }
        woken = true;
        if (amp_queue_step(o->store, &st, &o->mem, NULL, err) < 0)
            return -1;
    }
    o->wake_known = true;
    return woken ? amp_order_look(o, err) : 0;
}

/* In a turn: no other process changes a job between the look and the claim, so the pick is exact.
 */
static int claim_make(struct amp_order *o, const struct amp_order_want *want, struct amp_buf *mem,
                      struct amp_queue_job *out, struct amp_error *err)
{
    struct amp_queue_step st = {.event = AMP_QUEUE_EV_CLAIM,
                                .worker = want->worker,
                                .actor = want->actor,
                                .now_ms = want->now_ms};

    if (amp_order_look(o, err) < 0 || parked_wake(o, want, err) < 0)
        return -1;
    int rc = amp_order_pick(o, want, &st.id, err);
    if (rc > 0 && want->before) {
        /* The update after a look is in its turn, so there is another look. */
        if (want->before(want->before_ctx, err) < 0 || amp_order_look(o, err) < 0)
            return -1;
        rc = amp_order_pick(o, want, &st.id, err);
    }
    return rc > 0 && amp_queue_step(o->store, &st, mem, out, err) < 0 ? -1 : rc;
}

int amp_order_claim(struct amp_order *o, const struct amp_order_want *want, struct amp_buf *mem,
                    struct amp_queue_job *out, int64_t *wake_ms, struct amp_error *err)
{
    bool own = !amp_store_in_batch(o->store);

    if (own && amp_store_begin(o->store, err) < 0)
        return -1;
    int rc = claim_make(o, want, mem, out, err);
    if (own)
        amp_store_end(o->store);
    if (rc == 0 && wake_ms)
        *wake_ms = o->wake_ms;
    return rc;
}

/* ---- rivals ---- */

struct room {
    const struct entry *victim; /* the least urgent that could make it; NULL: none */
    bool ends;                  /* another one is ending for the same job */
};

static void room_try(struct room *r, const struct entry *h, const struct entry *e)
{
    const struct entry *v = r->victim;

    if (h->state == AMP_QUEUE_PREEMPTING)
        r->ends = r->ends || strcmp(h->asked_by, e->id) == 0;
    else if (!v || h->priority > v->priority || (h->priority == v->priority && h->seq > v->seq))
        r->victim = h;
}

/* Whether all jobs at work that have e's scope may be asked to yield to it. */
static bool scope_yields(struct amp_order *o, const struct entry *e, struct room *r)
{
    const struct entry *b = blocker_find(o, e);

    if (b && o->pairs.n_ordered && before_find(o, e))
        return false;
    for (; b; b = overlap_find(o, e->scope, b)) {
        if (is_permitted(o, e, b))
            continue;
        if (b->priority <= e->priority || is_asked(o, e, b))
            return false;
        room_try(r, b, e);
    }
    return true;
}

int amp_order_rival(struct amp_order *o, const struct amp_order_want *want, bool full,
                    struct amp_order_rival *out, struct amp_error *err)
{
    const struct entry *behind;
    struct entry *e;
    struct walk w;

    if (amp_order_look(o, err) < 0)
        return -1;
    o->now_ms = want->now_ms;
    walk_begin(&w, o, want->types, want->n_types);
    while ((e = walk_next(&w))) {
        struct room r = {0};
        enum amp_waits why = entry_waits(o, e, &behind);
        if (why == AMP_WAITS_ACCOUNT)
            walk_leave(&w, e->type);
        if (why == AMP_WAITS_CONFLICT || why == AMP_WAITS_HELD || why == AMP_WAITS_ACCOUNT ||
            why == AMP_WAITS_FOLLOWS)
            continue;
        if (why == AMP_WAITS_TURN && !full)
            return 0; /* it can start */
        if (!scope_yields(o, e, &r))
            continue;
        /* A place: of its type, or of the worker. */
        bool scope = r.victim || r.ends || why == AMP_WAITS_SCOPE;
        for (const struct entry *h = scope ? NULL : o->held; h; h = h->after)
            if (why == AMP_WAITS_LIMIT ? h->type == e->type
                                       : want->worker && strcmp(h->worker, want->worker) == 0)
                room_try(&r, h, e);
        if (r.ends)
            return 0;
        const struct entry *v = r.victim;
        if (v && e->priority < v->priority) {
            *out = (struct amp_order_rival){.victim = amp_span_str(v->id),
                                            .by = amp_span_str(e->id),
                                            .worker = amp_span_str(v->worker),
                                            .victim_priority = v->priority,
                                            .by_priority = e->priority};
            return 1;
        }
        if (why != AMP_WAITS_SCOPE)
            return 0; /* the others are not more urgent */
    }
    return 0;
}

/* ---- conflicts ---- */

static bool is_undecided(const struct amp_order *o, const struct entry *e,
                         const struct entry *other)
{
    const struct amp_pair *p = amp_pairs_find(&o->pairs, e->id, other->id);

    return !p || (p->state == AMP_CONFLICT_UNJUDGED && p->until_ms <= o->now_ms);
}

int amp_order_meets(struct amp_order *o, const struct amp_order_want *want, uint32_t most,
                    amp_order_meet_fn fn, void *ctx, struct amp_error *err)
{
    const struct entry *behind;
    struct entry *e;
    struct walk w;
    uint32_t looked = 0;
    int rc = 0;

    o->now_ms = want->now_ms;
    walk_begin(&w, o, want->types, want->n_types);
    while (rc == 0 && most && looked++ < MEETS_LOOK && (e = walk_next(&w))) {
        enum amp_waits why = entry_waits(o, e, &behind);
        if (why == AMP_WAITS_LIMIT)
            walk_leave(&w, e->type);
        if (why != AMP_WAITS_SCOPE && why != AMP_WAITS_CONFLICT)
            continue;
        for (const struct entry *h = overlap_find(o, e->scope, NULL); h && rc == 0 && most;
             h = overlap_find(o, e->scope, h)) {
            if (!is_undecided(o, e, h))
                continue;
            most--;
            rc = fn(ctx, amp_span_str(e->id), amp_span_str(h->id), err);
        }
    }
    return rc < 0 ? -1 : 0;
}

int amp_order_pairs(struct amp_order *o, amp_order_pair_fn fn, void *ctx, struct amp_error *err)
{
    int rc = 0;

    for (const struct amp_pair *p = o->pairs.first; p && rc == 0; p = p->after) {
        const struct amp_order_pair now = {p->a, p->b, p->state, p->until_ms,
                                           !*entry_place(o, amp_span_str(p->a)) ||
                                               !*entry_place(o, amp_span_str(p->b))};
        rc = fn(ctx, &now, err);
    }
    return rc < 0 ? -1 : 0;
}

/* ---- places ---- */

static void place_fill(struct amp_order *o, const struct entry *e, int64_t now_ms,
                       uint64_t position, struct amp_order_place *out)
{
    const struct entry *behind;
    int64_t most = type_most(o, e->type);

    *out = (struct amp_order_place){.why = entry_waits(o, e, &behind), .position = position};
    if (out->why == AMP_WAITS_TURN && most > 0 && position > (uint64_t)most - e->type->n.working)
        out->why = AMP_WAITS_BEHIND;
    out->effective = amp_priority_aged(e->priority, now_ms - e->submitted_ms, o->opt.ageing_ms);
    out->behind = behind ? amp_span_str(behind->id) : AMP_SPAN("");
    out->until_ms = out->why == AMP_WAITS_PARKED    ? e->until_ms
                    : out->why == AMP_WAITS_ACCOUNT ? type_closed(o, e->type)
                                                    : 0;
}

/* The number of jobs of a level that are before e. */
static uint64_t level_before(const struct amp_order *o, size_t level, const struct entry *e)
{
    const struct entry *last = e->type->last[level];
    uint64_t n = 0;

    if (!last || is_before(o, last, e))
        return e->type->level[level];
    if (last == e)
        return e->type->level[level] - 1;
    for (const struct entry *w = e->type->first[level]; w && w != e && is_before(o, w, e);
         w = w->after)
        n++;
    return n;
}

static uint64_t position_find(const struct amp_order *o, const struct entry *e)
{
    uint64_t n = 1;

    for (size_t k = 0; k < AMP_QUEUE_LEVELS; k++)
        n += level_before(o, k, e);
    return n;
}

int amp_order_place(struct amp_order *o, struct amp_span id, int64_t now_ms,
                    struct amp_order_place *out, struct amp_error *err)
{
    const struct entry *e = *entry_place(o, id);

    (void)err;
    if (!e || amp_queue_held(e->state))
        return 0;
    o->now_ms = now_ms;
    place_fill(o, e, now_ms, e->state == AMP_QUEUE_PARKED ? 0 : position_find(o, e), out);
    return 1;
}

/* Whether the new job overlaps e, and nothing permits it. */
static bool is_beside(const struct amp_order *o, const struct entry *new, const struct entry *e)
{
    return !is_permitted(o, new, e) && amp_scopes_meet(new->scope, e->scope, o->opt.patterns);
}

/* The jobs of a type that are before the new one and could start now, up to its free places.
 * *found: the first whose scope overlaps that of the new one, unless it is set. Returns whether
 * they take all places. */
static bool type_ahead(struct amp_order *o, const struct type *t, const struct entry *new,
                       const struct entry **found)
{
    const struct amp_span type = amp_span_str(t->name);
    const struct entry *behind;
    int64_t most = type_most(o, t), n = (int64_t)t->n.working;
    struct entry *e;
    struct walk w;

    walk_begin(&w, o, &type, 1);
    while ((most <= 0 || n < most) && (e = walk_next(&w)) && is_before(o, e, new)) {
        if (entry_waits(o, e, &behind) != AMP_WAITS_TURN)
            continue;
        n++;
        if (!*found && is_beside(o, new, e))
            *found = e;
    }
    return most > 0 && n >= most;
}

int amp_order_try(struct amp_order *o, const struct amp_queue_job *job, int64_t now_ms,
                  struct amp_order_place *out, struct amp_error *err)
{
    const struct entry *behind, *ahead = NULL;
    struct entry *e = calloc(1, sizeof *e);

    if (!e)
        return amp_fail_memory(err);
    if (entry_fill(o, e, job, err) < 0) {
        entry_free(o, e);
        return -1;
    }
    e->state = AMP_QUEUE_QUEUED;
    e->seq = INT64_MAX;
    e->submitted_ms = now_ms;
    o->now_ms = now_ms;
    enum amp_waits why = entry_waits(o, e, &behind);
    if (why == AMP_WAITS_TURN && type_ahead(o, e->type, e, &ahead))
        why = AMP_WAITS_LIMIT;
    for (size_t i = 0; why == AMP_WAITS_TURN && !ahead && i < o->n_types; i++)
        if (o->types[i] != e->type)
            type_ahead(o, o->types[i], e, &ahead);
    if (why == AMP_WAITS_TURN && ahead) {
        why = AMP_WAITS_SCOPE;
        behind = ahead;
    }
    *out = (struct amp_order_place){.why = why,
                                    .effective = e->priority,
                                    .behind = behind ? amp_span_str(behind->id) : AMP_SPAN("")};
    entry_free(o, e);
    return 0;
}

bool amp_order_type(const struct amp_order *o, size_t i, struct amp_span *out)
{
    if (i >= o->n_types)
        return false;
    *out = amp_span_str(o->types[i]->name);
    return true;
}

bool amp_order_knows(const struct amp_order *o, struct amp_span type)
{
    return type_find(o, type) != NULL;
}

int amp_order_counts(struct amp_order *o, struct amp_span type, struct amp_order_counts *out,
                     struct amp_error *err)
{
    const struct type *t = type_find(o, type);

    (void)err;
    *out = t ? t->n : (struct amp_order_counts){0};
    return 0;
}

int amp_order_each(struct amp_order *o, int64_t now_ms, amp_order_each_fn fn, void *ctx,
                   struct amp_error *err)
{
    struct amp_order_place p;
    const struct entry *e;
    struct walk walk;
    int rc = 0;

    o->now_ms = now_ms;
    for (size_t i = 0; i < o->n_types && rc == 0; i++) {
        const struct amp_span type = amp_span_str(o->types[i]->name);
        uint64_t position = 0;
        walk_begin(&walk, o, &type, 1);
        while (rc == 0 && (e = walk_next(&walk))) {
            place_fill(o, e, now_ms, ++position, &p);
            rc = fn(ctx, amp_span_str(e->id), &p, err);
        }
    }
    for (e = o->parked; e && rc == 0; e = e->after) {
        place_fill(o, e, now_ms, 0, &p);
        rc = fn(ctx, amp_span_str(e->id), &p, err);
    }
    return rc < 0 ? -1 : 0;
}

const char *amp_waits_name(enum amp_waits w)
{
    AMP_WORDS(names, AMP_WAITS);

    return names[w];
}
