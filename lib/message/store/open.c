/* Opening a state directory. */
#include "message/store/archive/archive.h"
#include "message/store/store_int.h"

#include "base/late.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/codes.h"

#define ROOM (1 << 18) /* of the disk, for the index of a look */

/* The directory must be accessible to its owner only. The mode of an existing directory is not
 * changed, even if it is empty. */
static int check_dir(const char *dir, int fd, struct amp_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat %s", dir);
    if (st.st_uid != geteuid())
        return amp_fail(err, AMP_NOPERM, state_not_ours, "%s belongs to another user", dir);
    if (amp_fs_is_network(fd))
        return amp_fail(err, AMP_NOPERM, state_network_fs,
                        "%s is on a network file system, where locks and syncs are not reliable",
                        dir);
    if ((st.st_mode & 077) == 0)
        return 0;
    return amp_fail(
        err, AMP_NOPERM, state_permissions,
        "%s is accessible to other users (mode %03o): chmod 700 it, or use a new directory", dir,
        (unsigned)st.st_mode & 0777);
}

/* Opens dir. Creates it, with its parents, if it does not exist. */
static int open_dir(const char *dir, bool read_only, struct amp_error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && read_only)
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "there is no state directory %s", dir);
    if (fd < 0 && errno == ENOENT) {
        if (amp_mkdirs(dir, 0700, err) < 0)
            return -1;
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && amp_fsync_dir(fd, "..", err) < 0) {
            close(fd);
            return -1;
        }
    }
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the state directory %s", dir);
    return fd;
}

static int open_log_dir(struct amp_store *s, struct amp_error *err)
{
    if (!s->opt.read_only && mkdirat(s->dirfd, "log", 0700) == 0) {
        if (fsync(s->dirfd) != 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot sync %s", s->dir);
    } else if (!s->opt.read_only && errno != EEXIST) {
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/log", s->dir);
    }
    s->logfd = openat(s->dirfd, "log", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->logfd < 0 && s->opt.read_only && errno == ENOENT)
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "%s has no log", s->dir);
    if (s->logfd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s/log", s->dir);
    return 0;
}

static int open_lock(struct amp_store *s, const char *name, struct amp_error *err)
{
    int flags = s->opt.read_only ? O_RDONLY : O_RDWR | O_CREAT;
    struct amp_error why;
    int fd = amp_file_open(s->logfd, name, flags | O_NOFOLLOW, 0600, &why);
    if (fd < 0 && s->opt.read_only && errno == ENOENT) /* another process is making the state */
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "%s has no log", s->dir);
    return fd < 0 ? amp_fail_again(err, AMP_CANTCREAT, s->dir, &why) : fd;
}

static bool is_archive(int dirfd)
{
    return faccessat(dirfd, AMP_ARCHIVE_MARK, F_OK, 0) == 0;
}

/* Whether the lock exists but cannot be opened for writing, or the disk has no room for the index
 * to be brought up to date. */
static bool cannot_write(int dirfd)
{
    struct statvfs fs;
    if (faccessat(dirfd, "log/main.lock", R_OK | W_OK, AT_EACCESS) != 0)
        return errno == EROFS || errno == EACCES;
    return fstatvfs(dirfd, &fs) == 0 && fs.f_bavail * fs.f_frsize < ROOM;
}

/* ---- settings: the member "store" of the directory's amp.json; options override them ---- */

enum { SETTINGS_MAX = 4 * 1024 * 1024 };
#define OPTION(member) offsetof(struct amp_store_options, member)
#define KEEP(group)    offsetof(struct amp_store_options, keep_for[AMP_KEEP_##group])
#define DAY            UINT64_C(86400000)

