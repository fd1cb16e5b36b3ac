/* Signers: a key in this process, in ssh-agent, or in a file of ssh-keygen. */
#include "message/identity/signer.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>
#include <amp/json/tape.h>

#include "base/codes.h"
#include "message/identity/process/agent.h"

enum { KEYGEN_OUTPUT_MAX = 16384 };

struct amp_signer {
    struct amp_seckey *key; /* NULL: the key is in ssh-agent or a file */
    int agent;              /* the connection to ssh-agent, or -1 */
    char *path;             /* for ssh-keygen, or NULL */
    char *followed;         /* the file of key, which may be replaced; or NULL */
    struct stat version;    /* of followed */
    struct amp_pubkey public;
    struct amp_tape tape; /* of the current line */
};

static int signer_new(const struct amp_pubkey *public, struct amp_signer **out,
                      struct amp_error *err)
{
    struct amp_signer *s = calloc(1, sizeof *s);
    if (!s)
        return amp_fail_memory(err);
    s->agent = -1;
    s->public = *public;
    amp_tape_init(&s->tape, NULL);
    *out = s;
    return 0;
}

void amp_signer_free(struct amp_signer *s)
{
    if (!s)
        return;
    amp_seckey_free(s->key);
    if (s->agent >= 0)
        close(s->agent);
    free(s->path);
    free(s->followed);
    amp_tape_release(&s->tape);
    free(s);
}

void amp_auto_signer(struct amp_signer **s)
{
    amp_signer_free(*s);
}

int amp_signer_of_key(struct amp_seckey *key, struct amp_signer **out, struct amp_error *err)
{
    if (signer_new(amp_seckey_public(key), out, err) < 0)
        return -1;
    (*out)->key = key;
    return 0;
}

static int signer_of_keygen(const char *path, struct amp_signer **out, struct amp_error *err)
{
    AMP_BUF struct amp_buf name = {0};
    struct amp_pubkey public;
    amp_buf_init(&name, 4096);
    if (amp_buf_fmt(&name, err, "%s.pub", path) < 0)
        return -1;
    if (amp_pubkey_read(name.data, &public, err) < 0 || signer_new(&public, out, err) < 0)
        return -1;
    (*out)->path = strdup(path);
    if ((*out)->path)
        return 0;
    amp_signer_free(*out);
    *out = NULL;
    return amp_fail_memory(err);
}

int amp_signer_of_file(const char *path, const char *socket, struct amp_signer **out,
                       struct amp_error *err)
{
    struct amp_seckey *key = NULL;
    struct amp_error why;
    if (amp_span_ends(amp_span_str(path), ".pub"))
        return amp_signer_of_agent(socket, path, out, err);
    if (amp_seckey_read(AT_FDCWD, path, false, &key, &why) < 0) {
        if (why.status == AMP_NO)
            return signer_of_keygen(path, out, err);
        if (err)
            *err = why;
        return -1;
    }
    if (amp_signer_of_key(key, out, err) < 0) {
        amp_seckey_free(key);
        return -1;
    }
    return 0;
}

int amp_signer_of_agent(const char *socket, const char *which, struct amp_signer **out,
                        struct amp_error *err)
{
    struct amp_span name = amp_span_str(which);
    struct amp_pubkey key;
    AMP_CLOSE int fd = -1;
    if (!amp_fingerprint_is(name)) {
        int rc = memchr(name.p, ' ', name.n) ? amp_pubkey_parse(name, &key, err)
                                             : amp_pubkey_read(which, &key, err);
        if (rc < 0)
            return -1;
        name = amp_span_str(key.fingerprint);
    }
    struct amp_pubkey found;
    if (identity_agent_connect(socket, &fd, err) < 0 ||
        identity_agent_find(fd, name, &found, err) < 0 || signer_new(&found, out, err) < 0)
        return -1;
    (*out)->agent = fd;
    fd = -1;
    return 0;
}

int amp_signer_follow(struct amp_signer *s, const char *path, struct amp_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot read the key %s", path);
    char *copy = strdup(path);
    if (!copy)
        return amp_fail_memory(err);
    free(s->followed);
    s->followed = copy;
    s->version = st;
    return 0;
}

