/* Opening a state directory, and the compare-and-set of one key. */
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
                        "%s is on a network file system, where locks and syncs cannot be trusted",
                        dir);
    if ((st.st_mode & 077) == 0)
        return 0;
    return amp_fail(err, AMP_NOPERM, "state_permissions",
                    "%s is open to others (mode %03o): chmod 700 it, or name a directory that does "
                    "not exist yet",
                    dir, (unsigned)st.st_mode & 0777);
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
        return amp_fail(err, AMP_UNAVAILABLE, "state_missing", "%s holds no log", s->dir);
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

static int open_parts(struct amp_store *s, bool failed_too, struct amp_error *err)
{
    s->dirfd = open_dir(s->dir, s->opt.read_only, err);
    if (s->dirfd >= 0 && s->opt.look && cannot_write(s->dirfd))
        s->opt.read_only = true;
    if (s->dirfd < 0 || check_dir(s->dir, s->dirfd, err) != 0 || amp_store_settings(s, err) != 0 ||
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
        return amp_fail(
            err, AMP_TEMPFAIL, "log_failed",
            "a write to the log failed (see %s/log/FAILED); mend it with amp-ack repair", s->dir);
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

/* 0 new, 1 seen with the same bytes, 2 with others. */
static int seen(struct amp_store *s, const struct amp_store_input *input, const char *digest,
                struct amp_error *err)
{
    char sum[72];
    struct amp_span c = amp_span_str(input->consumer);
    int rc = amp_turn_seen(s, c, input->id, sum, err);
    return rc <= 0 ? rc : amp_store_digest_is(sum, digest, input->bytes) ? 1 : 2;
}

static int check_input(const struct amp_store_input *input, struct amp_error *err)
{
    if (input && (!input->id.n || input->id.n > AMP_ID_MAX || !input->consumer ||
                  strlen(input->consumer) > 256))
        return amp_fail(err, AMP_NO, "bad_id", "an id of %zu bytes; 1 to %d can be kept",
                        input->id.n, AMP_ID_MAX);
    return 0;
}

int amp_store_seen(struct amp_store *s, const struct amp_store_input *input, struct amp_error *err)
{
    char digest[AMP_DIGEST_MAX];
    bool own;
    if (check_input(input, err) != 0)
        return -1;
    amp_store_digest(input->bytes, digest);
    if (amp_turn_enter(s, &own, err) != 0)
        return -1;
    int rc = seen(s, input, digest, err);
    if (amp_turn_leave(s, own, rc < 0 ? NULL : err) != 0)
        return -1;
    return rc;
}

/* The callback's answer must fit a frame that can be read again. */
static int check_change(struct amp_store *s, const struct amp_store_change *c,
                        struct amp_error *err)
{
    struct amp_json_fault fault;
    if (!c->to || !*c->to || strlen(c->to) > AMP_STATE_MAX)
        return amp_fail(err, AMP_INTERNAL, "bad_change", "a state's name has 1 to %d bytes",
                        AMP_STATE_MAX);
    if (c->remove)
        return 0;
    if (c->json.n && memchr(c->json.p, '\n', c->json.n))
        return amp_fail(err, AMP_INTERNAL, "bad_change", "a record stands on one line");
    if (amp_tape_scan(&s->check.tape, c->json.p, c->json.n, &fault) != 0)
        return amp_json_fail(err, AMP_INTERNAL, "bad_change", "a record is not JSON", &fault);
    if (s->check.tape.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_INTERNAL, "bad_change", "a record is a JSON object");
    return 0;
}

static int commit(struct amp_store *s, struct amp_frame *f, const struct amp_store_change *c,
                  struct amp_error *err)
{
    AMP_FREE struct amp_frame_out *out = NULL;
    AMP_BUF struct amp_buf names = {0};
    struct amp_pos at;
    amp_buf_init(&names, 72 * (c->n_emits + 1u));
    if (c->n_emits && !(out = calloc(c->n_emits, sizeof *out)))
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < c->n_emits; i++)
        out[i] = (struct amp_frame_out){
            .id = c->emits[i].id, .line = c->emits[i].line, .ack = c->emits[i].wants_ack};
    f->event = amp_span_str(c->event);
    f->to = amp_span_str(c->to);
    f->actor = amp_span_str(c->actor || f->in_id.n ? c->actor : s->opt.actor);
    f->gone = c->remove;
    if (!c->remove) {
        f->state = c->json;
        f->due = c->due_ms;
    }
    f->out = out;
    f->n_out = c->n_emits;
    if (amp_blob_shrink(s, f, out, &names, err) != 0)
        return -1;
    if (amp_turn_append(s, f, &at, err) != 0)
        return -1;
    s->last = f->head.n;
    return 0;
}

uint64_t amp_store_last_frame(const struct amp_store *s)
{
    return s->last;
}

static int update(struct amp_store *s, struct amp_span key, const struct amp_store_input *input,
                  const char *digest, amp_store_fn fn, void *ctx, enum amp_store_outcome *outcome,
                  struct amp_error *err)
{
    struct amp_store_rec now = {0};
    struct amp_store_change change = {0};
    struct amp_frame f = {.key = key};
    if (input) {
        int rc = seen(s, input, digest, err);
        if (rc < 0)
            return -1;
        if (rc == 2)
            return amp_fail(err, AMP_NO, "duplicate_msg_id",
                            "the id %.*s was used before for another message",
                            (int)(input->id.n > 200 ? 200 : input->id.n), input->id.p);
        if (rc == 1) {
            *outcome = AMP_STORE_REDELIVERED;
            return 0;
        }
        f.in_consumer = amp_span_str(input->consumer);
        f.in_id = input->id;
        f.in_sum = amp_span_str(digest);
    }
    if (amp_store_find(s, key, &s->rec, &now, err) < 0)
        return -1;
    now.next = s->log.end.n + 1;
    int rc = fn(ctx, &now, &change, err);
    if (rc != 0) {
        if (rc > 0)
            *outcome = AMP_STORE_UNCHANGED;
        return rc > 0 ? 0 : -1;
    }
    if (check_change(s, &change, err) != 0)
        return -1;
    f.was = now.rev;
    f.rev = now.rev + 1;
    f.from = now.state;
    if (commit(s, &f, &change, err) != 0)
        return -1;
    *outcome = AMP_STORE_COMMITTED;
    return 0;
}

int amp_store_update(struct amp_store *s, const char *kind, struct amp_span id,
                     const struct amp_store_input *input, amp_store_fn fn, void *ctx,
                     enum amp_store_outcome *outcome, struct amp_error *err)
{
    char text[AMP_KEY_MAX], digest[AMP_DIGEST_MAX] = "";
    struct amp_span key;
    enum amp_store_outcome what = AMP_STORE_UNCHANGED;
    bool own;
    if (s->opt.read_only)
        return amp_fail(err, AMP_INTERNAL, "read_only", "an update of a read-only store");
    if (amp_store_key(kind, id, text, &key, err) != 0 || check_input(input, err) != 0)
        return -1;
    if (input)
        amp_store_digest(input->bytes, digest);
    if (amp_turn_renew(s, err) != 0 || amp_turn_enter(s, &own, err) != 0)
        return -1;
    int rc = update(s, key, input, digest, fn, ctx, &what, err);
    if (amp_turn_leave(s, own, rc != 0 ? NULL : err) != 0)
        return -1;
    if (rc == 0 && outcome)
        *outcome = what;
    return rc;
}
