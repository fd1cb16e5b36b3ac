/*
 * What transitions committed comes out here: first on disk, then written, then closed. What a
 * killed run left open is written by the next one of its name, under the same ids.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "registry.h"

#define PENDING_MAX ((size_t)256 << 20)

int outbox_open(struct registry *r, struct amp_error *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/run", amp_store_dir(r->dir.store));
    if (amp_mkdirs(path, 0700, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/run/%s.lock", amp_store_dir(r->dir.store), r->name);
    r->lock = amp_file_open(AT_FDCWD, path, O_RDWR | O_CREAT, 0600, err);
    if (r->lock < 0)
        return -1;
    if (amp_lock(r->lock, reg_lock_timeout_ms, err) < 0)
        return strcmp(err->code, "lock_timeout") != 0
                   ? -1
                   : amp_fail(err, AMP_TEMPFAIL, "lock_timeout",
                              "another %s runs on this state directory: give this one another "
                              "name (--as)",
                              r->name);
    amp_buf_init(&r->turn, PENDING_MAX);
    return amp_outq_open(&r->out, STDOUT_FILENO, false, PENDING_MAX, err);
}

void outbox_close(struct registry *r)
{
    if (r->out.fd >= 0)
        amp_outq_close(&r->out);
    amp_buf_release(&r->turn);
    free(r->open);
    if (r->lock >= 0)
        close(r->lock);
    r->open = NULL;
    r->lock = -1;
}

struct giving {
    struct registry *r;
    struct amp_error *err;
    int rc;
};

static int give(void *ctx, const struct amp_store_entry *e)
{
    struct giving *g = ctx;
    struct registry *r = g->r;
    if (e->n <= r->emitted)
        return 0;
    if (r->n_open == r->cap_open) {
        size_t cap = r->cap_open ? r->cap_open * 2 : 64;
        struct reg_line *v = realloc(r->open, cap * sizeof(*v));
        if (!v) {
            g->rc = amp_fail_memory(g->err);
            return 1;
        }
        r->open = v;
        r->cap_open = cap;
    }
    if (amp_outq_add(&r->out, e->line, g->err) < 0 ||
        amp_outq_add(&r->out, AMP_SPAN("\n"), g->err) < 0) {
        g->rc = -1;
        return 1;
    }
    r->open[r->n_open++] =
        (struct reg_line){.id = {.n = e->n, .index = e->index}, .at = r->out.added};
    return 0;
}

int outbox_emit(struct registry *r, struct amp_error *err)
{
    struct giving g = {r, err, 0};
    if (amp_store_sync(r->dir.store, err) < 0)
        return -1;
    if (r->turn.len > 0 && amp_outq_add(&r->out, amp_buf_span(&r->turn), err) < 0)
        return -1;
    amp_buf_reset(&r->turn);
    if (amp_store_outbox(r->dir.store, r->name, give, &g, err) < 0 || g.rc < 0)
        return -1;
    if (r->n_open > 0)
        r->emitted = r->open[r->n_open - 1].id.n;
    return 0;
}

int outbox_settle(struct registry *r, struct amp_error *err)
{
    size_t done = 0;
    while (done < r->n_open && r->open[done].at <= r->out.written) {
        struct amp_store_entry_id ids[256];
        uint32_t n = 0;
        while (n < 256 && done < r->n_open && r->open[done].at <= r->out.written)
            ids[n++] = r->open[done++].id;
        if (amp_store_outbox_close(r->dir.store, r->name, ids, n, err) < 0)
            return -1;
    }
    for (size_t i = done; i < r->n_open; i++)
        r->open[i - done] = r->open[i];
    r->n_open -= done;
    return 0;
}

int outbox_finish(struct registry *r, struct amp_error *err)
{
    if (outbox_emit(r, err) < 0 || amp_outq_drain(&r->out, -1, &amp_stop, err) < 0 ||
        outbox_settle(r, err) < 0)
        return -1;
    return 0;
}
