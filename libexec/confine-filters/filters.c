/*
 * The system call filter. It refuses what the file rules and namespaces do not cover: calls that
 * reach other processes, keyrings or the kernel itself, further namespaces, mounts, and sockets
 * that the network policy does not allow. Everything else is allowed: an agent runs any toolchain.
 *
 * This program runs at build time. It prints the filters of all kinds (filter.h) as a C file. They
 * are for the architecture that it is built for.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../confine/filter.h"

/* These calls came with Linux 5.9 to 6.17; libseccomp or the headers may be older. All
 * architectures share them. */
#define NR_quotactl_fd      443
#define NR_memfd_secret     447
#define NR_process_mrelease 448
#define NR_mount_setattr    442
#define NR_pidfd_getfd      438
#define NR_process_madvise  440
#define NR_openat2          437
#define NR_fchmodat2        452
#define NR_file_setattr     469

#define NAMESPACE_FLAGS                                                                            \
    {                                                                                              \
        CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWCGROUP,     \
            CLONE_NEWUTS, 0x80 /* CLONE_NEWTIME */                                                 \
    }

/* Refused with EPERM everywhere. */
static const int refused[] = {
    /* mounts and roots */
    SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot),
    SCMP_SYS(fsopen), SCMP_SYS(fsmount), SCMP_SYS(fsconfig), SCMP_SYS(fspick), SCMP_SYS(move_mount),
    SCMP_SYS(open_tree), NR_mount_setattr, SCMP_SYS(setns),
    /* other processes */
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(kcmp),
    NR_pidfd_getfd, NR_process_madvise, NR_process_mrelease, SCMP_SYS(move_pages),
    SCMP_SYS(migrate_pages),
    /* keyrings */
    SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
    /* the kernel's own programs and events */
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(fanotify_init),
    SCMP_SYS(lookup_dcookie), SCMP_SYS(syslog),
    /* files by their handle, past every directory */
    SCMP_SYS(open_by_handle_at), SCMP_SYS(name_to_handle_at),
    /* the machine */
    SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(init_module), SCMP_SYS(finit_module),
    SCMP_SYS(delete_module), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct),
    SCMP_SYS(quotactl), NR_quotactl_fd, SCMP_SYS(settimeofday), SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex), SCMP_SYS(sethostname), SCMP_SYS(setdomainname),
    SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(vhangup), SCMP_SYS(nfsservctl),
    SCMP_SYS(modify_ldt)};

/* Without namespaces these reach objects of other processes of the user. */
static const int refused_on_host[] = {
    SCMP_SYS(shmget),     SCMP_SYS(shmat),   SCMP_SYS(shmctl),   SCMP_SYS(semget), SCMP_SYS(semop),
    SCMP_SYS(semtimedop), SCMP_SYS(semctl),  SCMP_SYS(msgget),   SCMP_SYS(msgsnd), SCMP_SYS(msgrcv),
    SCMP_SYS(msgctl),     SCMP_SYS(mq_open), SCMP_SYS(mq_unlink)};
/* These reach other processes if the argument that names one is not 0, the caller. */
static const struct {
    int call;
    unsigned arg;
} own_only[] = {{SCMP_SYS(prlimit64), 0},      {SCMP_SYS(sched_setaffinity), 0},
                {SCMP_SYS(sched_setparam), 0}, {SCMP_SYS(sched_setscheduler), 0},
                {SCMP_SYS(sched_setattr), 0},  {SCMP_SYS(setpriority), 1},
                {SCMP_SYS(ioprio_set), 1}};

struct filter {
    unsigned kind;
    scmp_filter_ctx ctx;
};

static void filter_fail(const char *what, int error)
{
    fprintf(stderr, "confine-filters: error: %s: %s\n", what, strerror(error));
    exit(1);
}

