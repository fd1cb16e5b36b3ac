/* The folder of handed-over tasks. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/grow.h"
#include "cli/cli.h"

#define LINE_MAX_BYTES ((size_t)32 << 20)
#define ROUNDS_MAX     2

static int dir_watch(struct loop_spool *s, const char *name, struct amp_error *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", s->state, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return amp_fail(err, AMP_USAGE, "bad_path", "%s: too long", s->state);
    if (amp_mkdirs(path, 0700, err) < 0)
        return -1;
    if (inotify_add_watch(s->watch, path, IN_MOVED_TO | IN_CREATE | IN_DELETE) < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "watching %s", path);
    return 0;
}

int loop_spool_open(struct loop_spool *s, const char *state, struct amp_error *err)
{
    char path[PATH_MAX];
    *s = (struct loop_spool){.state = state, .dir = -1};
    s->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (s->watch < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "inotify");
    if (dir_watch(s, "run/loop.spool", err) < 0 || dir_watch(s, "tasks", err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/run/loop.spool", state);
    s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->dir < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", path) : 0;
}

void loop_spool_close(struct loop_spool *s)
{
    if (s->dir >= 0)
        close(s->dir);
    if (s->watch >= 0)
        close(s->watch);
    free(s->v);
    *s = (struct loop_spool){.dir = -1, .watch = -1};
}

void loop_spool_drain(const struct loop_spool *s)
{
    char events[4096];
    while (read(s->watch, events, sizeof events) > 0)
        ;
}

/* ---- the loop ---- */

/* Whether the coordinator has recorded the task: it writes the file after the record. */
static bool is_recorded(const struct loop_spool *s, const char *id)
{
    char path[PATH_MAX + AMP_TASK_ID_MAX];
    snprintf(path, sizeof path, "%s/tasks/%s.json", s->state, id);
    return access(path, F_OK) == 0;
}

static size_t entry_find(const struct loop_spool *s, const char *id)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->v[i].id, id) != 0)
        i++;
    return i;
}

static void entry_remove(struct loop_spool *s, size_t i)
{
    if (unlinkat(s->dir, s->v[i].id, 0) != 0 && errno != ENOENT)
        amp_warn("%s/run/loop.spool/%s: %s", s->state, s->v[i].id, strerror(errno));
    s->v[i] = s->v[--s->n];
}

static int line_read(struct loop_spool *s, const char *id, struct amp_buf *fresh,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = LINE_MAX_BYTES};
    struct amp_error why;
    if (entry_find(s, id) < s->n)
        return 0;
    if (amp_file_read(s->dir, id, LINE_MAX_BYTES - 1, &line, &why) < 0) {
        if (faccessat(s->dir, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            amp_warn("%s/run/loop.spool/%s: %s", s->state, id, why.what);
        return 0;
    }
    if (line.len == 0 || memchr(line.data, '\n', line.len) != line.data + line.len - 1) {
        amp_warn("%s/run/loop.spool/%s is not the line of a task", s->state, id);
        return 0;
    }
    if (amp_grow(&s->v, &s->cap, s->n, sizeof *s->v, err) < 0)
        return -1;
    struct loop_spooled *e = &s->v[s->n];
    *e = (struct loop_spooled){.rounds = 0};
    snprintf(e->id, sizeof e->id, "%s", id);
    if (amp_buf_add(fresh, line.data, line.len, err) < 0)
        return -1;
    s->n++;
    return 0;
}

static bool is_entry(const struct dirent *e)
{
    return strlen(e->d_name) < AMP_TASK_ID_MAX && amp_id_is_safe(amp_span_str(e->d_name));
}

bool loop_spool_any(struct loop_spool *s)
{
    struct dirent *e = NULL;
    AMP_DIR DIR *d = amp_dir_open(s->dir, ".");
    while (d && (e = readdir(d)) && !is_entry(e))
        ;
    return e != NULL;
}

int loop_spool_take(struct loop_spool *s, struct amp_buf *fresh, struct amp_error *err)
{
    struct dirent *e;
    loop_spool_drain(s);
    AMP_DIR DIR *d = amp_dir_open(s->dir, ".");
    if (!d)
        return amp_fail_errno(err, AMP_IOERR, "%s/run/loop.spool", s->state);
    while ((e = readdir(d))) {
        if (!is_entry(e))
            continue;
        if (entry_find(s, e->d_name) == s->n && is_recorded(s, e->d_name))
            unlinkat(s->dir, e->d_name, 0); /* a loop was killed before it did this */
        else if (line_read(s, e->d_name, fresh, err) < 0)
            return -1;
    }
    for (size_t i = s->n; i-- > 0;)
        if (is_recorded(s, s->v[i].id))
            entry_remove(s, i);
    return 0;
}

bool loop_spool_again(struct loop_spool *s)
{
    bool again = false;
    for (size_t i = s->n; i-- > 0;) {
        if (++s->v[i].rounds < ROUNDS_MAX) {
            again = true;
            continue;
        }
        amp_warn("%s was handed over, but the coordinator refused it", s->v[i].id);
        entry_remove(s, i);
    }
    return again;
}

/* ---- the giver ---- */

int loop_spool_put(struct loop_spool *s, const char *id, struct amp_span line,
                   struct amp_error *err)
{
    return amp_file_write_atomic(s->dir, id, 0600, line, err);
}

bool loop_spool_has(const struct loop_spool *s, const char *id)
{
    return faccessat(s->dir, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void loop_spool_withdraw(struct loop_spool *s, const char *id)
{
    unlinkat(s->dir, id, 0);
}
