/*
 * A TASK at work, for the files of session/:
 *
 *   loop.c      takes TASKs; admission, work, end of a job
 *   attempt.c   one attempt: models in turn, runs of the command, time limits
 *   files.c     snapshots, artifacts
 *   model.c     the command of a provider and model
 *   place.c     the directory of the work; paths of the TASK and of this machine
 *   answer.c    what the agent left in $AMP_RESULT
 *   response.c  the RESPONSE
 *   review.c    the wait for a person (x_human_review_required)
 *
 * and in watch/, what happens while the command works:
 *
 *   line.c      the lines of the control FIFO: errors, delegation, and calls of the others
 *   beat.c      heartbeats and progress: what is missed, what is sent
 *   spend.c     tokens and money against the budgets
 *   phase.c     phases and checkpoints
 *   question.c  questions to a person
 */
#ifndef AMP_WORK_AOP_RUN_PRIVATE_H
#define AMP_WORK_AOP_RUN_PRIVATE_H

#include <amp/protocol/aop_policy.h>

#include "work/aop/artifact/artifact.h"
#include "work/aop/run/session.h"
#include "work/aop/session.h"
#include "work/aop/session/admit.h"
#include "work/aop/snapshot/snapshot.h"
#include "work/attempt/assignment.h"

/* The first failure of a run of the command; code "": none. */
struct amp_tasking_failure {
    char code[48]; /* E_… */
    char what[600];
    bool critical;
};

struct amp_tasking_model {
    const char *provider, *name; /* of the TASK */
    const char **argv;           /* NULL-terminated; its texts are in mem. NULL: the worker's */
    json_t *mem;
};

/* The end of the TASK, for its RESPONSE. */
struct amp_tasking_outcome {
    const char *state, *signal; /* AOP's words; state NULL: it has not ended */
    char code[48];              /* of error_details; "": none */
    char what[800];
};

/* beat.c */
struct amp_beats {
    int64_t last_ms; /* monotonic: the last sign of life, or the start of the run */
    int64_t sent_ms; /* monotonic: the last HEARTBEAT; 0: none */
    int64_t missed;  /* beats that were reported as missed since last_ms */
    int64_t percent; /* the last reported; < 0: none */
    char phase[1024], checkpoint[1024], note[600]; /* UTF-8, cut if they are longer */
    int64_t eta_seconds;                           /* < 0: none */
    int64_t progress_ms;      /* monotonic: the last PROGRESS_UPDATE; 0: none */
    int64_t progress_wall_ms; /* the same by the wall clock, for the RESPONSE */
    bool withheld;            /* progress that was reported since then */
    bool beating;             /* a sign of life since the last HEARTBEAT */
    bool warned;              /* of the present silence */
};

/* spend.c: of all runs of this attempt, also of those before a crash. */
struct amp_spending {
    struct amp_session_usage ended;   /* of runs that ended */
    int64_t cost_micros;              /* of these: the actual cost of each, or its estimate */
    struct amp_session_usage earlier; /* of them: before this work of the worker began, */
    int64_t earlier_micros;           /* and their cost */
    struct amp_session_usage now;     /* of this run, as last reported */
    struct amp_session_usage before;  /* of the models before the present one */
    unsigned model_at;                /* the present one */
    bool loaded, reported;
    bool unsaved;     /* `now` changed since the record was written */
    int64_t saved_ms; /* monotonic: when it was written */
    char tier[128];   /* model_pricing_tier, as the agent says; "": none */
};

/* phase.c */
#define AMP_PHASES_ASKED 8 /* checks that the agent asked for and that wait */
struct amp_phases {
    json_t *order;   /* the TASK's phases by phase_order */
    json_t *results; /* checkpoint_results, by checkpoint_id */
    size_t now;
    struct {
        char id[65];
        const json_t *checkpoint; /* of the TASK */
    } asked[AMP_PHASES_ASKED];
    unsigned n_asked;
};

