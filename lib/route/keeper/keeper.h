/* The durable side of the router: outbox, answers, dead letters; and inboxes. */
#ifndef AMP_ROUTE_KEEP_H
#define AMP_ROUTE_KEEP_H

#include "route/job.h"

/* keep.c */
int amp_keeper_open(struct router *r, const char *dir, int64_t lock_timeout_ms,
                    struct amp_error *err);
void amp_keeper_close(struct router *r);
/* Answers wait for the next sync. */
bool amp_keeper_waits(const struct router *r);
/* recover.c: what a former run left open; its messages become jobs again, its answers go out. */
int amp_router_restore(struct router *r, struct amp_error *err);
/* Commits the jobs' lines to the outbox in one frame and syncs. */
int amp_keeper_record(struct router *r, struct job *const *jobs, uint32_t n, struct amp_error *err);
/* A line that stands nowhere: it leaves at once. */
void amp_keeper_say(struct router *r, struct amp_span line);
/* The outbox of our answers. */
#define ANSWERS_NAME_MAX 160
void amp_keeper_answers_name(const struct router *r, char out[ANSWERS_NAME_MAX]);
/* An answer that stands in that outbox leaves after the next sync. */
void amp_keeper_answer(struct router *r, struct amp_span line, struct amp_store_entry_id entry);
void amp_keeper_send(struct router *r, struct job *a); /* an answer, now */
/* A job that has its line only is looked at. */
int amp_keeper_look(struct router *r, struct job *j, struct amp_error *err);
/* Lets fn commit what the jobs leave in the outbox: it sets *at, or leaves it. */
typedef int amp_keeper_commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                                 struct amp_store_entry_id *at, struct amp_error *err);
int amp_keeper_commit(struct job *const *jobs, uint32_t n, amp_keeper_commit_fn *fn, void *ctx,
                      struct amp_error *err);
/* What a commit makes of the record that counts the batches, in json; the rest is the caller's. */
enum { AMP_KEEPER_BATCH_MAX = 64 };
void amp_keeper_batch(const struct amp_store_rec *now, struct amp_store_change *change,
                      char json[AMP_KEEPER_BATCH_MAX], const struct amp_store_emit *emits,
                      uint32_t n);
void amp_keeper_settled(struct router *r, const struct job *j);
/* The end of a turn: syncs and sends the answers, closes what is settled. */
void amp_keeper_turn(struct router *r);
/* Refuses a message: answers, and keeps it where there is a state. */
void amp_keeper_refuse(struct router *r, struct job *j, const char *code, const char *why,
                       const char *route, bool retryable);
/* A message under the id of another: told and logged, not answered, for an answer names the id and
 * would be about the other. */
void amp_keeper_duplicate(struct router *r, struct job *j, const struct amp_error *why);
/* Refuses an acknowledgement or outcome whose sender does not hold the work: reported and logged,
 * neither delivered nor kept nor answered. */
int amp_keeper_denied(struct router *r, const struct job *j, const struct amp_view *v,
                      const struct amp_error *why, struct amp_error *err);
/* A message that may leave this machine unsigned does: told and logged. */
void amp_keeper_unsigned(struct router *r, const struct job *j, const char *port);
/* Only keeps it. */
void amp_keeper_dead(struct router *r, struct job *j, const char *code, const char *why,
                     const char *route);
/* Refuses a message for what stands in its `nobody`. */
void amp_keeper_unaddressed(struct router *r, struct job *j);

/* enqueue.c: into the inbox of an agent, the port of that number. */
void amp_enqueue(struct router *r, struct job *j, struct amp_span agent, uint32_t port);

#endif
