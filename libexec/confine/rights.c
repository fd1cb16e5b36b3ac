/* The last steps before the command: capabilities, limits, the system call filter, and its
 * execution. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <amp/base/buf.h>

#include "confine.h"
#include "filter.h"

void rights_drop(const struct plan *p)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    /* The bounding set needs CAP_SETPCAP; an ordinary user's process without namespaces has no
     * capabilities to drop. EINVAL: there are no more. */
    int cap = 0;
    while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
        cap++;
    if (errno != EPERM && errno != EINVAL)
        give_up_sys(p, "cannot drop capability %d", cap);
    prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) < 0)
        give_up_sys(p, "cannot drop the capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        give_up_sys(p, "cannot set no_new_privs");
}

static void limit_set(const struct plan *p, int resource, int64_t value, const char *name)
{
    struct rlimit r;
    if (value <= 0 && resource != RLIMIT_CORE)
        return;
    if (getrlimit(resource, &r) < 0)
        give_up_sys(p, "cannot read the limit %s", name);
    if (r.rlim_max == RLIM_INFINITY || (rlim_t)value < r.rlim_max)
        r.rlim_max = (rlim_t)value;
    r.rlim_cur = r.rlim_max;
    if (setrlimit(resource, &r) < 0)
        give_up_sys(p, "cannot set the limit %s", name);
}

void limits_set(const struct plan *p)
{
    /* On the host the kernel would count all processes of the user. */
    if (p->namespaces)
        limit_set(p, RLIMIT_NPROC, p->processes, "processes");
    limit_set(p, RLIMIT_DATA, p->memory_bytes, "memory_bytes");
    limit_set(p, RLIMIT_FSIZE, p->file_bytes, "file_bytes");
    limit_set(p, RLIMIT_NOFILE, p->open_files, "open_files");
    limit_set(p, RLIMIT_CPU, p->cpu_seconds, "cpu_seconds");
    limit_set(p, RLIMIT_CORE, 0, "core");
}

void filter_enforce(const struct plan *p)
{
    const struct filter_facts facts = {.namespaces = p->namespaces,
                                       .gate = p->port != 0,
                                       .group = p->forwarding == FORWARD_COMMAND,
                                       .network = (int)p->network,
                                       .landlock = landlock_abi()};
    const unsigned kind = filter_kind(&facts);
    const struct filter_program *f = filter_programs;
    while (f->n && f->kind != kind)
        f++;
    if (!f->n)
        give_up(p, 77, "there is no seccomp filter of kind %u", kind);
    union {
        const struct sock_filter *in;
        struct sock_filter *out;
    } code = {.in = f->code};
    struct sock_fprog program = {.len = f->n, .filter = code.out};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        give_up_sys(p, "cannot load the seccomp filter");
}

/* Executes the command from the directories of PATH, as a shell does, but from no relative one.
 * Returns with errno. */
static void try_path(const struct plan *p, const char *name)
{
    char path[4096];
    const char *dirs = getenv("PATH");
    int seen = ENOENT;
    for (const char *at = dirs ? dirs : "/usr/local/bin:/usr/bin:/bin"; *name;) {
        size_t n = strcspn(at, ":");
        int len = at[0] == '/' ? snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name) : -1;
        struct stat st;
        if (len > 0 && (size_t)len < sizeof path && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            execv(path, p->argv);
            if (errno != ENOENT && errno != ENOTDIR)
                seen = errno;
        }
        if (!at[n])
            break;
        at += n + 1;
    }
    errno = seen;
}

void command_execute(const struct plan *p)
{
    const char *name = p->argv[0];
    if (strchr(name, '/'))
        execv(name, p->argv);
    else
        try_path(p, name);
    if (errno == ENOENT || errno == ENOTDIR)
        give_up(p, 127, "%s: command not found in the sandbox", name);
    give_up(p, 126, "%s: not executable in the sandbox: %s", name, strerror(errno));
}
