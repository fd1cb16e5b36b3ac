/* The commit of a change, and its steps. Each can be repeated, and each looks first at what is
 * there: a person may have moved or changed the task. */
#include "work/aof/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/file/directory.h"
#include "work/aof/front.h"

#define FILE_NAME ".amp/change.ndjson"

enum {
    DIRS_MOST = 24,
    TRIES = 8,
    NAME_TAKEN = 2,
    RECOVERY_BYTES = 4096,
    LOG_SPARE = 65536, /* of a task file, which its work log leaves to its front matter */
};

struct run {
    struct amp_aof_data *data;
    const struct amp_tape *t;
    struct amp_aof_change extra; /* events about faults */
    struct amp_buf faults;       /* the same without numbers: type, id and payload, each with NUL */
    struct amp_buf lines, mem;
    char dirs[DIRS_MOST][AMP_AOF_PATH_MAX]; /* to sync */
    unsigned n_dirs;
    bool again;  /* another attempt, after a kill or a full disk */
    bool logged; /* whose steps were carried out: events of it are in the log */
    bool over;   /* a task is not where it was: the rest is left out */
    int64_t since;
    uint64_t first_event;
    unsigned events; /* of the change, so far */
};

/* ---- texts of a step ---- */

/* A member's text, NUL-terminated in mem; NULL: absent. */
static const char *text_get(struct run *r, const char *key, size_t *n, struct amp_error *err)
{
    uint32_t tok = amp_tape_get(r->t, 0, amp_span_str(key));
    struct amp_span text;
    size_t at = r->mem.len;
    if (tok == AMP_TOK_NONE || r->t->tok[tok].type != AMP_JSON_STRING) {
        amp_fail(err, AMP_DATAERR, bad_change, "a step of .amp/change.ndjson lacks %s", key);
        return NULL;
    }
    /* Reserved for the complete step, so that it does not move. */
    if (amp_tok_text(r->t, tok, &r->mem, &text, err) < 0)
        return NULL;
    if (text.p != r->mem.data + at && amp_buf_add(&r->mem, text.p, text.n, err) < 0)
        return NULL;
    if (amp_buf_add(&r->mem, "", 1, err) < 0)
        return NULL;
    if (n)
        *n = text.n;
    return r->mem.data + at;
}

static int status_get(struct run *r, const char *key, uint8_t *out, struct amp_error *err)
{
    const char *name = text_get(r, key, NULL, err);
    int status = name ? amp_aof_status_find(amp_span_str(name)) : -1;
    if (name && status < 0)
        amp_fail(err, AMP_DATAERR, bad_change, "a step has the status %.40s", name);
    if (status < 0)
        return -1;
    *out = (uint8_t)status;
    return 0;
}

static const char *id_get(struct run *r, struct amp_error *err)
{
    const char *id = text_get(r, "id", NULL, err);
    if (!id || amp_aof_is_id(amp_span_str(id)))
        return id;
    amp_fail(err, AMP_DATAERR, bad_change, "a step has a malformed id");
    return NULL;
}

/* ---- faults ---- */

/* A later attempt may succeed; all other faults are those of the folders. */
static bool may_pass(const struct amp_error *e)
{
    switch (e->sys) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EROFS:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return true;
    default:
        return amp_code_is(e->code, no_memory) || e->status == AMP_INTERRUPTED;
    }
}

static int fault_log(struct run *r, const char *type, const char *id, const char *code,
                     const char *what, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    amp_buf_init(&payload, 4096);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "reason", code);
    amp_jw_member_text(&w, "errors", what);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err) < 0 || amp_buf_add(&r->faults, type, strlen(type) + 1, err) < 0 ||
                   amp_buf_add(&r->faults, id, strlen(id) + 1, err) < 0 ||
                   amp_buf_add(&r->faults, payload.data, payload.len, err) < 0
               ? -1
               : amp_buf_add(&r->faults, "", 1, err);
}

static int fault_take(struct run *r, const char *id, const struct amp_error *why,
                      struct amp_error *err)
{
    if (!may_pass(why))
        return fault_log(r, "protocol.message.warning", id, why->code, why->what, err);
    if (err)
        *err = *why;
    return -1;
}

static int drift(struct run *r, const char *id, const char *code, const char *what,
                 struct amp_error *err)
{
    r->over = true;
    return fault_log(r, "system.drift-detected", id, code, what, err);
}

/* ---- files ---- */

