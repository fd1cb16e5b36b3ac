/* Makes, replaces and revokes keys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "sign.h"
#include "worktree/person.h"

/* Prints "WHO FINGERPRINT". */
static int key_print(const char *who, const struct amp_pubkey *key, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 16);
    if (amp_buf_fmt(&line, err, "%s %s\n", who, key->fingerprint) < 0)
        return -1;
    return amp_out(amp_buf_span(&line), err);
}

static void state_need(const char *verb)
{
    if (!opt.state)
        amp_die_usage("%s needs a state directory: --state DIR or AMP_STATE", verb);
}

static int file_key_make(const char *path, struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_seckey) struct amp_seckey *key = NULL;
    if (amp_seckey_generate(&key, err) < 0)
        return -1;
    int rc = amp_seckey_write(key, AT_FDCWD, path, opt.comment ? opt.comment : "", err);
    if (rc > 0)
        return amp_fail(err, AMP_CANTCREAT, key_exists, "%s exists; it is not replaced", path);
    return rc < 0 ? -1 : key_print(path, amp_seckey_public(key), err);
}

static int state_key_make(struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_signer) struct amp_signer *signer = NULL;
    struct amp_error why;
    char what[AMP_PRINCIPAL_MAX + 64];
    if (amp_person_only(environ, "make a key of the state directory", err) < 0)
        return -1;
    if (amp_state_signer_existing(opt.state, opt.principal, &signer, &why) == 0)
        return amp_fail(err, AMP_CANTCREAT, key_exists, "\"%s\" has a key: %s", opt.principal,
                        amp_signer_public(signer)->fingerprint);
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    if (amp_state_signer(opt.state, opt.principal, &signer, err) < 0)
        return -1;
    const struct amp_pubkey *key = amp_signer_public(signer);
    snprintf(what, sizeof what, "the key of %s was made", opt.principal);
    if (change_record(AMP_CODE(key_made), amp_span_str(key->fingerprint), what, err) < 0)
        return -1;
    return key_print(opt.principal, key, err);
}

int verb_keygen(int argc, char **argv)
{
    struct amp_error err = {0};
    int rc;
    if (argc > 1 || (argc == 1) == (opt.principal != NULL))
        amp_die_usage("give one FILE, or --state DIR and --as PRINCIPAL");
    if (argc == 0)
        state_need("--as");
    rc = argc == 1 ? file_key_make(argv[0], &err) : state_key_make(&err);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}

int verb_rotate(int argc, char **argv)
{
    struct amp_pubkey before, after;
    struct amp_error err = {0};
    char what[AMP_PRINCIPAL_MAX + 160], until[AMP_TIME_MAX];
    if (argc != 1)
        amp_die_usage("one PRINCIPAL is required");
    state_need("rotate");
    int64_t now = amp_now_ms();
    if (amp_person_only(environ, "rotate keys", &err) < 0 ||
        amp_state_rotate(opt.state, argv[0], now, opt.grace_ms, &before, &after, &err) < 0)
        return amp_complain(&err);
    amp_time_format(now + opt.grace_ms, until);
    snprintf(what, sizeof what, "the key of %s was replaced by %s; it is valid until %s", argv[0],
             after.fingerprint, until);
    if (change_record(AMP_CODE(key_rotated), amp_span_str(before.fingerprint), what, &err) < 0 ||
        key_print(argv[0], &after, &err) < 0)
        return amp_complain(&err);
    return AMP_OK;
}

/* Revokes the key in a file, where its lines are. */
static int file_revoke(const char *path, struct amp_span fingerprint, int64_t from_ms,
                       uint32_t *all, struct amp_error *err)
{
    uint32_t n = 0;
    struct amp_span reason = amp_span_str(opt.reason ? opt.reason : "");
    if (amp_trust_file_revoke(path, fingerprint, from_ms, reason, &n, err) < 0)
        return -1;
    *all += n;
    return 0;
}

/* The state's trust file, if the state has keys. */
static int state_file(struct amp_buf *path, bool *has, struct amp_error *err)
{
    *has = false;
    if (!opt.state)
        return 0;
    if (amp_buf_fmt(path, err, "%s/keys", opt.state) < 0)
        return -1;
    *has = access(path->data, F_OK) == 0;
    amp_buf_reset(path);
    return amp_state_signers_path(opt.state, path, err);
}

static int key_revoke(struct amp_span fingerprint, int64_t from_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf path = {0};
    uint32_t n = 0;
    bool in_state;
    char what[320], from[AMP_TIME_MAX];
    amp_buf_init(&path, 8192);
    if (state_file(&path, &in_state, err) < 0)
        return -1;
    if (!in_state && !opt.allowed)
        return amp_fail(err, AMP_NO, key_not_found, "the state directory %s has no keys",
                        opt.state);
    if ((in_state && file_revoke(path.data, fingerprint, from_ms, &n, err) < 0) ||
        (opt.allowed && file_revoke(opt.allowed, fingerprint, from_ms, &n, err) < 0))
        return -1;
    if (n == 0)
        amp_warn("no trusted line has this key; the revocation is recorded all the same");
    amp_time_format(from_ms, from);
    snprintf(what, sizeof what, "the key was revoked from %s on%s%.200s", from,
             opt.reason ? ": " : "", opt.reason ? opt.reason : "");
    return change_record(AMP_CODE(key_revocation), fingerprint, what, err);
}

int verb_revoke(int argc, char **argv)
{
    struct amp_pubkey key;
    struct amp_error err = {0};
    int64_t from_ms;
    if (argc != 1)
        amp_die_usage("one KEY is required: a fingerprint, a public key or a .pub file");
    if (!opt.state && !opt.allowed)
        amp_die_usage("nothing to change: give --state DIR or --allowed-signers FILE");
    if (amp_person_only(environ, "revoke keys", &err) < 0 ||
        time_named("from", opt.from ? opt.from : "now", &from_ms, &err) < 0 ||
        key_named(argv[0], &key, &err) < 0 ||
        key_revoke(amp_span_str(key.fingerprint), from_ms, &err) < 0)
        return amp_complain(&err);
    return AMP_OK;
}
