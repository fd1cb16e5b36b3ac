/* Shared by all parts of a router: its name, store, clock, diagnostics and failure. */
#ifndef AMP_MESSAGE_ROUTE_RUN_H
#define AMP_MESSAGE_ROUTE_RUN_H

#include <amp/protocol/protocol.h>

#include "message/metrics/metrics.h"
#include "message/store/store.h"

/* The diagnostics of the command line (lib/cli). */
struct amp_route_voice {
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    int (*complain)(const struct amp_error *err); /* returns its status */
    void (*status)(int status);                   /* the exit status, unless a worse one was set */
    void (*refused)(const char *code, uint64_t n);
    /* Appends an answer of the router, signed if identities are on; NULL: as it is. */
    int (*sign)(struct amp_span line, struct amp_buf *out, struct amp_error *err);
};

struct amp_route_run {
    const struct amp_route_voice *voice;
    const volatile int *stop;    /* set by INT and TERM */
    const char *name;            /* of the router, in the state directory */
    struct amp_store *store;     /* NULL: no state is kept */
    struct amp_metrics *metrics; /* NULL: nothing is counted */
    struct amp_reader *reader;   /* for a second view of a line */
    bool dry;                    /* only reports what would be done */
    bool verbose;
    int64_t now_ms;  /* amp_mono_ms after the last wait */
    int64_t eof_ms;  /* when the input ended, 0: not yet */
    int64_t held_ms; /* since when the input waits for a full port, 0: it does not */
    uint64_t delivered;
    bool broken; /* the router itself failed with `why` and ends */
    struct amp_error why;
};

/* Records the first failure; later ones are ignored. */
static inline void amp_route_break(struct amp_route_run *run, const struct amp_error *why)
{
    if (run->broken)
        return;
    run->broken = true;
    run->why = *why;
}

#endif
