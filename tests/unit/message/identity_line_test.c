/* Signed lines: signing, verifying, and that no changed line is accepted. */
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/identity/state.h"
#include "message/identity/verify.h"

#define NOW 1790000000123LL

static const char message[] =
    "{\"protocol_version\":\"AMP/1.0\",\"from\":\"executor\",\"n\":[1,2.50,\"\xc3\xa4\"]}";

static struct amp_trust *trust;
static struct amp_verifier *verifier;
static char state[256];

/* The code of the verdict on a line: "ok", or why not. */
static const char *verdict(struct amp_span line, const char *from, int64_t now,
                           struct amp_identity *who)
{
    static struct amp_error err;
    struct amp_signed s;
    err = (struct amp_error){0};
    if (!amp_signed_split(line, &s))
        return "not_signed";
    if (amp_verifier_message(verifier, &s.sig, s.msg, amp_span_str(from), now, who, &err) < 0)
        return err.code;
    return "ok";
}

static void test_state_keys(void)
{
    struct amp_signer *a = NULL, *b = NULL;
    struct amp_error err = {0};
    struct stat st;
    char path[512];
    TAP_OK(amp_state_signer(state, "executor/ann", &a, &err) == 0, "a key is made on first use: %s",
           err.what);
    TAP_OK(amp_state_signer(state, "executor/ann", &b, &err) == 0, "and used again");
    TAP_STR(amp_signer_public(a)->fingerprint, amp_signer_public(b)->fingerprint,
            "it is the same key");
    snprintf(path, sizeof path, "%s/keys/executor.ann", state);
    TAP_OK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "the private key has mode 0600");
    snprintf(path, sizeof path, "%s/keys", state);
    TAP_OK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700, "its directory has mode 0700");
    amp_signer_free(b);
    b = NULL;
    TAP_OK(amp_state_signer_existing(state, "executor/bob", &b, &err) < 0,
           "a signer that must exist is not made");
    TAP_STR(err.code, "key_not_found", "code");
    static const char *const bad[] = {"",    "a/b/c", "../x", "a/.x", "a b",   "a,b",
                                      "x*",  "a.b",   "lock", "a\nb", "/a",    "a/",
                                      "log", "-x",    "!a",   "\"a",  "a.b/c", "allowed_signers"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err = (struct amp_error){0};
        TAP_OK(amp_state_signer(state, bad[i], &b, &err) < 0 && !strcmp(err.code, "bad_principal"),
               "name %zu is not a principal of a state", i);
    }
    snprintf(path, sizeof path, "%s/keys/executor.ann", state);
    chmod(path, 0640);
    TAP_OK(amp_state_signer(state, "executor/ann", &b, &err) < 0, "a key that others can read");
    TAP_STR(err.code, "key_permissions", "is refused");
    chmod(path, 0600);
    char link[540];
    snprintf(link, sizeof link, "%s/keys/reviewer.eve", state);
    TAP_OK(symlink(path, link) == 0 && amp_state_signer(state, "reviewer/eve", &b, &err) < 0,
           "a symbolic link is not followed");
    unlink(link);
    amp_signer_free(a);
}

static void test_roles(struct amp_span line)
{
    static const struct {
        const char *from, *code;
    } rows[] = {
        {"executor", "ok"},          {"executor/ann", "ok"},         {"", "ok"},
        {"reviewer", "bad_sender"},  {"executor/bob", "bad_sender"}, {"exec", "bad_sender"},
        {"executor/", "bad_sender"}, {"executor/an", "bad_sender"},  {"*", "bad_sender"},
        {"admin", "bad_sender"},     {"ann", "bad_sender"},
    };
    struct amp_identity who;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(&who, 0, sizeof who);
        TAP_STR(verdict(line, rows[i].from, NOW, &who), rows[i].code, rows[i].from);
        TAP_STR(who.principal, "executor/ann", "whose key it is");
    }
    TAP_OK(who.local, "it is a key of the state");
}

