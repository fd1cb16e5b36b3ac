/*
 * The state directory: a log, which is the source of truth, and an index, which can be rebuilt from
 * it (docs/state.md). Other rooms use the store through this header only.
 *
 * A frame (a line of the log) is one commit of one key, made by compare-and-set under the
 * turnstile. The frames of a turn are atomic: a reader gets all of them or none. A process must not
 * write a line, an acknowledgement or a delivery, or start a child, before amp_store_sync() has
 * succeeded after the last read or write that it depends on.
 */
#ifndef AMP_MESSAGE_STORE_STORE_H
#define AMP_MESSAGE_STORE_STORE_H

#include "message/store/keep/keep.h"
#include "message/store/key.h"

struct amp_store;
struct amp_message_facts;

/* Signs the head of the log of a state directory at the end of a segment: appends one JSON object
 * to sig. Called under the main lock. If it fails, the segment ends without a signature. */
typedef int (*amp_store_sign_fn)(const char *dir, struct amp_span text, struct amp_buf *sig,
                                 struct amp_error *err);

struct amp_store_options {
    int64_t lock_timeout_ms;     /* < 0: no limit; TEMPFAIL lock_timeout after it */
    uint64_t segment_bytes;      /* size at which a segment ends; here and below 0 is the default */
    uint64_t keep_segments;      /* older ones are removed with the inputs in them; default 16 */
    uint64_t keep_ms;            /* so are segments whose last frame is older; default no limit */
    const struct amp_keep *keep; /* which records are final; NULL: all records are kept */
    uint64_t keep_for[AMP_KEEP_COUNT]; /* ms that they are kept; default 30 and 90 days */
    uint64_t error_bytes;              /* size at which error.ndjson is renamed; default 16 MiB */
    uint64_t error_files;              /* the number of error logs to keep; default 4 */
    /* Never writes: what the index lacks is added for this handle only. */
    bool read_only;
    /* Opened read-only if nothing can be written, as on a read-only medium. With read_only: never
     * makes the directory, but brings an index up that is far behind, if it can be written. */
    bool look;
    /* Functions for lib/message/delivery (message/facts.h). The store does not call them. */
    const struct amp_message_facts *facts;
    /* The members of frames and messages by whose strings the log is searched (history/search.h);
     * ends with NULL. NULL: this process does not index them. */
    const char *const *names;
    const char *actor;           /* for the log, if neither change nor input has one; borrowed */
    amp_store_sign_fn sign_head; /* NULL: segments end without a signature */
};

/* Opens a state directory and creates a missing one (mode 0700); the mode of an existing one is not
 * changed. Codes: state_network_fs, state_not_ours, state_permissions, config_invalid, log_format,
 * log_failed (repair needed). Every later call may also fail with log_failed, log_damaged (with
 * segment and offset), or log_key_invalid. */
int amp_store_open(const char *dir, const struct amp_store_options *opt, struct amp_store **out,
                   struct amp_error *err);
/* Syncs the frames that this handle appended since its last sync, so that what a program that ends
 * with 0 has changed is on disk. A failure is noted (base/late.h). */
void amp_store_close(struct amp_store *s);
const char *amp_store_dir(const struct amp_store *s);
int64_t amp_store_kept_ms(const struct amp_store *s, enum amp_keep_group group); /* 0: for ever */
const struct amp_message_facts *amp_store_facts(const struct amp_store *s);      /* NULL: none */

/* The current record of a key. Spans are valid until the next call on the store. */
struct amp_store_rec {
    bool found;
    bool forgotten; /* not found, because it was final and old; its key is still remembered */
    uint64_t rev;   /* 0 when not found */
    struct amp_span state;     /* the machine's state name */
    struct amp_span json;      /* the record: a JSON object */
    int64_t due_ms;            /* the record's next deadline, 0: none */
    uint64_t next;             /* in an update: the number of the frame that it appends */
    const struct amp_key *key; /* from each and due: its parts; may be passed to an update */
};

/* The role of an entry of the outbox. */
#define AMP_ROLES(X)                                                                               \
    X(message)                                                                                     \
    X(group)     /* a message whose recipients are the next entries: no ack closes it */           \
    X(recipient) /* of the group before it; the id is the recipient's name */                      \
    X(answer)    /* to the message with this id: its ack does not close it */                      \
    X(held)      /* an event that waits behind a gap: no ack closes it */
