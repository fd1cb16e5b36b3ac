/* The data directory: opening, folders, look-ups, task files. */
#include "work/aof/data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "work/aof/change.h"
#include "work/aof/front.h"

static bool is_digits(const char *p, size_t n)
{
    while (n > 0 && *p >= '0' && *p <= '9')
        p++, n--;
    return n == 0;
}

static bool is_word(const char *p, size_t n)
{
    for (; n > 0; n--, p++)
        if (!(*p >= '0' && *p <= '9') && !(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') &&
            *p != '_' && *p != '-')
            return false;
    return true;
}

bool amp_aof_is_id(struct amp_span id)
{
    if (id.n < 19 || !amp_span_starts(id, "TASK-") || !is_digits(id.p + 5, 4) || id.p[9] != '-' ||
        !is_digits(id.p + 10, 2) || id.p[12] != '-' || !is_digits(id.p + 13, 2) || id.p[15] != '-')
        return false;
    const char *tail = id.p + 16;
    switch (id.n - 16) {
    case 3:
        return is_digits(tail, 3);
    case 6:
        return is_digits(tail, 3) && tail[3] == '-' && is_digits(tail + 4, 2);
    case 8:
        return is_word(tail, 8);
    default:
        return false;
    }
}

const char *amp_aof_status_name(uint8_t status)
{
    return status < AMP_AOF_TASK_STATE_COUNT ? amp_aof_task_fsm.states[status].name : "?";
}

int amp_aof_status_find(struct amp_span name)
{
    return amp_fsm_state(&amp_aof_task_fsm, name);
}

/* ---- the directory ---- */

static int directory_make(int dir, const char *name, struct amp_error *err)
{
    return mkdirat(dir, name, 0700) < 0 && errno != EEXIST
               ? amp_fail_errno(err, AMP_CANTCREAT, "cannot make the directory %s", name)
               : 0;
}

static int directories_make(int dir, struct amp_error *err)
{
    if (directory_make(dir, "tasks", err) < 0 || directory_make(dir, "runs", err) < 0)
        return -1;
    AMP_CLOSE int tasks = openat(dir, "tasks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tasks < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open tasks");
    for (uint8_t s = 0; s < AMP_AOF_TASK_STATE_COUNT; s++) {
        struct stat st;
        const char *name = amp_aof_status_name(s);
        if (directory_make(tasks, name, err) < 0)
            return -1;
        if (fstatat(tasks, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            return amp_fail(err, AMP_CONFIG, not_a_directory, "tasks/%s is not a directory", name);
    }
    return 0;
}

static int lock_open(int dir, const char *name, struct amp_error *err)
{
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    return fd < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", name) : fd;
}

void amp_aof_close(struct amp_aof_data *a)
{
    amp_aof_unlock(a);
    amp_auto_close(&a->turn.next);
    amp_auto_close(&a->turn.main);
    amp_auto_close(&a->dir);
    a->turn.next = a->turn.main = a->dir = -1;
    amp_buf_release(&a->recovered);
}

int amp_aof_open(const char *path, bool make, struct amp_aof_data *out, struct amp_error *err)
{
    struct amp_aof_data a = {.dir = -1, .turn = {.next = -1, .main = -1}, .log_size = -1};
    amp_buf_init(&a.recovered, AMP_AOF_CHANGE_BYTES);
    if (make && amp_mkdirs(path, 0700, err) < 0)
        return -1;
    a.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a.dir < 0)
        return amp_fail(err, AMP_UNAVAILABLE, no_data_dir, "cannot open the data directory %s: %s",
                        path, strerror(errno));
    int rc = 0;
    if (amp_fs_is_network(a.dir))
        rc = amp_fail(err, AMP_NOPERM, network_file_system,
                      "%s is on a network file system, where locks cannot be trusted", path);
    if (rc == 0)
        rc = directories_make(a.dir, err);
    if (rc == 0 && (rc = directory_make(a.dir, ".amp", err)) == 0) {
        AMP_CLOSE int own = openat(a.dir, ".amp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (own < 0)
            rc = amp_fail_errno(err, AMP_CANTCREAT, "cannot open .amp");
        else if ((a.turn.next = lock_open(own, "next", err)) < 0 ||
                 (a.turn.main = lock_open(own, "lock", err)) < 0)
            rc = -1;
    }
    if (rc < 0) {
        amp_aof_close(&a);
        return -1;
    }
    *out = a;
    return 0;
}

int amp_aof_lock(struct amp_aof_data *a, int64_t timeout_ms, struct amp_error *err)
{
    if (amp_turnstile_enter(&a->turn, timeout_ms, err) < 0)
        return -1;
    a->locked = true;
    if (amp_aof_recover(a, err) == 0)
        return 0;
    amp_aof_unlock(a);
    return -1;
}

void amp_aof_unlock(struct amp_aof_data *a)
{
    if (a->locked)
        amp_turnstile_leave(&a->turn);
    a->locked = false;
}

/* ---- folders ---- */

static int folder_open(const struct amp_aof_data *a, uint8_t status, struct amp_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "tasks/%s", amp_aof_status_name(status));
    return amp_open_beneath(a->dir, path, O_RDONLY | O_DIRECTORY, 0, err);
}

/* Only the last part of an id may have letters whose case differs. */
enum { TAIL_AT = 16 };

/* The name in the other case. false: it has no letters that could have one. */
static bool name_swap(const char *name, size_t n, char *out)
{
    bool letters = false;
    for (size_t i = 0; i < n; i++) {
        bool letter = i >= TAIL_AT && ((name[i] | 0x20) >= 'a' && (name[i] | 0x20) <= 'z');
        letters = letters || letter;
        out[i] = letter ? name[i] ^ 0x20 : name[i];
    }
    return letters;
}

/* Whether the folder has an entry of exactly this name. */
static int entry_find(int dir, const char *folder, const char *name, struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(dir, folder);
    struct dirent *e;
    if (!d)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s", folder);
    while ((e = readdir(d)))
        if (strcmp(e->d_name, name) == 0)
            return 1;
    return 0;
}

int amp_aof_name_fits(const struct amp_aof_data *a, const char *folder, const char *id,
                      const char *tail, struct amp_error *err)
{
    char other[AMP_AOF_ID_MAX] = "", name[AMP_AOF_ID_MAX + 8], path[AMP_AOF_PATH_MAX];
    struct stat here, there;
    if (!name_swap(id, strlen(id), other))
        return 1;
    snprintf(name, sizeof name, "%s%s", id, tail);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (fstatat(a->dir, path, &here, AT_SYMLINK_NOFOLLOW) < 0)
        return 1; /* no name at all */
    snprintf(path, sizeof path, "%s/%s%s", folder, other, tail);
    if (fstatat(a->dir, path, &there, AT_SYMLINK_NOFOLLOW) < 0 || here.st_ino != there.st_ino ||
        here.st_dev != there.st_dev)
        return 1;
    return entry_find(a->dir, folder, name, err);
}

int amp_aof_find(const struct amp_aof_data *a, const char *id, uint8_t *status,
                 struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX];
    struct stat st;
    int found = 0;
    uint8_t at = 0;
    for (uint8_t s = 0; s < AMP_AOF_TASK_STATE_COUNT; s++) {
        snprintf(path, sizeof path, "tasks/%s/%s.md", amp_aof_status_name(s), id);
        if (fstatat(a->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
                return amp_fail_errno(err, AMP_IOERR, "cannot look for %s", path);
            continue;
        }
        snprintf(path, sizeof path, "tasks/%s", amp_aof_status_name(s));
        int fits = amp_aof_name_fits(a, path, id, ".md", err);
        if (fits <= 0) {
            if (fits < 0)
                return -1;
            continue; /* another task's */
        }
        if (found)
            return amp_fail(err, AMP_NO, two_folders, "task %s is in %s and in %s", id,
                            amp_aof_status_name(at), amp_aof_status_name(s));
        found = 1;
        at = s;
    }
    if (found)
        *status = at;
    return found;
}

/* The id of a task file's name, in id. */
static bool name_is_task(const char *name, char id[AMP_AOF_ID_MAX])
{
    size_t n = strlen(name);
    if (n < 4 || n - 3 >= AMP_AOF_ID_MAX || strcmp(name + n - 3, ".md") != 0)
        return false;
    memcpy(id, name, n - 3);
    id[n - 3] = '\0';
    return amp_aof_is_id((struct amp_span){name, n - 3});
}

struct names {
    char (*v)[AMP_AOF_ID_MAX];
    size_t n, cap;
};

static int names_read(int folder, struct names *out, struct amp_error *err)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AMP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return amp_fail_errno(err, AMP_IOERR, "cannot read a folder of tasks");
    }
    while ((e = readdir(d))) {
        char id[AMP_AOF_ID_MAX];
        if ((e->d_type != DT_REG && e->d_type != DT_UNKNOWN) || !name_is_task(e->d_name, id))
            continue;
        if (out->n == out->cap) {
            size_t cap = out->cap ? out->cap * 2 : 64;
            void *v = realloc(out->v, cap * sizeof *out->v);
            if (!v)
                return amp_fail_memory(err);
            out->v = v;
            out->cap = cap;
        }
        memcpy(out->v[out->n++], id, sizeof id);
    }
    return 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

int amp_aof_each(const struct amp_aof_data *a, uint8_t status, uint32_t limit,
                 int (*fn)(void *ctx, const char *id, struct amp_error *err), void *ctx,
                 struct amp_error *err)
{
    struct names names = {0};
    AMP_CLOSE int folder = folder_open(a, status, err);
    if (folder < 0)
        return err && err->sys == ENOENT ? 0 : -1;
    int rc = names_read(folder, &names, err);
    if (rc == 0 && names.n > 1)
        qsort(names.v, names.n, sizeof *names.v, name_compare);
    for (size_t i = 0; rc == 0 && i < names.n && (limit == 0 || i < limit); i++)
        rc = fn(ctx, names.v[i], err);
    free(names.v);
    return rc;
}

/* The numbers of a day that are taken are marked here. */
struct day {
    char prefix[AMP_AOF_ID_MAX];
    bool taken[AMP_AOF_NUMBER_MOST + 1];
};

/* Whatever has such a name takes its number: also a folder that a task left, or a link. */
static int numbers_note(struct day *day, const struct amp_aof_data *a, const char *path,
                        struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(a->dir, path);
    struct dirent *e;
    size_t at = strlen(day->prefix);
    int64_t n;
    if (!d)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "cannot read %s", path);
    while ((e = readdir(d)))
        if (strncmp(e->d_name, day->prefix, at) == 0 && is_digits(e->d_name + at, 3) &&
            amp_num_parse((struct amp_span){e->d_name + at, 3}, 0, AMP_AOF_NUMBER_MOST, &n, NULL) ==
                0)
            day->taken[n] = true;
    return 0;
}

