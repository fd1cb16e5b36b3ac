/*
 * Any bytes through the parsers of keys, trust and signatures. The first byte chooses: a line of
 * allowed_signers, a line of revocations, a signed line, a public key, an armoured signature, or a
 * private key file. What must hold: what is accepted is accepted again in its own spelling.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message/identity/signature.h"
#include "message/identity/trust/line.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct amp_error err;

static void fuzz_trust(struct amp_span text)
{
    static struct trust_line l, again;
    AMP_BUF struct amp_buf out = {0};
    if (memchr(text.p, '\n', text.n))
        return;
    enum trust_line_is is = identity_trust_line(text, &l);
    if (is == TRUST_LINE_BAD)
        MUST(l.code && l.what);
    if (is != TRUST_LINE_ENTRY)
        return;
    amp_buf_init(&out, 4 * text.n + 65536);
    if (identity_trust_line_write(&l, &out, &err) < 0)
        return;
    MUST(identity_trust_line((struct amp_span){out.data, out.len - 1}, &again) == TRUST_LINE_ENTRY);
    MUST(amp_span_eq(l.principals, again.principals) &&
         amp_span_eq(l.namespaces, again.namespaces));
    MUST(l.valid_after_s == again.valid_after_s && l.valid_before_s == again.valid_before_s);
    MUST(strcmp(l.key.fingerprint, again.key.fingerprint) == 0);
}

static void fuzz_revocation(struct amp_span text)
{
    struct revocation r;
    if (identity_revocation_line(text, &r) == TRUST_LINE_ENTRY)
        MUST(amp_fingerprint_is(r.fingerprint));
}

static void fuzz_line(struct amp_span text)
{
    struct amp_signed s;
    AMP_BUF struct amp_buf out = {0};
    if (!amp_signed_split(text, &s))
        return;
    amp_buf_init(&out, text.n + 4096);
    MUST(amp_signed_write(&s, &out, &err) == 0);
    MUST(amp_span_eq(amp_buf_span(&out), text));
}

static void fuzz_key(struct amp_span text)
{
    static struct amp_pubkey key, again;
    AMP_BUF struct amp_buf out = {0};
    if (amp_pubkey_parse(text, &key, &err) < 0) {
        MUST(err.code[0] && err.what[0]);
        return;
    }
    amp_buf_init(&out, text.n + 4096);
    MUST(amp_fingerprint_is(amp_span_str(key.fingerprint)));
    MUST(amp_pubkey_write(&key, "comment", &out, &err) == 0);
    MUST(amp_pubkey_parse(amp_buf_span(&out), &again, &err) == 0);
    MUST(key.n == again.n && memcmp(key.blob, again.blob, key.n) == 0);
}

static void fuzz_armour(struct amp_span text)
{
    static struct amp_pubkey key, again;
    char alg[AMP_PUBKEY_TYPE_MAX], value[AMP_SSHSIG_BASE64_MAX], alg2[AMP_PUBKEY_TYPE_MAX],
        value2[AMP_SSHSIG_BASE64_MAX];
    AMP_BUF struct amp_buf out = {0};
    if (amp_sshsig_read(text, "amp", &key, alg, value, &err) < 0)
        return;
    const struct amp_sig sig = {.value = amp_span_str(value)};
    amp_buf_init(&out, 1 << 16);
    MUST(amp_sshsig_write(&key, "amp", &sig, &out, &err) == 0);
    MUST(amp_sshsig_read(amp_buf_span(&out), "amp", &again, alg2, value2, &err) == 0);
    MUST(strcmp(alg, alg2) == 0 && strcmp(value, value2) == 0);
}

static void fuzz_secret(struct amp_span text)
{
    char path[64];
    struct amp_seckey *key = NULL;
    AMP_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
    MUST(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (amp_seckey_read(AT_FDCWD, path, false, &key, &err) == 0) {
        MUST(amp_seckey_public(key)->kind == AMP_PUBKEY_ED25519);
        amp_seckey_free(key);
    } else {
        MUST(err.code[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const target[])(struct amp_span) = {fuzz_trust, fuzz_revocation, fuzz_line,
                                                      fuzz_key,   fuzz_armour,     fuzz_secret};
    if (size < 2)
        return 0;
    char *text = malloc(size - 1); /* of its exact size, for the sanitizers */
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    target[data[0] % 6]((struct amp_span){text, size - 1});
    free(text);
    return 0;
}