enum amp_role {
#define X(name) AMP_ROLE_##name,
    AMP_ROLES(X)
#undef X
        AMP_ROLE_COUNT
};

/* A line that a transition emits. Its entry is open until it is closed (amp_store_outbox). */
struct amp_store_emit {
    struct amp_span id;   /* the message's id; empty: none */
    struct amp_span line; /* UTF-8, without LF */
    bool wants_ack;
    enum amp_role role;
};

/* The change that an update commits. The pointers must stay valid until the update returns. */
struct amp_store_change {
    const char *event;    /* the machine's event, for the log */
    const char *to;       /* the new state's name */
    struct amp_span json; /* the new record: a JSON object on one line */
    int64_t due_ms;       /* the next deadline; 0: none */
    bool remove;          /* removes the key (a tombstone frame) */
    const char *actor;    /* for the log; NULL: the consumer */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
};

/* The input that causes an update, used to detect duplicates by (consumer, id). */
struct amp_store_input {
    const char *consumer;
    struct amp_span id;
    struct amp_span bytes; /* compared by digest */
};

enum amp_store_outcome {
    AMP_STORE_COMMITTED,
    AMP_STORE_UNCHANGED,   /* the callback returned 1 */
    AMP_STORE_REDELIVERED, /* same consumer, id and bytes: the callback was not called */
};

/* Called under the main lock: must not call the store, fork, or use pipes or terminals. 0 commits
 * the change; 1 changes nothing (the input is not remembered then); -1 fails with err. */
typedef int (*amp_store_fn)(void *ctx, const struct amp_store_rec *now,
                            struct amp_store_change *change, struct amp_error *err);

/* Compare-and-set of one key. input and outcome may be NULL. NO duplicate_msg_id: an input with
 * this id and other bytes came before. TEMPFAIL: a write failed and the outcome is unknown; send
 * the same input again. */
int amp_store_update(struct amp_store *s, struct amp_key key, const struct amp_store_input *input,
                     amp_store_fn fn, void *ctx, enum amp_store_outcome *outcome,
                     struct amp_error *err);

/* The number of the latest frame that this handle appended, 0: none. With the index in emits it
 * identifies an entry of the outbox. */
uint64_t amp_store_last_frame(const struct amp_store *s);

/* Takes the main lock once for several updates, which are one turn: after a crash or a failed write
 * all of them are there or none. Make no blocking call between them. The next sync reports a
 * failure of end. */
int amp_store_begin(struct amp_store *s, struct amp_error *err);
void amp_store_end(struct amp_store *s);
/* In a batch: the updates before this call need not be in one turn with those that follow. After
 * 256 frames or 1 MiB the next update begins another turn, so that other processes get the lock. */
void amp_store_unit(struct amp_store *s);
bool amp_store_in_batch(const struct amp_store *s);

/* Returns after the success of an fdatasync that began after everything that this process has read
 * or written; also for a read-only store. */
int amp_store_sync(struct amp_store *s, struct amp_error *err);

/* Reading; the index is brought up to date first. get returns 0 also if the key is not found. */
int amp_store_get(struct amp_store *s, struct amp_key key, struct amp_store_rec *out,
                  struct amp_error *err);
/* Whether the state has this input: one of these, or -1. */
enum amp_store_seen {
    AMP_STORE_NOT_SEEN,
    AMP_STORE_SEEN,      /* the same consumer, id and bytes */
    AMP_STORE_SEEN_OTHER /* the same consumer and id, other bytes */
};
int amp_store_seen(struct amp_store *s, const struct amp_store_input *input, struct amp_error *err);

/* Calls fn for each record in the order of keys; id is the key's first part. fn may use the store,
 * because the rows were collected before. Like every callback of a reading function it returns 0 to
 * go on, 1 to stop without an error, or -1 with an error, which the reading function returns. */
typedef int (*amp_store_each_fn)(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                                 struct amp_error *err);
int amp_store_each(struct amp_store *s, const char *kind, const char *state /* NULL: any */,
                   amp_store_each_fn fn, void *ctx, struct amp_error *err);
/* Calls fn for the records whose id begins with a prefix of letters, digits, '-' and '_', which
 * must not be empty. */
