/* The same answers as OpenSSH: signatures in both directions, ssh-agent, keys with a passphrase,
 * and what an allowed_signers file says. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>
#include <time.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/identity/signer.h"
#include "message/identity/verify.h"

#define NOW 1790000000123LL /* 2026-09-21T14:13:20.123Z */

static const char *top;
static struct amp_error err;

static const char *in_top(const char *name)
{
    static char path[8][160];
    static int i;
    i = (i + 1) % 8;
    snprintf(path[i], sizeof path[i], "%s/%s", top, name);
    return path[i];
}

static void file_write(const char *name, struct amp_span text)
{
    amp_file_write_atomic(AT_FDCWD, in_top(name), 0644, text, &err);
}

/* Runs a command with a file as its input (NULL: none) and its output in "out". Its exit status. */
static int run(const char *const *argv, const char *input)
{
    struct amp_child child;
    struct amp_child_end end = {0};
    AMP_CLOSE int in = input ? open(in_top(input), O_RDONLY | O_CLOEXEC) : -1;
    AMP_CLOSE int out = open(in_top("out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct amp_child_spec spec = {.argv = argv,
                                  .fd_in = in,
                                  .fd_out = out,
                                  .fd_err = -1,
                                  .new_session = true,
                                  .dies_with_us = true};
    if (amp_child_start(&spec, &child, &err) < 0 ||
        amp_child_wait(&child, 30000, 1000, NULL, &end, &err) < 0) {
        printf("# %s\n", err.what);
        return 255;
    }
    return end.exited ? end.exit_code : 254;
}
#define RUN(input, ...) run((const char *const[]){__VA_ARGS__, NULL}, input)

static void file_read(const char *path, struct amp_buf *out)
{
    amp_buf_init(out, 1 << 20);
    if (amp_file_read(AT_FDCWD, path, 1 << 20, out, &err) < 0)
        printf("# %s\n", err.what);
}

/* The signed text of a line, in the file "text", and its armoured signature, in "sig". */
static bool line_unpack(struct amp_span line, const struct amp_pubkey *key)
{
    struct amp_signed s;
    struct amp_span parts[AMP_SIGNED_PARTS];
    AMP_BUF struct amp_buf text = {0};
    AMP_BUF struct amp_buf armour = {0};
    amp_buf_init(&text, 1 << 20);
    amp_buf_init(&armour, 1 << 20);
    if (!amp_signed_split(line, &s))
        return false;
    amp_signed_parts(s.sig.key, s.sig.time, s.msg, parts);
    for (int i = 0; i < AMP_SIGNED_PARTS; i++)
        amp_buf_add(&text, parts[i].p, parts[i].n, &err);
    if (amp_sshsig_write(key, "amp", &s.sig, &armour, &err) < 0)
        return false;
    file_write("text", amp_buf_span(&text));
    file_write("sig", amp_buf_span(&armour));
    return true;
}

static const char *verdict(const char *signers, struct amp_span line, const char *from)
{
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    AMP_CLEANUP(amp_auto_verifier) struct amp_verifier *v = NULL;
    struct amp_identity who;
    struct amp_signed s;
    if (!amp_signed_split(line, &s) || amp_trust_new(NULL, NULL, &trust, &err) < 0 ||
        amp_trust_add(trust, signers, false, true, &err) < 0 ||
        amp_verifier_new(&(struct amp_verifier_options){.trust = trust}, &v, &err) < 0)
        return "failed";
    if (amp_verifier_message(v, &s.sig, s.msg, amp_span_str(from), 0, &who, &err) < 0)
        return err.code;
    return "ok";
}

/* A signer's line is accepted by us and by ssh-keygen, and a changed text by neither. */
static void both_accept(struct amp_signer *signer, const char *name)
{
    AMP_BUF struct amp_buf line = {0};
    AMP_BUF struct amp_buf trust = {0};
    amp_buf_init(&line, 1 << 20);
    amp_buf_init(&trust, 1 << 20);
    const struct amp_pubkey *key = amp_signer_public(signer);
    if (!TAP_OK(amp_signer_message(signer, AMP_SPAN(""), AMP_SPAN("{\"from\":\"ann\"}"), NOW, &line,
                                   &err) == 0,
                "%s: signed: %s", name, err.what))
        return;
    amp_buf_str(&trust, "ann ", &err);
    amp_pubkey_write(key, NULL, &trust, &err);
    amp_buf_str(&trust, "\n", &err);
    file_write("signers", amp_buf_span(&trust));
    TAP_STR(verdict(in_top("signers"), amp_buf_span(&line), "ann"), "ok", name);
    TAP_OK(line_unpack(amp_buf_span(&line), key), "%s: the signature as an SSHSIG", name);
    TAP_INT(RUN("text", "ssh-keygen", "-Y", "verify", "-f", in_top("signers"), "-I", "ann", "-n",
                "amp", "-s", in_top("sig")),
            0, "ssh-keygen accepts it");
    TAP_OK(RUN("text", "ssh-keygen", "-Y", "verify", "-f", in_top("signers"), "-I", "ann", "-n",
               "git", "-s", in_top("sig")) != 0,
           "not in another namespace");
    file_write("text", AMP_SPAN("another text"));
    TAP_OK(RUN("text", "ssh-keygen", "-Y", "verify", "-f", in_top("signers"), "-I", "ann", "-n",
               "amp", "-s", in_top("sig")) != 0,
           "not of another text");
    char *at = strstr(line.data, "\"from\":\"ann\"");
    at[8] = 'o';
    TAP_STR(verdict(in_top("signers"), amp_buf_span(&line), "ann"), "bad_signature", "nor do we");
}

static void test_file(const char *name, const char *type, const char *bits)
{
    struct amp_signer *s = NULL;
    int rc =
        bits ? RUN(NULL, "ssh-keygen", "-q", "-t", type, "-b", bits, "-N", "", "-f", in_top(name))
             : RUN(NULL, "ssh-keygen", "-q", "-t", type, "-N", "", "-f", in_top(name));
    TAP_INT(rc, 0, "ssh-keygen makes a key");
    if (TAP_OK(amp_signer_of_file(in_top(name), NULL, &s, &err) == 0, "%s: %s", name, err.what))
        both_accept(s, name);
    amp_signer_free(s);
}

/* A key with a passphrase: ssh-keygen asks for it. */
static void test_passphrase(void)
{
    struct amp_signer *s = NULL;
    file_write("askpass", AMP_SPAN("#!/bin/sh\necho secret words\n"));
    chmod(in_top("askpass"), 0700);
    TAP_INT(
        RUN(NULL, "ssh-keygen", "-q", "-t", "ed25519", "-N", "secret words", "-f", in_top("pass")),
        0, "a key with a passphrase");
    setenv("SSH_ASKPASS", in_top("askpass"), 1);
    setenv("SSH_ASKPASS_REQUIRE", "force", 1);
    if (TAP_OK(amp_signer_of_file(in_top("pass"), NULL, &s, &err) == 0, "is opened"))
        both_accept(s, "passphrase");
    file_write("askpass", AMP_SPAN("#!/bin/sh\necho wrong\n"));
    chmod(in_top("askpass"), 0700);
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 16);
    TAP_OK(amp_signer_message(s, AMP_SPAN(""), AMP_SPAN("{}"), NOW, &line, &err) < 0,
           "with a wrong passphrase it does not sign");
    TAP_STR(err.code, "signing_failed", "code");
    TAP_INT((int64_t)line.len, 0, "and nothing is written");
    unsetenv("SSH_ASKPASS");
    unsetenv("SSH_ASKPASS_REQUIRE");
    amp_signer_free(s);
}

