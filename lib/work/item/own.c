/* A worker's own jobs, and their order. */
#include "work/item/own.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/store/history/history.h"

#define TABLE_MIN 64

/* Each job is in two tables: by the key of its record, and by that of the record that ranks it. */
enum table { BY_KEY, BY_RANK, TABLES };

struct entry {
    char *key; /* with msg_id and task in the same block */
    const char *id, *task;
    struct entry *next[TABLES]; /* in the same bucket */
    size_t hash[TABLES];
    int64_t rank, taken_ms, seq;
    int64_t until_ms; /* of a parked job; else 0 */
    struct heap *in;  /* NULL: it is held */
    size_t at;        /* its place there, or among the held ones */
    char *until;      /* of a held job; else NULL */
};

/* The first entry is before all others. */
struct heap {
    struct entry **v;
    size_t n, cap;
    bool (*before)(const struct entry *a, const struct entry *b);
};

struct amp_own_order {
    struct amp_store *store;
    struct amp_own_order_options opt;
    struct amp_store_place place;
    const char *kinds[AMP_OWN_FOLLOWS_MAX + 2];
    char prefix[AMP_KEY_MAX + 1]; /* of the keys of its jobs */
    struct entry **bucket[TABLES];
    size_t n_buckets, n;
    struct heap ready, parked;
    struct entry **held;
    size_t n_held, cap_held;
    struct amp_buf changed; /* keys, with a NUL each */
};

/* ---- the order ---- */

static bool is_before(const struct entry *a, const struct entry *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->taken_ms != b->taken_ms)
        return a->taken_ms < b->taken_ms;
    return a->seq != b->seq ? a->seq < b->seq : strcmp(a->id, b->id) < 0;
}

static bool is_sooner(const struct entry *a, const struct entry *b)
{
    return a->until_ms < b->until_ms;
}

static void heap_set(struct heap *h, size_t at, struct entry *e)
{
    h->v[at] = e;
    e->at = at;
}

/* Moves an entry from its place up or down to where it belongs. */
static void heap_settle(struct heap *h, struct entry *e)
{
    size_t at = e->at;
    for (; at > 0 && h->before(e, h->v[(at - 1) / 2]); at = (at - 1) / 2)
        heap_set(h, at, h->v[(at - 1) / 2]);
    for (size_t under = 2 * at + 1; under < h->n; under = 2 * at + 1) {
        if (under + 1 < h->n && h->before(h->v[under + 1], h->v[under]))
            under++;
        if (!h->before(h->v[under], e))
            break;
        heap_set(h, at, h->v[under]);
        at = under;
    }
    heap_set(h, at, e);
}

static int heap_add(struct heap *h, struct entry *e, struct amp_error *err)
{
    if (amp_grow(&h->v, &h->cap, h->n, sizeof *h->v, err) < 0)
        return -1;
    heap_set(h, h->n++, e);
    e->in = h;
    heap_settle(h, e);
    return 0;
}

static void heap_remove(struct entry *e)
{
    struct heap *h = e->in;
    struct entry *last = h->v[--h->n];
    e->in = NULL;
    if (last == e)
        return;
    heap_set(h, e->at, last);
    heap_settle(h, last);
}

static int entry_queue(struct amp_own_order *o, struct entry *e, struct amp_error *err)
{
    return heap_add(e->until_ms > 0 ? &o->parked : &o->ready, e, err);
}

static void held_remove(struct amp_own_order *o, struct entry *e)
{
    struct entry *last = o->held[--o->n_held];
    o->held[e->at] = last;
    last->at = e->at;
    free(e->until);
    e->until = NULL;
}

