/* Durability of the router: its outbox, the answers to senders, and dead letters. */
#ifndef AMP_MESSAGE_ROUTE_KEEPER_KEEPER_H
#define AMP_MESSAGE_ROUTE_KEEPER_KEEPER_H

#include "message/route/outlet/outlet.h"
#include "message/route/parcel.h"
#include "message/route/run.h"
#include "message/store/store.h"

#define AMP_ROUTE_BATCH_MAX 256 /* messages of one commit */

struct amp_keeper;
int amp_keeper_new(struct amp_route_run *run, struct amp_parcels *parcels,
                   struct amp_outlets *outlets, struct amp_keeper **out, struct amp_error *err);
/* Opens the run's store and takes the lock of the router's name. The caller's part of the options:
 * lock_timeout_ms, facts, keep and actor. */
int amp_keeper_open(struct amp_keeper *k, const char *dir, struct amp_store_options opening,
                    struct amp_error *err);
void amp_keeper_free(struct amp_keeper *k); /* closes the store */
/* Ends a turn: syncs, sends the answers, closes settled entries. */
void amp_keeper_turn(struct amp_keeper *k);
bool amp_keeper_waits(const struct amp_keeper *k); /* answers wait for the next sync */

/* ---- the outbox ---- */

/* Commits the parcels' lines to the outbox in one frame and syncs. */
int amp_keeper_record(struct amp_keeper *k, struct parcel *const *parcels, uint32_t n,
                      struct amp_error *err);
/* Composes the parcels' outbox entries; fn commits them and sets *at, or leaves it unchanged. */
typedef int amp_keeper_commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                                 struct amp_store_entry_id *at, struct amp_error *err);
int amp_keeper_commit(struct parcel *const *parcels, uint32_t n, amp_keeper_commit_fn *fn,
                      void *ctx, struct amp_error *err);
/* All ports have reported the parcel's outcome: its entry is closed at the end of the turn. */
void amp_keeper_settled(struct amp_keeper *k, const struct parcel *j);
/* Handles the open entries of an earlier run: sends its answers, and calls `again` with a parcel
 * for each of its messages. */
int amp_keeper_restore(struct amp_keeper *k,
                       int (*again)(void *ctx, struct parcel *j, struct amp_error *err), void *ctx,
                       struct amp_error *err);

/* ---- answers ---- */

/* The outbox of the answers. */
#define ANSWERS_NAME_MAX 160
void amp_keeper_answers_name(const struct amp_route_run *run, char out[ANSWERS_NAME_MAX]);
/* Sends an answer that is in that outbox after the next sync. */
void amp_keeper_answer(struct amp_keeper *k, struct amp_span line, struct amp_store_entry_id entry);
/* Sends an unrecorded line immediately. */
void amp_keeper_say(struct amp_keeper *k, struct amp_span line);

/* ---- refusing ---- */

/* Refuses a message: answers it and, with a state directory, makes a dead letter. */
void amp_keeper_refuse(struct amp_keeper *k, const struct parcel *j, const char *code,
                       const char *why, const char *route, bool retryable);
/* Makes a dead letter without an answer. */
void amp_keeper_dead(struct amp_keeper *k, const struct parcel *j, const char *code,
                     const char *why, const char *route);
/* Refuses a message for the reason in its `no_recipient`. */
void amp_keeper_unaddressed(struct amp_keeper *k, const struct parcel *j);
/* Reports and logs a message with the id of another one. There is no answer, because it would be
 * about the other one. */
void amp_keeper_duplicate(struct amp_keeper *k, const struct parcel *j,
                          const struct amp_error *why);
/* Refuses an acknowledgement or outcome whose sender does not hold the work. It is reported and
 * logged, and neither delivered nor kept nor answered. */
int amp_keeper_denied(struct amp_keeper *k, const struct parcel *j, const struct amp_view *v,
                      const struct amp_error *why, struct amp_error *err);
/* Reports and logs that an unsigned message leaves this machine, which is allowed. */
void amp_keeper_unsigned(struct amp_keeper *k, const struct parcel *j, const char *port);

#endif
