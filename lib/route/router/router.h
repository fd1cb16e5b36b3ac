/*
 * The way of a message:
 *   admit   admission.c admit_steps[]: once, when it is read, before anything is kept of it
 *   look    admission.c look_steps[]: also when a former run left it; what it must not do is
 *           refused (amp_route_job_refuse), whom it goes to is written down while it is in view
 *   record  keeper.c, with a state directory
 *   match   which rules hold; native ones while the message is in view
 *   offer   dispatch.c offer_to[]: by the action of the rule's outlet
 *   lanes   outlet.c: waits for its port, who goes next is said by message/inbox/lane.h
 * direct.c is the short way of what needs none of this.
 * A part that adds to this has a file of its own and one row in one of these tables.
 */
#ifndef AMP_ROUTE_ROUTER_H
#define AMP_ROUTE_ROUTER_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "flow/intake.h"
#include "flow/wake.h"
#include "message/cursor/cursor.h"
#include "metrics/metrics.h"
#include "port/helper.h"
#include "route/admission/admission.h"
#include "route/count.h"
#include "route/keeper/keeper.h"
#include "route/outlet/outlet.h"
#include "route/router/recipients.h"
#include "route/rules/predicate.h"
#include "route/rules/rules.h"
#include "route/voice.h"

#define PORTS_MAX   1100 /* one for each agent that a message may name, and some */
#define JOB_SIZES   7
#define BATCH_MAX   256
#define BATCH_BYTES ((size_t)512 << 10)

struct streams_options {
    const char *consumer; /* NULL: streams are not followed */
    enum amp_on_gap on_gap;
    int64_t gap_ms, lease_ms, waiting;
};

struct router {
    /* options */
    const struct amp_route_voice *voice;
    volatile int *stop, *hangup; /* a signal came; hangup is set back */
    /* After a hang-up: reads the routes again (amp_reload). */
    void (*reread)(struct router *r);
    struct streams_options streams_opt;
    const char *from_position; /* --from, or NULL */
    int64_t window_ms;         /* how long an outcome is reported */
    bool all, eager, verbose;
    bool dry; /* only says what would be done */
    const char *consumer;
    struct amp_port_options port_options;
    int64_t predicate_limit_ms;
    int64_t credits;     /* of an inbox: messages that wait or are at work; 0: any */
    bool allow_unsigned; /* sw4rm messages may leave this machine as they are */

    struct amp_rules *rules;
    uint32_t era;                          /* how often they were read again */
    struct amp_outlet *outlets[PORTS_MAX]; /* [0] is our own output */
    uint32_t n_ports;
    struct addressing addressing;
    struct amp_lane_rules lane_rules;
    struct place *spare;         /* places to use again */
    struct amp_outlet *stepping; /* whose port tells outcomes now */
    int64_t now_ms;              /* of amp_mono_ms, when we last woke */
    int64_t patience_ms;
    int64_t held_ms; /* the input waits for a full port since, or 0 */
    int64_t look_gap_ms;
    struct amp_wake wake; /* with credits: acknowledgements come by the log; or log -1 */
    uint64_t log_moves;   /* how often it woke us */

    struct amp_input in;
    struct amp_intake intake;
    struct amp_reader *again; /* views a line a second time, for answers */
    bool eof;

    bool wants_text;          /* of wrapped messages, for jq */
    struct job *first, *last; /* undecided, in the order of arrival */
    uint32_t n_undecided;
    struct job *newest; /* of all that are alive */
    struct spare_jobs {
        struct job *first;
        uint32_t n;
    } spare_jobs[JOB_SIZES]; /* memory to use again */
    uint32_t n_jobs;

    struct cursors *cursors; /* or NULL */
    struct from *from;       /* the log is read first, or NULL */
    struct amp_store *store;
    struct amp_keeper *keeper; /* with a state; or NULL */

    uint32_t *tees; /* ports that get copies */
    uint32_t n_tees, n_copies;
    uint64_t copies_lost;
    int64_t eof_ms;              /* when the input ended */
    const char *const *inbounds; /* [PORT=]N */
    int n_inbounds;

    struct amp_metrics *metrics; /* NULL: none are kept */
    uint64_t delivered, unmatched_acks;
    struct direct {
        bool open;                      /* messages may go the short way, */
        struct amp_check_options check; /* looked at like this */
    } direct;
    bool broken; /* a failure of ours: stop */
    struct amp_error why;
};

/* tee.c: copies of what is routed. */
int amp_tee_start(struct router *r, const char *const *specs, int n, struct amp_error *err);
void amp_tee_copy(struct router *r, const struct job *j);
void amp_tee_end(struct router *r);

/* dry.c: one line on our output, of what would become of it. */
void amp_dry_say(struct router *r, const struct job *j);

/* routes.c */
/* The number of the port with that spec, opened once however many lead to it; an agent's has a
 * bounded buffer unless its options say otherwise. */
int amp_router_port(struct router *r, const char *spec, bool agent, uint32_t *index,
                    struct amp_error *err);
/* Whether the port can be delivered to at all: what it needs is there, an inbox's name is one.
 * USAGE no_state, bad_agent. */
int amp_router_usable(const struct router *r, uint32_t port, struct amp_error *err);
/* Adds 'PREDICATE => PORT' to the rules. */
int amp_router_route(struct router *r, struct amp_rules *rules, const char *text,
                     struct amp_error *err);
/* The rules are others now: how closely messages are looked at depends on them. */
void amp_router_ruled(struct router *r);

/* reload.c: after a hang-up */
/* Builds new rules of n texts, and lanes, and takes them in place of the old ones; on failure
 * nothing changes. */
int amp_reload(struct router *r, char *const *texts, uint32_t n, const struct amp_lane_rules *lanes,
               struct amp_error *err);
void amp_reload_turn(struct router *r); /* has the routes read again, if that was asked for */
/* Ports that no route leads to any more: closed when all is delivered. */
void amp_reload_close(struct router *r);

/* router.c */
int amp_router_run(struct router *r, struct amp_error *err);

#endif