static void call_refuse(const struct filter *f, int call, int error, unsigned n,
                        const struct scmp_arg_cmp *args)
{
    int rc = seccomp_rule_add_array(f->ctx, SCMP_ACT_ERRNO((unsigned)error), call, n, args);
    /* A call that this architecture does not have needs no rule. */
    if (rc < 0 && rc != -EDOM && rc != -EEXIST)
        filter_fail("cannot add a rule", -rc);
}

static void refuse_all(const struct filter *f, const int *calls, size_t n, int error)
{
    for (size_t i = 0; i < n; i++)
        call_refuse(f, calls[i], error, 0, NULL);
}

static void refuse_if(const struct filter *f, int call, int error, struct scmp_arg_cmp arg)
{
    call_refuse(f, call, error, 1, &arg);
}

static void refuse_namespaces(const struct filter *f)
{
    static const unsigned flags[] = NAMESPACE_FLAGS;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const struct scmp_arg_cmp has = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, flags[i], flags[i]);
        refuse_if(f, SCMP_SYS(unshare), EPERM, has);
        /* In clone the bit of CLONE_NEWTIME is part of the exit signal. */
        if (flags[i] != 0x80)
            refuse_if(f, SCMP_SYS(clone), EPERM, has);
    }
    /* Its flags are in memory, where no filter can read them. libc then uses clone. */
    call_refuse(f, SCMP_SYS(clone3), ENOSYS, 0, NULL);
}

static void refuse_ioctls(const struct filter *f)
{
    /* The kernel uses the low 32 bits of the request. */
    static const unsigned requests[] = {TIOCSTI, 0x541C /* TIOCLINUX */, TIOCCONS};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        refuse_if(f, SCMP_SYS(ioctl), EPERM,
                  SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xFFFFFFFF, requests[i]));
}

/* A setuid or setgid file in the worktree would give its owner's rights to others, outside. */
static void refuse_setuid(const struct filter *f)
{
    static const struct {
        int call;
        unsigned mode;
        int flags; /* the argument with O_CREAT or O_TMPFILE; -1: none */
    } calls[] = {
        {SCMP_SYS(chmod), 1, -1}, {SCMP_SYS(fchmod), 1, -1}, {SCMP_SYS(fchmodat), 2, -1},
        {NR_fchmodat2, 2, -1},    {SCMP_SYS(mknod), 1, -1},  {SCMP_SYS(mknodat), 2, -1},
        {SCMP_SYS(creat), 1, -1}, {SCMP_SYS(open), 2, 1},    {SCMP_SYS(openat), 3, 2},
    };
    static const unsigned creates[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};
    static const unsigned bits[] = {S_ISUID, S_ISGID};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int bit = 0; bit < 2; bit++) {
            struct scmp_arg_cmp args[2] = {
                SCMP_CMP(calls[i].mode, SCMP_CMP_MASKED_EQ, bits[bit], bits[bit])};
            if (calls[i].flags < 0) {
                call_refuse(f, calls[i].call, EPERM, 1, args);
                continue;
            }
            for (int k = 0; k < 2; k++) {
                args[1] =
                    SCMP_CMP((unsigned)calls[i].flags, SCMP_CMP_MASKED_EQ, creates[k], creates[k]);
                call_refuse(f, calls[i].call, EPERM, 2, args);
            }
        }
    /* Its mode is in memory, where no filter can read it. Programs then use openat. */
    call_refuse(f, NR_openat2, ENOSYS, 0, NULL);
}

