/* Changes of an allowed_signers file and of its revocations. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "message/identity/trust/line.h"

enum { LOCK_WAIT_MS = 10000, REASON_MOST = 200 };

/* An edit of a file: the old text is read, the new one is composed line by line. */
struct edit {
    const char *path;
    int lock;
    mode_t mode;
    struct amp_buf before, after;
};

static void edit_release(struct edit *e)
{
    if (e->lock >= 0)
        close(e->lock);
    amp_buf_release(&e->before);
    amp_buf_release(&e->after);
}

/* Takes the lock, and reads the file; a missing one is empty. */
static int edit_begin(struct edit *e, const char *path, struct amp_error *err)
{
    AMP_BUF struct amp_buf name = {0};
    struct stat st;
    *e = (struct edit){.path = path, .lock = -1, .mode = 0644};
    amp_buf_init(&name, 8192);
    amp_buf_init(&e->before, AMP_TRUST_FILE_MAX + 1);
    amp_buf_init(&e->after, AMP_TRUST_FILE_MAX);
    if (amp_buf_fmt(&name, err, "%s.lock", path) < 0)
        return -1;
    e->lock = open(name.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (e->lock < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", name.data);
    if (amp_lock(e->lock, LOCK_WAIT_MS, err) < 0)
        return -1;
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno == ELOOP)
        return amp_fail(err, AMP_NOPERM, symbolic_link,
                        "%s is a symbolic link; give the path of the file", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return amp_fail(err, AMP_IOERR, not_a_file, "%s is not a regular file", path);
    e->mode = st.st_mode & 0777;
    enum amp_read got;
    while ((got = amp_read_more(fd, &e->before, 64 << 10, path, err)) == AMP_READ_BYTES)
        ;
    return got == AMP_READ_FAILED ? -1 : 0;
}

static int edit_commit(struct edit *e, struct amp_error *err)
{
    return amp_file_write_atomic(AT_FDCWD, e->path, e->mode, amp_buf_span(&e->after), err);
}

static int line_keep(struct edit *e, struct amp_span line, struct amp_error *err)
{
    return amp_buf_add(&e->after, line.p, line.n, err) < 0 ? -1
                                                           : amp_buf_add(&e->after, "\n", 1, err);
}

static bool is_line_of(const struct trust_line *l, struct amp_span fingerprint)
{
    return amp_span_is(fingerprint, l->key.fingerprint);
}

int amp_trust_file_add(const char *path, const struct amp_pubkey *key,
                       const struct amp_trust_line *line, struct amp_error *err)
{
    AMP_CLEANUP(edit_release) struct edit e = {.lock = -1};
    struct trust_line fresh = {.principals = line->principals,
                               .namespaces = line->namespaces,
                               .comment = line->comment,
                               .valid_after_s = line->valid_after_s,
                               .valid_before_s = line->valid_before_s,
                               .key = *key};
    struct trust_line l;
    struct amp_span text, one;
    bool replaced = false;
    if (edit_begin(&e, path, err) < 0)
        return -1;
    for (text = amp_buf_span(&e.before); identity_line_cut(&text, &one);) {
        bool same = identity_trust_line(one, &l) == TRUST_LINE_ENTRY &&
                    is_line_of(&l, amp_span_str(key->fingerprint)) &&
                    amp_span_eq(l.principals, line->principals);
        if (same && replaced)
            continue;
        replaced = replaced || same;
        if ((same ? identity_trust_line_write(&fresh, &e.after, err) : line_keep(&e, one, err)) < 0)
            return -1;
    }
    if (!replaced && identity_trust_line_write(&fresh, &e.after, err) < 0)
        return -1;
    return edit_commit(&e, err) < 0 ? -1 : replaced;
}

int amp_trust_file_remove(const char *path, struct amp_span fingerprint, struct amp_span principals,
                          uint32_t *n, struct amp_error *err)
{
    AMP_CLEANUP(edit_release) struct edit e = {.lock = -1};
    struct trust_line l;
    struct amp_span text, one;
    uint32_t removed = 0;
    if (edit_begin(&e, path, err) < 0)
        return -1;
    for (text = amp_buf_span(&e.before); identity_line_cut(&text, &one);) {
        if (identity_trust_line(one, &l) == TRUST_LINE_ENTRY && is_line_of(&l, fingerprint) &&
            (principals.n == 0 || amp_span_eq(l.principals, principals)))
            removed++;
        else if (line_keep(&e, one, err) < 0)
            return -1;
    }
    if (removed > 0 && edit_commit(&e, err) < 0)
        return -1;
    *n = removed;
    return 0;
}

int amp_trust_file_expire(const char *path, struct amp_span fingerprint, int64_t valid_before_s,
                          uint32_t *n, struct amp_error *err)
{
    AMP_CLEANUP(edit_release) struct edit e = {.lock = -1};
    struct trust_line l;
    struct amp_span text, one;
    uint32_t changed = 0;
    if (edit_begin(&e, path, err) < 0)
        return -1;
    for (text = amp_buf_span(&e.before); identity_line_cut(&text, &one);) {
        bool change = identity_trust_line(one, &l) == TRUST_LINE_ENTRY &&
                      is_line_of(&l, fingerprint) &&
                      (l.valid_before_s == 0 || l.valid_before_s > valid_before_s);
        if (!change) {
            if (line_keep(&e, one, err) < 0)
                return -1;
            continue;
        }
        changed++;
        l.valid_before_s = valid_before_s;
        /* OpenSSH refuses a period that ends before it begins. The line was never valid then. */
        if (l.valid_after_s >= valid_before_s)
            l.valid_after_s = valid_before_s - 1;
        if (identity_trust_line_write(&l, &e.after, err) < 0)
            return -1;
    }
    if (changed > 0 && edit_commit(&e, err) < 0)
        return -1;
    *n = changed;
    return 0;
}

static int revocation_write(struct edit *e, struct amp_span fingerprint, int64_t from_ms,
                            struct amp_span reason, struct amp_error *err)
{
    char time[AMP_TIME_MAX], text[REASON_MOST + 1];
    amp_time_format(from_ms, time);
    amp_span_copy(reason, text, sizeof text);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return amp_buf_fmt(&e->after, err, "%.*s %s%s%s\n", AMP_CLIP(fingerprint, 64), time,
                       *text ? " " : "", text);
}

int amp_trust_file_revoke(const char *path, struct amp_span fingerprint, int64_t from_ms,
                          struct amp_span reason, uint32_t *n, struct amp_error *err)
{
    AMP_BUF struct amp_buf name = {0};
    AMP_CLEANUP(edit_release) struct edit e = {.lock = -1};
    struct revocation r;
    struct amp_span text, one;
    bool earlier = false;
    if (!amp_fingerprint_is(fingerprint))
        return amp_fail(err, AMP_USAGE, bad_key, "\"%.*s\" is not a fingerprint (SHA256:…)",
                        AMP_CLIP(fingerprint, 64));
    amp_buf_init(&name, 8192);
    if (amp_buf_fmt(&name, err, "%s.revoked", path) < 0 || edit_begin(&e, name.data, err) < 0)
        return -1;
    for (text = amp_buf_span(&e.before); identity_line_cut(&text, &one);) {
        earlier = earlier || (identity_revocation_line(one, &r) == TRUST_LINE_ENTRY &&
                              amp_span_eq(r.fingerprint, fingerprint) && r.from_ms <= from_ms);
        if (line_keep(&e, one, err) < 0)
            return -1;
    }
    if (!earlier &&
        (revocation_write(&e, fingerprint, from_ms, reason, err) < 0 || edit_commit(&e, err) < 0))
        return -1;
    return amp_trust_file_expire(path, fingerprint, from_ms / 1000, n, err);
}
