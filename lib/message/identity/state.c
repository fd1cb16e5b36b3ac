/* The keys of a state directory. */
#include "message/identity/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"

#define SIGNERS    "allowed_signers"
#define NAMESPACES "amp,amp-*"

enum { LOCK_WAIT_MS = 10000 };

/* An open STATE/keys. */
struct keys {
    int dir, lock;
    char name[AMP_PRINCIPAL_MAX]; /* the key's file */
    struct amp_buf path;          /* of allowed_signers */
};

static void keys_close(struct keys *k)
{
    if (k->lock >= 0)
        close(k->lock);
    if (k->dir >= 0)
        close(k->dir);
    amp_buf_release(&k->path);
}

int amp_state_signers_path(const char *state, struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_fmt(out, err, "%s/keys/" SIGNERS, state);
}

static int directory_open(const char *state, int *out, struct amp_error *err)
{
    struct stat st;
    if (amp_mkdirs(state, 0700, err) < 0)
        return -1;
    AMP_CLOSE int at = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot open the state directory %s", state);
    if (mkdirat(at, "keys", 0700) < 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/keys", state);
    AMP_CLOSE int dir = openat(at, "keys", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot open %s/keys", state);
    if ((st.st_mode & 077) != 0 || (st.st_uid != geteuid() && geteuid() != 0))
        return amp_fail(err, AMP_NOPERM, key_permissions,
                        "others may access %s/keys (mode %04o, expected 0700 and our own)", state,
                        (unsigned)st.st_mode & 07777);
    *out = dir;
    dir = -1;
    return 0;
}

static int keys_open(struct keys *k, const char *state, const char *principal,
                     struct amp_error *err)
{
    amp_buf_init(&k->path, 8192);
    if (!amp_principal_is(amp_span_str(principal)))
        return amp_fail(err, AMP_USAGE, bad_principal,
                        "\"%.80s\" is not a principal (expected NAME or ROLE/NAME)", principal);
    amp_span_copy(amp_span_str(principal), k->name, sizeof k->name);
    char *slash = strchr(k->name, '/');
    if (slash)
        *slash = '.';
    /* Other files of STATE/keys. */
    if (!strcmp(k->name, SIGNERS) || !strcmp(k->name, "lock") || !strcmp(k->name, "log"))
        return amp_fail(err, AMP_USAGE, bad_principal, "the name \"%s\" is reserved", principal);
    return directory_open(state, &k->dir, err) < 0 ? -1
                                                   : amp_state_signers_path(state, &k->path, err);
}

static int keys_lock(struct keys *k, struct amp_error *err)
{
    k->lock = openat(k->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the lock of the state's keys");
    return amp_lock(k->lock, LOCK_WAIT_MS, err);
}

static int key_list(const struct keys *k, const struct amp_pubkey *key, const char *principal,
                    struct amp_error *err)
{
    const struct amp_trust_line line = {.principals = amp_span_str(principal),
                                        .namespaces = AMP_SPAN(NAMESPACES),
                                        .comment = amp_span_str("")};
    return amp_trust_file_add(k->path.data, key, &line, err) < 0 ? -1 : 0;
}

/* Reads the key. NO key_not_found. */
static int key_open(const struct keys *k, const char *principal, struct amp_seckey **out,
                    struct amp_error *err)
{
    struct amp_error why;
    if (amp_seckey_read(k->dir, k->name, true, out, &why) == 0)
        return 0;
    if (why.sys == ENOENT)
        return amp_fail(err, AMP_NO, key_not_found, "the state has no key of \"%s\"", principal);
    if (why.status == AMP_NO)
        return amp_fail_again(err, AMP_DATAERR, "the state's key", &why);
    if (err)
        *err = why;
    return -1;
}

/* Makes a key. It is listed first: if the program ends in between, an unused key is listed, which
 * is harmless. */
static int key_make(const struct keys *k, const char *principal, struct amp_seckey **out,
                    struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_seckey) struct amp_seckey *key = NULL;
    if (amp_seckey_generate(&key, err) < 0 ||
        key_list(k, amp_seckey_public(key), principal, err) < 0)
        return -1;
    int rc = amp_seckey_write(key, k->dir, k->name, principal, err);
    if (rc < 0)
        return -1;
    if (rc > 0)
        return amp_fail(err, AMP_TEMPFAIL, key_exists, "another program made the key of \"%s\"",
                        principal);
    *out = key;
    key = NULL;
    return 0;
}

static int signer_open(const char *state, const char *principal, bool make, struct amp_signer **out,
                       struct amp_error *err)
{
    AMP_CLEANUP(keys_close) struct keys k = {.dir = -1, .lock = -1};
    AMP_CLEANUP(amp_auto_seckey) struct amp_seckey *key = NULL;
    struct amp_error why;
    if (keys_open(&k, state, principal, err) < 0)
        return -1;
    if (key_open(&k, principal, &key, &why) < 0) {
        if (why.status != AMP_NO || !make) {
            if (err)
                *err = why;
            return -1;
        }
        if (keys_lock(&k, err) < 0)
            return -1;
        if (key_open(&k, principal, &key, &why) < 0) {
            if (why.status != AMP_NO) {
                if (err)
                    *err = why;
                return -1;
            }
            if (key_make(&k, principal, &key, err) < 0)
                return -1;
        }
    }
    AMP_CLEANUP(amp_auto_signer) struct amp_signer *signer = NULL;
    AMP_BUF struct amp_buf path = {0};
    amp_buf_init(&path, 8192);
    if (amp_signer_of_key(key, &signer, err) < 0)
        return -1;
    key = NULL;
    if (amp_buf_fmt(&path, err, "%s/keys/%s", state, k.name) < 0 ||
        amp_signer_follow(signer, path.data, err) < 0)
        return -1;
    *out = signer;
    signer = NULL;
    return 0;
}

int amp_state_signer(const char *state, const char *principal, struct amp_signer **out,
                     struct amp_error *err)
{
    return signer_open(state, principal, true, out, err);
}

int amp_state_signer_existing(const char *state, const char *principal, struct amp_signer **out,
                              struct amp_error *err)
{
    return signer_open(state, principal, false, out, err);
}

int amp_state_trust(const char *state, const char *allowed_signers, amp_trust_finding_fn finding,
                    void *ctx, struct amp_trust **out, struct amp_error *err)
{
    AMP_BUF struct amp_buf path = {0};
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *t = NULL;
    amp_buf_init(&path, 8192);
    if (amp_trust_new(finding, ctx, &t, err) < 0 ||
        (state && (amp_state_signers_path(state, &path, err) < 0 ||
                   amp_trust_add(t, path.data, true, false, err) < 0)) ||
        (allowed_signers && amp_trust_add(t, allowed_signers, false, true, err) < 0))
        return -1;
    *out = t;
    t = NULL;
    return 0;
}

/* Replaces the file of the key: the new one gets its name under another one first. */
static int key_replace(const struct keys *k, const struct amp_seckey *key, const char *principal,
                       struct amp_error *err)
{
    char fresh[AMP_PRINCIPAL_MAX + 16], from[AMP_PRINCIPAL_MAX + 24], to[AMP_PRINCIPAL_MAX + 8];
    snprintf(fresh, sizeof fresh, "%s.new", k->name);
    snprintf(from, sizeof from, "%s.pub", fresh);
    snprintf(to, sizeof to, "%s.pub", k->name);
    /* A rotation that did not end may have left it. */
    unlinkat(k->dir, fresh, 0);
    if (amp_seckey_write(key, k->dir, fresh, principal, err) != 0)
        return -1;
    if (renameat(k->dir, fresh, k->dir, k->name) < 0 || renameat(k->dir, from, k->dir, to) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot replace the key of \"%s\"", principal);
    if (fsync(k->dir) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync the state's keys");
    return 0;
}

int amp_state_rotate(const char *state, const char *principal, int64_t now_ms, int64_t grace_ms,
                     struct amp_pubkey *before, struct amp_pubkey *after, struct amp_error *err)
{
    AMP_CLEANUP(keys_close) struct keys k = {.dir = -1, .lock = -1};
    AMP_CLEANUP(amp_auto_seckey) struct amp_seckey *old = NULL;
    AMP_CLEANUP(amp_auto_seckey) struct amp_seckey *fresh = NULL;
    uint32_t n;
    if (keys_open(&k, state, principal, err) < 0 || keys_lock(&k, err) < 0 ||
        key_open(&k, principal, &old, err) < 0 || amp_seckey_generate(&fresh, err) < 0 ||
        key_list(&k, amp_seckey_public(fresh), principal, err) < 0)
        return -1;
    struct amp_span fingerprint = amp_span_str(amp_seckey_public(old)->fingerprint);
    /* First the end of the old key: if the program ends in between, its user gets an error and
     * rotates again, instead of keeping a key that should end. */
    int rc =
        grace_ms > 0
            ? amp_trust_file_expire(k.path.data, fingerprint, (now_ms + grace_ms) / 1000, &n, err)
            : amp_trust_file_revoke(k.path.data, fingerprint, now_ms, AMP_SPAN("rotated"), &n, err);
    if (rc < 0 || key_replace(&k, fresh, principal, err) < 0)
        return -1;
    *before = *amp_seckey_public(old);
    *after = *amp_seckey_public(fresh);
    return 0;
}
