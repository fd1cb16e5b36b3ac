/*
 * The router. The path of a message:
 *   admit   admission.h: once, when it is read, before it is recorded
 *   look    admission.h: also for a message of an earlier run; finds a reason to refuse it
 *           (amp_parcel_refuse) and its recipients while it is in view
 *   record  keeper.h, with a state directory
 *   match   rules.h: which rules hold; native ones while the message is in view
 *   offer   dispatch.c parcel_offer: by the action of the rule's outlet
 *   lanes   outlet.h: it waits for its port
 * direct.c is the direct path of messages that need none of this.
 */
#ifndef AMP_MESSAGE_ROUTE_ROUTER_ROUTER_H
#define AMP_MESSAGE_ROUTE_ROUTER_ROUTER_H

#include "message/delivery/intake.h"
#include "message/delivery/sender/identity.h"
#include "message/metrics/metrics.h"
#include "message/route/admission/source.h"
#include "message/route/outlet/outlet.h"
#include "message/route/run.h"

struct amp_route_texts {
    const char *const *v;
    int n;
};

struct amp_router;
struct amp_router_options {
    const struct amp_route_voice *voice;
    const volatile int *stop; /* set by INT and TERM */
    volatile int *hangup;     /* set by a hang-up, cleared by the router */
    /* After a hang-up: reads the routes again (amp_router_reload). */
    void (*reread)(struct amp_router *r);
    /* Prints a finding; NULL: only the error log has it. */
    void (*say)(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);

    const char *name;  /* in the state directory */
    const char *state; /* directory; NULL: none */
    int64_t lock_timeout_ms;
    const struct amp_message_facts *facts; /* of the store's options, as keep is */
    const struct amp_keep *keep;
    const char *in_path, *out_path; /* NULL, "-": standard input and output */
    bool hold;                      /* an input FIFO has no end */
    size_t max_line;
    struct amp_route_texts routes; /* PREDICATE => PORT */
    struct amp_route_texts agents; /* NAME=PORT */
    struct amp_route_texts tees;   /* ports, files or FIFOs that get copies */
    bool all;                      /* delivers to every matching route, not only the first */
    bool eager;                    /* writes each line at once */
    bool dry, verbose;
    bool allow_unsigned; /* sw4rm messages may leave this machine as they are */
    bool signed_only; /* each message must be signed: it is from another machine, or all must be */
    struct amp_identities *ids; /* borrowed; NULL: signatures are not verified */
    int64_t predicate_limit_ms;
    uint32_t producer_rate, producer_burst; /* messages per second and sender; 0: any number */
    struct amp_outlets_options outlets;
    struct amp_lane_rules lanes;
    struct amp_source_env source; /* from consumer on */
    struct amp_metrics_options metrics;
};

/* The caller owns the options; a reload changes their lanes. *out is set also on failure. */
int amp_router_open(struct amp_router_options *opt, struct amp_router **out, struct amp_error *err);
int amp_router_run(struct amp_router *r, struct amp_error *err);
/* Writes the last values of the metrics, and (verbose) reports what was done. */
void amp_router_say(struct amp_router *r);
void amp_router_close(struct amp_router *r);

/* Replaces the routes by these n, and the lanes; on failure nothing changes. Ports that stay keep
 * their waiting messages; the others deliver their messages and are closed. */
int amp_router_reload(struct amp_router *r, char *const *texts, uint32_t n,
                      const struct amp_lane_rules *lanes, struct amp_error *err);

#endif
