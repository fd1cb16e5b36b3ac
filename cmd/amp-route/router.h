/*
 * The router's parts: main.c reads the options, routes.c makes rules and ports of them, router.c
 * runs the loop, steps.c looks at each message, judge.c asks the predicates, jobs.c takes one
 * message through its ports, enqueue.c into an inbox, keep.c is the durable side. inbox.c is the
 * verb that hands over what an inbox holds.
 *
 * The way of a message:
 *   admit   steps.c admit_steps[]: once, when it is read, before anything is kept of it
 *   look    steps.c look_steps[]: also when a former run left it; what it must not do is refused
 *           (job_refuse), whom it goes to is written down while it is in view
 *   record  keep.c, with a state directory
 *   judge   which rules hold; native ones while the message is in view
 *   offer   jobs.c offer_to[]: by the kind of the rule's port
 *   lanes   lanes.c: waits for its port, who goes next is said by message/lane.h
 * A part that adds to this has a file of its own and one row in one of these tables.
 */
#ifndef AMP_ROUTE_ROUTER_H
#define AMP_ROUTE_ROUTER_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "address.h"
#include "cli/cli.h"
#include "flow/intake.h"
#include "message/lane.h"
#include "message/metrics.h"
#include "message/predicate.h"
#include "port/helper.h"
#include "port/port.h"
#include "unacked.h"

#define RULES_MAX   256
#define PORTS_MAX   1100 /* one for each agent that a message may name, and some */
#define JOB_SIZES   7
#define BATCH_MAX   256
#define BATCH_BYTES ((size_t)512 << 10)

struct rule {
    struct amp_predicate *predicate;
    char *text; /* of the predicate, for answers */
    int filter; /* of the jq worker, -1 for a native one */
    uint32_t port;
};

enum job_stage {
    JOB_ASK, /* waits to be put to the jq worker */
    JOB_ASKED,
    JOB_DECIDED, /* its rules are known */
};

/* One message on its way, or (answer) a line for our own output. */
struct job {
    struct job *next;          /* in the line of undecided ones */
    struct job *older, *newer; /* among all */
    char *line;                /* in mem, or in own */
    size_t n;
    char *own;  /* what was put there later, or NULL */
    char *text; /* the document inside a wrapped line, NULL where it is the line */
    char *id;   /* may be empty: control records have none */
    enum amp_kind kind;
    enum amp_protocol protocol;
    bool answer;
    uint32_t era;    /* of the rules that it was judged by */
    bool copy;       /* for a port that only listens */
    uint64_t number; /* of its line */
    enum job_stage stage;
    const char *refused; /* the code it is answered with instead of going anywhere; why says more */
    const char *refused_by;
    bool again;                      /* it may be sent again later */
    bool wants_ack;                  /* somebody waits until it is acknowledged */
    int64_t came_ms;                 /* of amp_mono_ms */
    const struct amp_port *tried;    /* while it is refused: the port that could not deliver it */
    enum amp_lane lane;              /* that it asks for */
    uint64_t order;                  /* what has the same one never overtakes; 0: anything may */
    int64_t expires_ms;              /* 0: never */
    struct amp_store_entry_id entry; /* of the outbox, n 0: none */
    uint64_t hit[RULES_MAX / 64];    /* rules that hold */
    uint32_t ask_from;               /* the first jq rule that has to be asked */
    uint32_t waiting;                /* ports that have it now */
    struct job_address address;      /* address.h */
    struct stream *stream;           /* cursors.c: in which it has a number, or NULL */
    int64_t seq;
    uint64_t resent; /* resent.c: the revision of the letter that it was sent again from, or 0 */
    int64_t resent_ms;

    uint32_t size; /* of the piece of memory that it is */
    char why[160]; /* and what follows: not cleared */
    char mem[];
};

/* A message that waits for one port. */
struct place {
    struct place *next;
    struct job *job;
    enum amp_lane lane;
    int64_t since_ms;
};

