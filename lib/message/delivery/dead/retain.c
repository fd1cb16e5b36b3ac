/*
 * Retention of dead letters. The index orders them by their last failure, so only the letters to
 * remove are read. All of them are selected before the first is removed; a letter that failed again
 * or was requeued in between stays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "message/delivery/dead/dead.h"

struct chosen {
    char *id;
    size_t n;
    uint64_t rev;
};

struct choice {
    struct chosen *v;
    size_t n, cap;
    size_t over;      /* the number of letters above the limit */
    int64_t until_ms; /* older letters are removed, too */
    amp_dead_fn fn;
    void *ctx;
};

/* Called with the oldest letters first; stops at the first one that stays. */
static int letter_choose(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                         struct amp_span json, struct amp_error *err)
{
    struct choice *c = ctx;
    if (c->n >= c->over && d->failed_ms > c->until_ms)
        return 1;
    if (amp_grow(&c->v, &c->cap, c->n, sizeof *c->v, err) < 0)
        return -1;
    char *copy = amp_span_dup(id);
    if (!copy)
        return amp_fail_memory(err);
    c->v[c->n++] = (struct chosen){copy, id.n, d->rev};
    return c->fn ? c->fn(c->ctx, id, d, json, err) : 0;
}

static int surplus_count(struct amp_store *s, const struct amp_dead_limits *l, size_t *over,
                         struct amp_error *err)
{
    uint64_t count = 0;
    *over = 0;
    if (l->max_count <= 0)
        return 0;
    if (amp_store_count(s, AMP_DEAD_KIND, &count, err) < 0)
        return -1;
    if (count > (uint64_t)l->max_count)
        *over = (size_t)(count - (uint64_t)l->max_count);
    return 0;
}

/* 1: removed; 0: the letter has changed since it was selected. */
static int letter_retire(struct amp_store *s, const struct chosen *l, const char *actor,
                         struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_dead_remove(s, (struct amp_span){l->id, l->n}, l->rev, "retire", actor, &e) == 0)
        return 1;
    return amp_fail_unless_no(err, &e);
}

int amp_dead_retain(struct amp_store *s, const struct amp_dead_limits *limits, int64_t now_ms,
                    const char *actor, bool dry, amp_dead_fn fn, void *ctx, uint32_t *removed,
                    struct amp_error *err)
{
    struct choice c = {.fn = fn, .ctx = ctx};
    uint32_t done = 0;
    c.until_ms = limits->max_age_ms > 0 ? now_ms - limits->max_age_ms : INT64_MIN;
    int rc = surplus_count(s, limits, &c.over, err);
    if (rc == 0 && (c.over > 0 || limits->max_age_ms > 0))
        rc = amp_dead_oldest(s, c.over > 0 ? INT64_MAX : c.until_ms, letter_choose, &c, err);
    for (size_t i = 0; i < c.n && rc >= 0; i++) {
        rc = dry ? 1 : letter_retire(s, &c.v[i], actor, err);
        done += rc > 0;
    }
    for (size_t i = 0; i < c.n; i++)
        free(c.v[i].id);
    free(c.v);
    if (rc < 0)
        return -1;
    *removed = done;
    return 0;
}

int amp_dead_next_due(struct amp_store *s, const struct amp_dead_limits *limits, int64_t *due_ms,
                      struct amp_error *err)
{
    size_t over;
    int64_t oldest = 0;
    if (surplus_count(s, limits, &over, err) < 0 ||
        ((over > 0 || limits->max_age_ms > 0) &&
         amp_store_next_due(s, AMP_DEAD_KIND, &oldest, err) < 0))
        return -1;
    *due_ms = oldest == 0 ? 0 : over > 0 ? oldest : oldest + limits->max_age_ms;
    return 0;
}