/* Our private keys are OpenSSH's, and its are ours. */
static void test_key_files(void)
{
    struct amp_seckey *k = NULL, *again = NULL;
    AMP_BUF struct amp_buf made = {0};
    AMP_BUF struct amp_buf want = {0};
    TAP_OK(amp_seckey_generate(&k, &err) == 0 &&
               amp_seckey_write(k, AT_FDCWD, in_top("ours"), "a comment", &err) == 0,
           "a key is written");
    TAP_INT(amp_seckey_write(k, AT_FDCWD, in_top("ours"), "", &err), 1, "and not replaced");
    TAP_INT(RUN(NULL, "ssh-keygen", "-y", "-f", in_top("ours")), 0, "ssh-keygen reads it");
    file_read(in_top("out"), &made);
    file_read(in_top("ours.pub"), &want);
    TAP_OK(made.len > 0 && amp_span_eq(amp_buf_span(&made), amp_buf_span(&want)),
           "with the same public key and comment");
    TAP_OK(amp_seckey_read(AT_FDCWD, in_top("ours"), true, &again, &err) == 0 &&
               !strcmp(amp_seckey_public(k)->fingerprint, amp_seckey_public(again)->fingerprint),
           "and so do we");
    amp_seckey_free(again);
    again = NULL;
    struct stat st;
    TAP_OK(stat(in_top("ours"), &st) == 0 && (st.st_mode & 0777) == 0600, "its mode is 0600");

    /* Each byte of the file matters, but for the check numbers and the comment. */
    AMP_BUF struct amp_buf text = {0};
    file_read(in_top("ours"), &text);
    int accepted = 0;
    for (size_t i = 0; i < text.len; i += 3) {
        char was = text.data[i];
        text.data[i] = was == 'A' ? 'B' : 'A';
        file_write("spoiled", amp_buf_span(&text));
        chmod(in_top("spoiled"), 0600);
        if (amp_seckey_read(AT_FDCWD, in_top("spoiled"), true, &again, &err) == 0) {
            accepted += strcmp(amp_seckey_public(k)->fingerprint,
                               amp_seckey_public(again)->fingerprint) != 0;
            amp_seckey_free(again);
            again = NULL;
        }
        text.data[i] = was;
    }
    TAP_INT(accepted, 0, "a damaged file is never read as another key");
    file_write("spoiled", (struct amp_span){text.data, text.len / 2});
    chmod(in_top("spoiled"), 0600);
    TAP_OK(amp_seckey_read(AT_FDCWD, in_top("spoiled"), true, &again, &err) < 0 &&
               !strcmp(err.code, "bad_key"),
           "a truncated file is refused");
    mkfifo(in_top("fifo"), 0600);
    TAP_OK(amp_seckey_read(AT_FDCWD, in_top("fifo"), true, &again, &err) < 0,
           "a FIFO is refused without waiting");
    amp_seckey_free(k);
}

