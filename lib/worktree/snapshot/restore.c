/*
 * The transaction of a restore: see restore.h. The journal is a file of texts, each with a NUL, one
 * per step, written before the step:
 *
 *     S STAGE DEV PATH            the directory PATH with what is written and what was replaced
 *     X STAGE N INO PATH          the file N of the stage, which has this inode, and PATH change
 *                                 places
 *     I STAGE N PATH              the file N becomes PATH, which does not exist
 *     O STAGE N PATH              PATH becomes the file N
 *     M MODE INO PATH             the permissions were MODE
 *     T SECONDS NANOSECONDS INO PATH   the modification time was this
 *     U UID GID INO PATH          the owners were these
 *     A INO ATTRS PATH            the extended attributes were these ("-": none)
 *
 * "journal" exists while a transaction may have to be undone; renamed to "journal.done" it only
 * says which directories are to be removed.
 */
#include "worktree/snapshot/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "worktree/snapshot/transaction.h"

#define JOURNAL "journal"
#define DONE    "journal.done"

enum { JOURNAL_MOST = 1 << 30, NOTE_MOST = PATH_MAX + AMP_ATTRS_MOST + 256 };

int amp_restore_note(struct amp_restore *r, struct amp_error *err, const char *fmt, ...)
{
    AMP_BUF struct amp_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    amp_buf_init(&text, NOTE_MOST);
    if (n < 0 || amp_buf_reserve(&text, (size_t)n, err) < 0)
        return -1;
    va_start(ap, fmt);
    vsnprintf(text.data, (size_t)n + 1, fmt, ap);
    va_end(ap);
    r->noted += (size_t)n + 1;
    if (r->noted > JOURNAL_MOST) /* it could not be read again */
        return amp_fail(err, AMP_NO, "tree_limit", "more than 1 GiB of changes");
    return amp_write_all(r->journal, (struct amp_span){text.data, (size_t)n + 1}, err);
}

/* ---- the journal read again ---- */

/* Opens the stage of a journal. Its descriptor is -1 if it is gone, or was never made. */
static void stage_open(struct amp_restore *r, const char *path, unsigned long long dev)
{
    struct stat st;
    if (r->n_stages == AMP_RESTORE_STAGES)
        return;
    struct amp_restore_stage *g = &r->stage[r->n_stages++];
    *g = (struct amp_restore_stage){.dev = (dev_t)dev};
    amp_span_copy(amp_span_str(path), g->path, sizeof g->path);
    g->fd = amp_open_beneath(r->s.root, path, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (g->fd < 0 || (fstat(g->fd, &st) == 0 && st.st_dev == g->dev))
        return;
    close(g->fd);
    g->fd = -1;
}

static int journal_read(struct amp_restore *r, const char *name, struct amp_buf *text,
                        struct amp_error *err)
{
    if (amp_file_read(r->s.journal, name, JOURNAL_MOST, text, err) < 0)
        return -1;
    /* A step whose note was cut was not begun. */
    while (text->len && text->data[text->len - 1])
        text->len--;
    for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1) {
        unsigned long long dev;
        unsigned i;
        int end = 0;
        if (sscanf(text->data + at, "S %u %llu%n", &i, &dev, &end) == 2 &&
            text->data[at + (size_t)end] == ' ')
            stage_open(r, text->data + at + end + 1, dev);
    }
    return 0;
}

struct step {
    char kind;
    unsigned stage;
    unsigned long long n, ino;
    long long seconds;
    long nanoseconds;
    unsigned mode, uid, gid;
    struct amp_span attrs;
    const char *path;
};