int amp_signer_refresh(struct amp_signer *s, struct amp_error *err)
{
    struct amp_seckey *key = NULL;
    struct stat st;
    if (!s->followed)
        return 0;
    if (stat(s->followed, &st) < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot read the key %s", s->followed);
    if (st.st_ino == s->version.st_ino && st.st_dev == s->version.st_dev &&
        st.st_mtim.tv_sec == s->version.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == s->version.st_mtim.tv_nsec)
        return 0;
    if (amp_seckey_read(AT_FDCWD, s->followed, true, &key, err) < 0)
        return -1;
    amp_seckey_free(s->key);
    s->key = key;
    s->public = *amp_seckey_public(key);
    s->version = st;
    return 0;
}

const struct amp_pubkey *amp_signer_public(const struct amp_signer *s)
{
    return &s->public;
}

const char *amp_signer_alg(const struct amp_signer *s)
{
    switch (s->public.kind) {
    case AMP_PUBKEY_ED25519:
        return "Ed25519";
    case AMP_PUBKEY_ECDSA_P256:
        return "ECDSA";
    case AMP_PUBKEY_OTHER:
        break;
    }
    return strcmp(s->public.type, "ssh-rsa") == 0 ? "rsa-sha2-512" : s->public.type;
}

/* A memory file with this text, at its start. -1 with errno. */
static int memory_file(const struct amp_span *parts, size_t n)
{
    int fd = memfd_create("amp-sign", MFD_CLOEXEC);
    bool ok = fd >= 0;
    for (size_t i = 0; ok && i < n; i++)
        ok = amp_write_all(fd, parts[i], NULL) == 0;
    if (ok && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int keygen_sign(struct amp_signer *s, const char *ns, const struct amp_span *parts, size_t n,
                       char value[AMP_SSHSIG_BASE64_MAX], struct amp_error *err)
{
    const char *const argv[] = {"ssh-keygen", "-q", "-Y", "sign", "-f", s->path, "-n", ns, NULL};
    AMP_CLOSE int in = memory_file(parts, n);
    AMP_CLOSE int out = memory_file(NULL, 0);
    if (in < 0 || out < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a memory file");
    struct amp_child_spec spec = {.argv = argv,
                                  .fd_in = in,
                                  .fd_out = out,
                                  .fd_err = STDERR_FILENO,
                                  .keep_group = true,
                                  .dies_with_us = true};
    struct amp_child child;
    struct amp_child_end end;
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, NULL, &end, err) < 0)
        return -1;
    if (!end.exited || end.exit_code != 0)
        return amp_fail(err, AMP_UNAVAILABLE, signing_failed, "ssh-keygen could not sign with %s",
                        s->path);
    AMP_BUF struct amp_buf text = {0};
    struct amp_pubkey key;
    char alg[AMP_PUBKEY_TYPE_MAX];
    amp_buf_init(&text, KEYGEN_OUTPUT_MAX + 1);
    if (lseek(out, 0, SEEK_SET) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read the signature");
    enum amp_read got;
    while ((got = amp_read_more(out, &text, KEYGEN_OUTPUT_MAX - text.len, "the signature", err)) ==
           AMP_READ_BYTES)
        if (text.len >= KEYGEN_OUTPUT_MAX)
            break;
    if (got == AMP_READ_FAILED ||
        amp_sshsig_read(amp_buf_span(&text), ns, &key, alg, value, err) < 0)
        return -1;
    if (strcmp(key.fingerprint, s->public.fingerprint) != 0 || strcmp(alg, amp_signer_alg(s)) != 0)
        return amp_fail(err, AMP_UNAVAILABLE, signing_failed,
                        "ssh-keygen signed with another key than %s.pub", s->path);
    return 0;
}

/* Signs the text that the parts make together; digest is its SHA-512. */
static int sign_parts(struct amp_signer *s, const char *ns, const struct amp_span *parts, size_t n,
                      const unsigned char digest[64], char value[AMP_SSHSIG_BASE64_MAX],
                      struct amp_error *err)
{
    unsigned char data[AMP_SSHSIG_DATA_MAX], raw[crypto_sign_BYTES];
    if (s->path)
        return keygen_sign(s, ns, parts, n, value, err);
    struct amp_span signed_data = {(char *)data, amp_sshsig_data(ns, digest, data)};
    if (s->key) {
        amp_seckey_sign(s->key, signed_data, raw);
        sodium_bin2base64(value, AMP_SSHSIG_BASE64_MAX, raw, sizeof raw,
                          sodium_base64_VARIANT_ORIGINAL);
        return 0;
    }
    AMP_BUF struct amp_buf blob = {0};
    char alg[AMP_PUBKEY_TYPE_MAX];
    amp_buf_init(&blob, AMP_SSHSIG_BLOB_MAX);
    if (identity_agent_sign(s->agent, &s->public, signed_data, &blob, err) < 0 ||
        amp_sig_from_blob(amp_buf_span(&blob), &s->public, alg, value, err) < 0)
        return -1;
    if (strcmp(alg, amp_signer_alg(s)) != 0)
        return amp_fail(err, AMP_UNAVAILABLE, signing_failed,
                        "ssh-agent signed with the algorithm %s instead of %s", alg,
                        amp_signer_alg(s));
    return 0;
}

int amp_signer_sign(struct amp_signer *s, const char *ns, struct amp_span text,
                    char value[AMP_SSHSIG_BASE64_MAX], struct amp_error *err)
{
    unsigned char digest[64];
    crypto_hash_sha512(digest, (const unsigned char *)text.p, text.n);
    return sign_parts(s, ns, &text, 1, digest, value, err);
}

int amp_signer_message(struct amp_signer *s, struct amp_span to, struct amp_span msg,
                       int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX], value[AMP_SSHSIG_BASE64_MAX];
    unsigned char digest[64];
    amp_time_format(now_ms, time);
    struct amp_signed line = {.to = to,
                              .msg = msg,
                              .sig = {.key = amp_span_str(s->public.fingerprint),
                                      .alg = amp_span_str(amp_signer_alg(s)),
                                      .time = amp_span_str(time)}};
    struct amp_span text[AMP_SIGNED_PARTS];
    amp_signed_parts(line.sig.key, line.sig.time, msg, text);
    amp_signed_digest(line.sig.key, line.sig.time, msg, digest);
    if (sign_parts(s, AMP_SIGN_MESSAGES, text, AMP_SIGNED_PARTS, digest, value, err) < 0)
        return -1;
    line.sig.value = amp_span_str(value);
    return amp_signed_write(&line, out, err);
}

/* The parts of a line: {"to":…,"sig":…,"msg":…} in which to and sig are optional, or a bare
 * message. */
static void line_parts(const struct amp_tape *t, struct amp_span *to, struct amp_span *msg,
                       bool *is_signed)
{
    uint32_t members = 0, msg_at = AMP_TOK_NONE, to_at = AMP_TOK_NONE;
    bool sig = false;
    *to = (struct amp_span){"", 0};
    *msg = amp_tok_source(t, 0);
    *is_signed = false;
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return;
    for (uint32_t k = 1; k < t->tok[0].next; k = t->tok[k + 1].next) {
        if (amp_tok_is(t, k, AMP_SPAN("msg")))
            msg_at = k + 1;
        else if (amp_tok_is(t, k, AMP_SPAN("to")))
            to_at = k + 1;
        else if (amp_tok_is(t, k, AMP_SPAN("sig")))
            sig = true;
        else
            return;
        if (++members > 3)
            return;
    }
    if (msg_at == AMP_TOK_NONE)
        return;
    if (to_at != AMP_TOK_NONE)
        *to = amp_tok_source(t, to_at);
    *msg = amp_tok_source(t, msg_at);
    *is_signed = sig;
}

static int line_sign(struct amp_signer *s, struct amp_span line, bool again, int64_t now_ms,
                     struct amp_buf *out, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_span to, msg;
    bool is_signed;
    if (amp_tape_scan(&s->tape, line.p, line.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, fault.code, "the line cannot be signed", &fault);
    line_parts(&s->tape, &to, &msg, &is_signed);
    if (is_signed && !again)
        return amp_fail(err, AMP_NO, already_signed, "the line is signed already");
    return amp_signer_message(s, to, msg, now_ms, out, err);
}

int amp_signer_line(struct amp_signer *s, struct amp_span line, int64_t now_ms, struct amp_buf *out,
                    struct amp_error *err)
{
    return line_sign(s, line, true, now_ms, out, err);
}

int amp_signer_unsigned_line(struct amp_signer *s, struct amp_span line, int64_t now_ms,
                             struct amp_buf *out, struct amp_error *err)
{
    return line_sign(s, line, false, now_ms, out, err);
}
