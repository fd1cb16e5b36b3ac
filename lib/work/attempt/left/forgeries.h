/*
 * A claim is a text or commit that an agent leaves in another's name. No tool takes a message from
 * there; these functions record who left what where, for amp-ack audit.
 *
 *   bad_sender      refused: a message in the control FIFO, or an answer that is a message or names
 *                   a sender
 *   unproven_claim  (warning) a message about the agent's own task that the state directory does
 * not know, in its output or in a file of its change; a commit under another agent's name or with a
 * reviewer's trailer; a ref with proofs, or a protected branch, in its own git directory
 *
 * An attempt has at most AMP_FORGERIES_MAX records. Repeated claims are recorded once.
 */
#ifndef AMP_WORK_ATTEMPT_LEFT_FORGERIES_H
#define AMP_WORK_ATTEMPT_LEFT_FORGERIES_H

#include "work/attempt/assignment.h"

/* A refused line of the control FIFO. 1: it is a message: `why` (AMP_FORGERY_WHY bytes) says so,
 * and it is recorded; 0: it is not; -1: failure. */
enum { AMP_FORGERY_WHY = 300 };
int amp_forgeries_control(struct amp_worker *w, struct amp_assignment *k, struct amp_span line,
                          char *why, struct amp_error *err);
/* A tool reported that it refused the agent what only people may do. */
int amp_forgeries_refused(struct amp_worker *w, struct amp_assignment *k, const char *detail,
                          struct amp_error *err);
/* After the agent has ended: its answer (k->forgeries.answer says what is wrong with it), its
 * output, its work log, and the refs of its git directory. */
int amp_forgeries_left(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* Checks the files of its change, and its commits after k->start, up to k->commit. */
int amp_forgeries_change(struct amp_worker *w, struct amp_assignment *k, char *const *files,
                         uint32_t n_files, struct amp_error *err);
/* The commits of an attempt were not taken over (k->taking.error). */
int amp_forgeries_untaken(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* A ref with proofs moved while an agent worked that could reach it. */
int amp_forgeries_moved(struct amp_worker *w, struct amp_assignment *k, const char *what,
                        struct amp_error *err);

#endif
