/* A system call filter depends on these. libexec/confine-filters makes one for each kind at build
 * time, because libseccomp takes longer to make a filter than the rest of the start. */
#ifndef CONFINE_FILTER_H
#define CONFINE_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

enum filter_bits {
    FILTER_ON_HOST = 1, /* without namespaces */
    FILTER_UNIX = 2,    /* allowed families of sockets */
    FILTER_INET = 4,
    FILTER_INET6 = 8,
    FILTER_ROUTES = 16,       /* routing sockets, which read the host's interfaces */
    FILTER_TCP_ONLY = 32,     /* of AF_INET */
    FILTER_NO_INBOUND = 64,   /* no binding, no listening */
    FILTER_NO_TRUNCATE = 128, /* Landlock before ABI 3 does not see truncate() */
    FILTER_NO_GROUP = 256,    /* no signals to the own process group, which has processes outside */
    FILTER_KINDS = 512
};

/* The kind is computed from these; network is as in confine.h, port: there is a gate. */
struct filter_facts {
    bool namespaces, gate;
    bool group; /* the command stays in the process group of its starter */
    int network, landlock;
};

static inline unsigned filter_kind(const struct filter_facts *f)
{
    enum { RESTRICTED = 1, UNRESTRICTED = 2, FULL = 3 };
    bool host = f->network == UNRESTRICTED || f->network == FULL;
    bool own = f->namespaces && !host;
    unsigned kind = f->namespaces ? 0 : FILTER_ON_HOST;
    /* UNIX sockets outside cannot be seen through the mounts. Abstract ones belong to the network
     * namespace, or are kept apart by Landlock's scope. */
    if (f->namespaces && (own || f->landlock >= 6))
        kind |= FILTER_UNIX;
    if (own || host)
        kind |= FILTER_INET | FILTER_INET6 | (host ? FILTER_ROUTES : 0u);
    else if (f->network == RESTRICTED && f->gate)
        kind |= FILTER_INET | FILTER_TCP_ONLY;
    if (f->network == UNRESTRICTED || (!own && !host))
        kind |= FILTER_NO_INBOUND;
    if (!f->namespaces && f->landlock < 3)
        kind |= FILTER_NO_TRUNCATE;
    /* A pid namespace does not limit a process group, but Landlock's scope does. */
    if (f->group && f->landlock < 6)
        kind |= FILTER_NO_GROUP;
    return kind;
}

struct filter_program {
    unsigned kind;
    unsigned short n;
    const struct sock_filter *code;
};
/* Generated; ends with n 0. */
extern const struct filter_program filter_programs[];

#endif
