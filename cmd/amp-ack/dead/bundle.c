/* Writing a bundle: everything is on disk under another name before it gets its own. */
#include "bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#define FILE_MAX  ((size_t)1 << 30)
#define TAR_BLOCK 512

struct amp_buf *bundle_file(struct bundle *b, const char *name)
{
    unsigned i = b->n < BUNDLE_FILES ? b->n++ : BUNDLE_FILES - 1;
    b->file[i].name = name;
    amp_buf_init(&b->file[i].text, FILE_MAX);
    return &b->file[i].text;
}

void bundle_release(struct bundle *b)
{
    for (unsigned i = 0; i < b->n; i++)
        amp_buf_release(&b->file[i].text);
}

int bundle_manifest(struct bundle *b, struct amp_span about, struct amp_error *err)
{
    struct amp_jw w;
    unsigned n = b->n;
    struct amp_buf *out = bundle_file(b, "manifest.json");
    if (amp_buf_str(out, "{", err) < 0 || amp_buf_add(out, about.p, about.n, err) < 0 ||
        amp_buf_str(out, ",\"files\":", err) < 0)
        return -1;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '[');
    for (unsigned i = 0; i < n; i++) {
        char digest[AMP_SHA256_MAX];
        struct amp_span text = amp_buf_span(&b->file[i].text);
        amp_sha256_hex(text, digest);
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "name", b->file[i].name);
        amp_jw_member_int(&w, "bytes", (int64_t)text.n);
        amp_jw_member_text(&w, "sha256", digest);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    return amp_jw_end(&w, err) < 0 ? -1 : amp_buf_str(out, "}\n", err);
}

/* ustar: all names of ours are short, all sizes below 8 GiB. */
static void tar_head(char h[TAR_BLOCK], const char *dir, const char *name, size_t size, long now)
{
    unsigned sum = 0;
    memset(h, 0, TAR_BLOCK);
    snprintf(h, 100, "%.60s/%s", dir, name);
    snprintf(h + 100, 8, "%07o", 0600);
    snprintf(h + 108, 8, "%07o", 0);
    snprintf(h + 116, 8, "%07o", 0);
    snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    snprintf(h + 136, 12, "%011lo", (unsigned long)now);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum & 0777777);
}

static int write_tar(const struct bundle *b, int fd, const char *path, struct amp_error *err)
{
    static const char zeros[2 * TAR_BLOCK];
    char head[TAR_BLOCK], name[64];
    const char *base = strrchr(path, '/');
    struct amp_span stem = amp_span_str(base ? base + 1 : path);
    stem.n -= 4; /* .tar */
    amp_span_copy(stem, name, sizeof(name));
    for (unsigned i = 0; i < b->n; i++) {
        struct amp_span text = amp_buf_span(&b->file[i].text);
        size_t pad = (TAR_BLOCK - text.n % TAR_BLOCK) % TAR_BLOCK;
        tar_head(head, name, b->file[i].name, text.n, (long)(amp_now_ms() / 1000));
        if (amp_write_all(fd, (struct amp_span){head, TAR_BLOCK}, err) < 0 ||
            amp_write_all(fd, text, err) < 0 ||
            amp_write_all(fd, (struct amp_span){zeros, pad}, err) < 0)
            return -1;
    }
    if (amp_write_all(fd, (struct amp_span){zeros, sizeof(zeros)}, err) < 0)
        return -1;
    return fsync(fd) < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot sync %s", path) : 0;
}

static int write_files(const struct bundle *b, const char *dir, struct amp_error *err)
{
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", dir);
    for (unsigned i = 0; i < b->n; i++)
        if (amp_file_write_atomic(fd, b->file[i].name, 0600, amp_buf_span(&b->file[i].text), err) <
            0)
            return -1;
    return 0;
}

/* What did not get its name goes. */
static void discard(const struct bundle *b, const char *temp, bool tar)
{
    int fd = tar ? -1 : open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && i < b->n; i++)
        unlinkat(fd, b->file[i].name, 0);
    if (fd >= 0)
        close(fd);
    if (tar)
        unlink(temp);
    else
        rmdir(temp);
}

int bundle_write(const struct bundle *b, const char *path, struct amp_error *err)
{
    char temp[PATH_MAX], dir[PATH_MAX], id[AMP_UUID_MAX];
    size_t n = strlen(path);
    bool tar = n > 4 && strcmp(path + n - 4, ".tar") == 0;
    struct stat st;
    int rc;
    if (lstat(path, &st) == 0)
        return amp_fail(err, AMP_CANTCREAT, "exists", "%s exists already", path);
    if (n == 0 || n > PATH_MAX - 64)
        return amp_fail(err, AMP_USAGE, "bad_path", "--bundle needs a path");
    amp_uuid4(id);
    snprintf(temp, sizeof(temp), "%.*s.%.8s.partial", (int)(PATH_MAX - 64), path, id);
    if (tar) {
        AMP_CLOSE int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        rc = fd < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", temp)
                    : write_tar(b, fd, path, err);
    } else {
        rc = mkdir(temp, 0700) < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", temp)
                                   : write_files(b, temp, err);
    }
    if (rc == 0 && renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
        rc = amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", path);
    if (rc < 0) {
        discard(b, temp, tar);
        return -1;
    }
    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    return amp_fsync_dir(AT_FDCWD, slash ? dir : ".", err);
}
