/* Makes, replaces and revokes keys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "sign.h"

/* Prints "WHO FINGERPRINT". */
static int key_print(const char *who, const struct amp_pubkey *key, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 16);
    if (amp_buf_fmt(&line, err, "%s %s\n", who, key->fingerprint) < 0)
        return -1;
    return amp_out(amp_buf_span(&line), err);
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

static int state_key_make(struct amp_store *s, struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_signer) struct amp_signer *signer = NULL;
    struct amp_error why;
    char what[AMP_PRINCIPAL_MAX + 64];
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
    if (change_record(s, AMP_CODE(key_made), amp_span_str(key->fingerprint), what, err) < 0)
        return -1;
    return key_print(opt.principal, key, err);
}

static int keygen_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if ((c->argc == 1) == (opt.principal != NULL))
        amp_die_usage("%s", c->verb->usage);
    if (opt.principal) {
        c->opens = AMP_OPENS_MADE;
        c->act = "make a key of the state directory";
    }
    return 0;
}

static int verb_keygen(struct amp_command *c, struct amp_error *err)
{
    return c->argc == 1 ? file_key_make(c->argv[0], err) : state_key_make(c->store, err);
}

static int verb_rotate(struct amp_command *c, struct amp_error *err)
{
    const char *principal = c->argv[0];
    struct amp_pubkey before, after;
    char what[AMP_PRINCIPAL_MAX + 160], until[AMP_TIME_MAX];
    int64_t now = amp_now_ms();
    if (amp_state_rotate(opt.state, principal, now, opt.grace_ms, &before, &after, err) < 0)
        return -1;
    amp_time_format(now + opt.grace_ms, until);
    snprintf(what, sizeof what, "the key of %s was replaced by %s; it is valid until %s", principal,
             after.fingerprint, until);
    return change_record(c->store, AMP_CODE(key_rotated), amp_span_str(before.fingerprint), what,
                         err) < 0
               ? -1
               : key_print(principal, &after, err);
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

static int key_revoke(struct amp_store *s, struct amp_span fingerprint, int64_t from_ms,
                      struct amp_error *err)
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
    return change_record(s, AMP_CODE(key_revocation), fingerprint, what, err);
}

static int verb_revoke(struct amp_command *c, struct amp_error *err)
{
    struct amp_pubkey key;
    int64_t from_ms;
    if (!opt.state && !opt.allowed)
        amp_die_usage("nothing to change: give --state DIR or --allowed-signers FILE");
    return time_named("from", opt.from ? opt.from : "now", &from_ms, err) < 0 ||
                   key_named(c->argv[0], &key, err) < 0
               ? -1
               : key_revoke(c->store, amp_span_str(key.fingerprint), from_ms, err);
}

static const struct amp_opt keygen_opts[] = {
    SIGNER_OPT_AS,
    {0, "comment", AMP_OPT_STRING, &opt.comment, "TEXT", .doc = "comment in the public key"},
    AMP_OPT_END,
};
static const struct amp_opt rotate_opts[] = {
    {0, "grace", AMP_OPT_DURATION, &opt.grace_ms, "TIME",
     .doc = "how long the old key stays valid (0: not at all)", .max = (int64_t)3650 * 86400000},
    AMP_OPT_END,
};
static const struct amp_opt revoke_opts[] = {
    {0, "from", AMP_OPT_STRING, &opt.from, "TIME",
     .doc = "signatures from this time on are invalid (default: now)"},
    {0, "reason", AMP_OPT_STRING, &opt.reason, "TEXT", .doc = "reason, for the record"},
    AMP_OPT_END,
};

const struct amp_verb keys_verbs[] = {
    {"keygen", "[FILE]", "make a key", keygen_opts, verb_keygen, .check = keygen_check, .most = 1,
     .usage = "give one FILE, or --state DIR and --as PRINCIPAL", .who = AMP_WHO_WITH("--as")},
    {"rotate", "PRINCIPAL", "replace a key of the state directory", rotate_opts, verb_rotate,
     .least = 1, .most = 1, .usage = "one PRINCIPAL is required", .opens = AMP_OPENS_MADE,
     .act = "rotate keys", .who = AMP_WHO_PERSON},
    {"revoke", "KEY", "make a key's signatures invalid from a point in time", revoke_opts,
     verb_revoke, .least = 1, .most = 1,
     .usage = "one KEY is required: a fingerprint, a public key or a .pub file",
     .opens = AMP_OPENS_GIVEN, .act = "revoke keys", .who = AMP_WHO_PERSON},
    {0},
};
