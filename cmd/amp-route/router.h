/*
 * The router's parts: main.c reads the options, routes.c makes rules and ports of them, router.c
 * runs the loop, steps.c looks at each message, judge.c asks the predicates, jobs.c takes one
 * message through its ports, enqueue.c into an inbox, keep.c is the durable side.
 *
 * The way of a message:
 *   admit   steps.c admit_steps[]: once, when it is read, before anything is kept of it
 *   look    steps.c look_steps[]: also when a former run left it; what it must not do is refused
 *           (job_refuse), whom it goes to is written down while it is in view
 *   record  keep.c, with a state directory
 *   judge   which rules hold; native ones while the message is in view
 *   offer   jobs.c offer_to[]: by the action of the rule's target
 *   lanes   lanes.c: waits for its port, who goes next is said by message/inbox/lane.h
 * direct.c is the short way of what needs none of this.
 * A part that adds to this has a file of its own and one row in one of these tables.
 */
#ifndef AMP_ROUTE_ROUTER_H
#define AMP_ROUTE_ROUTER_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "address.h"
#include "cli/rows.h"
#include "count.h"
#include "flow/intake.h"
#include "flow/wake.h"
#include "keep.h"
#include "metrics/metrics.h"
#include "port/helper.h"
#include "route/rules/predicate.h"
#include "routes.h"
#include "steps.h"
#include "target.h"

#define PORTS_MAX   1100 /* one for each agent that a message may name, and some */
#define JOB_SIZES   7
#define BATCH_MAX   256
#define BATCH_BYTES ((size_t)512 << 10)

struct router {
    /* options */
    bool all, eager, verbose;
    bool dry; /* only says what would be done */
    const char *consumer;
    struct amp_port_options port_options;
    int64_t predicate_limit_ms;
    int64_t credits;     /* of an inbox: messages that wait or are at work; 0: any */
    bool allow_unsigned; /* sw4rm messages may leave this machine as they are */

    struct rule rules[RULES_MAX];
    uint32_t era;    /* how often they were read again */
    bool configured; /* they are the configuration's */
    const char *config, *state;
    const struct amp_list *lane_settings;
    uint32_t n_rules;
    struct target *targets[PORTS_MAX]; /* [0] is our own output */
    uint32_t n_ports;
    struct addressing addressing;
    struct amp_lane_rules lane_rules;
    struct place *spare;     /* places to use again */
    struct target *stepping; /* whose port tells outcomes now */
    int64_t now_ms;          /* of amp_mono_ms, when we last woke */
    int64_t patience_ms;
    int64_t held_ms; /* the input waits for a full port since, or 0 */
    int64_t look_gap_ms;
    struct amp_wake wake; /* with credits: acknowledgements come by the log; or log -1 */
    uint64_t log_moves;   /* how often it woke us */

    struct amp_input in;
    struct amp_intake intake;
    struct amp_reader *again; /* views a line a second time, for answers */
    bool eof;

    struct amp_helper *jq;
    const char *filters[RULES_MAX + 1];
    int n_filters;
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
    int lock;
    struct closing {
        struct amp_store_entry_id v[BATCH_MAX];
        uint32_t n;
    } closing[2];                   /* settled messages, written answers */
    struct job *answers[BATCH_MAX]; /* committed, not yet synced */
    uint32_t n_answers;

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
int tee_start(struct router *r, const char *const *specs, int n, struct amp_error *err);
void tee_copy(struct router *r, const struct job *j);
void tee_end(struct router *r);

/* dry.c: one line on our output, of what would become of it. */
void dry_say(struct router *r, const struct job *j);

/* lane_rules.c: of the configuration, then of KEY=N as given. */
int lanes_set(const char *config, const char *state, const char *const *given, int n,
              struct amp_lane_rules *out, struct amp_error *err);

/* router.c */
int router_run(struct router *r, struct amp_error *err);

#endif