/* Protocols of a stream socket that are not TCP are not subject to the rules of ports. */
static void refuse_but_tcp(const struct filter *f, unsigned family)
{
    const struct scmp_arg_cmp of_family = SCMP_CMP(0, SCMP_CMP_EQ, family);
    for (unsigned type = 0; type < 16; type++) {
        struct scmp_arg_cmp args[] = {of_family, SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xF, type)};
        if (type != SOCK_STREAM)
            call_refuse(f, SCMP_SYS(socket), EACCES, 2, args);
    }
    for (unsigned protocol = 1; protocol < 6; protocol++) {
        struct scmp_arg_cmp args[] = {of_family, SCMP_CMP(2, SCMP_CMP_EQ, protocol)};
        call_refuse(f, SCMP_SYS(socket), EACCES, 2, args);
    }
    struct scmp_arg_cmp args[] = {of_family, SCMP_CMP(2, SCMP_CMP_GT, 6)};
    call_refuse(f, SCMP_SYS(socket), EACCES, 2, args);
    /* TCP fast open connects without connect(). */
    const unsigned fast = 0x20000000;
    refuse_if(f, SCMP_SYS(sendto), EACCES, SCMP_CMP(3, SCMP_CMP_MASKED_EQ, fast, fast));
    refuse_if(f, SCMP_SYS(sendmsg), EACCES, SCMP_CMP(2, SCMP_CMP_MASKED_EQ, fast, fast));
    refuse_if(f, SCMP_SYS(sendmmsg), EACCES, SCMP_CMP(3, SCMP_CMP_MASKED_EQ, fast, fast));
}

/* Families of sockets above AF_INET6 (10) are refused; of the others, those that `allowed` lacks.
 */
static void refuse_families(const struct filter *f, unsigned allowed, bool routes)
{
    for (unsigned family = 0; family <= AF_INET6; family++)
        if (!(allowed & (1u << family)))
            refuse_if(f, SCMP_SYS(socket), EAFNOSUPPORT, SCMP_CMP(0, SCMP_CMP_EQ, family));
    if (routes) {
        /* getifaddrs reads the interfaces of the host from a routing socket. */
        struct scmp_arg_cmp args[] = {SCMP_CMP(0, SCMP_CMP_EQ, AF_NETLINK),
                                      SCMP_CMP(2, SCMP_CMP_NE, 0)};
        call_refuse(f, SCMP_SYS(socket), EAFNOSUPPORT, 2, args);
        for (unsigned family = AF_INET6 + 1; family < AF_NETLINK; family++)
            refuse_if(f, SCMP_SYS(socket), EAFNOSUPPORT, SCMP_CMP(0, SCMP_CMP_EQ, family));
    }
    refuse_if(f, SCMP_SYS(socket), EAFNOSUPPORT,
              SCMP_CMP(0, SCMP_CMP_GT, routes ? AF_NETLINK : AF_INET6));
    for (unsigned family = 0; family <= AF_INET6; family++)
        if (family != AF_UNIX)
            refuse_if(f, SCMP_SYS(socketpair), EAFNOSUPPORT, SCMP_CMP(0, SCMP_CMP_EQ, family));
    refuse_if(f, SCMP_SYS(socketpair), EAFNOSUPPORT, SCMP_CMP(0, SCMP_CMP_GT, AF_INET6));
}

/* A datagram socket of a pair can still send to another address. SOCK_RAW is the same here. */
static void refuse_datagram_pairs(const struct filter *f)
{
    static const unsigned types[] = {SOCK_DGRAM, SOCK_RAW};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        refuse_if(f, SCMP_SYS(socketpair), EACCES, SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xF, types[i]));
}

static void refuse_network(const struct filter *f)
{
    static const int inbound[] = {SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept),
                                  SCMP_SYS(accept4)};
    unsigned allowed = (f->kind & FILTER_UNIX ? 1u << AF_UNIX : 0) |
                       (f->kind & FILTER_INET ? 1u << AF_INET : 0) |
                       (f->kind & FILTER_INET6 ? 1u << AF_INET6 : 0);
    refuse_families(f, allowed, f->kind & FILTER_ROUTES);
    if (!(f->kind & FILTER_UNIX))
        refuse_datagram_pairs(f);
    if (f->kind & FILTER_TCP_ONLY)
        refuse_but_tcp(f, AF_INET);
    /* Inbound: an address cannot be read by a filter, so this includes UNIX sockets. */
    if (f->kind & FILTER_NO_INBOUND)
        refuse_all(f, inbound, sizeof inbound / sizeof *inbound, EACCES);
}