int amp_store_each_of(struct amp_store *s, const char *kind, struct amp_span prefix,
                      amp_store_each_fn fn, void *ctx, struct amp_error *err);
/* Calls fn for records with 0 < due_ms <= now, the earliest first; equal times in log order. */
int amp_store_due(struct amp_store *s, const char *kind, int64_t now_ms, amp_store_each_fn fn,
                  void *ctx, struct amp_error *err);
/* A window over the records of a kind that have a due time, in the order of this time and of their
 * keys: up to `most` records next to a place. */
struct amp_store_window {
    const char *kind;
    int64_t due_ms;      /* the place: a record's due time, */
    struct amp_span key; /* and the text of its key; 0: before all, INT64_MAX: after all records */
    bool before;         /* the records before the place, the nearest first */
    uint64_t skip;       /* leave out that many */
    uint32_t most;
};
int amp_store_due_window(struct amp_store *s, const struct amp_store_window *w,
                         amp_store_each_fn fn, void *ctx, struct amp_error *err);
/* The number of records of a kind, without reading them; of those with a due time. */
int amp_store_count(struct amp_store *s, const char *kind, uint64_t *n, struct amp_error *err);
int amp_store_count_due(struct amp_store *s, const char *kind, uint64_t *n, struct amp_error *err);
/* The number of records with 0 < due_ms <= now, counted up to `most`. */
int amp_store_count_overdue(struct amp_store *s, const char *kind, int64_t now_ms, uint32_t most,
                            uint64_t *n, struct amp_error *err);
/* The number of records of each kind, or of one, in each state, from counters of the index. */
typedef int (*amp_store_tally_fn)(void *ctx, struct amp_span kind, struct amp_span state,
                                  uint64_t n, struct amp_error *err);
int amp_store_tally(struct amp_store *s, const char *kind /* NULL: all */, amp_store_tally_fn fn,
                    void *ctx, struct amp_error *err);
/* The earliest due_ms of a kind, or 0. */
int amp_store_next_due(struct amp_store *s, const char *kind, int64_t *ms, struct amp_error *err);

/* The outbox: emitted lines that are not known to be written or acknowledged. An entry belongs to
 * the consumer whose input caused it, or to the actor. Closing appends a frame. */
struct amp_store_entry {
    uint64_t n;     /* frame number */
    uint32_t index; /* within the frame */
    struct amp_span id, line;
    bool wants_ack;
    enum amp_role role;
};
typedef int (*amp_store_entry_fn)(void *ctx, const struct amp_store_entry *e,
                                  struct amp_error *err);
int amp_store_outbox(struct amp_store *s, const char *consumer, amp_store_entry_fn fn, void *ctx,
                     struct amp_error *err);
struct amp_store_entry_id {
    uint64_t n;
    uint32_t index;
};
int amp_store_outbox_close(struct amp_store *s, const char *consumer,
                           const struct amp_store_entry_id *ids, uint32_t n_ids,
                           struct amp_error *err);
/* acked closes all entries of an acknowledged message, of every consumer. answered closes only
 * those that wait for an ack: the ack of one recipient must not close entries that a router still
 * has to deliver to others. Both close only entries of the role message. */
int amp_store_outbox_acked(struct amp_store *s, struct amp_span msg_id, struct amp_error *err);
int amp_store_outbox_answered(struct amp_store *s, struct amp_span msg_id, struct amp_error *err);

/* Appends one record (a JSON line with LF) to DIR/error.ndjson. A full file is renamed, and the
 * oldest are removed (errors.c). */
int amp_store_error_log(struct amp_store *s, struct amp_span record, struct amp_error *err);
/* Calls fn for each record, without LF, of the newest file first. fn: 0 goes on, -1 fails with err.
 */
int amp_store_errors_each(struct amp_store *s,
                          int (*fn)(void *ctx, struct amp_span record, struct amp_error *err),
                          void *ctx, struct amp_error *err);

/* Until until_ms, segments with frames from `from` on are kept. 0 removes the pin. */
int amp_store_pin(struct amp_store *s, const char *name, uint64_t from, int64_t until_ms,
                  struct amp_error *err);

/* Repairs a log after a failed write or damage: appends the frames after the last durable point
 * again, in a new segment, renames unreadable files and removes log/FAILED. `said` gets a report.
 */
int amp_store_repair(const char *dir, struct amp_buf *said, struct amp_error *err);

#endif