struct amp_tasking {
    struct amp_assignment of; /* the first member: callbacks get it */
    struct amp_worker *w;
    struct amp_item *job;
    const struct amp_view *v;
    const struct amp_session_options *opt;
    struct amp_aop_policy policy;
    json_t *task;                     /* the TASK, as it came */
    char session[256];                /* session_id */
    char agent[256];                  /* target.agent_name: who answers */
    char root[PATH_MAX];              /* workspace_root, as the TASK has it */
    char place[PATH_MAX];             /* where its files are: absolute, real */
    char home[PATH_MAX];              /* the place is a worktree of this directory; "": it is not */
    json_t *kept;                     /* paths in the place that the command cannot write */
    struct amp_confine_place *places; /* the same for its confinement */
    int64_t began_ms;                 /* the wall clock, of the first run */
    int64_t limit_mono_ms;            /* the end of the time of this model; 0: no limit */
    bool warned_of_time;              /* auto_terminate_on_timeout is false, and the time is over */
    bool has_begun;                   /* the command was started at least once */
    unsigned model_at; /* 0: the target's; else its place among the alternatives, from 1 */
    uint32_t tried;    /* the alternatives that were tried: bits */
    int64_t repeats;   /* runs of a phase after its first one, phase.c */
    struct amp_tasking_model model;
    struct amp_tasking_failure failure;
    bool failing; /* the run is to be ended because of `failure` */
    struct amp_tasking_outcome outcome;
    json_t *answer;                      /* the agent's last answer, or NULL */
    json_t *warnings, *errors, *actions; /* arrays of texts for the RESPONSE */
    struct amp_measure *before;          /* the place before the first run */
    struct amp_artifacts artifacts;
    bool engaged; /* the record of the agent has the task */
    bool has_snapshot;
    bool partial;                     /* the failure is that of a validation, and others passed */
    struct amp_buf message, response; /* the TASK for the agent; the RESPONSE, without LF */
    struct amp_beats beats;
    struct amp_spending spent;
    uint32_t delegated; /* TASKs of this attempt, line.c */
    struct amp_phases phases;
};

/* ---- attempt.c ---- */

/* The run has failed: keeps the first failure, and ends the command if it runs. critical: also for
 * a code that is not critical by itself. */
