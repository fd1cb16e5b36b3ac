/*
 * The worker for the decisions of people: records the questions of its input, suspends their tasks
 * and agents, and sends the decisions. The questions themselves are in people/question/question.h.
 */
#ifndef AMP_PEOPLE_ANSWER_DECIDE_H
#define AMP_PEOPLE_ANSWER_DECIDE_H

#include "people/answer/due.h"
#include "people/question/question.h"
#include "work/attempt/worker.h"

/* Shows an escalation that needs no decision. */
typedef void (*amp_info_fn)(const struct amp_question *q);

/* The people who may decide (people/question/operators/operators.h; borrowed, NULL: everybody). */
struct amp_decider_people {
    const struct amp_operators *operators;
    const char *login; /* of this process; an answer known by LOGIN must name it … */
    bool others;       /* … unless this is set */
};

/* Must not be moved while it is open. */
struct amp_decider {
    struct amp_worker w; /* its input and output; for amp_worker_turn, amp_worker_ended */
    struct amp_worker_options opt;
    struct amp_hitl hitl;
    struct amp_decision_signer signer;
    amp_info_fn on_info;
    struct amp_decider_people people;
    bool bare, dirty; /* without input and output; entries were added to the outbox */
    int lock;         /* of the consumer's name; -1: another process has it */
    int64_t tried_ms; /* when it was tried last, monotonic */
};
/* Uses only tool, consumer, in, out, ids, trusted, stop, note, say, open_timeout_ms of opt. */
int amp_decider_open(struct amp_decider *d, struct amp_store *s,
                     const struct amp_worker_options *opt, amp_info_fn on_info,
                     struct amp_error *err);
/* Does what is due: applies fallbacks, ends deferrals, and takes the lock of the consumer's name if
 * it has become free, because only one process emits its outbox. Call it once per turn. */
int amp_decider_upkeep(struct amp_decider *d, struct amp_question_swept *out,
                       struct amp_error *err);
/* Shortens a wait to the next time at which something is due. */
int amp_decider_wait(struct amp_decider *d, int64_t *wait_ms, struct amp_error *err);

/* Without input and output, for a command that answers or lists questions. It does not take the
 * lock of the consumer's name; amp_decider_flush emits. opt as above, without in and out. */
int amp_decider_open_bare(struct amp_decider *d, struct amp_store *s,
                          const struct amp_worker_options *opt, struct amp_error *err);
/* Writes the lines of a bare decider to `fd` if no other process has the consumer's lock; else that
 * process writes them. Does nothing if no line was added. */
int amp_decider_flush(struct amp_decider *d, int fd, struct amp_error *err);
/* The decider's git worker, which starts with the first use. */
int amp_decider_git(struct amp_decider *d, struct amp_git **out, struct amp_error *err);
/* While `held`, nothing is written to the output, because a person types on the same terminal. */
void amp_decider_hold(struct amp_decider *d, bool held);
/* Also after a failed open, and of a zeroed struct. */
void amp_decider_close(struct amp_decider *d);

/* Looks up the commit of a rollback in the task's repository, then amp_question_decide. Also
 * refused with DATAERR: missing_commit, unknown_revision (the repository does not have the commit),
 * no_task (a rollback of a question that is not about a task), repo_not_git or another code of
 * work/git/repository/git.h (the repository cannot be read). */
enum amp_decided amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                                    const struct amp_operator_answer *a,
                                    const struct amp_decided_by *by, uint32_t *left,
                                    struct amp_error *err);

#endif
