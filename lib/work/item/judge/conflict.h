/*
 * Conflicts between jobs (SW4RM §9.2, §9.3, §15): what happens when a job could start but for a job
 * at work whose scope overlaps. Settings, section `queue` of amp.json:
 *
 *   overlap            serialise (default): it waits; ask: a person is asked (CONFLICT)
 *   conflict_exec      a command that judges the pair first. A confidence of at least `threshold`:
 *                      they run side by side; below: a person is asked; no valid answer: as overlap
 *                      says.
 *
 * A worker's loop has one amp_judge: it starts the command, asks, and carries out the decisions.
 * It never waits.
 */
#ifndef AMP_WORK_ITEM_JUDGE_CONFLICT_H
#define AMP_WORK_ITEM_JUDGE_CONFLICT_H

#include <poll.h>

#include "work/item/claim/queue.h"
#include "work/item/conflict/breaker.h"
#include "work/item/conflict/conflict.h"

#define AMP_CONFLICT_BREAKER "conflict_exec" /* the name of its breaker */

enum { AMP_JUDGE_MOST = 4 }; /* commands at a time */

struct amp_identities;

struct amp_judge_options {
    const struct amp_queue_settings *set; /* as long as the judge */
    const char *worker;                   /* its name: of the commits */
    /* Opens the identities that sign its questions; NULL: they are not signed. */
    int (*identify)(void *ctx, const char *principal, struct amp_identities **out,
                    struct amp_error *err);
    void *identify_ctx;
    /* Also writes a question, a HITL_INVOCATION without LF, to the output; or NULL. */
    int (*say)(void *ctx, struct amp_span line, struct amp_error *err);
    void *say_ctx;
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    volatile const int *stop;
};
struct amp_judge;
int amp_judge_open(struct amp_judge **out, struct amp_store *s, const struct amp_judge_options *o,
                   struct amp_error *err);
void amp_judge_close(struct amp_judge *j); /* ends its commands; NULL is allowed */

/* The loop waits for these. _fds fills at most AMP_JUDGE_FDS descriptors and returns their number;
 * _wait returns the longest wait in ms, < 0: none. */
enum { AMP_JUDGE_FDS = 2 * AMP_JUDGE_MOST };
unsigned amp_judge_fds(const struct amp_judge *j, struct pollfd *fds);
int64_t amp_judge_wait(const struct amp_judge *j);
/* Whether the time of a pair has come, so that amp_judge_look has work. */
bool amp_judge_is_due(const struct amp_judge *j);
/* Reads the answers of its commands. 1: something was decided, so look and claim again; 0. Call it
 * when a descriptor is ready or the wait is over. */
int amp_judge_answers(struct amp_judge *j, struct amp_error *err);
/* Looks at the pairs in the order (work/item/order.h), which has been looked at: starts commands
 * and asks for the pairs that keep jobs of these types from starting; carries out decisions; ends
 * the pairs of jobs that have ended, with their questions. 1: something was decided; 0. */
int amp_judge_look(struct amp_judge *j, struct amp_order *o, const struct amp_span *types,
                   uint32_t n_types, struct amp_error *err);

/* For verbs and the row "conflict" of the deadlines: carries out the decisions about pairs, ends
 * permissions whose time is over, checks of workers that are gone, and pairs of jobs that have
 * ended. *done: how many. */
int amp_conflicts_tend(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                       struct amp_error *err);

/* For lists: the pairs and overrides of a job, as members of an open object: "conflicts":[…],
 * "overrides":[…]; nothing where there are none. */
struct amp_jw;
int amp_conflict_members(struct amp_jw *w, struct amp_store *s, struct amp_span job,
                         struct amp_error *err);
/* Whether any job has them. */
int amp_conflict_any(struct amp_store *s, bool *any, struct amp_error *err);
/* A sentence about the breaker if it is not closed; "": it is. */
int amp_conflict_notice(struct amp_store *s, char *out, size_t size, struct amp_error *err);

#endif