/* A port and what waits for it. */
struct target {
    struct amp_port *port;
    uint32_t inbound; /* messages that may wait or lie unread there; 0: as many as fit */
    struct amp_lanes lanes;
    struct amp_lane_keys keys;
    struct {
        struct place *first, **last;
    } line[AMP_LANE_COUNT];
    uint32_t n;
    size_t bytes;
    /* How long the input may still wait for it: what it takes earns a little. */
    int64_t patience_ms;
    bool blocks; /* it was full when the input began to wait this time */
    uint64_t given, taken;
    struct unacked unacked;
    uint64_t refused; /* buffer_full */
    bool leaving;     /* no route leads there any more */
    bool closed;
    bool listens; /* gets copies, and nobody waits for it */
};

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
    struct amp_port *ports[PORTS_MAX]; /* [0] is our own output */
    struct target *targets[PORTS_MAX]; /* of the port of the same number */
    uint32_t n_ports;
    struct addressing addressing;
    struct amp_lane_rules lane_rules;
    struct place *spare;     /* places to use again */
    struct target *stepping; /* whose port tells outcomes now */
    int64_t now_ms;          /* of amp_mono_ms, when we last woke */
    int64_t patience_ms;
    int64_t held_ms; /* the input waits for a full port since, or 0 */
    int64_t look_gap_ms;

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
    bool broken; /* a failure of ours: stop */
    struct amp_error why;
};

/* judge.c */
int judge_start(struct router *r, struct amp_error *err);
/* Native rules at once; what only jq can say stays open. */
void judge_view(struct router *r, struct job *j, const struct amp_view *v);
/* Takes the line of undecided jobs on as far as it goes, and dispatches decided ones in order. */
void judge_step(struct router *r);
void judge_add(struct router *r, struct job *j);
/* Which rules hold, whatever it was judged by before. */
int judge_again(struct router *r, struct job *j, struct amp_error *err);
void judge_add_all(struct router *r, struct job *j); /* and those that follow it */

/* job_mem.c */
struct job *job_new(struct router *r, struct amp_span line, const struct amp_view *v);
void job_free(struct router *r, struct job *j);
void jobs_free(struct router *r);
/* What it is, for one that was made before that was known: the line, and all else by the view. */
int job_fill(const struct router *r, struct job *j, struct amp_span line, const struct amp_view *v,
             struct amp_error *err);

/* jobs.c */
/* It is refused when its turn comes. The first reason counts. Codes are static strings. */
void job_refuse(struct job *j, const char *code, const char *why, const char *by, bool again);
/* Whether the input had better wait until a port of it has room. */
bool job_holds(struct router *r, const struct job *j);
void job_dispatch(struct router *r, struct job *j);
void job_offer(struct router *r, struct job *j, const struct rule *rule);
void job_leave(struct router *r, struct job *j); /* one that had it is done with it */
void job_done(void *router, uint64_t tag, const struct amp_error *why);
void router_break(struct router *r, const struct amp_error *why);

/* keep.c */
int keep_open(struct router *r, const char *dir, int64_t lock_timeout_ms, struct amp_error *err);
void keep_close(struct router *r);
/* recover.c: what a former run left open; its messages become jobs again, its answers go out. */
int keep_recover(struct router *r, struct amp_error *err);
/* Commits the jobs' lines to the outbox in one frame and syncs. */
int keep_record(struct router *r, struct job *const *jobs, uint32_t n, struct amp_error *err);
/* A line that stands nowhere: it leaves at once. */
void keep_say(struct router *r, struct amp_span line);
/* The outbox of our answers. */
#define ANSWERS_NAME_MAX 160
void keep_answers_name(const struct router *r, char out[ANSWERS_NAME_MAX]);
/* An answer that stands in that outbox leaves after the next sync. */
void keep_answer(struct router *r, struct amp_span line, struct amp_store_entry_id entry);
void keep_send(struct router *r, struct job *a); /* an answer, now */
/* A job that has its line only is looked at. */
int keep_look(struct router *r, struct job *j, struct amp_error *err);
/* Lets fn commit what the jobs leave in the outbox: it sets *at, or leaves it. */
typedef int keep_commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                           struct amp_store_entry_id *at, struct amp_error *err);
int keep_commit(struct job *const *jobs, uint32_t n, keep_commit_fn *fn, void *ctx,
                struct amp_error *err);
void keep_settled(struct router *r, const struct job *j);
/* The end of a turn: syncs and sends the answers, closes what is settled. */
void keep_turn(struct router *r);
/* Refuses a message: answers, and keeps it where there is a state. */
void keep_refuse(struct router *r, struct job *j, const char *code, const char *why,
                 const char *route, bool retryable);
/* Only keeps it. */
/* A message under the id of another: told and logged, not answered, for an answer names the id and
 * would be about the other. */
