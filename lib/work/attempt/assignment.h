/*
 * The work on one message for one subtask, for run and review: a worktree, an attempt of the
 * agent's command in it, and the check that the attempt did not move protected refs.
 */
#ifndef AMP_WORK_ATTEMPT_ASSIGNMENT_H
#define AMP_WORK_ATTEMPT_ASSIGNMENT_H

#include "work/agent/contract/control.h"
#include "work/attempt/worker.h"
#include "work/confine/gate.h"

/* The walls of a confined attempt (confined.h). */
struct amp_walls {
    bool quarantined;
    struct amp_git_quarantine quarantine;
    char cover[1088]; /* the file that covers the worktree's .git */
    char home[1088];
    char record[PATH_MAX]; /* of the attempt (unfinished.h); "": none */
    struct amp_gate gate;  /* the proxy of EGRESS_RESTRICTED */
};

/* The result for a confined attempt's branch; neither done nor an error: it was not confined, or
 * the worker does not answer with a branch. */
struct amp_taking {
    bool done;
    struct amp_git_taken taken;
    struct amp_error error; /* code "": none */
};

#define AMP_QUESTIONS_MAX 8 /* of an agent in one attempt */
struct amp_agent_question {
    char id[65], escalation[256];
    bool answered, withdrawn;
};

/* The agent's messages through its control FIFO (control.c). */
struct amp_words {
    struct amp_control control;
    json_t *log; /* entries for the work log, or NULL */
    struct amp_agent_question questions[AMP_QUESTIONS_MAX];
    uint32_t n_questions, n_codes;
    char codes[16][32];   /* of refused lines: the first of each is logged */
    int64_t hold_ms;      /* monotonic: the end of its hold; 0: none */
    int64_t held_over_ms; /* a suspension waits for the end of the hold since then */
    int64_t beat_ms, looked_ms;
    bool signals; /* it handles SIGUSR1 */
    /* Since it was asked to stop (struct amp_worker_ask): */
    bool asked;
    bool safe;      /* it said that it is at a safe point, and was told to stop */
    int64_t act_ms; /* monotonic: it is not ended before, so that it can act on that; 0: none */
    bool forced;    /* it is ended elsewhere */
    int64_t
        waits_to_ms;  /* monotonic: it waits for a resource, at most until then; 0: it does not */
    bool waits;       /* also: for an event */
    bool out_of_time; /* it waited longer */
    bool limited;     /* it reported a usage limit */
    int64_t limit_ms; /* which ends then (the wall clock) */
};

/* The agent's claims about others (forgeries.h). */
#define AMP_FORGERIES_MAX 32
struct amp_forgeries {
    uint32_t n;
    uint64_t seen[AMP_FORGERIES_MAX]; /* hashes of the texts that were recorded */
    char answer[300];                 /* what is wrong with its answer, or "" */
};