static void test_times(struct amp_span line)
{
    struct amp_identity who;
    TAP_STR(verdict(line, "executor", NOW - 60000, &who), "ok", "a clock behind by a minute");
    TAP_STR(verdict(line, "executor", NOW - 300001, &who), "bad_signature_time",
            "a time beyond the skew");
    TAP_STR(verdict(line, "executor", NOW + 604800000, &who), "ok", "a time at the age's limit");
    TAP_STR(verdict(line, "executor", NOW + 604800001, &who), "bad_signature_time", "beyond it");
    TAP_STR(verdict(line, "executor", 0, &who), "ok", "records are not compared with the present");
}

static const char *const spoiled_times[] = {"2026-09-21T14:13:20Z", "2026-09-21T14:13:20.123+00:00",
                                            "2026-09-21 14:13:20.123Z", "", "0"};

static void test_parts(const struct amp_signed *s)
{
    struct amp_identity who;
    struct amp_error err;
    for (size_t i = 0; i < sizeof spoiled_times / sizeof spoiled_times[0]; i++) {
        struct amp_sig sig = s->sig;
        sig.time = amp_span_str(spoiled_times[i]);
        TAP_OK(amp_verifier_message(verifier, &sig, s->msg, AMP_SPAN("executor"), NOW, &who, &err) <
                       0 &&
                   !strcmp(err.code, "bad_signature_time"),
               "the time \"%s\" is refused", spoiled_times[i]);
    }
    struct amp_sig sig = s->sig;
    sig.alg = AMP_SPAN("ECDSA");
    TAP_OK(amp_verifier_message(verifier, &sig, s->msg, AMP_SPAN(""), NOW, &who, &err) < 0 &&
               !strcmp(err.code, "bad_signature"),
           "another algorithm is refused");
    sig = s->sig;
    sig.key = AMP_SPAN("SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    TAP_OK(amp_verifier_message(verifier, &sig, s->msg, AMP_SPAN(""), NOW, &who, &err) < 0 &&
               !strcmp(err.code, "unknown_key"),
           "another key is refused");
}

static uint32_t below(uint32_t n)
{
    return randombytes_uniform(n);
}

/* Changes a line in one of several ways. */
static void mutate(struct amp_buf *line, struct amp_span other)
{
    struct amp_error err;
    uint32_t at = below((uint32_t)line->len);
    switch (below(6)) {
    case 0:
        line->data[at] = (char)(line->data[at] ^ (1 << below(8)));
        break;
    case 1:
        line->data[at] = (char)below(256);
        break;
    case 2:
        memmove(line->data + at, line->data + at + 1, line->len - at - 1);
        line->len--;
        break;
    case 3: {
        char c = (char)below(256);
        amp_buf_add(line, &c, 1, &err);
        memmove(line->data + at + 1, line->data + at, line->len - 1 - at);
        line->data[at] = c;
        break;
    }
    case 4: { /* a part of another signed line at the same place */
        size_t n = 1 + below(40);
        for (size_t i = at; i < at + n && i < line->len && i < other.n; i++)
            line->data[i] = other.p[i];
        break;
    }
    default: {
        uint32_t to = below((uint32_t)line->len);
        char c = line->data[at];
        line->data[at] = line->data[to];
        line->data[to] = c;
        break;
    }
    }
}

static void test_mutations(struct amp_signer *signer, struct amp_span good)
{
    AMP_BUF struct amp_buf line = {0};
    AMP_BUF struct amp_buf other = {0};
    struct amp_identity who;
    struct amp_error err;
    struct amp_signed was, is;
    int accepted = 0, tried = 0;
    amp_buf_init(&line, 1 << 16);
    amp_buf_init(&other, 1 << 16);
    amp_signer_message(signer, AMP_SPAN("\"b\""),
                       AMP_SPAN("{\"from\":\"executor\",\"other\":true}"), NOW + 1, &other, &err);
    amp_signed_split(good, &was);
    while (tried < 10000) {
        amp_buf_reset(&line);
        amp_buf_add(&line, good.p, good.n, &err);
        mutate(&line, amp_buf_span(&other));
        struct amp_span now = amp_buf_span(&line);
        if (amp_span_eq(now, good))
            continue;
        /* The recipient is not signed: routing removes it. */
        if (amp_signed_split(now, &is) && amp_span_eq(is.msg, was.msg) &&
            amp_span_eq(is.sig.key, was.sig.key) && amp_span_eq(is.sig.alg, was.sig.alg) &&
            amp_span_eq(is.sig.time, was.sig.time) && amp_span_eq(is.sig.value, was.sig.value))
            continue;
        tried++;
        if (!strcmp(verdict(now, "executor", NOW, &who), "ok")) {
            accepted++;
            printf("# accepted: %.*s\n", (int)now.n, now.p);
        }
    }
    TAP_INT(accepted, 0, "of 10,000 changed lines none is accepted");
}

