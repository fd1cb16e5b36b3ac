/* Finding the frames of a conversation, a message, an agent or a session. */
#include "message/delivery/history/find.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "message/store/history/search.h"

#define BLOB_MOST ((size_t)64 << 20)

struct amp_history_finder {
    struct amp_store *s;
    struct amp_history *history;
    struct amp_store_search *search; /* NULL: all frames are wanted */
    bool searched;                   /* the frames of the search were read */
    struct amp_store_place at;
    volatile const int *stop;
    amp_history_fn fn;
    void *ctx;
};

static int blob_read(void *ctx, struct amp_span name, struct amp_buf *out, struct amp_error *err)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/blob/%.*s", amp_store_dir(ctx), (int)name.n, name.p);
    return amp_file_read(AT_FDCWD, path, BLOB_MOST, out, err);
}

/* The conversation has a new message, or a line in an outbox. */
static int learn(void *ctx, struct amp_span id, uint64_t n, struct amp_error *err)
{
    struct amp_history_finder *d = ctx;
    if (!d->search)
        return 0;
    return n ? amp_store_search_closes(d->search, n, err)
             : amp_store_search_text(d->search, id, err);
}

/* The texts that every row of the filter is found by. */
static int seeds_add(struct amp_history_finder *d, const struct amp_history_filter *f,
                     struct amp_error *err)
{
    struct amp_span first = f->correlation.n ? f->correlation
                            : f->session.n   ? f->session
                            : f->id.n        ? f->id
                                             : f->agent;
    return amp_store_search_text(d->search, first, err) < 0 ||
                   (f->correlation.n && f->session.n &&
                    amp_store_search_text(d->search, f->session, err) < 0)
               ? -1
               : 0;
}

int amp_history_finder_open(struct amp_store *s, const struct amp_history_filter *f,
                            volatile const int *stop, struct amp_history_finder **out,
                            struct amp_error *err)
{
    char since[AMP_TIME_MAX] = "";
    struct amp_history_filter mine = *f;
    struct amp_history_finder *d = calloc(1, sizeof *d);
    if (!d)
        return amp_fail_memory(err);
    d->s = s;
    d->stop = stop;
    mine.blob = blob_read;
    mine.blob_ctx = s;
    mine.learn = learn;
    mine.learn_ctx = d;
    if (f->since_ms > 0)
        amp_time_format(f->since_ms, since);
    /* Earlier frames of a conversation name its messages. */
    bool grows = f->correlation.n || f->session.n;
    int rc = 0;
    d->history = amp_history_new(&mine, err);
    if (!d->history)
        rc = -1;
    else if (grows || f->id.n || f->agent.n)
        rc = amp_store_search_open(s, grows || !*since ? NULL : since, &d->search, err) < 0
                 ? -1
                 : seeds_add(d, f, err);
    else if (*since)
        rc = amp_store_place_since(s, since, &d->at, err);
    if (rc < 0) {
        amp_history_finder_free(d);
        return -1;
    }
    *out = d;
    return 0;
}

void amp_history_finder_free(struct amp_history_finder *d)
{
    if (!d)
        return;
    amp_history_free(d->history);
    amp_store_search_free(d->search);
    free(d);
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    struct amp_history_finder *d = ctx;
    if (d->stop && *d->stop)
        return 1;
    int rc = d->search ? amp_store_search_wants(d->search, frame, err) : 1;
    return rc <= 0 ? rc : amp_history_frame(d->history, n, frame, d->fn, d->ctx, err);
}

static int search_read(struct amp_history_finder *d, struct amp_error *err)
{
    struct amp_span frame;
    uint64_t n;
    int rc;
    while ((rc = amp_store_search_next(d->search, &n, &frame, err)) == 1) {
        if (d->stop && *d->stop)
            return 1;
        rc = amp_history_frame(d->history, n, frame, d->fn, d->ctx, err);
        if (rc != 0)
            return rc;
    }
    return rc;
}

void amp_history_finder_begin(struct amp_history_finder *d, const struct amp_store_place *at)
{
    if (!d->search)
        d->at = *at;
}

int amp_history_finder_read(struct amp_history_finder *d, amp_history_fn fn, void *ctx,
                            struct amp_error *err)
{
    d->fn = fn;
    d->ctx = ctx;
    if (d->search && !d->searched) {
        int rc = search_read(d, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        d->searched = true;
        d->at = amp_store_search_end(d->search);
        return 0;
    }
    return amp_store_frames_on(d->s, &d->at, frame_fn, d, err);
}