void amp_tasking_fail(struct amp_tasking *t, const char *code, bool critical, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The time limit of the model: when it has passed, fails the run or warns once; else lowers
 * *wait_ms. */
int amp_tasking_time(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err);
/* Adds to the RESPONSE's warnings ("CODE: text", each text once) and prints it. */
int amp_tasking_warn(struct amp_tasking *t, struct amp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts an EVENT into the outbox, with the job's record in one commit. line: with or without LF. */
int amp_tasking_emit(struct amp_tasking *t, struct amp_span line, struct amp_error *err);
/* Runs the command of the present model once. phase: its phase_id for AMP_PHASE, or NULL. 0: it
 * ended: t->failure says how, t->answer has its answer; 1: the job was stepped and is to be left
 * (parked, stopped, repeated later); -1: failure. */
int amp_tasking_command(struct amp_tasking *t, const char *phase, struct amp_error *err);
/* The work is being stopped between two runs, while a check runs: steps the job as at the end of a
 * run that was stopped. 1, or -1. */
int amp_tasking_stopped(struct amp_tasking *t, struct amp_error *err);

/* Works on the TASK from its place to its outcome. Returns as amp_tasking_command. */
int amp_tasking_attempt(struct amp_tasking *t, struct amp_error *err);
/* The voice of the worker in the records of the session. */
struct amp_session_voice amp_tasking_voice(const struct amp_tasking *t);
/* The outcome is a failure with this code. state: FAILED, ABORTED, SKIPPED. */
void amp_tasking_end(struct amp_tasking *t, const char *state, const char *code, const char *fmt,
                     ...) __attribute__((format(printf, 4, 5)));

/* ---- files.c ---- */

/* audit_trail.storage_path, by default the contract's; base: the directory that it is relative to.
 */
const char *amp_tasking_trail(const struct amp_tasking *t, char base[PATH_MAX]);

/* Before the first run: takes the snapshots of the TASK; measures its place, as it was before the
 * first run in any process. The errors of work/aop/snapshot/snapshot.h and artifact.h. */
int amp_tasking_snapshot(struct amp_tasking *t, struct amp_error *err);
int amp_tasking_measure_before(struct amp_tasking *t, struct amp_error *err);
void amp_tasking_measure_forget(const struct amp_tasking *t); /* after the end */
/* Makes the files with a snapshot as they were, and emits ROLLBACK_INITIATED. trigger: see
 * amp_snapshot_event; NULL: without the event. 1: it failed: t->failure. */
int amp_tasking_restore(struct amp_tasking *t, const char *trigger, struct amp_error *err);
/* Sets t->artifacts. */
int amp_tasking_measure(struct amp_tasking *t, struct amp_error *err);

/* ---- model.c ---- */

/* NO E_MODEL_UNAVAILABLE: the provider has no command, or its settings do not list the model. */
int amp_tasking_model_find(const struct amp_tasking *t, const char *provider, const char *model,
                           struct amp_tasking_model *out, struct amp_error *err);
void amp_tasking_model_release(struct amp_tasking_model *m);
/* execution_profile, by default balanced. */
const char *amp_tasking_profile(const struct amp_tasking *t);

/* ---- answer.c ---- */

/* After a run that ended by itself: reads the answer, and fails the run with what it reports, or
 * what is wrong with it. */
int amp_tasking_answer(struct amp_tasking *t, struct amp_error *err);
/* The beginning of the objective, for the context of a question. New reference; NULL: no memory. */
json_t *amp_tasking_objective(const struct amp_tasking *t);
/* The code, if it is one of the contract's; else NULL. */
const char *amp_tasking_code(const struct amp_tasking *t, const char *code);
/* After the last run: the requirements of the guard rails, and the outcome. */
int amp_tasking_conclude(struct amp_tasking *t, struct amp_error *err);
/* The summary of the answer, or what the command printed. New reference; NULL: none. */
json_t *amp_tasking_summary(const struct amp_tasking *t);

/* ---- response.c ---- */

/* Composes t->response from the outcome, and checks it as its receiver does; an answer that breaks
 * a rule makes the TASK a failure. */
int amp_tasking_respond(struct amp_tasking *t, struct amp_error *err);

/* Replaces t->response. */
int amp_tasking_response_put(struct amp_tasking *t, const json_t *response, struct amp_error *err);

/* ---- review.c ---- */

/* Whether the decision of a person is still missing; if not, the RESPONSE may be sent. */
int amp_tasking_review(struct amp_tasking *t, struct amp_error *err);
/* The RESPONSE that waits for a person, in t->response. 1; 0: there is none; -1. */
int amp_tasking_review_find(struct amp_tasking *t, struct amp_error *err);

/* ---- place.c ---- */

/* Sets t->place. NO E_PERMISSION_DENIED, E_FILE_NOT_FOUND. */
int amp_tasking_place(struct amp_tasking *t, struct amp_error *err);
/* Gets a worktree on git_branch: t->place is in it then. It has the same codes, and those of
 * amp_assignment_bind. */
int amp_tasking_branch(struct amp_tasking *t, struct amp_error *err);
/* Checks the inputs, and finds what the command must not write. It has the same codes. */
int amp_tasking_inputs(struct amp_tasking *t, struct amp_error *err);
/* Replaces the paths in a copy of the TASK. */
int amp_tasking_localize(const struct amp_tasking *t, json_t *message, struct amp_error *err);
/* A path of this machine (absolute, without a look at the file system) as one of the TASK. NO
 * E_PERMISSION_DENIED: it is not in the workspace. */
int amp_tasking_path_back(const struct amp_tasking *t, const char *real, char *out, size_t size,
                          struct amp_error *err);

/* ---- line.c ---- */

/* For amp_assignment.line: calls amp_beats_line, amp_expense_line and amp_phases_line, and takes
 * the lines `error` and `delegate`. The detail of a report of progress is added to t->actions, up
 * to 200 (AOP §4). 1: it answered the line. */
int amp_tasking_line(struct amp_worker *w, struct amp_assignment *k,
                     const struct amp_control_line *l, struct amp_error *err);

/* ---- question.c ---- */

/* For amp_assignment.ask and unask. */
int amp_tasking_ask(struct amp_worker *w, struct amp_assignment *k, const char *text,
                    const char *const *suggested, char ref[AMP_MSG_ID_MAX], struct amp_error *err);
int amp_tasking_unask(struct amp_worker *w, const char *ref, const char *why,
                      struct amp_error *err);
/* After a run: ends the questions without a decision. */
int amp_tasking_unask_all(struct amp_tasking *t, struct amp_error *err);

/* ---- beat.c, spend.c, phase.c: called by attempt.c ----
 * begin: before each run of the command. line: an accepted line of the agent's control FIFO, before
 * its answer. turn: in each turn of the loop while the command runs; lowers *wait_ms (< 0: no
 * limit) to the time of its next step, and may call amp_tasking_fail; amp_beats_turn is that of all
 * three. end: after each run. */
void amp_beats_begin(struct amp_tasking *t);
void amp_beats_text(char *to, size_t size, const char *text); /* sets one of the texts */
int amp_beats_line(struct amp_tasking *t, const struct amp_control_line *l, struct amp_error *err);
int amp_beats_turn(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err);
int amp_beats_end(struct amp_tasking *t, struct amp_error *err);

int amp_expense_begin(struct amp_tasking *t, struct amp_error *err);
int amp_expense_line(struct amp_tasking *t, const struct amp_control_line *l,
                     struct amp_error *err);
int amp_expense_turn(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err);
/* After each run, also with the cost in t->answer; sets w->left.usage. */
int amp_expense_end(struct amp_tasking *t, struct amp_error *err);
/* Whether a budget is used up, so that no further model may be started. */
bool amp_expense_all(const struct amp_tasking *t);
/* Gets what the present model used, for amp_session_begun (of the next model), _released and
 * _ended: each model of an attempt begins once there, not once for each phase. */
void amp_expense_used(const struct amp_tasking *t, struct amp_session_usage *out);
/* cost_tracking of the RESPONSE; *out NULL: nothing was reported. New reference. */
int amp_expense_report(const struct amp_tasking *t, json_t **out, struct amp_error *err);

/* Runs the command of the present model: once for each phase by phase_order (once for a TASK
 * without phases), and checks the checkpoints of each. Returns as amp_tasking_command; what fails
 * is in t->failure, ABORT by recovery_strategy as well (*abort). */
int amp_phases_run(struct amp_tasking *t, bool *abort, struct amp_error *err);
/* A checkpoint that the agent asks for while it works; its line is answered after the check. 1: it
 * was one. */
int amp_phases_line(struct amp_tasking *t, const struct amp_control_line *l, struct amp_error *err);
/* Carries out one of the checks that the agent asked for. */
int amp_phases_turn(struct amp_tasking *t, struct amp_error *err);
/* expected_outputs[].validation, after the last run: t->failure if one fails; *some: others
 * passed. */
int amp_phases_outputs(struct amp_tasking *t, bool *some, struct amp_error *err);
/* checkpoint_results of the RESPONSE; *out NULL: there are none. New reference. */
int amp_phases_report(struct amp_tasking *t, json_t **out, struct amp_error *err);
void amp_phases_release(struct amp_phases *p);

#endif