/* Each is a number from `least` to `most`, times `unit`. */
static const struct {
    const char *key; /* with a dot: of a member of an object */
    double least, most;
    uint64_t unit;
    uint64_t fallback;
    size_t at; /* of a uint64_t in the options */
} settings[] = {
    {"segment_bytes", 65536, 1 << 30, 1, 64 << 20, OPTION(segment_bytes)},
    {"keep_segments", 2, 1000000, 1, 16, OPTION(keep_segments)},
    {"keep_days", 0, 36500, DAY, 0, OPTION(keep_ms)},
    {"keep.messages", 0, 36500, DAY, AMP_KEEP_DAYS *DAY, KEEP(messages)},
    {"keep.tasks", 0, 36500, DAY, AMP_KEEP_DAYS *DAY, KEEP(tasks)},
    {"keep.jobs", 0, 36500, DAY, AMP_KEEP_DAYS *DAY, KEEP(jobs)},
    {"keep.questions", 0, 36500, DAY, AMP_KEEP_DAYS *DAY, KEEP(questions)},
    {"keep.bindings", 0, 36500, DAY, AMP_KEEP_DAYS *DAY, KEEP(bindings)},
    {"keep.duplicates", 0, 36500, DAY, AMP_KEEP_DUPLICATES_DAYS *DAY, KEEP(duplicates)},
    {"error_bytes", 65536, 1 << 30, 1, 16 << 20, OPTION(error_bytes)},
    {"error_files", 2, 1000, 1, 4, OPTION(error_files)},
};

/* The token of a setting, or AMP_TOK_NONE. store: of the member "store", or AMP_TOK_NONE. */
static uint32_t setting_find(const struct amp_tape *t, uint32_t store, const char *key)
{
    for (const char *dot; store != AMP_TOK_NONE && (dot = strchr(key, '.')); key = dot + 1)
        store = amp_tape_get(t, store, (struct amp_span){key, (size_t)(dot - key)});
    return store == AMP_TOK_NONE ? store : amp_tape_get(t, store, amp_span_str(key));
}

static int settings_take(struct amp_store *s, const struct amp_tape *t, uint32_t store,
                         struct amp_error *err)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        uint64_t *to = (uint64_t *)((char *)&s->opt + settings[i].at);
        double v = 0;
        uint32_t tok = setting_find(t, store, settings[i].key);
        if (tok != AMP_TOK_NONE &&
            (!amp_tok_real(t, tok, &v) || v < settings[i].least || v > settings[i].most))
            return amp_fail(
                err, AMP_CONFIG, config_invalid,
                "amp.json of the state directory: store.%s is a number from %.0f to %.0f",
                settings[i].key, settings[i].least, settings[i].most);
        if (!*to)
            *to = tok == AMP_TOK_NONE ? settings[i].fallback
                                      : (uint64_t)(v * (double)settings[i].unit);
    }
    return 0;
}

static int settings_read(struct amp_store *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    if (faccessat(s->dirfd, "amp.json", F_OK, 0) != 0)
        return settings_take(s, NULL, AMP_TOK_NONE, err);
    amp_buf_init(&text, SETTINGS_MAX);
    if (amp_file_read(s->dirfd, "amp.json", SETTINGS_MAX, &text, err) < 0)
        return -1;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, text.data, text.len, &fault) < 0)
        return amp_json_fail(err, AMP_CONFIG, AMP_CODE(config_invalid),
                             "amp.json of the state directory is not JSON", &fault);
    return settings_take(s, &t, amp_tape_get(&t, 0, AMP_SPAN("store")), err);
}

/* ---- opening and closing ---- */

static int open_parts(struct amp_store *s, bool failed_too, struct amp_error *err)
{
    s->dirfd = open_dir(s->dir, s->opt.read_only, err);
    if (s->dirfd >= 0 && s->opt.look && (is_archive(s->dirfd) || cannot_write(s->dirfd)))
        s->opt.read_only = true;
    if (s->dirfd < 0 || check_dir(s->dir, s->dirfd, err) < 0 || settings_read(s, err) < 0 ||
        open_log_dir(s, err) < 0)
        return -1;
    if (!s->opt.read_only && is_archive(s->dirfd))
        return amp_fail(err, AMP_NOPERM, state_permissions,
                        "%s is an archive of amp-ack export: it is only read", s->dir);
    /* SQLite opens the index by its path, later. */
    if (!(s->real = realpath(s->dir, NULL)))
        return amp_fail_errno(err, AMP_IOERR, "cannot find %s", s->dir);
    s->lock.main = open_lock(s, "main.lock", err);
    if (s->lock.main < 0)
        return -1;
    if (!s->opt.read_only && (s->lock.next = open_lock(s, "next.lock", err)) < 0)
        return -1;
    amp_wm_open(&s->wm, s->logfd, s->opt.read_only);
    s->lock.crowd = amp_wm_crowd(&s->wm);
    amp_chain_init(&s->chain, s->dirfd, s->opt.read_only);
    s->chain.sign = s->opt.sign_head;
    s->chain.dir = s->real;
    amp_log_init(&s->log, s->logfd, s->opt.read_only, &s->wm, &s->chain);
    s->log.most = s->opt.segment_bytes;
    amp_index_init(&s->index, s->dirfd, s->real, s->opt.read_only);
    s->index.wm = &s->wm;
    if (!failed_too && !s->opt.read_only && faccessat(s->logfd, "FAILED", F_OK, 0) == 0)
        return amp_fail(err, AMP_TEMPFAIL, log_failed,
                        "a write to the log failed (see %s/log/FAILED); run amp-ack repair",
                        s->dir);
    return 0;
}