static void test_agent(void)
{
    struct amp_child agent;
    struct amp_child_end end;
    struct amp_signer *s = NULL;
    const char *socket = in_top("agent");
    static char path[160];
    snprintf(path, sizeof path, "%s", socket);
    struct amp_child_spec spec = {.argv =
                                      (const char *const[]){"ssh-agent", "-D", "-a", path, NULL},
                                  .fd_in = -1,
                                  .fd_out = -1,
                                  .fd_err = -1,
                                  .dies_with_us = true};
    TAP_OK(amp_signer_of_agent(path, "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", &s,
                               &err) < 0 &&
               !strcmp(err.code, "agent_unavailable"),
           "without ssh-agent");
    if (amp_child_start(&spec, &agent, &err) < 0) {
        tap_skip(30, "ssh-agent is not installed");
        return;
    }
    struct timespec pause = {.tv_nsec = 2000000};
    setenv("SSH_AUTH_SOCK", path, 1);
    /* 2: nobody listens on the socket, which may exist by now. */
    for (int i = 0; i < 1000 && RUN(NULL, "ssh-add", "-l") == 2; i++)
        nanosleep(&pause, NULL);
    TAP_INT(RUN(NULL, "ssh-add", "-q", in_top("ed25519"), in_top("ecdsa"), in_top("rsa")), 0,
            "ssh-agent gets keys");
    static const char *const names[] = {"ed25519", "ecdsa", "rsa"};
    for (int i = 0; i < 3; i++) {
        char pub[32];
        snprintf(pub, sizeof pub, "%s.pub", names[i]);
        if (TAP_OK(amp_signer_of_agent(path, in_top(pub), &s, &err) == 0, "%s: %s", pub, err.what))
            both_accept(s, pub);
        amp_signer_free(s);
        s = NULL;
    }
    TAP_OK(amp_signer_of_agent(path, "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", &s,
                               &err) < 0 &&
               !strcmp(err.code, "key_not_found"),
           "a key that ssh-agent does not have");
    TAP_OK(amp_signer_of_agent(path, in_top("ed25519.pub"), &s, &err) == 0, "a signer");
    RUN(NULL, "ssh-add", "-q", "-D");
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 16);
    TAP_OK(amp_signer_message(s, AMP_SPAN(""), AMP_SPAN("{}"), NOW, &line, &err) < 0 &&
               !strcmp(err.code, "agent_refused"),
           "whose key was removed fails");
    amp_child_kill_tree(&agent, 15);
    amp_child_wait(&agent, 5000, 1000, NULL, &end, &err);
    TAP_OK(amp_signer_message(s, AMP_SPAN(""), AMP_SPAN("{}"), NOW, &line, &err) < 0 &&
               !strcmp(err.code, "agent_unavailable"),
           "and so does one whose ssh-agent ended");
    amp_signer_free(s);
    unsetenv("SSH_AUTH_SOCK");
}

