/* Carries out what an agent says through its control FIFO while it works
 * (work/agent/contract/control.h). For the files of work/. */
#ifndef AMP_WORK_ATTEMPT_CONTROL_H
#define AMP_WORK_ATTEMPT_CONTROL_H

#include "work/attempt/assignment.h"

/* The descriptor to poll, or -1; lowers *wait_ms (< 0: none) to when the FIFO is read again. */
int amp_words_fd(const struct amp_assignment *k, int64_t *wait_ms);
int amp_words_read(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* Reads the rest after the agent has ended, and notes how many lines were refused. */
int amp_words_end(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* Whether a suspension must wait for the end of the agent's hold (SW4RM §7.2); lowers *wait_ms. */
bool amp_words_hold(struct amp_worker *w, struct amp_assignment *k, int64_t *wait_ms);
/* Whether a text can be the name of a session (schemas/agent/control.json). */
bool amp_session_is_safe(const char *session);
/* A number times scale, 0 if it is negative or none. A part of one counts as one, so the spent
 * amount is never less than the reported one. */
int64_t amp_amount_read(const json_t *n, double scale);

/* Reads an object with input_tokens, output_tokens and cost_usd; missing members are 0. */
void amp_usage_read(const json_t *in, struct amp_worker_usage *u);
/* Adds an entry to the work log of the attempt. */
int amp_words_log(struct amp_assignment *k, const char *action, const char *file,
                  const char *detail, struct amp_error *err);

#endif