static int open_store(const char *dir, const struct amp_store_options *opt, bool failed_too,
                      struct amp_store **out, struct amp_error *err)
{
    struct amp_store *s = calloc(1, sizeof *s);
    if (!s || !(s->dir = strdup(dir))) {
        free(s);
        return amp_fail_memory(err);
    }
    if (opt)
        s->opt = *opt;
    else
        s->opt.lock_timeout_ms = -1;
    s->dirfd = s->logfd = s->lock.next = s->lock.main = s->termfd = s->terms.fd = -1;
    s->log.fd = -1;
    amp_log_init(&s->log, -1, true, &s->wm, &s->chain);
    amp_frame_arena_init(&s->arena);
    amp_cache_init(&s->cache);
    amp_frame_arena_init(&s->check);
    amp_buf_init(&s->rec, 64 * AMP_FRAME_MAX);
    amp_frame_arena_init(&s->old.frame);
    amp_buf_init(&s->old.bytes, AMP_FRAME_MAX);
    amp_buf_init(&s->old.leaving.text, SIZE_MAX / 2);
    if (open_parts(s, failed_too, err) < 0) {
        amp_store_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

int amp_store_open(const char *dir, const struct amp_store_options *opt, struct amp_store **out,
                   struct amp_error *err)
{
    return open_store(dir, opt, false, out, err);
}

int amp_store_open_failed(const char *dir, const struct amp_store_options *opt,
                          struct amp_store **out, struct amp_error *err)
{
    return open_store(dir, opt, true, out, err);
}

void amp_store_close(struct amp_store *s)
{
    if (!s)
        return;
    if (s->in_turn) {
        s->batch = true;
        amp_store_end(s);
    }
    struct amp_error err;
    if (s->appended && !s->failed && (s->is_late || amp_wm_get(&s->wm) < s->wrote) &&
        amp_store_sync(s, &err) < 0)
        amp_late_note(&err);
    if (s->lock.main >= 0)
        amp_turn_last(s);
    amp_store_compact_leave(s);
    amp_index_close(&s->index);
    amp_cache_release(&s->cache);
    amp_term_file_close(&s->terms);
    amp_log_release(&s->log);
    amp_wm_close(&s->wm);
    amp_chain_release(&s->chain);
    amp_frame_arena_release(&s->arena);
    amp_frame_arena_release(&s->check);
    amp_buf_release(&s->rec);
    amp_frame_arena_release(&s->old.frame);
    amp_buf_release(&s->old.bytes);
    amp_buf_release(&s->old.leaving.text);
    free(s->old.leaving.v);
    amp_auto_close(&s->lock.next);
    amp_auto_close(&s->lock.main);
    amp_auto_close(&s->termfd);
    amp_auto_close(&s->logfd);
    amp_auto_close(&s->dirfd);
    free(s->real);
    free(s->dir);
    free(s);
}

const char *amp_store_dir(const struct amp_store *s)
{
    return s->dir;
}

const struct amp_message_facts *amp_store_facts(const struct amp_store *s)
{
    return s->opt.facts;
}

int64_t amp_store_kept_ms(const struct amp_store *s, enum amp_keep_group group)
{
    return (int64_t)s->opt.keep_for[group];
}
