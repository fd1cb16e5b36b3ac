/*
 * Writes a name's outbox to an output. An entry is emitted after it is synced, and closed after its
 * line is written, unless it waits for an acknowledgement. Entries that a killed process left open
 * are emitted by the next process of that name, under the same ids. Therefore only the process that
 * has the name's lock may emit.
 */
#ifndef AMP_MESSAGE_DELIVERY_OUTBOX_H
#define AMP_MESSAGE_DELIVERY_OUTBOX_H

#include <amp/base/pipe.h>

#include "message/store/store.h"

struct amp_identities;

struct amp_outbox {
    struct amp_store *store;
    const char *name;
    struct amp_identities *ids; /* signs the lines; NULL: they are not signed */
    bool sends_again; /* it has further attempts: see amp_identities_sign_again. Those that
                       * amp_attempt_is_void names are closed and not emitted */
    struct amp_outq *out;
    bool began;                     /* a line that a killed process cut off was ended */
    struct amp_store_entry_id last; /* the last entry that was added to out */
    /* Entries to close once out has written up to `at`. */
    struct amp_outbox_line {
        struct amp_store_entry_id id;
        uint64_t at;
    } * wait;
    size_t n_wait, cap_wait;
    struct amp_buf line;
};

/* Takes the lock of a name in the state; closing *fd releases it. timeout_ms: 0: one try, < 0: no
 * limit. TEMPFAIL lock_timeout. */
int amp_outbox_lock(struct amp_store *s, const char *name, int64_t timeout_ms, int *fd,
                    struct amp_error *err);

/* Whether a process has the lock of this name; takes none. */
bool amp_outbox_locked(struct amp_store *s, const char *name);

/* Syncs and adds new entries to the output. 0: all were added, 1: the output is full, another call
 * adds the rest, -1: failure. */
int amp_outbox_emit(struct amp_outbox *o, struct amp_error *err);
/* Closes the entries whose lines have been written. */
int amp_outbox_settle(struct amp_outbox *o, struct amp_error *err);
/* Emits, writes and closes all open entries; a signal ends it as amp_outq_drain. */
int amp_outbox_finish(struct amp_outbox *o, volatile const int *stop, struct amp_error *err);
void amp_outbox_release(struct amp_outbox *o);

/* Whether there are open entries that were not added to the output yet: of another process. Unlike
 * amp_outbox_emit it syncs nothing. */
int amp_outbox_waits(struct amp_outbox *o, bool *any, struct amp_error *err);

/* Whether the name has open entries. */
int amp_outbox_any(struct amp_store *s, const char *name, bool *any, struct amp_error *err);

#endif
