/* What the files of state-worker share. */
#ifndef STATE_WORKER_H
#define STATE_WORKER_H

#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

#include "store/store.h"

/* The ids that passed in this run, with a hash of their bytes; bounded. */
struct seen;
struct seen *seen_new(struct amp_error *err);
void seen_free(struct seen *s);
/* 0: new; 1: the same bytes; 2: other bytes. */
int seen_find(const struct seen *s, struct amp_span id, struct amp_span bytes);
int seen_add(struct seen *s, struct amp_span id, struct amp_span bytes, struct amp_error *err);

/* 64 bits that stand for a text; nobody outside can guess the key. */
uint64_t keyed_hash(const uint64_t key[2], struct amp_span text);

/* The history checks of one valid message. Findings are written as elements of an open array. */
struct checks {
    struct amp_store *store;
    struct seen *seen;
    struct amp_buf mem; /* of the ledger's answers */
    struct amp_tape tape;
    struct amp_jw *out;
    unsigned findings;
    struct rtp_history *rtp; /* made at the first event of the Runtime Protocol */
};
/* Writes one finding; the dotted field is the pointer with dots. */
void checks_finding(struct checks *c, const char *code, const char *pointer, struct amp_span found,
                    const char *expected, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Whether the agent may report this of the work that the message answers: a finding where the
 * ledger denies it. */
int checks_holder(struct checks *c, const struct amp_view *v, struct amp_error *err);
int checks_run(struct checks *c, const struct amp_view *v, struct amp_error *err);

/* The Runtime Protocol: outbox numbers, attempts, claims and outcomes. */
struct rtp_history;
void rtp_history_free(struct rtp_history *h);
/* Whether the protocol's messages are events of outboxes. */
bool rtp_is_event(enum amp_protocol p);
int rtp_check(struct checks *c, const struct amp_view *v, struct amp_error *err);

#endif