void keep_duplicate(struct router *r, struct job *j, const struct amp_error *why);
/* A message that may leave this machine unsigned does: told and logged. */
void keep_unsigned(struct router *r, const struct job *j, const char *port);
void keep_dead(struct router *r, struct job *j, const char *code, const char *why,
               const char *route);
/* Refuses a message for what stands in its `nobody`. */
void keep_unaddressed(struct router *r, struct job *j);

/* What came: a recipient's has lost what led to it. */
struct amp_span keep_whole(const struct job *j);
/* An answer that stands in the outbox since that entry: it leaves with the end of the turn. */
void keep_answer(struct router *r, struct amp_span line, struct amp_store_entry_id entry);
/* The outbox of our answers. */
#define ANSWERS_NAME_MAX 160
void keep_answers_name(const struct router *r, char out[ANSWERS_NAME_MAX]);

/* enqueue.c: into the inbox of an agent, the port of that number. */
void inbox_put(struct router *r, struct job *j, struct amp_span agent, uint32_t port);

/* steps.c */
/* The code of a message whose time has passed. */
#define EXPIRED(j) ((j)->protocol == AMP_PROTO_RTP ? "expired" : "ttl_expired")
/* What a step says: STEP_GO, STEP_DROP (an admit step only: it ends here, and the step has done
 * what there was to do about it), or -1 with err, a failure of ours. */
enum { STEP_GO = 0, STEP_DROP = 1 };
typedef int step_fn(struct router *r, struct job *j, const struct amp_view *v,
                    struct amp_error *err);
step_fn steps_admit, steps_look;

/* lanes.c */
#define INBOUND_AGENT 10 /* messages, of an agent's buffer unless said otherwise */
int target_add(struct router *r, uint32_t port, uint32_t inbound, struct amp_error *err);
void target_free(struct router *r, uint32_t port);
void targets_free(struct router *r);
/* Takes a message for the port, or "buffer_full". */
int target_offer(struct router *r, uint32_t port, struct job *j, struct amp_error *err);
/* Gives the port what it has use for, and lets it do what it can. */
void target_step(struct router *r, uint32_t port);
/* Whether the input had better wait for room there: its reader was quick so far. */
bool target_holds(struct router *r, uint32_t port);
bool target_idle(const struct router *r, uint32_t port);      /* nothing waits in its lanes */
size_t target_pending(const struct router *r, uint32_t port); /* bytes, also those of the port */
/* Lowers *timeout_ms to when to look again. */
void targets_watch(struct router *r, int *timeout_ms);
/* Charges the ports that the input waited for. */
void targets_charge(struct router *r);
void targets_say(const struct router *r); /* what they counted */

/* tee.c: copies of what is routed. */
int tee_start(struct router *r, const char *const *specs, int n, struct amp_error *err);
void tee_copy(struct router *r, const struct job *j);
void tee_end(struct router *r);

/* dry.c: one line on our output, of what would become of it. */
void dry_say(struct router *r, const struct job *j);

/* count.c: nothing where no metrics are kept. */
void count_job(struct router *r, enum amp_metric which, const char *port, const struct job *j);
void count_refused(struct router *r, const char *port, const struct job *j, const char *code);
void count_placed(struct router *r, const char *port, const struct job *j);
void count_waited(struct router *r, const char *port, int64_t ms);
void count_turn(struct router *r);
int count_end(struct router *r, struct amp_error *err);

/* lane_rules.c: of the configuration, then of KEY=N as given. */
int lanes_set(struct router *r, const char *config, const char *state, const char *const *given,
              int n, struct amp_error *err);

/* routes.c */
/* The number of the port with that spec, opened once however many lead to it; an agent's has a
 * bounded buffer unless its options say otherwise. */
int routes_port(struct router *r, const char *spec, bool agent, uint32_t *index,
                struct amp_error *err);
int routes_add(struct router *r, const char *text, struct amp_error *err);
void routes_free(struct router *r);
/* Whether it is enough to look at the head of messages. */
void routes_heads(struct router *r);

/* reload.c: SIGHUP */
void reload_start(struct router *r, const struct amp_list *routes);
void reload_turn(struct router *r); /* reads the routes again, if that was asked for */
/* Ports that no route leads to any more: closed when all is delivered. */
void reload_close(struct router *r);

/* router.c */
int router_run(struct router *r, struct amp_error *err);

#endif
