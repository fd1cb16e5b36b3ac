/* A file that an answer names. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "flow/reply/reply.h"

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

int amp_reply_file_read(const char *path, struct amp_buf *mem, struct amp_reply_file *out,
                        struct amp_error *err)
{
    char real[PATH_MAX], sha[AMP_SHA256_MAX];
    struct amp_error e;
    struct statx st;
    size_t at_path, at_real, at_sha, at_text;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, 0, &e);
    if (fd < 0)
        return amp_fail(err, AMP_NO, "bad_file", "%s: %s", path, e.what);
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0 ||
        !realpath(path, real))
        return amp_fail(err, AMP_NO, "bad_file", "%s cannot be read", path);
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
