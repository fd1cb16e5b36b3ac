/* Loads the system call filter for the plan. */
#include "filter.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

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