/* What a file says about a key. KEY is replaced by it, OTHER by another key. */
static const struct {
    const char *text, *principal;
    bool valid;
} files[] = {
    {"ann KEY\n", "ann", true},
    {"ann KEY", "ann", true},
    {"ann KEY a comment # more\n", "ann", true},
    {"ann KEY\r\n", "ann", true},
    {"\tann \t KEY\n", "ann", true},
    {"# ann KEY\n", "ann", false},
    {"ann OTHER\n", "ann", false},
    {"ann OTHER\nann KEY\n", "ann", true},
    {"bob KEY\n", "ann", false},
    {"bob,ann KEY\n", "ann", true},
    {"bob, ann KEY\n", "ann", false},
    {"a* KEY\n", "ann", true},
    {"a?n KEY\n", "ann", true},
    {"?? KEY\n", "ann", false},
    {"* KEY\n", "ann", true},
    {"*,!ann KEY\n", "ann", false},
    {"!ann,* KEY\n", "ann", false},
    {"!bob,* KEY\n", "ann", true},
    {"!bob KEY\n", "ann", false},
    {"ANN KEY\n", "ann", false},
    {"executor/* KEY\n", "executor/ann", true},
    {"*@example.org KEY\n", "ann@example.org", true},
    {"\"ann bob\" KEY\n", "ann bob", true},
    {"\"ann\" KEY\n", "ann", true},
    {"\"ann KEY\n", "ann", false},
    {"ann namespaces=\"amp\" KEY\n", "ann", true},
    {"ann namespaces=\"git,amp\" KEY\n", "ann", true},
    {"ann namespaces=\"a*\" KEY\n", "ann", true},
    {"ann namespaces=\"git\" KEY\n", "ann", false},
    {"ann namespaces=\"*,!amp\" KEY\n", "ann", false},
    {"ann NAMESPACES=\"amp\" KEY\n", "ann", true},
    {"ann namespaces=amp KEY\n", "ann", false},
    {"ann namespaces=\"amp\",namespaces=\"git\" KEY\n", "ann", false},
    {"ann namespaces=\"amp\", KEY\n", "ann", false},
    {"ann unknown=\"x\" KEY\n", "ann", false},
    {"ann no-touch-required KEY\n", "ann", false},
    {"ann valid-before=\"20260921141320Z\" KEY\n", "ann", true},
    {"ann valid-before=\"20260921141319Z\" KEY\n", "ann", false},
    {"ann valid-after=\"20260921141320Z\" KEY\n", "ann", true},
    {"ann valid-after=\"20260921141321Z\" KEY\n", "ann", false},
    {"ann valid-after=\"20260921\" KEY\n", "ann", true},
    {"ann valid-after=\"202609211413\" KEY\n", "ann", true},
    {"ann valid-before=\"20260921\" KEY\n", "ann", false},
    {"ann valid-after=\"20260101\",valid-before=\"20270101\" KEY\n", "ann", true},
    {"ann valid-after=\"20270101\",valid-before=\"20260101\" KEY\n", "ann", false},
    {"ann valid-before=\"2027\" KEY\n", "ann", false},
    {"ann valid-before=\"20271301\" KEY\n", "ann", false},
    {"ann valid-before=\"tomorrow\" KEY\n", "ann", false},
    {"ann valid-before=\"20260101\" KEY\nann KEY\n", "ann", true},
    {"ann valid-after=\"20260101\",namespaces=\"amp\" KEY\n", "ann", true},
    {"ann cert-authority KEY\n", "ann", false},
    {"ann cert-authority,namespaces=\"amp\" KEY\n", "ann", false},
    {"annKEY\n", "ann", false},
    {"ann\n", "ann", false},
    {"KEY\n", "ann", false},
    {"bad line\nann KEY\n", "ann", true},
    {"ann ssh-ed25519 AAAA\nann KEY\n", "ann", true},
    {"\n\n  \nann KEY\n", "ann", true},
    {"", "ann", false},
};