static void refuse_on_host(const struct filter *f)
{
    refuse_all(f, refused_on_host, sizeof refused_on_host / sizeof *refused_on_host, EPERM);
    for (size_t i = 0; i < sizeof own_only / sizeof *own_only; i++)
        refuse_if(f, own_only[i].call, EPERM, SCMP_CMP(own_only[i].arg, SCMP_CMP_NE, 0));
    /* Nor all processes of the user: `which` is PRIO_PROCESS, IOPRIO_WHO_PROCESS. */
    refuse_if(f, SCMP_SYS(setpriority), EPERM, SCMP_CMP(0, SCMP_CMP_NE, 0));
    refuse_if(f, SCMP_SYS(ioprio_set), EPERM, SCMP_CMP(0, SCMP_CMP_NE, 1));
}

static void filter_make(struct filter *f)
{
    /* file_setattr sets the flags of a file that no Landlock rule lets the caller open. */
    static const int absent[] = {SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
                                 SCMP_SYS(io_uring_register), NR_file_setattr};
    f->ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (!f->ctx)
        filter_fail("cannot make a filter", ENOMEM);
    /* Programs for another architecture of this processor would have other call numbers. */
    int rc = seccomp_attr_set(f->ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    if (rc == 0)
        rc = seccomp_attr_set(f->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (rc < 0)
        filter_fail("cannot configure a filter", -rc);
    refuse_all(f, refused, sizeof refused / sizeof *refused, EPERM);
    refuse_all(f, absent, sizeof absent / sizeof *absent, ENOSYS);
    refuse_namespaces(f);
    refuse_ioctls(f);
    refuse_setuid(f);
    refuse_network(f);
    if (f->kind & FILTER_ON_HOST)
        refuse_on_host(f);
    if (f->kind & FILTER_NO_TRUNCATE)
        call_refuse(f, SCMP_SYS(truncate), EPERM, 0, NULL);
    if (f->kind & FILTER_NO_GROUP)
        refuse_if(f, SCMP_SYS(kill), EPERM, SCMP_CMP(0, SCMP_CMP_MASKED_EQ, 0xFFFFFFFF, 0));
}

/* Prints the program as an array; its number of instructions. */
static size_t filter_print(const struct filter *f)
{
    FILE *file = tmpfile();
    struct sock_filter i;
    size_t n = 0;
    int rc = file ? seccomp_export_bpf(f->ctx, fileno(file)) : -errno;
    if (rc < 0)
        filter_fail("cannot export a filter", -rc);
    rewind(file);
    printf("static const struct sock_filter code_%u[] = {\n", f->kind);
    for (; fread(&i, sizeof i, 1, file) == 1; n++)
        printf("    {%u, %u, %u, %u},\n", i.code, i.jt, i.jf, i.k);
    puts("};");
    fclose(file);
    return n;
}

int main(void)
{
    static size_t sizes[FILTER_KINDS];
    const int abis[] = {0, 3, 6};
    puts("#include \"filter.h\"\n");
    for (int bits = 0; bits < 8 * 4 * 3; bits++) {
        const struct filter_facts facts = {.namespaces = bits & 1,
                                           .gate = bits & 2,
                                           .group = bits & 4,
                                           .network = bits / 8 % 4,
                                           .landlock = abis[bits / 32]};
        struct filter f = {.kind = filter_kind(&facts)};
        if (sizes[f.kind])
            continue;
        filter_make(&f);
        sizes[f.kind] = filter_print(&f);
        seccomp_release(f.ctx);
    }
    puts("\nconst struct filter_program filter_programs[] = {");
    for (unsigned kind = 0; kind < FILTER_KINDS; kind++)
        if (sizes[kind])
            printf("    {%u, %zu, code_%u},\n", kind, sizes[kind], kind);
    puts("    {0, 0, NULL},\n};");
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