static void test_forms(struct amp_signer *signer)
{
    static const struct {
        const char *in, *to, *msg;
    } rows[] = {
        {"{\"a\":1}", "", "{\"a\":1}"},
        {" {\"a\": 1} ", "", "{\"a\": 1}"},
        {"{\"to\":\"bob\",\"msg\":{\"a\":1}}", "\"bob\"", "{\"a\":1}"},
        {"{ \"to\" : [\"a\",\"b]\"] , \"msg\" : {\"a\": 1} }", "[\"a\",\"b]\"]", "{\"a\": 1}"},
        {"{\"msg\":{\"a\":1}}", "", "{\"a\":1}"},
        {"{\"to\":\"x\",\"msg\":{},\"more\":1}", "", "{\"to\":\"x\",\"msg\":{},\"more\":1}"},
        {"{\"to\":\"\\\"q\",\"msg\":\"t\"}", "\"\\\"q\"", "\"t\""},
        {"\"a text\"", "", "\"a text\""},
    };
    struct amp_error err;
    struct amp_signed s;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AMP_BUF struct amp_buf out = {0};
        AMP_BUF struct amp_buf again = {0};
        amp_buf_init(&out, 1 << 16);
        amp_buf_init(&again, 1 << 16);
        TAP_OK(amp_signer_line(signer, amp_span_str(rows[i].in), NOW, &out, &err) == 0 &&
                   amp_signed_split(amp_buf_span(&out), &s),
               "signed: %s", rows[i].in);
        TAP_SPAN(s.to, rows[i].to, "to");
        TAP_SPAN(s.msg, rows[i].msg, "msg");
        TAP_OK(amp_signer_line(signer, amp_buf_span(&out), NOW, &again, &err) == 0 &&
                   amp_span_eq(amp_buf_span(&out), amp_buf_span(&again)),
               "signed again, it is the same");
    }
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 1 << 16);
    TAP_OK(amp_signer_line(signer, AMP_SPAN("{\"a\":"), NOW, &out, &err) < 0 &&
               !strcmp(err.code, "invalid_json") && out.len == 0,
           "what is not JSON is not signed");
}

