/*
 * Notifications (AOF/1: "notify review / blocked / done as per policy", "notify #aof-alerts"). Each
 * is a file of the change that it belongs to, .amp/notices/NUMBER-KIND, until it was delivered: a
 * kill between the two repeats it. One process delivers at a time, the oldest first; a notification
 * that fails is tried again with the next poll or change, and those behind it wait.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "work/aof/board/private.h"
#include "json/record.h"

#define DIR_NAME ".amp/notices"

enum { NOTICE_BYTES = 1 << 20, NAME_MOST = 64, AGAIN_MS = 1000 };

/* ---- writing ---- */

static int line_write(struct amp_aof_work *w, const struct amp_aof_notice *n, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_jw j;
    amp_jw_init(&j, out);
    amp_jw_open(&j, '{');
    amp_jw_member_text(&j, "notify", n->kind);
    amp_jw_member_text(&j, "taskId", n->task);
    amp_jw_some_str(&j, "agent", n->agent);
    amp_jw_some_str(&j, "reason", n->reason);
    amp_rec_time(&j, "timestamp", w->c.now_ms);
    amp_jw_close(&j, '}');
    return amp_jw_end_line(&j, err);
}

int amp_aof_notice_add(struct amp_aof_work *w, const struct amp_aof_notice *n,
                       struct amp_error *err)
{
    const struct amp_aof_options *o = &w->r->o;
    AMP_BUF struct amp_buf text = {0};
    char path[AMP_AOF_PATH_MAX];
    bool tells = o->notifies && n->kind, asks = o->asks && n->status;
    if (!o->notify || (!tells && !asks))
        return 0;
    /* A notice that needs no answer has no text, so that a router that reads it adds nothing. */
    const struct amp_aof_asking ask = {.task = n->task,
                                       .by = n->agent.n > 0 ? n->agent : amp_span_str(o->actor),
                                       .status = n->status,
                                       .notes = n->kind ? n->reason : AMP_SPAN(""),
                                       .now_ms = w->c.now_ms};
    amp_buf_init(&text, NOTICE_BYTES);
    if ((tells ? line_write(w, n, &text, err) : amp_buf_str(&text, "\n", err)) < 0 ||
        (asks && amp_aof_ask(&ask, &text, err) < 0))
        return -1;
    /* The numbers of events grow, and no two changes have the same ones. */
    snprintf(path, sizeof path, DIR_NAME "/%020llu-%u", (unsigned long long)w->c.next_event,
             w->notices++);
    return amp_aof_put(&w->c, path, amp_buf_span(&text), err);
}

int amp_aof_alert(struct amp_aof_work *w, const char *task, const char *reason,
                  struct amp_error *err)
{
    const struct amp_aof_notice n = {.kind = "alert", .task = task, .reason = amp_span_str(reason)};
    if (w->n_alerts < AMP_AOF_ALERTS) {
        snprintf(w->alerts[w->n_alerts].task, AMP_AOF_ID_MAX, "%s", task);
        snprintf(w->alerts[w->n_alerts].reason, sizeof w->alerts[0].reason, "%s", reason);
        w->n_alerts++;
    }
    return amp_aof_notice_add(w, &n, err);
}

/* ---- delivering ---- */

struct waiting {
    char (*v)[NAME_MOST];
    size_t n, cap;
};

static int name_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int names_read(struct amp_aof_router *r, struct waiting *out, struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(r->data.dir, DIR_NAME);
    struct dirent *e;
    if (!d)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "cannot read " DIR_NAME);
    while ((e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' || n >= NAME_MOST)
            continue; /* a file that is being written */
        if (out->n == out->cap) {
            size_t cap = out->cap ? out->cap * 2 : 16;
            void *v = realloc(out->v, cap * sizeof *out->v);
            if (!v)
                return amp_fail_memory(err);
            out->v = v;
            out->cap = cap;
        }
        memcpy(out->v[out->n++], e->d_name, n + 1);
    }
    if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, name_compare);
    return 0;
}

static void warning_give(struct amp_aof_router *r, const char *text)
{
    r->failed_at = amp_mono_ms();
    if (r->o.warn)
        r->o.warn(r->o.ctx, text);
}

/* 1: delivered, and removed; 0: it failed, which is a warning; -1. */
static int notice_send(struct amp_aof_router *r, const char *name, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char path[AMP_AOF_PATH_MAX];
    struct amp_error why;
    snprintf(path, sizeof path, DIR_NAME "/%s", name);
    amp_buf_init(&text, NOTICE_BYTES + 1);
    int rc = amp_aof_get(&r->data, path, NOTICE_BYTES, &text, &why);
    if (rc == 0)
        return 1;
    if (rc < 0) {
        warning_give(r, why.what);
        return 0;
    }
    const char *lf = memchr(text.data, '\n', text.len);
    size_t n = lf ? (size_t)(lf - text.data) + 1 : text.len;
    const struct amp_aof_told told = {{text.data, n > 1 ? n : 0}, {text.data + n, text.len - n}};
    if (r->o.notify(r->o.ctx, &told, &why) < 0) {
        if (why.status == AMP_INTERRUPTED) {
            *err = why;
            return -1;
        }
        warning_give(r, why.what);
        return 0;
    }
    return unlinkat(r->data.dir, path, 0) < 0 && errno != ENOENT
               ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s", path)
               : 1;
}

/* One turn. 1: another process may have added some meanwhile; 0; -1. */
static int notices_turn(struct amp_aof_router *r, struct amp_error *err)
{
    struct waiting names = {0};
    struct amp_error busy;
    int sent = names_read(r, &names, err) < 0 ? -1 : names.n > 0;
    if (sent > 0) {
        AMP_CLOSE int lock =
            amp_open_beneath(r->data.dir, ".amp/notify", O_RDWR | O_CREAT, 0600, err);
        if (lock < 0)
            sent = -1;
        else if (amp_lock(lock, 0, &busy) < 0)
            sent = 0; /* another process delivers, and looks again when it is done */
        for (size_t i = 0; sent > 0 && i < names.n; i++)
            sent = notice_send(r, names.v[i], err);
    }
    free(names.v);
    return sent;
}

int amp_aof_notices_send(struct amp_aof_router *r, struct amp_error *err)
{
    int rc = r->o.notify && (r->failed_at == 0 || amp_mono_ms() - r->failed_at >= AGAIN_MS);
    while (rc > 0)
        rc = notices_turn(r, err);
    return rc < 0 ? -1 : 0;
}
