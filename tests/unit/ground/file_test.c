/* Files: atomic writes, publication, opening beneath. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../scratch.h"
#include "../tap.h"

static int dir;

static bool holds(const char *path, const char *text)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 1 << 20);
    return amp_file_read(dir, path, 1 << 20, &b, NULL) == 0 && amp_span_is(amp_buf_span(&b), text);
}

static int entries(void)
{
    DIR *d = fdopendir(openat(dir, ".", O_RDONLY));
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void make_link(const char *to, const char *path)
{
    if (symlinkat(to, dir, path))
        TAP_OK(false, "cannot make the link %s", path);
}

static void atomic(void)
{
    struct amp_error err;
    TAP_OK(!amp_file_write_atomic(dir, "a", 0600, AMP_SPAN("one"), &err) && holds("a", "one"),
           "new");
    TAP_OK(!amp_file_write_atomic(dir, "a", 0640, AMP_SPAN("two"), &err) && holds("a", "two"),
           "again");
    struct stat st;
    TAP_OK(fstatat(dir, "a", &st, 0) == 0 && (st.st_mode & 0777) == 0640,
           "the mode is the new one");
    TAP_OK(!amp_file_write_atomic(dir, "empty", 0600, AMP_SPAN(""), &err) && holds("empty", ""),
           "empty");
    TAP_OK(amp_file_write_atomic(dir, "no/such", 0600, AMP_SPAN("x"), &err) == -1, "no directory");
    TAP_INT(err.status, AMP_CANTCREAT, "its status");
    TAP_OK(amp_file_write_atomic(dir, "", 0600, AMP_SPAN("x"), &err) == -1, "the empty path");
    make_link("a", "link");
    TAP_OK(!amp_file_write_atomic(dir, "link", 0600, AMP_SPAN("three"), &err) &&
               holds("a", "two") && holds("link", "three"),
           "a link is replaced, not followed");

    /* A file size limit stands in for a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, small = {2, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    int before = entries();
    int rc = amp_file_write_atomic(dir, "a", 0600, AMP_SPAN("long text"), &err);
    setrlimit(RLIMIT_FSIZE, &old);
    TAP_OK(rc == -1 && holds("a", "two") && entries() == before,
           "a failed write leaves the old one alone");
    TAP_STR(err.code, "efbig", "and names the error");
}

static void publish(void)
{
    struct amp_error err;
    TAP_INT(amp_file_publish(dir, "p", 0600, AMP_SPAN("first"), &err), 0, "published");
    int before = entries();
    TAP_INT(amp_file_publish(dir, "p", 0600, AMP_SPAN("second"), &err), 1, "it existed");
    TAP_OK(holds("p", "first") && entries() == before, "the first one stays, no temporary stays");
}

static void reading(void)
{
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 100);
    amp_file_write_atomic(dir, "r", 0600, AMP_SPAN("12345"), NULL);
    TAP_OK(!amp_file_read(dir, "r", 5, &b, &err) && b.len == 5, "exactly the bound");
    TAP_OK(amp_file_read(dir, "r", 4, &b, &err) == -1 && b.len == 5, "past the bound");
    TAP_STR(err.code, "file_too_large", "its code");
    TAP_OK(amp_file_read(dir, "absent", 4, &b, &err) == -1, "no such file");
    TAP_STR(err.code, "enoent", "its code");
    TAP_OK(amp_file_read(dir, ".", 4, &b, &err) == -1, "a directory");
    amp_buf_reset(&b);
    TAP_OK(!amp_file_read(AT_FDCWD, "/proc/self/comm", 99, &b, &err) && b.len > 0,
           "a file that says it has no size");
}

static bool opens(const char *path)
{
    int fd = amp_open_beneath(dir, path, O_RDONLY, 0, NULL);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void beneath(void)
{
    struct amp_error err;
    mkdirat(dir, "sub", 0700);
    amp_file_write_atomic(dir, "sub/f", 0600, AMP_SPAN("x"), NULL);
    make_link("/etc/passwd", "abs");
    make_link("../..", "sub/up");
    make_link("sub", "lsub");
    TAP_OK(opens("sub/f") && opens("./sub//f"), "inside");
    TAP_OK(!opens("../") && !opens("sub/../../x") && !opens("/etc/passwd"), "outside");
    TAP_OK(!opens("abs") && !opens("sub/up") && !opens("lsub/f"),
           "no symlinks, not even inward ones");
    int fd = amp_open_beneath(dir, "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600, &err);
    TAP_OK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "creates, close-on-exec");
    close(fd);
    TAP_OK(amp_open_beneath(dir, "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600, &err) == -1, "once");
    TAP_STR(err.code, "eexist", "its code");
}

/* As in a sandbox that does not know openat2: it must be no weaker. */
static void without_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        tap_skip(4, "no seccomp");
        return;
    }
    TAP_OK(opens("sub/f") && opens("./sub//f"), "without openat2: inside");
    TAP_OK(!opens("../") && !opens("sub/../../x") && !opens("/etc/passwd") && !opens(""),
           "without openat2: outside");
    TAP_OK(!opens("abs") && !opens("sub/up") && !opens("lsub/f"), "without openat2: no symlinks");
    int fd = amp_open_beneath(dir, "sub/newer", O_WRONLY | O_CREAT | O_EXCL, 0600, NULL);
    TAP_OK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "without openat2: creates, close-on-exec");
    close(fd);
}

static void dirs(const char *top)
{
    struct amp_error err;
    char path[300];
    snprintf(path, sizeof path, "%s/x/y//z/", top);
    TAP_OK(!amp_mkdirs(path, 0700, &err) && access(path, W_OK) == 0, "makes all parts");
    TAP_OK(!amp_mkdirs(path, 0700, &err), "again");
    TAP_OK(!amp_mkdirs("/", 0700, &err), "the root is there");
    snprintf(path, sizeof path, "%s/a/b", top);
    TAP_OK(amp_mkdirs(path, 0700, &err) == -1, "a file in the way");
    TAP_STR(err.code, "enotdir", "its code");
    TAP_OK(amp_mkdirs("", 0700, &err) == -1, "the empty path");
    TAP_OK(!amp_fs_is_network(dir), "a local file system");
}

int main(void)
{
    umask(022);
    const char *top = scratch();
    dir = open(top, O_RDONLY | O_DIRECTORY);
    atomic();
    publish();
    reading();
    beneath();
    dirs(top);
    without_openat2();
    close(dir);
    return tap_done();
}