static void sync_later(struct run *r, const char *dir)
{
    for (unsigned i = 0; i < r->n_dirs; i++)
        if (strcmp(r->dirs[i], dir) == 0)
            return;
    if (r->n_dirs < DIRS_MOST)
        snprintf(r->dirs[r->n_dirs++], AMP_AOF_PATH_MAX, "%s", dir);
}

static int dirs_sync(struct run *r, struct amp_error *err)
{
    for (unsigned i = 0; i < r->n_dirs; i++) {
        struct amp_error why;
        AMP_CLOSE int fd =
            amp_open_beneath(r->data->dir, r->dirs[i], O_RDONLY | O_DIRECTORY, 0, &why);
        /* A person may have moved it in the meantime. */
        if (fd >= 0 && fsync(fd) < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot sync %s", r->dirs[i]);
    }
    return 0;
}

/* Writes a file beside its name, under a fixed name that only the holder of the lock uses, syncs
 * and renames it. The caller syncs the directory. */
static int write_whole(int dir, const char *path, mode_t mode, struct amp_span text,
                       struct amp_error *err)
{
    char tmp[AMP_AOF_PATH_MAX];
    const char *slash = strrchr(path, '/');
    int at = slash ? (int)(slash - path) + 1 : 0;
    int n = snprintf(tmp, sizeof tmp, "%.*s.%s.amp", at, path, path + at);
    if (n < 0 || (size_t)n >= sizeof tmp)
        return amp_fail(err, AMP_CANTCREAT, bad_path, "the path %s is too long", path);
    if (unlinkat(dir, tmp, 0) < 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot remove %s", tmp);
    int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot create %s", tmp);
    int rc = amp_write_all(fd, text, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot sync %s", tmp);
    if (close(fd) < 0 && rc == 0)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot close %s", tmp);
    if (rc == 0 && renameat(dir, tmp, dir, path) < 0)
        rc = amp_fail_errno(err, AMP_CANTCREAT, "cannot replace %s", path);
    if (rc < 0)
        unlinkat(dir, tmp, 0);
    return rc;
}

/* Opens the directory of a path and makes what is missing; *name: the last component. */
static int parent_open(struct run *r, const char *path, const char **name, struct amp_error *err)
{
    char part[AMP_AOF_PATH_MAX];
    int at = amp_open_beneath(r->data->dir, ".", O_RDONLY | O_DIRECTORY, 0, err);
    size_t begin = 0;
    for (const char *slash; at >= 0 && (slash = strchr(path + begin, '/'));) {
        struct amp_span piece = {path + begin, (size_t)(slash - path) - begin};
        if (!amp_span_copy(piece, part, sizeof part) ||
            (mkdirat(at, part, 0700) < 0 && errno != EEXIST)) {
            amp_fail_errno(err, AMP_CANTCREAT, "cannot make a directory of %s", path);
            close(at);
            return -1;
        }
        int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            amp_fail_errno(err, AMP_CANTCREAT, "cannot open a directory of %s", path);
        snprintf(part, sizeof part, "%.*s", (int)begin > 0 ? (int)begin - 1 : 1,
                 begin > 0 ? path : ".");
        sync_later(r, part);
        close(at);
        at = next;
        begin = (size_t)(slash - path) + 1;
    }
    if (at < 0)
        return -1;
    snprintf(part, sizeof part, "%.*s", begin > 0 ? (int)begin - 1 : 1, begin > 0 ? path : ".");
    sync_later(r, part);
    *name = path + begin;
    return at;
}

/* ---- task files ---- */

static void task_path(char out[AMP_AOF_PATH_MAX], uint8_t status, const char *id, const char *tail)
{
    snprintf(out, AMP_AOF_PATH_MAX, "tasks/%s/%s%s", amp_aof_status_name(status), id, tail);
}

static void folder_sync(struct run *r, uint8_t status)
{
    char path[AMP_AOF_PATH_MAX];
    snprintf(path, sizeof path, "tasks/%s", amp_aof_status_name(status));
    sync_later(r, path);
}

static bool is_there(struct run *r, const char *path, mode_t type)
{
    struct stat st;
    return fstatat(r->data->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_mode & S_IFMT) == type;
}

/* Whether the folder has the file of exactly this task. */
static bool task_there(struct run *r, const char *id, uint8_t status)
{
    char path[AMP_AOF_PATH_MAX], folder[64];
    struct amp_error none;
    task_path(path, status, id, ".md");
    snprintf(folder, sizeof folder, "tasks/%s", amp_aof_status_name(status));
    return is_there(r, path, S_IFREG) && amp_aof_name_fits(r->data, folder, id, ".md", &none) > 0;
}

static int put_do(struct run *r, struct amp_error *err)
{
    struct amp_error why;
    uint8_t at;
    size_t n;
    const char *path = text_get(r, "path", NULL, err), *name, *id = "";
    const char *text = path ? text_get(r, "text", &n, err) : NULL;
    if (!text)
        return -1;
    if (amp_tape_get(r->t, 0, AMP_SPAN("id")) != AMP_TOK_NONE) {
        if (!(id = id_get(r, err)) || status_get(r, "at", &at, err) < 0)
            return -1;
        if (!task_there(r, id, at))
            return drift(r, id, AMP_CODE(task_moved), "the task is no longer in its folder", err);
    }
    AMP_CLOSE int dir = parent_open(r, path, &name, &why);
    if (dir >= 0 && write_whole(dir, name, 0600, (struct amp_span){text, n}, &why) == 0)
        return 0;
    return fault_take(r, id, &why, err);
}

/* Renames to a name that is free, or EEXIST. */
static int rename_new(int dir, const char *from, const char *to)
{
    struct stat st;
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* The file system cannot do both at once: a file that appears there now may be lost. */
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? renameat(dir, from, dir, to) : -1;
    errno = EEXIST;
    return -1;
}

static int create_do(struct run *r, struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX], tmp[AMP_AOF_PATH_MAX];
    uint8_t at, there;
    size_t n;
    const char *id = id_get(r, err), *text = id ? text_get(r, "text", &n, err) : NULL;
    if (!text || status_get(r, "at", &at, err) < 0)
        return -1;
    struct amp_error why;
    /* After a first attempt it is the same task; a person may have moved it since. */
    if (amp_aof_find(r->data, id, &there, &why) != 0)
        return r->again ? 0 : drift(r, id, AMP_CODE(name_taken), "a person made this task", err);
    task_path(path, at, id, ".md");
    snprintf(tmp, sizeof tmp, "tasks/%s/.%s.new", amp_aof_status_name(at), id);
    if (write_whole(r->data->dir, tmp, 0600, (struct amp_span){text, n}, &why) < 0) {
        r->over = !may_pass(&why);
        return fault_take(r, id, &why, err);
    }
    if (rename_new(r->data->dir, tmp, path) < 0) {
        amp_fail_errno(&why, AMP_CANTCREAT, "cannot make %s", path);
        unlinkat(r->data->dir, tmp, 0);
        return may_pass(&why) ? fault_take(r, id, &why, err)
                              : drift(r, id, AMP_CODE(name_taken), why.what, err);
    }
    folder_sync(r, at);
    return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads a regular file of tasks/STATUS. 1; 0: absent; -1. */
static int task_text(struct run *r, const char *path, struct amp_buf *out, struct stat *st,
                     struct amp_error *err)
{
    amp_buf_reset(out);
    if (fstatat(r->data->dir, path, st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "cannot stat %s", path);
    return amp_aof_get(r->data, path, AMP_AOF_TASK_BYTES, out, err);
}

/* Makes the edits of a step. 1: the text changed; DATAERR file_too_large: nobody could read it any
 * more. */
static int text_edit(struct run *r, struct amp_buf *text, struct amp_error *err)
{
    uint32_t set = amp_tape_get(r->t, 0, AMP_SPAN("set"));
    AMP_BUF struct amp_buf was = {0};
    size_t n = 0, before = r->mem.len;
    struct amp_error none;
    amp_buf_init(&was, AMP_AOF_TASK_BYTES + 1);
    if (amp_buf_add(&was, text->data, text->len, err) < 0)
        return -1;
    if (set == AMP_TOK_NONE || r->t->tok[set].type != AMP_JSON_ARRAY)
        return amp_fail(err, AMP_DATAERR, bad_change, "a step has no edits");
    for (uint32_t i = set + 1; i < r->t->tok[set].next; i = r->t->tok[i].next) {
        uint32_t path = amp_tape_at(r->t, i, 0), value = amp_tape_at(r->t, i, 1);
        struct amp_span p, v = {0};
        char key[64];
        r->mem.len = before;
        if (path == AMP_TOK_NONE || amp_tok_text(r->t, path, &r->mem, &p, err) < 0 ||
            !amp_span_copy(p, key, sizeof key) ||
            (value != AMP_TOK_NONE && amp_tok_text(r->t, value, &r->mem, &v, err) < 0))
            return amp_fail(err, AMP_DATAERR, bad_change, "a step has a malformed edit");
        if (amp_front_set(text, key, v, err) < 0)
            return -1;
    }
    r->mem.len = before;
    const char *line = text_get(r, "log", &n, &none);
    if (line && amp_front_log(text, (struct amp_span){line, n}, err) < 0)
        return -1;
    size_t most = AMP_AOF_TASK_BYTES - (line ? LOG_SPARE : 0);
    if (text->len > most && text->len > was.len)
        return amp_fail(err, AMP_DATAERR, file_too_large,
                        "the task file would have more than %zu bytes", most);
    return !amp_span_eq(amp_buf_span(text), amp_buf_span(&was));
}

/* Puts a text in the place of a task file if that is still the file `was`. 1: done; 0: it is
 * another one by now; -1. */
static int text_exchange(struct run *r, const char *path, const char *tmp, const struct stat *was,
                         struct amp_span text, struct amp_error *err)
{
    int dir = r->data->dir;
    struct stat st, own;
    if (write_whole(dir, tmp, was->st_mode & 0777, text, err) < 0)
        return -1;
    if (fstatat(dir, tmp, &own, AT_SYMLINK_NOFOLLOW) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat %s", tmp);
    /* The exchange below would hide what was saved meanwhile until it is put back. */
    if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !same_file(&st, was)) {
        unlinkat(dir, tmp, 0);
        return 0;
    }
    if (renameat2(dir, tmp, dir, path, RENAME_EXCHANGE) < 0) {
        if (errno == ENOENT) {
            unlinkat(dir, tmp, 0);
            return 0;
        }
        if (errno != EINVAL && errno != ENOSYS) {
            amp_fail_errno(err, AMP_CANTCREAT, "cannot replace %s", path);
            unlinkat(dir, tmp, 0);
            return -1;
        }
        /* The file system cannot exchange names: a file that is written now may be lost. */
        return renameat(dir, tmp, dir, path) < 0
                   ? amp_fail_errno(err, AMP_CANTCREAT, "cannot replace %s", path)
                   : 1;
    }
    if (fstatat(dir, tmp, &st, AT_SYMLINK_NOFOLLOW) == 0 && same_file(&st, was))
        return unlinkat(dir, tmp, 0) < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s", tmp)
                                         : 1;
    /* A person's text came out: it goes back, and is read again. */
    if (renameat2(dir, tmp, dir, path, RENAME_EXCHANGE) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot put %s back", path);
    /* Unless the file was saved once more in between: then the later text counts. */
    if (fstatat(dir, tmp, &st, AT_SYMLINK_NOFOLLOW) == 0 && !same_file(&st, &own))
        return renameat(dir, tmp, dir, path) < 0
                   ? amp_fail_errno(err, AMP_CANTCREAT, "cannot put %s back", path)
                   : 0;
    unlinkat(dir, tmp, 0);
    return 0;
}

/* An attempt that was killed behind its exchange may have left what a person saved at the same
 * moment under the name tmp: a text without the edits, while the task is not this text with them.
 * It goes back. */
static int exchange_undo(struct run *r, const char *path, const char *tmp, struct amp_error *err)
{
    AMP_BUF struct amp_buf left = {0}, now = {0}, edited = {0};
    struct stat st;
    amp_buf_init(&left, AMP_AOF_TASK_BYTES * 2);
    amp_buf_init(&now, AMP_AOF_TASK_BYTES * 2);
    amp_buf_init(&edited, AMP_AOF_TASK_BYTES * 2);
    int rc = task_text(r, tmp, &left, &st, err);
    if (rc > 0)
        rc = task_text(r, path, &now, &st, err);
    if (rc <= 0)
        return rc;
    if (amp_buf_add(&edited, left.data, left.len, err) < 0 ||
        (rc = text_edit(r, &edited, err)) <= 0 ||
        amp_span_eq(amp_buf_span(&edited), amp_buf_span(&now)))
        return rc < 0 ? -1 : 0;
    if ((rc = text_edit(r, &now, err)) != 0)
        return rc < 0 ? -1 : 0; /* there was no exchange */
    return renameat2(r->data->dir, tmp, r->data->dir, path, RENAME_EXCHANGE) < 0
               ? amp_fail_errno(err, AMP_CANTCREAT, "cannot put %s back", path)
               : 0;
}

static int edit_do(struct run *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char path[AMP_AOF_PATH_MAX], tmp[AMP_AOF_PATH_MAX];
    struct amp_error why;
    struct stat st;
    uint8_t at;
    const char *id = id_get(r, err);
    if (!id || status_get(r, "at", &at, err) < 0)
        return -1;
    amp_buf_init(&text, AMP_AOF_TASK_BYTES * 2);
    task_path(path, at, id, ".md");
    snprintf(tmp, sizeof tmp, "tasks/%s/.%s.edit", amp_aof_status_name(at), id);
    if (r->again && exchange_undo(r, path, tmp, &why) < 0 && may_pass(&why))
        return fault_take(r, id, &why, err);
    for (int i = 0; i < TRIES; i++) {
        int rc = task_there(r, id, at) ? task_text(r, path, &text, &st, &why) : 0;
        if (rc == 0)
            return drift(r, id, AMP_CODE(task_moved), "the task is no longer in its folder", err);
        if (rc > 0)
            rc = text_edit(r, &text, &why);
        if (rc == 0) {
            unlinkat(r->data->dir, tmp, 0); /* of an attempt that was killed */
            return 0;
        }
        if (rc > 0)
            rc = text_exchange(r, path, tmp, &st, amp_buf_span(&text), &why);
        folder_sync(r, at);
        if (rc != 0)
            return rc > 0 ? 0 : fault_take(r, id, &why, err);
    }
    return drift(r, id, AMP_CODE(task_busy), "another program changes the task file all the time",
                 err);
}

/* ---- moves ---- */

/* The file is in both folders, because a copy to another file system was interrupted. 1: the rest
 * is done; NAME_TAKEN: they are two different files. */
static int copy_finish(struct run *r, const char *from, const char *to, struct amp_error *err)
{
    AMP_BUF struct amp_buf a = {0}, b = {0};
    struct stat st;
    amp_buf_init(&a, AMP_AOF_TASK_BYTES + 1);
    amp_buf_init(&b, AMP_AOF_TASK_BYTES + 1);
    int rc = task_text(r, from, &a, &st, err);
    if (rc > 0)
        rc = task_text(r, to, &b, &st, err);
    if (rc <= 0 || !amp_span_eq(amp_buf_span(&a), amp_buf_span(&b)))
        return rc < 0 ? -1 : NAME_TAKEN;
    return unlinkat(r->data->dir, from, 0) < 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s", from)
               : 1;
}

/* Copies a file to a folder on another file system. */
static int file_copy(struct run *r, const char *from, const char *to, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char tmp[AMP_AOF_PATH_MAX];
    struct stat st;
    const char *slash = strrchr(to, '/');
    amp_buf_init(&text, AMP_AOF_TASK_BYTES + 1);
    snprintf(tmp, sizeof tmp, "%.*s/.%s.copy", (int)(slash - to), to, slash + 1);
    int rc = task_text(r, from, &text, &st, err);
    if (rc <= 0)
        return rc;
    if (write_whole(r->data->dir, tmp, st.st_mode & 0777, amp_buf_span(&text), err) < 0)
        return -1;
    if (rename_new(r->data->dir, tmp, to) < 0) {
        int saved = errno;
        unlinkat(r->data->dir, tmp, 0);
        errno = saved;
        return saved == EEXIST ? NAME_TAKEN
                               : amp_fail_errno(err, AMP_CANTCREAT, "cannot move %s", from);
    }
    return copy_finish(r, from, to, err);
}

/* 1: the file is in the new folder and only there; 0: it is not where it was; NAME_TAKEN: the
 * folder has another file of this name; -1. */
static int file_move(struct run *r, const char *id, uint8_t from_at, uint8_t to_at,
                     struct amp_error *err)
{
    char from[AMP_AOF_PATH_MAX], to[AMP_AOF_PATH_MAX];
    task_path(from, from_at, id, ".md");
    task_path(to, to_at, id, ".md");
    if (task_there(r, id, from_at)) {
        if (rename_new(r->data->dir, from, to) == 0)
            return 1;
        int why = errno;
        bool there = why == EEXIST || why == EXDEV ? task_there(r, id, to_at) : false;
        /* Between file systems this comes before a look at the new name. */
        if (there || why == EEXIST)
            return there ? copy_finish(r, from, to, err) : NAME_TAKEN;
        if (why == EXDEV)
            return file_copy(r, from, to, err);
        errno = why;
        if (why != ENOENT)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot move %s", from);
    }
    return task_there(r, id, to_at);
}

/* Its folder follows it. */
static int folder_move(struct run *r, const char *from, const char *to, const char *id,
                       struct amp_error *err)
{
    struct amp_error why;
    if (!is_there(r, from, S_IFDIR))
        return 0;
    if (unlinkat(r->data->dir, to, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTEMPTY &&
        errno != EEXIST && errno != ENOTDIR)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot move %s", from);
    if (rename_new(r->data->dir, from, to) == 0 || errno == ENOENT)
        return 0;
    if (errno == EXDEV) {
        if (amp_directory_move(r->data->dir, from, to, &why) == 0)
            return 0;
    } else {
        amp_fail_errno(&why, AMP_CANTCREAT, "cannot move %s", from);
    }
    return fault_take(r, id, &why, err);
}

static int move_do(struct run *r, struct amp_error *err)
{
    char from_path[AMP_AOF_PATH_MAX], to_path[AMP_AOF_PATH_MAX];
    struct amp_error why;
    uint8_t from, to;
    const char *id = id_get(r, err);
    if (!id || status_get(r, "from", &from, err) < 0 || status_get(r, "to", &to, err) < 0)
        return -1;
    int rc = file_move(r, id, from, to, &why);
    if (rc < 0) {
        r->over = !may_pass(&why);
        return fault_take(r, id, &why, err);
    }
    if (rc != 1)
        return rc == NAME_TAKEN
                   ? drift(r, id, AMP_CODE(name_taken), "the folder has another file of this name",
                           err)
                   : drift(r, id, AMP_CODE(task_moved), "the task is no longer in its folder", err);
    folder_sync(r, from);
    folder_sync(r, to);
    task_path(from_path, from, id, "");
    task_path(to_path, to, id, "");
    return folder_move(r, from_path, to_path, id, err);
}

static int event_do(struct run *r, struct amp_error *err)
{
    size_t n;
    const char *line = text_get(r, "line", &n, err);
    if (!line || amp_buf_add(&r->lines, line, n, err) < 0)
        return -1;
    r->events++;
    return amp_buf_add(&r->lines, "\n", 1, err);
}

/* A file of a run that no longer counts. */
static int drop_do(struct run *r, struct amp_error *err)
{
    struct amp_error why;
    const char *path = text_get(r, "path", NULL, err), *name;
    if (!path)
        return -1;
    AMP_CLOSE int dir = parent_open(r, path, &name, &why);
    if (dir < 0)
        return fault_take(r, "", &why, err);
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    amp_fail_errno(&why, AMP_IOERR, "cannot remove %s", path);
    return fault_take(r, "", &why, err);
}

static int begin_do(struct run *r, struct amp_error *err)
{
    uint32_t tok = amp_tape_get(r->t, 0, AMP_SPAN("log"));
    if (tok == AMP_TOK_NONE || !amp_tok_int(r->t, tok, &r->since))
        return amp_fail(err, AMP_DATAERR, bad_change, ".amp/change.ndjson does not begin");
    return 0;
}

static int step_do(struct run *r, struct amp_error *err)
{
    static const struct {
        const char *name;
        int (*run)(struct run *r, struct amp_error *err);
    } steps[] = {{"begin", begin_do}, {"put", put_do},   {"drop", drop_do},  {"create", create_do},
                 {"move", move_do},   {"edit", edit_do}, {"event", event_do}};
    uint32_t tok = amp_tape_get(r->t, 0, AMP_SPAN("do"));
    r->mem.len = 0;
    if (amp_buf_reserve(&r->mem, (size_t)r->t->len * 2 + 256, err) < 0)
        return -1;
    for (unsigned i = 0; tok != AMP_TOK_NONE && i < sizeof steps / sizeof steps[0]; i++)
        if (amp_tok_is(r->t, tok, amp_span_str(steps[i].name)))
            return r->logged && steps[i].run != begin_do && steps[i].run != event_do
                       ? 0
                       : steps[i].run(r, err);
    return amp_fail(err, AMP_DATAERR, bad_change, "a step of .amp/change.ndjson is unknown");
}

static struct amp_span line_take(struct amp_span *rest)
{
    const char *lf = memchr(rest->p, '\n', rest->n);
    size_t n = lf ? (size_t)(lf - rest->p) + 1 : rest->n;
    struct amp_span line = {rest->p, n};
    *rest = (struct amp_span){rest->p + n, rest->n - n};
    return line;
}

static const struct amp_span event_mark =
    AMP_SPAN("{\"do\":\"event\",\"line\":\"{\\\"eventId\\\":");

/* The events of a change: how many, and the number of the first one (0: there is none). */
static unsigned events_count(struct amp_span steps, uint64_t *first)
{
    unsigned n = 0;
    *first = 0;
    while (steps.n > 0) {
        struct amp_span line = line_take(&steps);
        if (!amp_span_starts(line, event_mark.p))
            continue;
        for (size_t i = event_mark.n; n == 0 && i < line.n && line.p[i] >= '0' && line.p[i] <= '9';
             i++)
            *first = *first * 10 + (uint64_t)(line.p[i] - '0');
        n++;
    }
    return n;
}

/* The events about faults, with the numbers after those of the change that come. */
static int faults_number(struct run *r, struct amp_error *err)
{
    struct amp_aof_change *x = &r->extra;
    if (x->next_event < r->first_event + r->events)
        x->next_event = r->first_event + r->events;
    for (size_t i = 0; i < r->faults.len;) {
        const char *type = r->faults.data + i, *id = type + strlen(type) + 1,
                   *payload = id + strlen(id) + 1;
        if (amp_aof_event_add(x, type, amp_span_str(id), amp_span_str(payload), err) < 0)
            return -1;
        i = (size_t)(payload - r->faults.data) + strlen(payload) + 1;
    }
    return amp_buf_add(&r->lines, x->events.data, x->events.len, err);
}

/* Replaces the change by the events that are logged, which differ from its own. Another attempt,
 * before which a person may have moved the task, logs the same ones then. */
static int change_settle(struct run *r, struct amp_span steps, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_span more = amp_buf_span(&r->extra.steps), begin = line_take(&steps);
    unsigned n = 0;
    amp_buf_init(&out, AMP_AOF_CHANGE_BYTES + 2 * RECOVERY_BYTES);
    if (amp_buf_add(&out, begin.p, begin.n, err) < 0)
        return -1;
    while (n < r->events && steps.n > 0) {
        struct amp_span line = line_take(&steps);
        if (!amp_span_starts(line, event_mark.p))
            continue;
        n++;
        if (amp_buf_add(&out, line.p, line.n, err) < 0)
            return -1;
    }
    line_take(&more); /* where it begins */
    return amp_buf_add(&out, more.p, more.n, err) < 0 ||
                   write_whole(r->data->dir, FILE_NAME, 0600, amp_buf_span(&out), err) < 0
               ? -1
               : amp_fsync_dir(r->data->dir, ".amp", err);
}

/* Events are logged after all steps: if the first one is in the log, the steps were carried out,
 * and what a person did since is no drift. */
static int logged_look(struct run *r, struct amp_tape *t, struct amp_span steps,
                       struct amp_error *err)
{
    struct amp_json_fault fault;
    while (steps.n > 0) {
        struct amp_span line = line_take(&steps);
        bool event = amp_span_starts(line, event_mark.p);
        if (!event && !amp_span_starts(line, "{\"do\":\"begin\""))
            continue;
        if (amp_tape_scan(t, line.p, line.n, &fault) < 0)
            return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_change), ".amp/change.ndjson",
                                 &fault);
        if (step_do(r, err) < 0)
            return -1;
        if (event)
            break;
    }
    int rc = r->lines.len ? amp_aof_log_has(r->data, r->since, amp_buf_span(&r->lines), err) : 0;
    amp_buf_reset(&r->lines);
    r->events = 0;
    r->logged = rc > 0;
    return rc < 0 ? -1 : 0;
}

static int run_init(struct run *r, struct amp_span steps, const char *actor, int64_t now_ms,
                    struct amp_error *err)
{
    unsigned events = events_count(steps, &r->first_event);
    amp_buf_init(&r->lines, AMP_AOF_CHANGE_BYTES);
    amp_buf_init(&r->faults, AMP_AOF_CHANGE_BYTES);
    amp_buf_init(&r->mem, (size_t)AMP_AOF_CHANGE_BYTES * 2 + 4096);
    if (amp_aof_change_init(&r->extra, r->data, actor, now_ms, err) < 0)
        return -1;
    if (events == 0)
        r->first_event = r->extra.next_event;
    return 0;
}

/* Carries out the steps, the first time or again, and adds the events that were logged to events.
 * Faults of what it finds in the folders are logged as events; it fails only if a later attempt may
 * succeed, such as with ENOSPC. */
static enum amp_aof_made change_apply(struct amp_aof_data *a, struct amp_span steps,
                                      const char *actor, int64_t now_ms, bool again,
                                      struct amp_buf *events, struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    struct run r = {.data = a, .t = &t, .again = again};
    struct amp_json_fault fault;
    int rc = 0;
    amp_tape_init(&t, &(struct amp_json_limits){.max_bytes = AMP_AOF_CHANGE_BYTES,
                                                .max_depth = 64,
                                                .max_tokens = 1000000});
    struct amp_span all = steps;
    rc = run_init(&r, steps, actor, now_ms, err);
    if (rc == 0 && again)
        rc = logged_look(&r, &t, steps, err);
    while (rc == 0 && steps.n > 0 && !r.over) {
        struct amp_span line = line_take(&steps);
        rc = amp_tape_scan(&t, line.p, line.n, &fault) < 0
                 ? amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_change), ".amp/change.ndjson",
                                 &fault)
                 : step_do(&r, err);
    }
    if (rc == 0)
        rc = dirs_sync(&r, err);
    if (rc == 0)
        rc = faults_number(&r, err);
    if (rc == 0 && (r.over || r.faults.len > 0))
        rc = change_settle(&r, all, err);
    if (rc == 0 && r.lines.len > 0)
        rc = amp_aof_log_append(a, r.since, amp_buf_span(&r.lines), err);
    if (rc == 0)
        rc = amp_buf_add(events, r.lines.data, r.lines.len, err);
    amp_aof_change_release(&r.extra);
    amp_buf_release(&r.faults);
    amp_buf_release(&r.lines);
    amp_buf_release(&r.mem);
    return rc < 0 ? AMP_AOF_MADE_FAILED : r.over ? AMP_AOF_MADE_PART : AMP_AOF_MADE;
}

/* The file of the change is removed for good, so that a power loss does not bring it back after a
 * person's changes. */
static int change_end(struct amp_aof_data *a, struct amp_error *err)
{
    if (unlinkat(a->dir, FILE_NAME, 0) < 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove " FILE_NAME);
    return amp_fsync_dir(a->dir, ".amp", err);
}

enum amp_aof_made amp_aof_commit(struct amp_aof_change *c, struct amp_error *err)
{
    if (c->n == 0)
        return AMP_AOF_MADE;
    if (write_whole(c->data->dir, FILE_NAME, 0600, amp_buf_span(&c->steps), err) < 0 ||
        amp_fsync_dir(c->data->dir, ".amp", err) < 0)
        return AMP_AOF_MADE_FAILED;
    amp_buf_reset(&c->events);
    enum amp_aof_made made =
        change_apply(c->data, amp_buf_span(&c->steps), c->actor, c->now_ms, false, &c->events, err);
    return made == AMP_AOF_MADE_FAILED || change_end(c->data, err) < 0 ? AMP_AOF_MADE_FAILED : made;
}

/* Adds the event system.recovery to the steps of a change that another writer left, if it has none
 * yet, and writes them again before they are carried out: so that it is logged once. */
static int recovery_note(struct amp_aof_data *a, struct amp_buf *steps, struct amp_error *err)
{
    AMP_CLEANUP(amp_aof_change_release) struct amp_aof_change more = {0};
    static const char mark[] = "\\\"type\\\":\\\"system.recovery\\\"";
    uint64_t first;
    unsigned n = events_count(amp_buf_span(steps), &first);
    if (steps->len == 0 || steps->data[steps->len - 1] != '\n' ||
        memmem(steps->data, steps->len, mark, sizeof mark - 1))
        return 0;
    if (amp_aof_change_init(&more, a, "task-dispatch", amp_now_ms(), err) < 0)
        return -1;
    amp_buf_reset(&more.steps);
    if (n > 0 && more.next_event < first + n)
        more.next_event = first + n;
    return amp_aof_event_add(&more, "system.recovery", AMP_SPAN(""),
                             AMP_SPAN("{\"reason\":\"unfinished_change\"}"), err) < 0 ||
                   amp_buf_add(steps, more.steps.data, more.steps.len, err) < 0 ||
                   write_whole(a->dir, FILE_NAME, 0600, amp_buf_span(steps), err) < 0
               ? -1
               : amp_fsync_dir(a->dir, ".amp", err);
}

int amp_aof_recover(struct amp_aof_data *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf steps = {0};
    if (faccessat(a->dir, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    /* Room for the event of the recovery, also of one that was killed. */
    amp_buf_init(&steps, AMP_AOF_CHANGE_BYTES + 2 * RECOVERY_BYTES);
    int rc = amp_aof_get(a, FILE_NAME, AMP_AOF_CHANGE_BYTES + RECOVERY_BYTES, &steps, err);
    if (rc <= 0)
        return rc;
    if (recovery_note(a, &steps, err) < 0)
        return -1;
    return change_apply(a, amp_buf_span(&steps), "task-dispatch", amp_now_ms(), true, &a->recovered,
                        err) == AMP_AOF_MADE_FAILED
               ? -1
               : change_end(a, err);
}
