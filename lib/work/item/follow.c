/* Jobs that follow other jobs. */
#include "work/item/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/words.h"

enum { CYCLE_MOST = 10000 }; /* jobs that the search for a cycle looks at */

int amp_follow_else(struct amp_span word)
{
    AMP_WORDS(words, AMP_FOLLOW_ELSE);

    return word.n ? amp_word_find(words, word) : AMP_FOLLOW_FAIL;
}

bool amp_follow_next(struct amp_span *list, struct amp_span *id)
{
    while (list->n && *list->p == ' ')
        *list = (struct amp_span){list->p + 1, list->n - 1};
    const char *end = memchr(list->p, ' ', list->n);
    size_t n = end ? (size_t)(end - list->p) : list->n;

    *id = (struct amp_span){list->p, n};
    *list = (struct amp_span){list->p + n, list->n - n};
    return n > 0;
}

/* The jobs that lead to one: a search in depth, in which each job is looked at once. */
struct node {
    char id[AMP_QUEUE_ID_MAX];
    size_t by; /* the node that follows it; 0: the new job */
};

static int node_add(struct node *v, size_t *n, struct amp_span id, size_t by, struct amp_error *err)
{
    for (size_t i = 1; i < *n; i++)
        if (amp_span_is(id, v[i].id))
            return 0;
    if (*n == CYCLE_MOST)
        return amp_fail(err, AMP_NO, too_many_jobs, "it follows more than %d jobs", CYCLE_MOST);
    if (!amp_span_copy(id, v[*n].id, sizeof v[*n].id))
        return amp_fail(err, AMP_NO, unknown_job, "no job %.*s", AMP_CLIP(id, 64));
    v[(*n)++].by = by;
    return 0;
}

static int cycle_refuse(const struct node *v, size_t at, struct amp_span id, struct amp_error *err)
{
    char path[512];
    size_t n = 0;

    for (; at && n + 64 < sizeof path; at = v[at].by)
        n += (size_t)snprintf(path + n, sizeof path - n, "%s%s", n ? " before " : "", v[at].id);
    return amp_fail(err, AMP_NO, follow_cycle, "job %.*s follows itself: %s", AMP_CLIP(id, 64),
                    path);
}

static int all_add(struct node *v, size_t *n, struct amp_span follows, size_t by,
                   struct amp_error *err)
{
    struct amp_span one;

    while (amp_follow_next(&follows, &one))
        if (node_add(v, n, one, by, err) < 0)
            return -1;
    return 0;
}

int amp_follow_check(struct amp_store *s, struct amp_span id, struct amp_span follows,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    AMP_FREE struct node *v = calloc(CYCLE_MOST, sizeof *v);
    struct amp_queue_job job;
    size_t n = 1;

    if (!v)
        return amp_fail_memory(err);
    if (all_add(v, &n, follows, 0, err) < 0)
        return -1;
    for (size_t i = 1; i < n; i++) {
        struct amp_span one = amp_span_str(v[i].id);
        if (amp_span_eq(one, id))
            return cycle_refuse(v, i, id, err);
        int found = amp_queue_read(s, one, &mem, &job, err);
        if (found == 0 && v[i].by == 0)
            return amp_fail(err, AMP_NO, unknown_job, "no job %s", v[i].id);
        /* What has ended waits for nothing. */
        if (found < 0 ||
            (found && !amp_queue_ended(job.state) && all_add(v, &n, job.follows, i, err) < 0))
            return -1;
    }
    return 0;
}

int amp_follow_failed(struct amp_store *s, const struct amp_queue_job *job,
                      char which[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_span list = job->follows, one;
    struct amp_queue_job other;

    while (amp_follow_next(&list, &one)) {
        int found = amp_queue_read(s, one, &mem, &other, err);
        if (found < 0)
            return -1;
        if (found && other.state == AMP_QUEUE_DONE)
            continue;
        amp_span_copy(one, which, AMP_QUEUE_ID_MAX);
        return 1;
    }
    return 0;
}
