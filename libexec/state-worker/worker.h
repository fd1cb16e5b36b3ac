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

/* The history checks of one valid message. Findings are written as elements of an open array. */
struct checks {
    struct amp_store *store;
    struct seen *seen;
    struct amp_buf mem; /* of the ledger's answers */
    struct amp_tape tape;
    struct amp_jw *out;
    unsigned findings;
};
int checks_run(struct checks *c, const struct amp_view *v, struct amp_error *err);

#endif
