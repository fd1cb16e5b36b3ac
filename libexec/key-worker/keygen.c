/* Signatures of other keys (RSA, sk- keys, other curves), by ssh-keygen -Y verify. */
#include "worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/identity/signature.h"

enum { LIMIT_MS = 20000, TEXT_MAX = 16384, NAMESPACE_MOST = 64 };

/* A memory file with this text, at its start. */
static int memory_file(struct amp_span text, struct amp_error *err)
{
    AMP_CLOSE int fd = memfd_create("key-worker", MFD_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a memory file");
    if (amp_write_all(fd, text, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a memory file");
    int out = fd;
    fd = -1;
    return out;
}

int keygen_verify(const struct amp_pubkey *key, struct amp_span namespace, struct amp_span value,
                  struct amp_span text, struct amp_error *err)
{
    AMP_BUF struct amp_buf trust = {0};
    AMP_BUF struct amp_buf armour = {0};
    const struct amp_sig sig = {.value = value};
    struct amp_error why;
    char ns[NAMESPACE_MOST + 1];
    if (namespace.n == 0 || !amp_span_copy(namespace, ns, sizeof ns))
        return amp_fail(err, AMP_DATAERR, bad_request, "the namespace is malformed");
    amp_buf_init(&trust, TEXT_MAX);
    amp_buf_init(&armour, TEXT_MAX);
    if (amp_sshsig_write(key, ns, &sig, &armour, &why) < 0)
        return amp_fail_unless_no(err, &why) < 0 && why.status != AMP_DATAERR ? -1 : 0;
    if (amp_buf_str(&trust, "signer ", err) < 0 || amp_pubkey_write(key, NULL, &trust, err) < 0 ||
        amp_buf_str(&trust, "\n", err) < 0)
        return -1;
    AMP_CLOSE int in = memory_file(text, err);
    AMP_CLOSE int allowed = in < 0 ? -1 : memory_file(amp_buf_span(&trust), err);
    AMP_CLOSE int signature = allowed < 0 ? -1 : memory_file(amp_buf_span(&armour), err);
    if (signature < 0)
        return -1;
    const int fds[] = {allowed, signature};
    const char *const argv[] = {"ssh-keygen", "-q", "-Y", "verify", "-f",        "/dev/fd/3", "-I",
                                "signer",     "-n", ns,   "-s",     "/dev/fd/4", NULL};
    struct amp_child_spec spec = {.argv = argv,
                                  .fd_in = in,
                                  .fd_out = -1,
                                  .fd_err = -1,
                                  .fds = fds,
                                  .n_fds = 2,
                                  .new_session = true,
                                  .no_new_privs = true,
                                  .dies_with_us = true};
    struct amp_child child;
    struct amp_child_end end;
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, LIMIT_MS, 1000, NULL, &end, err) < 0)
        return -1;
    if (!end.exited)
        return amp_fail(err, AMP_UNAVAILABLE, keygen_failed, "ssh-keygen was killed");
    return end.exit_code == 0;
}
