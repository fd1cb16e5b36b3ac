/*
 * Frames: the format of a line of the log.
 *
 * {"v2":"<8 hex><16 hex>","n":…,"p":"<16 hex>","s":…,"gen":…,"turn":…,"end":…, …}LF
 *
 * v2: the format of the frame (2), then the length in bytes and the XXH3-64 of everything from the
 * closing quote up to the closing brace. Format 1 had "h" in its place. n counts the frames of the
 * log from 1, across segments. p is the checksum of the previous frame. s is the number of the last
 * frame that the writer knew to be durable. gen is the generation of the index that the writer
 * used. turn is the frame's place among the frames of its turn, from 0 (then it is left out), and
 * end is 1 if it is the last of them; a frame without end is a turn by itself. A turn without its
 * end is not read. The rest is a commit of one key:
 *
 *   "key":"kind.<encoded id>","was":…,"rev":…,"from":…,"event":…,"to":…,"at":…,"actor":…,
 *   "in":{"c","id","sum"},"state":{…},"due":…,"out":[{"id","line","ack","role"}]
 *
 * ("full": the key without digests, if it has one (store/key.h) and is short enough; "gone":true
 * instead of state for a removal; "state_blob" and, in an entry of out, "blob" name a blob instead
 * of the text) or a record of the log itself, whose first member is "log": close
 * {"actor","close":[[n,i]…],"acked"?}, cut, seal, index, repair, turn (the end of a turn whose
 * other frames were written before), and stand, which repeats a live key ("since": the time of its
 * change) or open outbox entries (with "c", "n" and "i") so that an old segment can be removed. A
 * stand frame may also have "forget", a list of keys whose records leave the live set, or "known",
 * which repeats such keys: [key,state,time of its last change]; the time is 0 if duplicates need
 * not be found. The last member is "m" (chain.h). A repair frame has the number of the frame behind
 * the gap, "next"; a seal frame may have "head" and "sig".
 */
#ifndef AMP_MESSAGE_STORE_LOG_FRAME_H
#define AMP_MESSAGE_STORE_LOG_FRAME_H

#include "message/store/store.h"
#include <amp/json/tape.h>

enum {
    AMP_FRAME_FORMAT = 2,
    AMP_FRAME_HEAD = 32,         /* {"v2":"…24…" */
    AMP_FRAME_MAX = 1024 * 1024, /* a frame with its LF */
    /* Enough for the members that amp_frame_peek reads. */
    AMP_FRAME_PREFIX = 32 + 5 + 20 + 5 + 18 + 5 + 20 + 7 + 20 + 8 + 10 + 8 + 20,
};

#define AMP_FRAME_LOGS(X) X(none) X(close) X(cut) X(seal) X(index) X(repair) X(stand) X(turn)
enum amp_frame_log {
#define X(name) AMP_FRAME_##name,
    AMP_FRAME_LOGS(X)
#undef X
};

extern const char *const amp_frame_log_names[], *const amp_frame_role_names[];

/* The members that are read without a JSON parser. */
struct amp_frame_head {
    uint32_t size; /* of the complete frame with its LF */
    uint64_t sum, n, prev, s, gen;
    uint32_t turn; /* its place in the turn, from 0 */
    bool ends;     /* it is the last frame of the turn */
    enum amp_frame_log log;
};

struct amp_frame_out {
    struct amp_span id, line, blob; /* blob: a name instead of line */
    struct amp_span consumer;       /* stand only */
    uint64_t n;                     /* stand only: its first frame and index */
    uint32_t i;
    uint8_t role; /* enum amp_role */
    bool ack;
};

struct amp_frame_ref {
    uint64_t n;
    uint32_t i;
};

/* A key whose record left the live set. */
struct amp_frame_past {
    struct amp_span key, state;
    int64_t since; /* the time of its last change; 0: the key is not remembered */
};

/* A frame's members. Text is decoded; spans of a decoded frame point into the frame and the arena.
 */
struct amp_frame {
    struct amp_frame_head head;
    struct amp_span key, full, from, event, to, actor, acked, note;
    uint64_t was, rev;
    int64_t at, due, next, since;
    struct amp_span in_consumer, in_id, in_sum;
    struct amp_span state; /* raw JSON */
    struct amp_span state_blob;
    uint32_t state_off; /* of the raw JSON within the frame; 0 none */
    uint32_t end_off;   /* after amp_frame_compose: of the value of end */
    bool gone;
    const struct amp_frame_out *out;
    uint32_t n_out;
    const struct amp_frame_ref *close;
    uint32_t n_close;
    const struct amp_frame_past *past;
    uint32_t n_past;
    bool forgets; /* the keys of past had records until this frame */
};

/* Memory for decoding, reused from frame to frame. */
struct amp_frame_arena {
    struct amp_tape tape;
    struct amp_buf text;
    struct amp_frame_out *out;
    struct amp_frame_ref *close;
    struct amp_frame_past *past;
    uint32_t cap_out, cap_close, cap_past;
};

void amp_frame_arena_init(struct amp_frame_arena *a);
void amp_frame_arena_release(struct amp_frame_arena *a);

/* Reads the head of a frame, AMP_FRAME_PREFIX bytes at most, without verifying the frame. */
bool amp_frame_peek(const char *p, size_t n, struct amp_frame_head *out);
/* Tells whether a complete, intact frame begins at p. */
bool amp_frame_check(const char *p, size_t n, struct amp_frame_head *out);
/* The format of the frame at p, 0 if it cannot be recognized. */
uint32_t amp_frame_format(const char *p, size_t n);

/* Appends the frame to out, as the last one of its turn. The caller sets head.n, prev, s, gen, turn
 * and log; the function sets size, sum and state_off. chain: with a key, or NULL for a frame
 * without m. Fails only with no_memory or frame_too_large. */
struct amp_chain;
int amp_frame_encode(struct amp_frame *f, const struct amp_chain *chain, struct amp_buf *out,
                     struct amp_error *err);
/* The two steps of it, because the next frame decides whether this one ends the turn. A composed
 * frame has its size but neither m nor sum; finish sets them in the frame at p and returns sum. */
int amp_frame_compose(struct amp_frame *f, const struct amp_chain *chain, struct amp_buf *out,
                      struct amp_error *err);
uint64_t amp_frame_finish(char *p, uint32_t size, uint32_t end_off, bool ends,
                          const struct amp_chain *chain);
/* Reads all members of a checked frame. */
int amp_frame_decode(struct amp_span frame, const struct amp_frame_head *head,
                     struct amp_frame_arena *a, struct amp_frame *out, struct amp_error *err);

/* The key of a checked frame; empty: a record of the log itself. */
struct amp_span amp_frame_key(struct amp_span frame);
/* Whether a checked frame is a commit of this key. */
bool amp_frame_is_of(struct amp_span frame, struct amp_span key);

/* The owner of the line f->out[i]: the consumer of the input, or the actor. */
struct amp_span amp_frame_consumer(const struct amp_frame *f, uint32_t i);

/* The keyed hash of ids. */
uint64_t amp_store_hash(uint64_t key, struct amp_span a, struct amp_span b);

#endif
