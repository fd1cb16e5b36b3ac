/*
 * The agent's side of the control FIFO (control.h): writes a line to the FIFO that AMP_CONTROL
 * names, and reads its answer, the file answer-ID.json beside it. For tools that an agent starts
 * inside of its attempt; they have no state directory there.
 *
 *   struct amp_ask_control c = {0};
 *   amp_ask_open(&c, getenv("AMP_CONTROL"), err)
 *   amp_ask_send(&c, request, id, err)                  // request: a json_t without "id"
 *   amp_ask_wait(&c, id, NULL, until, &stop, &answer, err)
 *
 * What comes back was written by the worker into a directory that the agent can write, too: an
 * answer is only as good as the agent that reads it. A tool must not take it as a person's word
 * about what this agent may do elsewhere.
 */
#ifndef AMP_WORK_AGENT_CONTRACT_ASK_H
#define AMP_WORK_AGENT_CONTRACT_ASK_H

#include <jansson.h>

#include <amp/base/buf.h>

#define AMP_ASK_ID_MAX 64

struct amp_ask_control {
    int fifo, dir; /* -1: closed */
    int changes;   /* for poll: readable when a file of the directory changed; -1: none */
};

/* UNAVAILABLE no_worker: the FIFO has no reader any more, or is no FIFO. */
int amp_ask_open(struct amp_ask_control *c, const char *path, struct amp_error *err);
void amp_ask_close(struct amp_ask_control *c);

/* Adds a new id to the request (which is changed) and writes it as one line, all or nothing.
 * TEMPFAIL control_full: the worker does not read. DATAERR line_too_long. */
int amp_ask_send(struct amp_ask_control *c, json_t *request, char id[AMP_ASK_ID_MAX],
                 struct amp_error *err);
/* Discards the events of `changes`, before the answers are read. */
void amp_ask_drain(struct amp_ask_control *c);
/* The answer as it is now. 1: *out, which the caller owns; 0: there is none yet. NO, with the code
 * and the words of the worker: it refused the line. DATAERR bad_answer: the file is no answer. */
int amp_ask_answer(struct amp_ask_control *c, const char *id, json_t **out, struct amp_error *err);
/* Waits for an answer that has `member` (NULL: any answer). 1: *out; 0: until_ms (of the wall
 * clock) has passed. INTERRUPTED. */
int amp_ask_wait(struct amp_ask_control *c, const char *id, const char *member, int64_t until_ms,
                 volatile const int *stop, json_t **out, struct amp_error *err);

/* Withdraws the question that was sent with this id; `wid` gets the id of the request. */
int amp_ask_withdraw(struct amp_ask_control *c, const char *question, const char *why,
                     char wid[AMP_ASK_ID_MAX], struct amp_error *err);

#endif