static void key_insert(const char *text, const char *key, const char *other, struct amp_buf *out)
{
    amp_buf_init(out, 1 << 16);
    amp_buf_str(out, "", &err);
    while (*text) {
        if (!strncmp(text, "KEY", 3)) {
            amp_buf_str(out, key, &err);
            text += 3;
        } else if (!strncmp(text, "OTHER", 5)) {
            amp_buf_str(out, other, &err);
            text += 5;
        } else {
            amp_buf_add(out, text++, 1, &err);
        }
    }
}

static void test_allowed_signers(void)
{
    struct amp_signer *s = NULL;
    AMP_BUF struct amp_buf line = {0};
    AMP_BUF struct amp_buf key = {0};
    AMP_BUF struct amp_buf other = {0};
    amp_buf_init(&line, 1 << 16);
    amp_buf_init(&key, 1 << 16);
    amp_buf_init(&other, 1 << 16);
    amp_signer_of_file(in_top("ours"), NULL, &s, &err);
    amp_pubkey_write(amp_signer_public(s), NULL, &key, &err);
    struct amp_pubkey second;
    amp_pubkey_read(in_top("ed25519.pub"), &second, &err);
    amp_pubkey_write(&second, NULL, &other, &err);
    amp_signer_message(s, AMP_SPAN(""), AMP_SPAN("{}"), NOW, &line, &err);
    line_unpack(amp_buf_span(&line), amp_signer_public(s));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        AMP_BUF struct amp_buf text = {0};
        key_insert(files[i].text, key.data, other.data, &text);
        file_write("signers", amp_buf_span(&text));
        bool ours =
            !strcmp(verdict(in_top("signers"), amp_buf_span(&line), files[i].principal), "ok");
        bool theirs = RUN("text", "ssh-keygen", "-Y", "verify", "-f", in_top("signers"), "-I",
                          files[i].principal, "-n", "amp", "-s", in_top("sig"), "-O",
                          "verify-time=20260921141320Z") == 0;
        char name[61];
        snprintf(name, sizeof name, "%s", files[i].text);
        for (char *c = name; *c; c++)
            if (*c < ' ')
                *c = '|';
        TAP_OK(ours == files[i].valid && theirs == files[i].valid,
               "we (%s) and ssh-keygen (%s): %s", ours ? "yes" : "no", theirs ? "yes" : "no", name);
    }
    /* A role with an empty name speaks neither for the role nor for itself. */
    static const char *const empty[] = {"operator/", "operator/*"}, *const as[] = {"operator",
                                                                                   "operator/"};
    for (size_t i = 0; i < 2; i++) {
        AMP_BUF struct amp_buf text = {0};
        amp_buf_init(&text, 1 << 16);
        amp_buf_fmt(&text, &err, "%s %s\n", empty[i], key.data);
        file_write("signers", amp_buf_span(&text));
        TAP_STR(verdict(in_top("signers"), amp_buf_span(&line), as[i]), "bad_sender", empty[i]);
    }
    amp_signer_free(s);
}