/* Frees the jobs that wait for this record; key "": the jobs that wait for none. */
static int held_free(struct amp_own_order *o, const char *key, struct amp_error *err)
{
    for (size_t i = o->n_held; i-- > 0;) {
        struct entry *e = o->held[i];
        if (*key ? !*e->until || !amp_span_starts(amp_span_str(key), e->until) : *e->until != '\0')
            continue;
        held_remove(o, e);
        if (entry_queue(o, e, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the tables ---- */

static size_t text_hash(const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static struct entry **bucket_of(const struct amp_own_order *o, enum table t, size_t hash)
{
    return &o->bucket[t][hash & (o->n_buckets - 1)];
}

static void entry_link(struct amp_own_order *o, enum table t, struct entry *e)
{
    struct entry **at = bucket_of(o, t, e->hash[t]);
    e->next[t] = *at;
    *at = e;
}

static void entry_unlink(struct amp_own_order *o, enum table t, struct entry *e)
{
    struct entry **at = bucket_of(o, t, e->hash[t]);
    while (*at != e)
        at = &(*at)->next[t];
    *at = e->next[t];
}

static int tables_grow(struct amp_own_order *o, struct amp_error *err)
{
    size_t was = o->n_buckets, n = was ? was * 2 : TABLE_MIN;
    struct entry **old[TABLES], **now[TABLES];
    now[BY_KEY] = calloc(n, sizeof *now[BY_KEY]);
    now[BY_RANK] = calloc(n, sizeof *now[BY_RANK]);
    if (!now[BY_KEY] || !now[BY_RANK]) {
        free(now[BY_KEY]);
        free(now[BY_RANK]);
        return amp_fail_memory(err);
    }
    memcpy(old, o->bucket, sizeof old);
    memcpy(o->bucket, now, sizeof now);
    o->n_buckets = n;
    for (enum table t = BY_KEY; t < TABLES; t++) {
        for (size_t i = 0; i < was; i++)
            for (struct entry *e = old[t][i], *next; e; e = next) {
                next = e->next[t];
                entry_link(o, t, e);
            }
        free(old[t]);
    }
    return 0;
}

static struct entry *entry_find(const struct amp_own_order *o, const char *key)
{
    struct entry *e = *bucket_of(o, BY_KEY, text_hash(key));
    while (e && strcmp(e->key, key) != 0)
        e = e->next[BY_KEY];
    return e;
}

/* ---- entries ---- */

static void entry_free(struct entry *e)
{
    free(e->until);
    free(e->key);
    free(e);
}

static void entry_remove(struct amp_own_order *o, struct entry *e)
{
    if (e->in)
        heap_remove(e);
    else
        held_remove(o, e);
    entry_unlink(o, BY_KEY, e);
    entry_unlink(o, BY_RANK, e);
    o->n--;
    entry_free(e);
}

/* Ranks an entry that is in no heap and not in the table of ranks. */
static int entry_rank(struct amp_own_order *o, struct entry *e, struct amp_error *err)
{
    char by[AMP_KEY_MAX] = "";
    if (o->opt.rank && o->opt.rank(o->opt.ctx, e->id, e->task, by, &e->rank, err) < 0)
        return -1;
    e->hash[BY_RANK] = text_hash(by);
    return 0;
}

static int entry_new(struct amp_own_order *o, const char *key, const struct amp_item *job,
                     struct amp_error *err)
{
    size_t n_key = strlen(key) + 1, n_id = strlen(job->msg_id) + 1, n_task = strlen(job->task) + 1;
    struct entry *e = calloc(1, sizeof *e);
    if (!e || !(e->key = malloc(n_key + n_id + n_task))) {
        free(e);
        return amp_fail_memory(err);
    }
    memcpy(e->key, key, n_key);
    e->id = memcpy(e->key + n_key, job->msg_id, n_id);
    e->task = memcpy(e->key + n_key + n_id, job->task, n_task);
    e->taken_ms = job->submitted_ms;
    e->seq = job->seq;
    e->until_ms = job->state == AMP_QUEUE_PARKED ? job->until_ms : 0;
    if ((o->n >= o->n_buckets && tables_grow(o, err) < 0) || entry_rank(o, e, err) < 0 ||
        entry_queue(o, e, err) < 0) {
        entry_free(e);
        return -1;
    }
    e->hash[BY_KEY] = text_hash(key);
    entry_link(o, BY_KEY, e);
    entry_link(o, BY_RANK, e);
    o->n++;
    return 0;
}

static int entry_put(struct amp_own_order *o, const char *key, const struct amp_item *job,
                     struct amp_error *err)
{
    struct entry *e = entry_find(o, key);
    if (!e)
        return entry_new(o, key, job, err);
    e->until_ms = job->state == AMP_QUEUE_PARKED ? job->until_ms : 0;
    if (!e->in)
        return 0;
    heap_remove(e);
    return entry_queue(o, e, err);
}

/* The record that ranks some jobs has changed. */
static int entries_rank(struct amp_own_order *o, const char *by, struct amp_error *err)
{
    size_t hash = text_hash(by);
    for (struct entry *e = *bucket_of(o, BY_RANK, hash); e; e = e->next[BY_RANK]) {
        if (e->hash[BY_RANK] != hash)
            continue;
        if (entry_rank(o, e, err) < 0)
            return -1;
        if (e->in)
            heap_settle(e->in, e);
    }
    return 0;
}

static int record_look(struct amp_own_order *o, const char *key, struct amp_error *err)
{
    return entries_rank(o, key, err) < 0 || held_free(o, key, err) < 0 ? -1 : 0;
}

/* ---- records ---- */

static int own_get(struct amp_store *s, const char *key, struct amp_item *out,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_queue_job job;
    int found =
        amp_subject_find(&amp_queue_subject, s, AMP_KEY_TEXT(amp_span_str(key)), &mem, &job, err);

    if (found > 0)
        amp_item_of(&job, out);
    return found;
}

int amp_own_take(struct amp_store *s, const struct amp_own_take *t, enum amp_store_outcome *outcome,
                 struct amp_error *err)
{
    const struct amp_queue_job job = {.type = amp_span_str(t->type),
                                      .protocol = amp_span_str(t->protocol),
                                      .message = t->msg_id,
                                      .from = t->from,
                                      .task = t->task,
                                      .owner = amp_span_str(t->owner)};
    const struct amp_queue_submit q = {.job = &job,
                                       .line = t->line,
                                       .consumer = t->owner,
                                       .emits = t->emits,
                                       .n_emits = t->n_emits,
                                       .now_ms = t->now_ms};
    int64_t seq;

    if (memchr(t->msg_id.p, '\0', t->msg_id.n) || t->msg_id.n >= AMP_ITEM_NAME_MAX)
        return amp_fail(err, AMP_DATAERR, bad_msg_id, "a message's id is text of at most %d bytes",
                        AMP_ITEM_NAME_MAX - 1);
    if (t->task.n >= AMP_ITEM_NAME_MAX)
        return amp_fail(err, AMP_DATAERR, bad_record, "the name of the task is too long");
    return amp_queue_submit(s, &q, &seq, NULL, outcome, err);
}

/* Calls fn for each unfinished job of the owner; fn returns 0, 1 (skips the rest of its state) or
 * -1.
 */
typedef int (*own_each_fn)(void *ctx, const struct amp_item *job, struct amp_error *err);

struct search {
    const char *owner;
    own_each_fn fn;
    void *ctx;
};

static int on_job(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *job = rec;
    const struct search *q = ctx;
    struct amp_item item;

    if (!amp_span_is(job->owner, q->owner))
        return 0;
    amp_item_of(job, &item);
    return q->fn(q->ctx, &item, err);
}

static int own_each(struct amp_store *s, const char *owner, own_each_fn fn, void *ctx,
                    struct amp_error *err)
{
    struct search q = {owner, fn, ctx};

    for (uint8_t state = 0; state < amp_queue_fsm.n_states; state++)
        if (!amp_queue_ended(state) &&
            amp_subject_each(&amp_queue_subject, s, amp_queue_fsm.states[state].name, on_job, &q,
                             err) < 0)
            return -1;
    return 0;
}

static int on_any(void *ctx, const struct amp_item *job, struct amp_error *err)
{
    (void)job, (void)err;
    *(bool *)ctx = true;
    return 1;
}

int amp_own_any(struct amp_store *s, const char *owner, bool *any, struct amp_error *err)
{
    *any = false;
    return own_each(s, owner, on_any, any, err);
}

static bool is_ours(const struct amp_own_order *o, struct amp_span key)
{
    return amp_span_starts(key, o->prefix);
}

static int job_note(void *ctx, const struct amp_item *job, struct amp_error *err)
{
    struct amp_own_order *o = ctx;
    const struct amp_key own =
        AMP_KEY(AMP_QUEUE_KIND, amp_span_str(o->opt.consumer), amp_span_str(job->msg_id));
    char key[AMP_KEY_MAX];
    struct amp_span text;

    return amp_key_text(&own, key, &text, err) < 0 ? -1 : entry_put(o, key, job, err);
}

static int change_note(void *ctx, struct amp_span key, struct amp_error *err)
{
    struct amp_own_order *o = ctx;
    if (amp_span_starts(key, AMP_QUEUE_KIND ".") && !is_ours(o, key))
        return 0;
    return amp_buf_add(&o->changed, key.p, key.n, err) < 0 ||
                   amp_buf_add(&o->changed, "", 1, err) < 0
               ? -1
               : 0;
}

static int job_reread(struct amp_own_order *o, const char *key, struct amp_error *err)
{
    struct amp_item job;
    int found = own_get(o->store, key, &job, err);
    if (found < 0)
        return -1;
    if (found && !amp_queue_ended(job.state))
        return entry_put(o, key, &job, err);
    struct entry *e = entry_find(o, key);
    if (e)
        entry_remove(o, e);
    return 0;
}

static int log_follow(struct amp_own_order *o, struct amp_error *err)
{
    const char *last = "";
    amp_buf_reset(&o->changed);
    if (amp_store_changes_on(o->store, &o->place, o->kinds, change_note, o, err) < 0)
        return -1;
    for (size_t at = 0; at < o->changed.len; at += strlen(last) + 1) {
        const char *key = o->changed.data + at;
        /* Several steps of one record often follow each other. */
        bool again = strcmp(key, last) == 0;
        last = key;
        if (!again &&
            (amp_span_starts(amp_span_str(key), o->prefix) ? job_reread(o, key, err)
                                                           : record_look(o, key, err)) < 0)
            return -1;
    }
    return 0;
}

/* ---- for the worker ---- */

int amp_own_order_open(struct amp_own_order **out, struct amp_store *s,
                       const struct amp_own_order_options *opt, struct amp_error *err)
{
    const struct amp_key own = AMP_KEY(AMP_QUEUE_KIND, amp_span_str(opt->consumer));
    struct amp_own_order *o = calloc(1, sizeof *o);
    struct amp_span prefix;
    uint64_t after;
    if (!o)
        return amp_fail_memory(err);
    o->store = s;
    o->opt = *opt;
    o->kinds[0] = AMP_QUEUE_KIND;
    for (size_t i = 0; opt->follows && opt->follows[i] && i < AMP_OWN_FOLLOWS_MAX; i++)
        o->kinds[i + 1] = opt->follows[i];
    o->ready.before = is_before;
    o->parked.before = is_sooner;
    amp_buf_init(&o->changed, SIZE_MAX / 2);
    int rc = amp_key_text(&own, o->prefix, &prefix, err);
    if (rc == 0)
        memcpy(o->prefix + prefix.n, ".", 2);
    /* Get the place first, so that changes during the load are read again at the first look. */
    if (rc < 0 || tables_grow(o, err) < 0 ||
        amp_store_place_near_end(s, 1, &o->place, &after, err) < 0 ||
        own_each(s, opt->consumer, job_note, o, err) < 0) {
        amp_own_order_close(o);
        return -1;
    }
    *out = o;
    return 0;
}

void amp_own_order_close(struct amp_own_order *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_buckets; i++)
        for (struct entry *e = o->bucket[BY_KEY][i], *next; e; e = next) {
            next = e->next[BY_KEY];
            entry_free(e);
        }
    free(o->bucket[BY_KEY]);
    free(o->bucket[BY_RANK]);
    free(o->ready.v);
    free(o->parked.v);
    free(o->held);
    amp_buf_release(&o->changed);
    free(o);
}

static int parked_wake(struct amp_own_order *o, int64_t now_ms, struct amp_error *err)
{
    while (o->parked.n > 0 && o->parked.v[0]->until_ms <= now_ms) {
        struct entry *e = o->parked.v[0];
        heap_remove(e);
        if (heap_add(&o->ready, e, err) < 0)
            return -1;
    }
    return 0;
}

int amp_own_order_next(struct amp_own_order *o, int64_t now_ms, bool *found, struct amp_item *out,
                       int64_t *wake_ms, struct amp_error *err)
{
    if (log_follow(o, err) < 0 || parked_wake(o, now_ms, err) < 0)
        return -1;
    *found = o->ready.n > 0;
    *wake_ms = o->parked.n > 0 ? o->parked.v[0]->until_ms : 0;
    if (!*found)
        return 0;
    int rc = own_get(o->store, o->ready.v[0]->key, out, err);
    *found = rc > 0;
    return rc < 0 ? -1 : 0;
}

int amp_own_order_hold(struct amp_own_order *o, const char *msg_id, const char *until,
                       struct amp_error *err)
{
    const struct amp_key own =
        AMP_KEY(AMP_QUEUE_KIND, amp_span_str(o->opt.consumer), amp_span_str(msg_id));
    char key[AMP_KEY_MAX];
    struct amp_span text;
    if (amp_key_text(&own, key, &text, err) < 0)
        return -1;
    struct entry *e = entry_find(o, key);
    if (!e || !e->in)
        return 0;
    if (amp_grow(&o->held, &o->cap_held, o->n_held, sizeof *o->held, err) < 0)
        return -1;
    if (!(e->until = strdup(until)))
        return amp_fail_memory(err);
    heap_remove(e);
    e->at = o->n_held;
    o->held[o->n_held++] = e;
    return 0;
}

int amp_own_order_free_held(struct amp_own_order *o, struct amp_error *err)
{
    return held_free(o, "", err);
}

size_t amp_own_order_count(const struct amp_own_order *o)
{
    return o->n;
}

size_t amp_own_order_held(const struct amp_own_order *o, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_held; i++)
        n += amp_span_starts(amp_span_str(o->held[i]->until), text);
    return n;
}