static void test_rotation(void)
{
    struct amp_signer *old = NULL, *fresh = NULL;
    struct amp_pubkey before, after;
    struct amp_identity who;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf a = {0};
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&a, 1 << 16);
    amp_buf_init(&b, 1 << 16);
    amp_state_signer(state, "executor/ann", &old, &err);
    TAP_OK(amp_state_rotate(state, "executor/ann", NOW, 60000, &before, &after, &err) == 0,
           "a rotation: %s", err.what);
    TAP_STR(before.fingerprint, amp_signer_public(old)->fingerprint, "replaces the key");
    amp_state_signer(state, "executor/ann", &fresh, &err);
    TAP_STR(after.fingerprint, amp_signer_public(fresh)->fingerprint, "by a new one");
    TAP_OK(amp_trust_refresh(trust, &err) == 0, "trust is read again");
    amp_signer_message(old, AMP_SPAN(""), AMP_SPAN("{}"), NOW + 59000, &a, &err);
    TAP_STR(verdict(amp_buf_span(&a), "executor", NOW + 59000, &who), "ok",
            "the old key is valid during the grace period");
    amp_buf_reset(&a);
    amp_signer_message(old, AMP_SPAN(""), AMP_SPAN("{}"), NOW + 61000, &a, &err);
    TAP_STR(verdict(amp_buf_span(&a), "executor", NOW + 61000, &who), "key_expired",
            "and not after it");
    amp_signer_message(fresh, AMP_SPAN(""), AMP_SPAN("{}"), NOW + 61000, &b, &err);
    TAP_STR(verdict(amp_buf_span(&b), "executor", NOW + 61000, &who), "ok", "the new key is");

    TAP_OK(amp_signer_refresh(old, &err) == 0 &&
               !strcmp(amp_signer_public(old)->fingerprint, after.fingerprint),
           "a running program takes the new key");
    TAP_OK(amp_signer_refresh(old, &err) == 0, "once");

    char path[300];
    uint32_t n;
    snprintf(path, sizeof path, "%s/keys/allowed_signers", state);
    TAP_OK(amp_trust_file_revoke(path, amp_span_str(after.fingerprint), NOW + 70000,
                                 AMP_SPAN("lost\nlaptop"), &n, &err) == 0 &&
               n == 1,
           "the new key is revoked from a point in time: %s", err.what);
    amp_trust_refresh(trust, &err);
    TAP_STR(verdict(amp_buf_span(&b), "executor", NOW + 61000, &who), "ok",
            "what it signed before stays valid");
    amp_buf_reset(&b);
    amp_signer_message(fresh, AMP_SPAN(""), AMP_SPAN("{}"), NOW + 70000, &b, &err);
    TAP_STR(verdict(amp_buf_span(&b), "executor", NOW + 70000, &who), "key_revoked",
            "what it signs from then on is not");
    TAP_OK(amp_trust_file_revoke(path, amp_span_str(after.fingerprint), NOW + 90000, AMP_SPAN(""),
                                 &n, &err) == 0,
           "a later revocation");
    amp_trust_refresh(trust, &err);
    TAP_STR(verdict(amp_buf_span(&b), "executor", NOW + 70000, &who), "key_revoked",
            "does not undo an earlier one");
    TAP_OK(amp_state_rotate(state, "executor/ann", NOW, 0, &before, &after, &err) == 0,
           "a rotation without a grace period");
    amp_trust_refresh(trust, &err);
    amp_buf_reset(&b);
    amp_signer_message(fresh, AMP_SPAN(""), AMP_SPAN("{}"), NOW, &b, &err);
    TAP_STR(verdict(amp_buf_span(&b), "executor", NOW, &who), "key_revoked", "revokes at once");
    amp_signer_free(old);
    amp_signer_free(fresh);
}

static void test_damaged_revocations(void)
{
    struct amp_error err = {0};
    char path[300];
    snprintf(path, sizeof path, "%s/keys/allowed_signers.revoked", state);
    amp_file_write_atomic(AT_FDCWD, path, 0600, AMP_SPAN("SHA256:short 2026-01-01T00:00:00Z\n"),
                          &err);
    TAP_OK(amp_trust_refresh(trust, &err) < 0 && err.status == AMP_CONFIG,
           "a malformed revocation is an error, not ignored");
    TAP_STR(err.code, "bad_revocation", "code");
}

int main(void)
{
    struct amp_signer *signer = NULL;
    struct amp_signed s;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 16);
    snprintf(state, sizeof state, "%s/state", scratch());
    test_state_keys();
    if (!TAP_OK(amp_state_signer(state, "executor/ann", &signer, &err) == 0 &&
                    amp_state_trust(state, NULL, NULL, NULL, &trust, &err) == 0 &&
                    amp_verifier_new(&(struct amp_verifier_options){.trust = trust,
                                                                    .skew_ms = 300000,
                                                                    .max_age_ms = 604800000},
                                     &verifier, &err) == 0,
                "a signer, trust and a verifier"))
        return tap_done();
    TAP_OK(amp_signer_message(signer, AMP_SPAN("[\"a\",\"b\"]"), AMP_SPAN(message), NOW, &line,
                              &err) == 0,
           "a line is signed");
    TAP_OK(amp_signed_split(amp_buf_span(&line), &s), "it has the form of a signed line");
    TAP_SPAN(s.msg, message, "msg is unchanged");
    TAP_SPAN(s.to, "[\"a\",\"b\"]", "to");
    TAP_SPAN(s.sig.time, "2026-09-21T14:13:20.123Z", "time");
    test_roles(amp_buf_span(&line));
    test_times(amp_buf_span(&line));
    test_parts(&s);
    test_mutations(signer, amp_buf_span(&line));
    test_forms(signer);
    test_rotation();
    test_damaged_revocations();
    amp_signer_free(signer);
    amp_verifier_free(verifier);
    amp_trust_free(trust);
    return tap_done();
}
