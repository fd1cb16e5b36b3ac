/* Looks at the files of a folder's tasks. With 100,000 tasks the system calls count: one for a file
 * that is as it was, four for another one. */
#include "work/aof/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

enum { YOUNG_MS = 1000 };

struct amp_aof_mark {
    char id[AMP_AOF_ID_MAX];
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec modified, changed;
    bool old, usable; /* old: not younger than YOUNG_MS when it was read */
    int64_t value;
};

struct look {
    const struct amp_aof_look *how;
    int dir; /* of the files */
    const struct amp_aof_seen *before;
    uint32_t at; /* in before */
    struct amp_aof_seen now;
    uint32_t cap;
    struct amp_buf text;
    int64_t now_ms;
};

void amp_aof_seen_release(struct amp_aof_seen *s)
{
    free(s->v);
    *s = (struct amp_aof_seen){0};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_as_before(const struct amp_aof_mark *m, const struct stat *st)
{
    return m->old && m->ino == st->st_ino && m->dev == st->st_dev && m->size == st->st_size &&
           same_time(&m->modified, &st->st_mtim) && same_time(&m->changed, &st->st_ctim);
}

/* Finds the last look's mark of a task; ids come in their order. */
static const struct amp_aof_mark *mark_find(struct look *l, const char *id)
{
    int order = 1;
    while (l->at < l->before->n && (order = strcmp(l->before->v[l->at].id, id)) < 0)
        l->at++;
    return order == 0 && l->at < l->before->n ? &l->before->v[l->at] : NULL;
}

static struct amp_aof_mark *mark_add(struct look *l, struct amp_error *err)
{
    if (l->now.n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 64;
        struct amp_aof_mark *v = realloc(l->now.v, cap * sizeof *v);
        if (!v) {
            amp_fail_memory(err);
            return NULL;
        }
        l->now.v = v;
        l->cap = cap;
    }
    return &l->now.v[l->now.n];
}

/* Reads the file, in m. 1; 0: it is absent. */
static int file_read(struct look *l, const char *path, struct amp_aof_mark *m,
                     struct amp_error *err)
{
    struct amp_error why;
    struct stat st;
    amp_buf_reset(&l->text);
    m->usable = false;
    int rc = amp_aof_get_at(l->dir, path, l->how->max, &l->text, &st, &why);
    if (rc > 0) {
        m->usable = l->how->read(l->how->ctx, m->id, amp_buf_span(&l->text), &m->value, &why) == 0;
        m->dev = st.st_dev;
        m->ino = st.st_ino;
        m->size = st.st_size;
        m->modified = st.st_mtim;
        m->changed = st.st_ctim;
        m->old = l->now_ms - (int64_t)st.st_ctim.tv_sec * 1000 > YOUNG_MS + 1000;
    }
    if ((rc < 0 || (rc > 0 && !m->usable)) && why.status != AMP_DATAERR) {
        if (err)
            *err = why;
        return -1;
    }
    return rc > 0;
}

static int task_look(void *ctx, const char *id, struct amp_error *err)
{
    struct look *l = ctx;
    char path[AMP_AOF_PATH_MAX];
    struct stat st;
    if (l->how->file)
        snprintf(path, sizeof path, "%s/%s", id, l->how->file);
    else
        snprintf(path, sizeof path, "%s.md", id);
    const struct amp_aof_mark *before = mark_find(l, id);
    struct amp_aof_mark *m = mark_add(l, err);
    if (!m)
        return -1;
    bool known =
        before && fstatat(l->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_as_before(before, &st);
    int there = 1;
    if (known) {
        *m = *before;
    } else {
        *m = (struct amp_aof_mark){.usable = false};
        snprintf(m->id, sizeof m->id, "%s", id);
        there = file_read(l, path, m, err);
    }
    if (there < 0)
        return -1;
    l->now.n += there > 0;
    return l->how->each(l->how->ctx, id, there > 0 && m->usable ? &m->value : NULL, err);
}

int amp_aof_look(const struct amp_aof_data *a, const struct amp_aof_look *how,
                 struct amp_aof_seen *seen, struct amp_error *err)
{
    struct look l = {.how = how, .before = seen, .now_ms = amp_now_ms()};
    char path[64] = "runs";
    if (!how->file)
        snprintf(path, sizeof path, "tasks/%s", amp_aof_status_name(how->status));
    AMP_CLOSE int dir = amp_open_beneath(a->dir, path, O_RDONLY | O_DIRECTORY, 0, err);
    if (dir < 0)
        return err && err->sys == ENOENT ? 0 : -1;
    l.dir = dir;
    amp_buf_init(&l.text, how->max + 1);
    int rc = amp_aof_each(a, how->status, 0, task_look, &l, err);
    amp_buf_release(&l.text);
    amp_aof_seen_release(seen);
    *seen = l.now;
    return rc;
}
