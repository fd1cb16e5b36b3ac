/* Opening a state directory. */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory must be ours alone. The mode of one that exists is its owner's to change: it may be
 * anything, also when it is empty. */
static int check_dir(const char *dir, int fd, struct amp_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat %s", dir);
    if (st.st_uid != geteuid())
        return amp_fail(err, AMP_NOPERM, "state_not_ours", "%s belongs to another user", dir);
    if (amp_fs_is_network(fd))
        return amp_fail(err, AMP_NOPERM, "state_network_fs",
                        "%s is on a network file system, where locks and syncs are not reliable",
                        dir);
    if ((st.st_mode & 077) == 0)
        return 0;
    return amp_fail(
        err, AMP_NOPERM, "state_permissions",
        "%s is accessible to other users (mode %03o): chmod 700 it, or use a new directory", dir,
        (unsigned)st.st_mode & 0777);
}

/* Opens dir, made with its parents when it does not exist. */
static int open_dir(const char *dir, bool read_only, struct amp_error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && read_only)
        return amp_fail(err, AMP_UNAVAILABLE, "state_missing", "there is no state directory %s",
                        dir);
    if (fd < 0 && errno == ENOENT) {
        if (amp_mkdirs(dir, 0700, err) != 0)
            return -1;
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && amp_fsync_dir(fd, "..", err) != 0) {
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
        return amp_fail(err, AMP_UNAVAILABLE, "state_missing", "%s has no log", s->dir);
    if (s->logfd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s/log", s->dir);
    return 0;
}

static int open_lock(struct amp_store *s, const char *name, struct amp_error *err)
{
    int flags = s->opt.read_only ? O_RDONLY : O_RDWR | O_CREAT;
    struct amp_error why;
    int fd = amp_file_open(s->logfd, name, flags | O_NOFOLLOW, 0600, &why);
    return fd < 0 ? amp_fail_again(err, AMP_CANTCREAT, s->dir, &why) : fd;
}

/* There is a lock, but it cannot be opened for writing. */
static bool cannot_write(int dirfd)
{
    return faccessat(dirfd, "log/main.lock", R_OK | W_OK, AT_EACCESS) != 0 &&
           (errno == EROFS || errno == EACCES);
}

/* ---- the member "store" of the directory's amp.json: what all tools that share it have in common.
 * An option goes before it. ---- */

enum { SETTINGS_MAX = 4 * 1024 * 1024 };

static const double day_ms = 86400000.0;

static int setting(const struct amp_tape *t, uint32_t store, const char *key, double least,
                   double most, double *out, struct amp_error *err)
{
    uint32_t tok = amp_tape_get(t, store, amp_span_str(key));
    if (tok == AMP_TOK_NONE)
        return 0;
    if (!amp_tok_real(t, tok, out) || *out < least || *out > most)
        return amp_fail(err, AMP_CONFIG, "config_invalid",
                        "amp.json of the state directory: store.%s is a number from %.0f to %.0f",
                        key, least, most);
    return 0;
}

static int settings_take(struct amp_store *s, const struct amp_tape *t, uint32_t store,
                         struct amp_error *err)
{
    double bytes = 0, segments = 0, days = 0, error_bytes = 0, error_files = 0;
    if (setting(t, store, "segment_bytes", 65536, 1 << 30, &bytes, err) != 0 ||
        setting(t, store, "keep_segments", 2, 1000000, &segments, err) != 0 ||
        setting(t, store, "keep_days", 0, 36500, &days, err) != 0 ||
        setting(t, store, "error_bytes", 65536, 1 << 30, &error_bytes, err) != 0 ||
        setting(t, store, "error_files", 2, 1000, &error_files, err) != 0)
        return -1;
    if (!s->opt.segment_bytes)
        s->opt.segment_bytes = (uint64_t)bytes;
    if (!s->opt.keep_segments)
        s->opt.keep_segments = (uint32_t)segments;
    if (!s->opt.keep_ms)
        s->opt.keep_ms = (uint64_t)(days * day_ms);
    if (!s->opt.error_bytes)
        s->opt.error_bytes = (uint64_t)error_bytes;
    if (!s->opt.error_files)
        s->opt.error_files = (uint32_t)error_files;
    return 0;
}

static int settings_file(struct amp_store *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_buf_init(&text, SETTINGS_MAX);
    if (faccessat(s->dirfd, "amp.json", F_OK, 0) != 0)
        return 0;
    if (amp_file_read(s->dirfd, "amp.json", SETTINGS_MAX, &text, err) != 0)
        return -1;
    amp_tape_init(&t, NULL);
    int rc = 0;
    if (amp_tape_scan(&t, text.data, text.len, &fault) != 0) {
        rc = amp_json_fail(err, AMP_CONFIG, "config_invalid",
                           "amp.json of the state directory is not JSON", &fault);
    } else {
        uint32_t store = amp_tape_get(&t, 0, AMP_SPAN("store"));
        if (store != AMP_TOK_NONE)
            rc = settings_take(s, &t, store, err);
    }
    amp_tape_release(&t);
    return rc;
}

static int settings_read(struct amp_store *s, struct amp_error *err)
{
    if (settings_file(s, err) != 0)
        return -1;
    if (!s->opt.segment_bytes)
        s->opt.segment_bytes = 64u << 20;
    if (!s->opt.keep_segments)
        s->opt.keep_segments = 16;
    if (!s->opt.error_bytes)
        s->opt.error_bytes = 16u << 20;
    if (!s->opt.error_files)
        s->opt.error_files = 4;
    return 0;
}

/* ---- opening and closing ---- */

static int open_parts(struct amp_store *s, bool failed_too, struct amp_error *err)
{
    s->dirfd = open_dir(s->dir, s->opt.read_only, err);
    if (s->dirfd >= 0 && s->opt.look && cannot_write(s->dirfd))
        s->opt.read_only = true;
    if (s->dirfd < 0 || check_dir(s->dir, s->dirfd, err) != 0 || settings_read(s, err) != 0 ||
        open_log_dir(s, err) != 0)
        return -1;
    /* SQLite gets a path, and opens it later: whoever changes the directory until then may. */
    if (!(s->real = realpath(s->dir, NULL)))
        return amp_fail_errno(err, AMP_IOERR, "cannot find %s", s->dir);
    s->lock.main = open_lock(s, "main.lock", err);
    if (s->lock.main < 0)
        return -1;
    if (!s->opt.read_only && (s->lock.next = open_lock(s, "next.lock", err)) < 0)
        return -1;
    amp_wm_open(&s->wm, s->logfd, s->opt.read_only);
    s->lock.crowd = amp_wm_crowd(&s->wm);
    amp_log_init(&s->log, s->logfd, s->opt.read_only, &s->wm);
    s->log.most = s->opt.segment_bytes;
    amp_index_init(&s->index, s->dirfd, s->real, s->opt.read_only);
    s->index.wm = &s->wm;
    if (!failed_too && !s->opt.read_only && faccessat(s->logfd, "FAILED", F_OK, 0) == 0)
        return amp_fail(err, AMP_TEMPFAIL, "log_failed",
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
    s->dirfd = s->logfd = s->lock.next = s->lock.main = -1;
    s->log.fd = -1;
    amp_log_init(&s->log, -1, true, &s->wm);
    amp_frame_arena_init(&s->arena);
    amp_cache_init(&s->cache);
    amp_frame_arena_init(&s->check);
    amp_buf_init(&s->rec, 64 * AMP_FRAME_MAX);
    amp_buf_init(&s->old.key, AMP_KEY_MAX);
    if (open_parts(s, failed_too, err) != 0) {
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
    if (s->lock.main >= 0)
        amp_turn_last(s);
    amp_index_close(&s->index);
    amp_cache_release(&s->cache);
    amp_log_release(&s->log);
    amp_wm_close(&s->wm);
    amp_frame_arena_release(&s->arena);
    amp_frame_arena_release(&s->check);
    amp_buf_release(&s->rec);
    amp_buf_release(&s->old.key);
    amp_auto_close(&s->lock.next);
    amp_auto_close(&s->lock.main);
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
