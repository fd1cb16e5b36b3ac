/* Shared by the files of state-worker. */
#ifndef STATE_WORKER_H
#define STATE_WORKER_H

#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

#include "message/store/store.h"
#include "seen.h"

/* The history checks of one valid message. Findings are written as elements of an open array. */
struct checks {
    struct amp_store *store;
    struct seen_keys seen;
    struct amp_buf mem; /* of records */
    struct amp_tape tape;
    struct amp_jw *out;
    unsigned findings;
    struct rtp_history *rtp; /* NULL before the first event of the Runtime Protocol */
    struct amp_map progress; /* the times of the last reports of progress, by session and task */
};
int checks_run(struct checks *c, const struct amp_view *v, struct amp_error *err);

/* The Runtime Protocol: outbox numbers, attempts, claims and outcomes. */
struct rtp_history;
void rtp_history_free(struct rtp_history *h);
/* Whether the protocol's messages are events of outboxes. */
bool rtp_is_event(enum amp_protocol p);

#endif