int amp_aof_new_id(const struct amp_aof_data *a, int64_t now_ms, char out[AMP_AOF_ID_MAX],
                   struct amp_error *err)
{
    struct day day = {0};
    char time[AMP_TIME_MAX];
    amp_time_format(now_ms, time);
    snprintf(day.prefix, sizeof day.prefix, "TASK-%.10s-", time);
    for (uint8_t s = 0; s < AMP_AOF_TASK_STATE_COUNT; s++) {
        char path[64];
        snprintf(path, sizeof path, "tasks/%s", amp_aof_status_name(s));
        if (numbers_note(&day, a, path, err) < 0)
            return -1;
    }
    if (numbers_note(&day, a, "runs", err) < 0)
        return -1;
    for (int n = 1; n <= AMP_AOF_NUMBER_MOST; n++)
        if (!day.taken[n]) {
            snprintf(out, AMP_AOF_ID_MAX, "%.16s%03d", day.prefix, n);
            return 0;
        }
    return amp_fail(err, AMP_NO, too_many_tasks, "%.10s has %d tasks, the limit of a day", time,
                    AMP_AOF_NUMBER_MOST);
}

/* ---- files ---- */

int amp_aof_get_at(int dir, const char *path, size_t max, struct amp_buf *out, struct stat *st,
                   struct amp_error *err)
{
    struct amp_error why;
    size_t before = out->len;
    AMP_CLOSE int fd = amp_open_beneath(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &why);
    if (fd < 0) {
        if (why.sys == ENOENT || why.sys == ENOTDIR)
            return 0;
        if (why.sys == ELOOP || why.sys == ENXIO || why.sys == EXDEV)
            return amp_fail(err, AMP_DATAERR, not_a_file, "%s is not a regular file", path);
        if (err)
            *err = why;
        return -1;
    }
    if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
        return amp_fail(err, AMP_DATAERR, not_a_file, "%s is not a regular file", path);
    if (st->st_size > (off_t)max)
        return amp_fail(err, AMP_DATAERR, file_too_large, "%s is larger than %zu bytes", path, max);
    for (;;) {
        size_t got = out->len - before;
        size_t room = out->max - out->len < 65536 ? out->max - out->len : 65536;
        size_t want = st->st_size >= (off_t)got ? (size_t)st->st_size - got + 1 : 4096;
        if (want > room)
            want = room;
        if (want == 0)
            return amp_fail(err, AMP_DATAERR, file_too_large, "%s is too large", path);
        if (amp_buf_reserve(out, want, err) < 0)
            return -1;
        ssize_t n = read(fd, out->data + out->len, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read %s", path);
        out->len += (size_t)n;
        if (out->len - before > max)
            return amp_fail(err, AMP_DATAERR, file_too_large, "%s is larger than %zu bytes", path,
                            max);
        if ((size_t)n < want) /* a regular file gives less only at its end */
            return 1;
    }
}

int amp_aof_get(const struct amp_aof_data *a, const char *path, size_t max, struct amp_buf *out,
                struct amp_error *err)
{
    struct stat st;
    return amp_aof_get_at(a->dir, path, max, out, &st, err);
}

void amp_aof_task_init(struct amp_aof_task *t)
{
    *t = (struct amp_aof_task){0};
    amp_buf_init(&t->text, AMP_AOF_TASK_BYTES + 2);
    amp_buf_init(&t->mem, AMP_AOF_TASK_BYTES * 2);
}

void amp_aof_task_release(struct amp_aof_task *t)
{
    amp_buf_release(&t->text);
    amp_buf_release(&t->mem);
}

static int task_parse(struct amp_aof_task *t, struct amp_error *err)
{
    struct amp_span id = {0}, since = {0}, expires = {0}, renewals = {0}, depth = {0}, review = {0};
    const struct {
        const char *path;
        struct amp_span *to;
    } rows[] = {
        {"id", &id},
        {"title", &t->title},
        {"parentId", &t->parent},
        {"priority", &t->priority},
        {"routing.agent", &t->agent},
        {"lease.agent", &t->lease},
        {"metadata.handoff", &t->handoff},
        {"lease.acquiredAt", &since},
        {"lease.expiresAt", &expires},
        {"lease.renewCount", &renewals},
        {"metadata.delegationDepth", &depth},
        {"metadata.reviewRequired", &review},
    };
    if (amp_buf_reserve(&t->mem, t->text.len * 2 + 64, err) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (amp_front_get(amp_buf_span(&t->text), rows[i].path, &t->mem, rows[i].to, err) < 0)
            return -1;
    if (id.n > 0 && !amp_span_is(id, t->id))
        return amp_fail(err, AMP_DATAERR, id_mismatch, "the file of task %s has the id %.*s", t->id,
                        AMP_CLIP(id, (size_t)40));
    if (t->agent.n > AMP_AOF_NAME_MAX || t->lease.n > AMP_AOF_NAME_MAX)
        return amp_fail(err, AMP_DATAERR, agent_too_long,
                        "task %s has an agent with a name of more than %d bytes", t->id,
                        AMP_AOF_NAME_MAX);
    t->lease_expires_ms = t->lease_since_ms = 0;
    t->depth = t->renewals = 0;
    amp_time_parse(expires, &t->lease_expires_ms);
    amp_time_parse(since, &t->lease_since_ms);
    amp_num_parse(renewals, 0, 1000000000, &t->renewals, NULL);
    amp_num_parse(depth, 0, INT64_MAX - 1, &t->depth, NULL);
    t->no_review = amp_span_is(review, "false");
    return 0;
}

static int task_read(const struct amp_aof_data *a, const char *id, uint8_t status,
                     struct amp_aof_task *out, struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX];
    amp_buf_reset(&out->text);
    amp_buf_reset(&out->mem);
    snprintf(path, sizeof path, "tasks/%s/%s.md", amp_aof_status_name(status), id);
    snprintf(out->id, sizeof out->id, "%s", id);
    out->status = status;
    out->title = out->parent = out->priority = out->agent = out->lease = out->handoff =
        (struct amp_span){"", 0};
    int rc = amp_aof_get(a, path, AMP_AOF_TASK_BYTES, &out->text, err);
    return rc <= 0 ? rc : task_parse(out, err) < 0 ? -1 : 1;
}

int amp_aof_load(const struct amp_aof_data *a, const char *id, struct amp_aof_task *out,
                 struct amp_error *err)
{
    uint8_t status;
    /* A person may move it between the two steps. */
    for (int tries = 0; tries < 8; tries++) {
        int rc = amp_aof_find(a, id, &status, err);
        int fits = rc > 0 ? amp_aof_name_fits(a, "runs", id, "", err) : 1;
        if (fits <= 0)
            return fits < 0 ? -1
                            : amp_fail(err, AMP_DATAERR, case_collision,
                                       "runs has the run of another task under the name %s", id);
        if (rc <= 0 || (rc = task_read(a, id, status, out, err)) != 0)
            return rc;
    }
    return 0;
}

struct amp_span amp_aof_owner(const struct amp_aof_task *t)
{
    return t->lease.n > 0 ? t->lease : t->agent;
}

bool amp_aof_has_output(const struct amp_aof_data *a, const struct amp_aof_task *t,
                        struct amp_span path)
{
    char at[AMP_AOF_PATH_MAX];
    struct stat st;
    struct amp_error none;
    int n = snprintf(at, sizeof at, "tasks/%s/%s/%.*s", amp_aof_status_name(t->status), t->id,
                     (int)path.n, path.p);
    if (n < 0 || (size_t)n >= sizeof at || path.n == 0 || memchr(path.p, '\0', path.n) ||
        path.p[0] == '/')
        return false;
    AMP_CLOSE int fd = amp_open_beneath(a->dir, at, O_PATH, 0, &none);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}
