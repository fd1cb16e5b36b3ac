/*
 * Retention of dead letters. The index orders them by their last failure, so that only what goes
 * is read. Which letters go is decided before the first of them does; one that failed again, or was
 * sent again, in between stays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "message/dead/dead.h"

struct chosen {
    char *id;
    size_t n;
    uint64_t rev;
};

struct choice {
    struct chosen *v;
    size_t n, cap;
    size_t over;      /* so many go because there are too many */
    int64_t until_ms; /* and those that failed then or before */
    amp_dead_fn fn;
    void *ctx;
};

/* They come the oldest first: the first that may stay is the end. */
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
    for (size_t i = 0; i < c.n && rc == 0; i++) {
        struct amp_error e = {0};
        if (!dry && amp_dead_remove(s, (struct amp_span){c.v[i].id, c.v[i].n}, c.v[i].rev, "retire",
                                    actor, &e) < 0) {
            if (e.status == AMP_NO)
                continue;
            if (err)
                *err = e;
            rc = -1;
        } else {
            done++;
        }
    }
    for (size_t i = 0; i < c.n; i++)
        free(c.v[i].id);
    free(c.v);
    if (rc == 0)
        *removed = done;
    return rc < 0 ? -1 : 0;
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