/* Without a repository (repo "") there is no branch, and nothing is taken over. */
struct amp_assignment {
    const struct amp_view *v; /* a dispatch or a review request */
    char task[256], subtask[256], repo[PATH_MAX], branch[256], base[AMP_OID_MAX * 4];
    char commit[AMP_OID_MAX]; /* the reviewed commit; after a run its commit, "" if not measured */
    char worktree[PATH_MAX];
    char start[AMP_OID_MAX]; /* run: the branch's commit at the start of the attempt */
    struct amp_item *job;
    int64_t began_ms;
    struct amp_walls walls;
    struct amp_taking taking;
    struct amp_words words;
    struct amp_forgeries forgeries;
    int64_t attempt;       /* its number, from 1 */
    struct amp_span about; /* what is done, for the activity buffer */
    /* The place of the work, for the activity buffer, if it has no worktree of these tools. */
    char in_repo[PATH_MAX], in_branch[256];
    struct amp_buf criteria; /* JSON */
    struct amp_buf activity; /* what others do, JSON */
    struct amp_contract contract;
    char helpers[PATH_MAX]; /* the directory of the adapters */
    struct amp_attempt files;
    struct amp_git_refs refs; /* before the attempt */
    enum amp_attempt_end end; /* how the attempt ended: see amp_attempt_read_end */
    char why[512];            /* and why, with the last line of standard error after a failure */
    int64_t wall_ms;
    int64_t limit_ms; /* of the attempt, if it is shorter than the worker's; 0: none */
    /* Gets each report of progress; may be NULL. */
    int (*progress)(struct amp_worker *w, struct amp_assignment *k, const json_t *line,
                    struct amp_error *err);
    /* Gets each accepted line of the control FIFO, before its effect; may be NULL. 1: it answered
     * the line, which has no other effect. */
    int (*line)(struct amp_worker *w, struct amp_assignment *k, const struct amp_control_line *l,
                struct amp_error *err);
    /* Asks a person a question of the agent; *ref gets the key of its record. NULL: it goes to the
     * coordinator, if the work is a job. */
    int (*ask)(struct amp_worker *w, struct amp_assignment *k, const char *text,
               const char *const *suggested, char ref[AMP_MSG_ID_MAX], struct amp_error *err);
    /* Ends the question. 1: it was decided, or has ended, before. Not NULL if `ask` is not. */
    int (*unask)(struct amp_worker *w, const char *ref, const char *why, struct amp_error *err);
    /* Called in each turn while the command runs; may be NULL. Lowers *wait_ms (< 0: no limit) to
     * its next step. 1: the command is to be ended. */
    int (*turn)(struct amp_worker *w, struct amp_assignment *k, int64_t *wait_ms,
                struct amp_error *err);
    /* For work on a message of another kind; 0 or NULL: as the worker's options say. */
    const char *const *argv;                /* the command */
    const char *role;                       /* AMP_ROLE */
    const char *const *extra;               /* instead of git's refusal of pushes: NAME=value */
    struct amp_span message;                /* the input of the command, instead of the message */
    const struct amp_confine_place *places; /* that it gets beyond the policy */
    size_t n_places;
    bool own_limit; /* `turn` has the time limit */
    bool responds;  /* its answer may be the message that reports the end of the work */
    int status;     /* the exit status; -1: a signal, or it was not started */
    bool started;
};
void amp_assignment_release(struct amp_assignment *k);

/* Reads the task's record, if there is one: the number of the attempt and, with `base`, the task's
 * base. */
int amp_assignment_look_up(struct amp_worker *w, struct amp_assignment *k, bool base,
                           struct amp_error *err);

/* Binds the agent's worktree: on the branch, which is created at base if it does not exist, or
 * detached at base if branch is NULL. fresh: without anything of an earlier attempt. Uncommitted
 * changes, and commits on no branch, are kept under a ref first; a directory with more than that is
 * left alone, and another one is used. */
struct amp_worker_place {
    const char *branch, *base;
    bool fresh;
};
int amp_assignment_bind(struct amp_worker *w, struct amp_assignment *k,
                        const struct amp_worker_place *p, struct amp_error *err);

/* Makes the attempt's files, after filling the fields of the contract that are the same for both
 * roles. */
int amp_assignment_files(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* Runs the agent's command once in the worktree, confined if the worker's options say so, and then
 * takes over what it committed. */
int amp_assignment_run(struct amp_worker *w, struct amp_item *job, struct amp_assignment *k,
                       struct amp_error *err);
/* Records what the attempt used, as its answer says, of an attempt whose usage no message reports:
 * that of a reviewer, and of an executor that is repeated. */
int amp_assignment_cost(struct amp_worker *w, const struct amp_assignment *k,
                        struct amp_error *err);
/* Compares the refs of the trip-wire (walls/trip.c) with those before the attempt, by value. 1: one
 * was moved without a person's override, and the agent could reach it; `what` describes it. 0:
 * none; -1: failure. */
int amp_assignment_tripped(struct amp_worker *w, struct amp_assignment *k, char *what, size_t size,
                           struct amp_error *err);

/* Makes the job's step after an attempt without an answer that ended in `end`: repeat or park.
 * *spent: no attempts are left, and the job made no step. An agent that asks for another attempt
 * may give retry_after_sec in its answer, an integer from 0 to AMP_RETRY_AFTER_MAX_SEC; another
 * value is reported and ignored. */
/* The pause that an agent asked for that ended with status 75, in milliseconds; 0: none. */
int64_t amp_assignment_wait(struct amp_worker *w, const struct amp_assignment *k);
#define AMP_RETRY_AFTER_MAX_SEC (30 * 86400)
int amp_assignment_again(struct amp_worker *w, struct amp_item *job, const struct amp_assignment *k,
                         enum amp_attempt_end end, const char *why, bool *spent,
                         struct amp_error *err);

#endif
