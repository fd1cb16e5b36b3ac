/*
 * Records what happened in a session, in the order of the log: the EVENTs that were emitted, and
 * the records of its audit trail. Key "session_entry.<session>.<task>.<name>". An entry is written
 * once and never changes; the line that it emits is in its commit.
 */
#ifndef AMP_WORK_AOP_ENTRY_H
#define AMP_WORK_AOP_ENTRY_H

#include "work/aop/session.h"

#define AMP_SESSION_ENTRY_KIND "session_entry"

/* X(NAME): record types of the audit trail, and EVENT, which only the report lists. */
#define AMP_SESSION_ENTRIES(X)                                                                     \
    X(EVENT)                                                                                       \
    X(TASK_DISPATCHED)                                                                             \
    X(ROUTING_DECISION)                                                                            \
    X(GUARD_RAIL_CHECK)                                                                            \
    X(RESPONSE_RECEIVED)                                                                           \
    X(ROLLBACK_EVENT)                                                                              \
    X(SESSION_SUMMARY)
enum amp_session_entry_type {
#define X(name) AMP_SESSION_ENTRY_##name,
    AMP_SESSION_ENTRIES(X)
#undef X
        AMP_SESSION_ENTRY_COUNT
};
const char *amp_session_entry_name(enum amp_session_entry_type t);

struct amp_session_entry {
    uint64_t seq; /* the number of its frame: later entries have higher ones */
    enum amp_session_entry_type type;
    struct amp_span id; /* a UUID, of the record */
    struct amp_span session, task;
    int64_t attempt, at_ms;
    struct amp_span event; /* EVENT, ROLLBACK_EVENT: its kind */
    struct amp_span json;  /* the message, or the other members of the audit record: an object */
};

/* Adds an entry, unless there is one with the name. name: unique in the task; NULL: a new one. seq
 * and id are set by this function. */
int amp_session_entry_add(const struct amp_session_voice *v, const struct amp_session_entry *e,
                          const char *name, const struct amp_store_emit *emits, uint32_t n_emits,
                          struct amp_error *err);

/* The entries of a session with a seq above `after`, in their order; fn: 0, 1 (stop), -1. */
typedef int (*amp_session_entry_fn)(void *ctx, const struct amp_session_entry *e,
                                    struct amp_error *err);
int amp_session_entries(struct amp_store *s, struct amp_span session, uint64_t after,
                        amp_session_entry_fn fn, void *ctx, struct amp_error *err);
/* The entry with a name. 1: found; 0: there is none. */
int amp_session_entry_get(struct amp_store *s, struct amp_span session, struct amp_span task,
                          const char *name, struct amp_buf *mem, struct amp_session_entry *out,
                          struct amp_error *err);

#endif