/* Changes of a file; ssh-keygen reads the result. */
static void test_edits(void)
{
    struct amp_pubkey key;
    uint32_t n;
    const char *path = in_top("edited");
    static char file[160];
    snprintf(file, sizeof file, "%s", path);
    amp_pubkey_read(in_top("ours.pub"), &key, &err);
    file_write("edited", AMP_SPAN("# keep this\nbob ssh-ed25519 AAAA broken\n"));
    struct amp_trust_line line = {.principals = AMP_SPAN("ann,executor/ann"),
                                  .namespaces = AMP_SPAN("amp,git"),
                                  .comment = AMP_SPAN("a comment"),
                                  .valid_before_s = NOW / 1000 + 5};
    TAP_INT(amp_trust_file_add(file, &key, &line, &err), 0, "a line is added");
    TAP_INT(amp_trust_file_add(file, &key, &line, &err), 1, "and replaced");
    TAP_INT(RUN(NULL, "ssh-keygen", "-Y", "find-principals", "-f", file, "-s", in_top("sig"), "-O",
                "verify-time=20260921141320Z"),
            0, "ssh-keygen finds it");
    AMP_BUF struct amp_buf out = {0};
    file_read(in_top("out"), &out);
    TAP_SPAN(amp_buf_span(&out), "ann\nexecutor/ann\n", "with its principals");
    TAP_OK(amp_trust_file_expire(file, amp_span_str(key.fingerprint), NOW / 1000 - 1, &n, &err) ==
                   0 &&
               n == 1,
           "it ends");
    TAP_OK(RUN("text", "ssh-keygen", "-Y", "verify", "-f", file, "-I", "ann", "-n", "amp", "-s",
               in_top("sig"), "-O", "verify-time=20260921141320Z") != 0,
           "also for ssh-keygen");
    TAP_OK(amp_trust_file_remove(file, amp_span_str(key.fingerprint), AMP_SPAN("ann"), &n, &err) ==
                   0 &&
               n == 0,
           "a line of other principals stays");
    TAP_OK(amp_trust_file_remove(file, amp_span_str(key.fingerprint), AMP_SPAN(""), &n, &err) ==
                   0 &&
               n == 1,
           "a key is removed");
    AMP_BUF struct amp_buf left = {0};
    file_read(file, &left);
    TAP_SPAN(amp_buf_span(&left), "# keep this\nbob ssh-ed25519 AAAA broken\n",
             "the other lines stay as they were");
    TAP_OK(symlink(file, in_top("link")) == 0 &&
               amp_trust_file_add(in_top("link"), &key, &line, &err) < 0 &&
               err.status == AMP_NOPERM,
           "a symbolic link is not replaced");
    chmod(file, 0666);
    struct amp_trust *t = NULL;
    amp_trust_new(NULL, NULL, &t, &err);
    TAP_OK(amp_trust_add(t, file, false, true, &err) < 0 && !strcmp(err.code, "trust_permissions"),
           "a file that everybody may write is not trusted");
    TAP_OK(amp_trust_add(t, in_top("missing"), false, true, &err) < 0 && err.status == AMP_CONFIG,
           "a required file must exist");
    amp_trust_free(t);
}

int main(void)
{
    top = scratch();
    setenv("TZ", "UTC", 1);
    setenv("HOME", top, 1);
    unsetenv("SSH_AUTH_SOCK");
    if (RUN(NULL, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in_top("ed25519")) != 0) {
        tap_skip(1, "ssh-keygen is not installed");
        return tap_done();
    }
    struct amp_signer *s = NULL;
    if (TAP_OK(amp_signer_of_file(in_top("ed25519"), NULL, &s, &err) == 0, "a key of ssh-keygen"))
        both_accept(s, "ed25519");
    amp_signer_free(s);
    test_file("ecdsa", "ecdsa", "256");
    test_file("p384", "ecdsa", "384");
    test_file("rsa", "rsa", "2048");
    test_passphrase();
    test_key_files();
    test_agent();
    test_allowed_signers();
    test_edits();
    return tap_done();
}