static bool step_read(const char *text, struct step *s)
{
    int end = 0; /* before the space and the path, which may begin with spaces */
    *s = (struct step){.kind = text[0]};
    switch (s->kind) {
    case 'X':
        sscanf(text, "X %u %llu %llu%n", &s->stage, &s->n, &s->ino, &end);
        break;
    case 'I':
        sscanf(text, "I %u %llu%n", &s->stage, &s->n, &end);
        break;
    case 'O':
        sscanf(text, "O %u %llu%n", &s->stage, &s->n, &end);
        break;
    case 'M':
        sscanf(text, "M %o %llu%n", &s->mode, &s->ino, &end);
        break;
    case 'T':
        sscanf(text, "T %lld %ld %llu%n", &s->seconds, &s->nanoseconds, &s->ino, &end);
        break;
    case 'U':
        sscanf(text, "U %u %u %llu%n", &s->uid, &s->gid, &s->ino, &end);
        break;
    case 'A':
        sscanf(text, "A %llu%n", &s->ino, &end);
        if (!end || text[end] != ' ')
            return false;
        s->attrs = (struct amp_span){text + end + 1, strcspn(text + end + 1, " ")};
        end += 1 + (int)s->attrs.n;
        break;
    default:
        break;
    }
    s->path = text + end + 1;
    return end > 0 && text[end] == ' ';
}

static int undo_fail(const struct step *s, struct amp_error *err)
{
    return amp_fail_errno(err, AMP_IOERR, "%s: cannot be put back", s->path);
}

