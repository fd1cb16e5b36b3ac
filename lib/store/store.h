/*
 * State: a log that is the truth, an index that can be thrown away. The only door.
 *
 * DIR/log/NNNNNN.ndjson holds frames, one a line; DIR/index.db (SQLite) answers look-ups and is
 * rebuilt from the log; DIR/blob/<sha256> holds payloads too large for a frame; DIR/error.ndjson is
 * the error log. One frame is one atomic commit of one key ("kind.<encoded id>"), made by
 * compare-and-set under the turnstile. Nothing may leave the process (a line, an ack, a delivery, a
 * child) before amp_store_sync() has succeeded after the last read or write it depends on.
 */
#ifndef AMP_STORE_STORE_H
#define AMP_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

struct amp_store;

struct amp_store_options {
    int64_t lock_timeout_ms; /* < 0 waits; TEMPFAIL lock_timeout when it passes */
    uint64_t segment_bytes;  /* rotation past it; for this and the next two, 0: see settings.c */
    uint32_t keep_segments;  /* older ones go, and the inputs in them are forgotten; 16 */
    uint64_t keep_ms;        /* so do those whose last frame is older; no limit */
    bool read_only;          /* never writes or cuts; the index may be rebuilt in memory */
    const char *actor; /* who, for the log, where neither change nor input says; stays valid */
};

/* Opens a state directory; one that is not there or empty is made 0700. Codes: state_network_fs,
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
};

/* A line that the transition emits. It stays open until closed; see amp_store_outbox. */
struct amp_store_emit {
    struct amp_span id;   /* the message's id */
    struct amp_span line; /* UTF-8, without LF */
    bool wants_ack;
};

/* What one update commits. Filled by the callback; its pointers must stay valid until
 * amp_store_update returns (use the callback's ctx for memory). */
struct amp_store_change {
    const char *event;    /* the machine's event, for the log */
    const char *to;       /* the new state's name */
    struct amp_span json; /* the new record: a JSON object on one line */
    int64_t due_ms;       /* when somebody must look again; 0 none */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    bool remove;       /* the key goes (a tombstone frame) */
    const char *actor; /* who, for the log; NULL: the consumer */
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

/* Called under the main lock with the fresh record. Returns 0 to commit what it put into change, 1
 * to leave all as it is (the input is then not remembered), -1 to refuse with err. No calls of the
 * store, no fork, no pipes or terminals in it. */
typedef int (*amp_store_fn)(void *ctx, const struct amp_store_rec *now,
                            struct amp_store_change *change, struct amp_error *err);

/* Compare-and-set of one key. input may be NULL. NO duplicate_msg_id: same id, other bytes.
 * TEMPFAIL: outcome unknown after a failed write, send the same input again. */
int amp_store_update(struct amp_store *s, const char *kind, struct amp_span id,
                     const struct amp_store_input *input, amp_store_fn fn, void *ctx,
                     enum amp_store_outcome *outcome, struct amp_error *err);

/* The number of this handle's latest frame, 0 when it committed none: with the place in emits it
 * names an outbox entry (struct amp_store_entry_id) that the caller has just made. */
uint64_t amp_store_last_frame(const struct amp_store *s);

/* Takes main once for several updates (256 or 1 MiB a turn, then the next). A batch is not atomic.
 * No blocking call between begin and end. A failure of end is reported by the next sync. */
int amp_store_begin(struct amp_store *s, struct amp_error *err);
void amp_store_end(struct amp_store *s);

/* Returns when an fdatasync that began after everything this process read or wrote succeeded. */
int amp_store_sync(struct amp_store *s, struct amp_error *err);

/* Reads (each catches the index up first). get: 0 also when not found. */
int amp_store_get(struct amp_store *s, const char *kind, struct amp_span id,
                  struct amp_store_rec *out, struct amp_error *err);
/* Whether (consumer, id) was taken: 0 no, 1 same bytes, 2 other bytes. */
int amp_store_seen(struct amp_store *s, const struct amp_store_input *input, struct amp_error *err);

/* Iterates by key order; fn returns 0 to go on, 1 to stop. Inside fn the store may be read and
 * updated: the rows were collected before. */
typedef int (*amp_store_each_fn)(void *ctx, struct amp_span id, const struct amp_store_rec *rec);
int amp_store_each(struct amp_store *s, const char *kind, const char *state /* NULL: any */,
                   amp_store_each_fn fn, void *ctx, struct amp_error *err);
/* Records with 0 < due_ms <= now, earliest first. */
int amp_store_due(struct amp_store *s, const char *kind, int64_t now_ms, amp_store_each_fn fn,
                  void *ctx, struct amp_error *err);
/* How many records of a kind there are, without reading them. */
int amp_store_count(struct amp_store *s, const char *kind, uint64_t *n, struct amp_error *err);
/* The earliest due_ms of a kind, or 0. */
int amp_store_next_due(struct amp_store *s, const char *kind, int64_t *ms, struct amp_error *err);

/* The outbox: lines that transitions emitted and nobody is known to have. An entry belongs to the
 * consumer whose input or actor caused it. Closing appends a frame (several entries at once). */
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
/* Closes every entry with this message id, whoever emitted it (its ack came). */
int amp_store_outbox_acked(struct amp_store *s, struct amp_span msg_id, struct amp_error *err);
/* Only those that wait for an ack. One recipient's must not close what a router still holds for
 * the others. */
int amp_store_outbox_answered(struct amp_store *s, struct amp_span msg_id, struct amp_error *err);

/* Frames as they stand in the log, from frame number `from` on: for history and tests. */
typedef int (*amp_store_frame_fn)(void *ctx, uint64_t n, struct amp_span frame);
int amp_store_frames(struct amp_store *s, uint64_t from, amp_store_frame_fn fn, void *ctx,
                     struct amp_error *err);
/* Commits from frame number `from` to `to`, in their order, each of their lines by itself (a commit
 * without lines comes once); blobs stand in their places. fn must not call the store; 1 ends it. */
struct amp_store_commit {
    uint64_t n, was; /* the frame; the revision before it */
    int64_t at_ms;
    struct amp_span key, event, actor, json; /* key: "kind.<encoded id>" */
    bool has_line, last;                     /* last: no more lines of this frame */
    uint32_t index;
    struct amp_span id, line;
};
typedef int (*amp_store_commit_fn)(void *ctx, const struct amp_store_commit *c);
int amp_store_commits(struct amp_store *s, uint64_t from, uint64_t to, amp_store_commit_fn fn,
                      void *ctx, struct amp_error *err);
/* The numbers of the first and the last frame that the log still has; 0, 0: it is empty. */
int amp_store_range(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err);
/* Until then no segment goes that has frames from `from` on; 0: the pin goes. */
int amp_store_pin(struct amp_store *s, const char *name, uint64_t from, int64_t until_ms,
                  struct amp_error *err);

/* Appends one record (a JSON line with LF) to DIR/error.ndjson. */
int amp_store_error_log(struct amp_store *s, struct amp_span record, struct amp_error *err);

/* After a failed write or damage: re-appends what lies past the last durable point into a new
 * segment, quarantines what cannot be read, clears log/FAILED. Reports what it did in `said`. */
int amp_store_repair(const char *dir, struct amp_buf *said, struct amp_error *err);

#endif
