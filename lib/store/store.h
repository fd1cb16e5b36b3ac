/*
 * State: a log that is the truth, an index that can be thrown away (docs/state.md). The only door.
 * One frame, a line of the log, is one atomic commit of one key ("kind.<encoded id>"), made by
 * compare-and-set under the turnstile. Nothing may leave the process (a line, an ack, a delivery, a
 * child) before amp_store_sync() has succeeded after the last read or write it depends on.
 */
#ifndef AMP_STORE_STORE_H
#define AMP_STORE_STORE_H

#include <amp/base/buf.h>

struct amp_store;

struct amp_store_options {
    int64_t lock_timeout_ms; /* < 0 waits; TEMPFAIL lock_timeout when it passes */
    uint64_t segment_bytes;  /* rotation past it; for this and the next four, 0: see settings.c */
    uint32_t keep_segments;  /* older ones go, and the inputs in them are forgotten; 16 */
    uint64_t keep_ms;        /* so do those whose last frame is older; no limit */
    uint64_t error_bytes;    /* of error.ndjson, which is renamed when it is full; 16 MiB */
    uint32_t error_files;    /* so many of those stay; 4 */
    bool read_only;          /* never writes or cuts; the index may be rebuilt in memory */
    bool look;               /* the same where nothing can be written, as on a read-only medium */
    const char *actor; /* who, for the log, where neither change nor input says; stays valid */
};

/* Opens a state directory; one that is not there is made, 0700; the mode of
 * one that is there is not changed. Codes: state_network_fs,
 * state_not_ours, state_permissions, config_invalid, log_failed (repair needed). Any later call,
 * too, may fail with log_failed, or log_damaged (with segment and offset). */
int amp_store_open(const char *dir, const struct amp_store_options *opt, struct amp_store **out,
                   struct amp_error *err);
void amp_store_close(struct amp_store *s);
const char *amp_store_dir(const struct amp_store *s);

/* One key's current record. Spans live until the next call on the store. */
struct amp_store_rec {
    bool found;
    uint64_t rev;          /* 0 when not found */
    struct amp_span state; /* the machine's state name */
    struct amp_span json;  /* the record: a JSON object */
    int64_t due_ms;        /* deadline projection, 0 none */
    uint64_t next;         /* in an update: the number of the frame that it appends */
};

/* A line that the transition emits. It stays open until closed; see amp_store_outbox. */
struct amp_store_emit {
    struct amp_span id;   /* the message's id */
    struct amp_span line; /* UTF-8, without LF */
    bool wants_ack;
};

/* What one update commits. The callback's pointers must stay valid until the update returns. */
struct amp_store_change {
    const char *event;    /* the machine's event, for the log */
    const char *to;       /* the new state's name */
    struct amp_span json; /* the new record: a JSON object on one line */
    int64_t due_ms;       /* when somebody must look again; 0 none */
    bool remove;          /* the key goes (a tombstone frame) */
    const char *actor;    /* who, for the log; NULL: the consumer */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
};

/* The input that causes an update, for deduplication by (consumer, id). */
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

/* Called under the main lock: no calls of the store, no fork, no pipes or terminals. 0 commits the
 * change, 1 leaves all as it is (the input is then not remembered), -1 refuses with err. */
typedef int (*amp_store_fn)(void *ctx, const struct amp_store_rec *now,
                            struct amp_store_change *change, struct amp_error *err);

/* Compare-and-set of one key. input may be NULL. NO duplicate_msg_id: same id, other bytes.
 * TEMPFAIL: outcome unknown after a failed write, send the same input again. */
int amp_store_update(struct amp_store *s, const char *kind, struct amp_span id,
                     const struct amp_store_input *input, amp_store_fn fn, void *ctx,
                     enum amp_store_outcome *outcome, struct amp_error *err);

/* The number of this handle's latest frame, 0: none. With the place in emits it names an entry of
 * the outbox. */
uint64_t amp_store_last_frame(const struct amp_store *s);

/* Takes main once for several updates (256 or 1 MiB a turn, then the next); not atomic. No blocking
 * call between them. A failure of end is reported by the next sync. */
int amp_store_begin(struct amp_store *s, struct amp_error *err);
void amp_store_end(struct amp_store *s);

/* Returns when an fdatasync that began after everything this process read or wrote succeeded; also
 * of a read-only store. */
int amp_store_sync(struct amp_store *s, struct amp_error *err);

/* Reads (each catches the index up first). get: 0 also when not found. */
int amp_store_get(struct amp_store *s, const char *kind, struct amp_span id,
                  struct amp_store_rec *out, struct amp_error *err);
/* Whether (consumer, id) was taken: 0 no, 1 same bytes, 2 other bytes. */
int amp_store_seen(struct amp_store *s, const struct amp_store_input *input, struct amp_error *err);

/* By key order; fn returns 1 to stop, and may use the store: the rows were collected before. */
typedef int (*amp_store_each_fn)(void *ctx, struct amp_span id, const struct amp_store_rec *rec);
int amp_store_each(struct amp_store *s, const char *kind, const char *state /* NULL: any */,
                   amp_store_each_fn fn, void *ctx, struct amp_error *err);
/* Records with 0 < due_ms <= now, earliest first; of the same moment in the order of the log. */
int amp_store_due(struct amp_store *s, const char *kind, int64_t now_ms, amp_store_each_fn fn,
                  void *ctx, struct amp_error *err);
/* How many records of a kind there are, without reading them. */
int amp_store_count(struct amp_store *s, const char *kind, uint64_t *n, struct amp_error *err);
/* The earliest due_ms of a kind, or 0. */
int amp_store_next_due(struct amp_store *s, const char *kind, int64_t *ms, struct amp_error *err);

/* The outbox: lines emitted that nobody is known to have. An entry belongs to the consumer whose
 * input or actor caused it. Closing appends a frame. */
struct amp_store_entry {
    uint64_t n;     /* frame number */
    uint32_t index; /* within the frame */
    struct amp_span id, line;
    bool wants_ack;
};
typedef int (*amp_store_entry_fn)(void *ctx, const struct amp_store_entry *e);
int amp_store_outbox(struct amp_store *s, const char *consumer, amp_store_entry_fn fn, void *ctx,
                     struct amp_error *err);
struct amp_store_entry_id {
    uint64_t n;
    uint32_t index;
};
int amp_store_outbox_close(struct amp_store *s, const char *consumer,
                           const struct amp_store_entry_id *ids, uint32_t n_ids,
                           struct amp_error *err);
/* Closes every entry with this message id, whoever emitted it (its ack came); or only those that
 * wait for an ack: one recipient's must not close what a router still holds for the others. */
int amp_store_outbox_acked(struct amp_store *s, struct amp_span msg_id, struct amp_error *err);
int amp_store_outbox_answered(struct amp_store *s, struct amp_span msg_id, struct amp_error *err);

/* Appends one record (a JSON line with LF) to DIR/error.ndjson, which goes on in a new file when it
 * is full; the oldest go (see errors.c). */
int amp_store_error_log(struct amp_store *s, struct amp_span record, struct amp_error *err);

/* Until then no segment goes that has frames from `from` on; 0: the pin goes. */
int amp_store_pin(struct amp_store *s, const char *name, uint64_t from, int64_t until_ms,
                  struct amp_error *err);

/* After a failed write or damage: appends what lies past the last durable point again, in a new
 * segment; puts aside what cannot be read, clears log/FAILED. Tells what it did in `said`. */
int amp_store_repair(const char *dir, struct amp_buf *said, struct amp_error *err);

#endif
