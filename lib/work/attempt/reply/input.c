/* Finds what an answer names: a message by a prefix, and files. */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "work/attempt/reply/reply.h"

#define PREFIX_MIN 4

struct finding {
    struct amp_span prefix;
    char *id;
    unsigned n;
};

static int record_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    struct finding *f = ctx;
    (void)rec, (void)err;
    if (id.n < f->prefix.n || memcmp(id.p, f->prefix.p, f->prefix.n) != 0)
        return 0;
    amp_span_copy(id, f->id, AMP_MSG_ID_MAX);
    return ++f->n > 1;
}

int amp_reply_find(struct amp_store *s, const char *prefix, char id[AMP_MSG_ID_MAX],
                   struct amp_error *err)
{
    struct amp_span all = amp_span_str(prefix), plain = {prefix, 0};
    struct amp_store_rec rec;
    struct finding f = {.prefix = all, .id = id};
    if (all.n == 0 || all.n >= AMP_MSG_ID_MAX)
        return amp_fail(err, AMP_NO, unknown_ref, "'%.100s' is not an id", prefix);
    if (amp_store_get(s, AMP_KEY(AMP_MESSAGE_KIND, all), &rec, err) < 0)
        return -1;
    if (rec.found) {
        amp_span_copy(all, id, AMP_MSG_ID_MAX);
        return 0;
    }
    while (plain.n < all.n && (isalnum((unsigned char)prefix[plain.n]) || prefix[plain.n] == '-' ||
                               prefix[plain.n] == '_'))
        plain.n++;
    if (all.n >= PREFIX_MIN && plain.n > 0 &&
        amp_store_each_of(s, AMP_MESSAGE_KIND, plain, record_fn, &f, err) < 0)
        return -1;
    if (f.n == 1)
        return 0;
    return f.n > 1
               ? amp_fail(err, AMP_NO, ambiguous, "'%.100s' fits several messages", prefix)
               : amp_fail(err, AMP_NO, unknown_ref, "the state has no message '%.100s'", prefix);
}

static int file_hash(int fd, int64_t bytes, struct amp_buf *keep, char sha[AMP_SHA256_MAX],
                     struct amp_error *err)
{
    crypto_hash_sha256_state sum;
    unsigned char part[65536], digest[crypto_hash_sha256_BYTES];
    ssize_t n;
    crypto_hash_sha256_init(&sum);
    while ((n = read(fd, part, sizeof part)) > 0) {
        crypto_hash_sha256_update(&sum, part, (size_t)n);
        if (bytes <= AMP_REPLY_INLINE_MAX && amp_buf_add(keep, (char *)part, (size_t)n, err) < 0)
            return -1;
    }
    crypto_hash_sha256_final(&sum, digest);
    sodium_bin2hex(sha, AMP_SHA256_MAX, digest, sizeof digest);
    return n < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot read the file") : 0;
}

static int64_t time_ms(struct statx_timestamp t)
{
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int text_keep(struct amp_buf *mem, const char *text, size_t *at, struct amp_error *err)
{
    *at = mem->len;
    return amp_buf_add(mem, text, strlen(text) + 1, err);
}

static int file_take(int fd, const char *path, struct amp_buf *mem, struct amp_reply_file *out,
                     struct amp_error *err)
{
    char self[48], real[PATH_MAX], sha[AMP_SHA256_MAX];
    struct statx st;
    size_t at_path, at_real, at_sha, at_text;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0 ||
        !realpath(self, real))
        return amp_fail(err, AMP_NO, bad_file, "%s cannot be read", path);
    if (text_keep(mem, path, &at_path, err) < 0 || text_keep(mem, real, &at_real, err) < 0)
        return -1;
    at_text = mem->len;
    if (file_hash(fd, (int64_t)st.stx_size, mem, sha, err) < 0)
        return -1;
    size_t n_text = mem->len - at_text;
    if (text_keep(mem, sha, &at_sha, err) < 0)
        return -1;
    *out = (struct amp_reply_file){.path = mem->data + at_path,
                                   .real = mem->data + at_real,
                                   .sha256 = mem->data + at_sha,
                                   .bytes = (int64_t)st.stx_size,
                                   .born_ms = st.stx_mask & STATX_BTIME ? time_ms(st.stx_btime) : 0,
                                   .changed_ms = time_ms(st.stx_mtime)};
    if (st.stx_size <= AMP_REPLY_INLINE_MAX)
        out->text = (struct amp_span){mem->data + at_text, n_text};
    return 0;
}

int amp_reply_file_read(const char *path, struct amp_buf *mem, struct amp_reply_file *out,
                        struct amp_error *err)
{
    struct amp_error e;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, 0, &e);

    return fd < 0 ? amp_fail(err, AMP_NO, bad_file, "%s: %s", path, e.what)
                  : file_take(fd, path, mem, out, err);
}

int amp_reply_file_read_below(int root, const char *path, struct amp_buf *mem,
                              struct amp_reply_file *out, struct amp_error *err)
{
    struct amp_error e;
    struct stat st;
    AMP_CLOSE int fd = amp_open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0, &e);

    if (fd < 0)
        return amp_fail(err, AMP_NO, bad_file, "%s: %s", path, e.what);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return amp_fail(err, AMP_NO, bad_file, "%s is not a regular file", path);
    return file_take(fd, path, mem, out, err);
}