static int move_undo(struct amp_restore *r, const struct step *s, struct amp_error *err)
{
    struct stat st;
    char file[32];
    AMP_CLOSE int dir = -1;
    if (s->stage >= r->n_stages || r->stage[s->stage].fd < 0)
        return 0; /* the process ended before it made the stage */
    int stage = r->stage[s->stage].fd;
    snprintf(file, sizeof file, "%llu", s->n);
    bool is_staged = fstatat(stage, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (s->kind == 'X'   ? !is_staged || (unsigned long long)st.st_ino == s->ino
        : s->kind == 'I' ? is_staged
                         : !is_staged)
        return 0; /* not done, or undone */
    const char *name = amp_tree_above(r->s.root, s->path, &dir);
    if (!name)
        return undo_fail(s, err);
    int rc = s->kind == 'X'   ? renameat2(stage, file, dir, name, RENAME_EXCHANGE)
             : s->kind == 'I' ? amp_restore_move(dir, name, stage, file)
                              : amp_restore_move(stage, file, dir, name);
    return rc ? undo_fail(s, err) : 0;
}

static int owner_undo(int dir, const char *name, const struct step *s, const struct stat *st)
{
    return amp_restore_owner(dir, name, s->uid, s->gid) < 0 ? -1
           : S_ISLNK(st->st_mode)                           ? 0
                                  : amp_restore_mode(dir, name, st->st_mode & 07777);
}

static int attrs_undo(int dir, const char *name, const struct step *s)
{
    AMP_FREE char *attrs = amp_span_is(s->attrs, "-") ? NULL : amp_span_dup(s->attrs);
    return attrs || amp_span_is(s->attrs, "-") ? amp_restore_attrs(dir, name, attrs) : -1;
}

static int meta_undo(struct amp_restore *r, const struct step *s, struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int dir = -1;
    int rc = 0;
    const char *name = amp_tree_above(r->s.root, s->path, &dir);
    if (!name || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (unsigned long long)st.st_ino != s->ino)
        return 0; /* undone: something else is there again */
    if (s->kind == 'M')
        rc = amp_restore_mode(dir, name, s->mode);
    else if (s->kind == 'T')
        rc = amp_restore_time(dir, name, (struct timespec){s->seconds, s->nanoseconds});
    else if (s->kind == 'U')
        rc = owner_undo(dir, name, s, &st);
    else
        rc = attrs_undo(dir, name, s);
    return rc ? undo_fail(s, err) : 0;
}

static int step_undo(struct amp_restore *r, const struct step *s, struct amp_error *err)
{
    return strchr("MTUA", s->kind) ? meta_undo(r, s, err) : move_undo(r, s, err);
}

/* later: in a later call, where something else may be in the way by now. It stays: what is wanted
 * is restored after this anyway. */
static int steps_undo(struct amp_restore *r, const struct amp_buf *text, bool later,
                      struct amp_error *err)
{
    size_t end = text->len;
    while (end > 0) {
        size_t at = end - 1;
        struct step s;
        while (at > 0 && text->data[at - 1])
            at--;
        if (step_read(text->data + at, &s) && step_undo(r, &s, err) < 0 && !later)
            return -1;
        end = at;
    }
    return 0;
}

/* The time of the directory that has the stage stays. */
static int stage_remove(struct amp_restore *r, const struct amp_restore_stage *g,
                        struct amp_error *err)
{
    AMP_CLOSE int dir = -1;
    struct stat st;
    const char *name = amp_tree_above(r->s.root, g->path, &dir);
    if (!name || fstat(dir, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", g->path);
    if (amp_restore_remove(dir, name, err) < 0)
        return -1;
    return amp_restore_time(dir, ".", st.st_mtim) < 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot set the time above %s", g->path)
               : 0;
}

static int stages_remove(struct amp_restore *r, struct amp_error *err)
{
    int rc = 0;
    for (unsigned i = 0; i < r->n_stages; i++) {
        if (r->stage[i].fd < 0)
            continue;
        if (stage_remove(r, &r->stage[i], err) < 0)
            rc = -1;
        close(r->stage[i].fd);
    }
    r->n_stages = 0;
    return rc;
}

static int journal_drop(struct amp_restore *r, const char *name, struct amp_error *err)
{
    if (unlinkat(r->s.journal, name, 0) < 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove the journal");
    return 0;
}

static bool journal_exists(const struct amp_restore *r, const char *name)
{
    return faccessat(r->s.journal, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int journal_undo(struct amp_restore *r, bool later, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, JOURNAL_MOST);
    if (journal_read(r, JOURNAL, &text, err) < 0 || steps_undo(r, &text, later, err) < 0)
        return -1;
    /* With files of the stages gone, the steps could not be undone again. */
    if (renameat(r->s.journal, JOURNAL, r->s.journal, DONE) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot end the journal");
    return stages_remove(r, err) < 0 ? -1 : journal_drop(r, DONE, err);
}

static int journal_finish(struct amp_restore *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, JOURNAL_MOST);
    if (journal_read(r, DONE, &text, err) < 0 || stages_remove(r, err) < 0)
        return -1;
    return journal_drop(r, DONE, err);
}

static void stages_close(struct amp_restore *r)
{
    for (unsigned i = 0; i < r->n_stages; i++)
        if (r->stage[i].fd >= 0)
            close(r->stage[i].fd);
    r->n_stages = 0;
}

static void restore_free(struct amp_restore *r)
{
    stages_close(r);
    if (r->journal >= 0)
        close(r->journal);
    free(r);
}

int amp_restore_begin(const struct amp_restore_spec *spec, struct amp_restore **out,
                      struct amp_error *err)
{
    struct amp_restore *r = calloc(1, sizeof *r);
    char id[AMP_UUID_MAX];
    if (!r)
        return amp_fail_memory(err);
    r->s = *spec;
    r->journal = -1;
    if ((journal_exists(r, DONE) && journal_finish(r, err) < 0) ||
        (journal_exists(r, JOURNAL) && journal_undo(r, true, err) < 0)) {
        restore_free(r);
        return -1;
    }
    amp_uuid4(id);
    snprintf(r->name, sizeof r->name, AMP_RESTORE_STAGE "%s", id);
    r->journal = openat(spec->journal, JOURNAL,
                        O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (r->journal < 0) {
        amp_fail_errno(err, AMP_CANTCREAT, "cannot create the journal");
        restore_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

static int journal_end(struct amp_restore *r, struct amp_error *err)
{
    if (amp_restore_all_sync(r) < 0 || renameat(r->s.journal, JOURNAL, r->s.journal, DONE) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot end the journal");
    fsync(r->s.journal); /* if it is lost with the power, another rollback gives the same files */
    return 0;
}

int amp_restore_end(struct amp_restore *r, bool keep, struct amp_error *err)
{
    struct amp_error late;
    int rc = 0;
    if (!r)
        return 0;
    if (keep && journal_end(r, err) == 0) {
        rc = stages_remove(r, err) < 0 || journal_drop(r, DONE, err) < 0;
    } else {
        stages_close(r);
        if (journal_undo(r, false, &late) < 0) {
            rc = -1;
            if (err)
                *err = late;
        } else if (keep) {
            rc = -1; /* err says why it could not be kept */
        }
    }
    restore_free(r);
    return rc;
}
