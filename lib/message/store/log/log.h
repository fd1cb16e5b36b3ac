/* The log: numbered segments of frames. Its end changes only under main. */
#ifndef AMP_MESSAGE_STORE_LOG_LOG_H
#define AMP_MESSAGE_STORE_LOG_LOG_H

#include "message/store/log/chain.h"
#include "message/store/log/frame.h"
#include "message/store/log/watermark.h"

/* The place of a frame: segment, length and offset. */
struct amp_place {
    uint32_t seg, len;
    uint64_t off;
};

/* A place between two frames. */
struct amp_pos {
    uint32_t seg; /* 0: before the first segment */
    uint64_t off; /* of the byte after the last frame */
    uint32_t len; /* of the last frame; 0: the segment has none yet */
    uint64_t n;   /* its number */
    uint64_t sum; /* its checksum */
    bool loose;   /* it is a repair frame: the next n may be larger, its p is not checked */
    bool sealed;  /* it is a seal frame */
    bool open;    /* it does not end its turn */
};

/* The place of the last frame before pos. */
struct amp_place amp_pos_frame(const struct amp_pos *pos);
/* Whether a frame may follow pos, by its number and link; moves pos past it; moves pos to the start
 * of the next segment. */
bool amp_pos_precedes(const struct amp_pos *pos, const struct amp_frame_head *h);
void amp_pos_advance(struct amp_pos *pos, const struct amp_frame_head *h);
void amp_pos_next_segment(struct amp_pos *pos);

enum { AMP_LOG_OLD = 8 };

struct amp_log {
    int dirfd;
    bool read_only;
    uint32_t first, last; /* the existing segments; 0: none */
    int fd;               /* of segment `last`; -1: none */
    uint64_t room;        /* the size of its allocated blocks, as last read */
    bool no_room;         /* the file system allocates none in advance */
    uint64_t most;        /* the size at which a segment ends */
    struct amp_pos end;   /* verified; includes the frames in pending */
    struct amp_buf pending;
    /* The turn that is being written. */
    bool more;        /* the holder of main may append to it: a flush does not end it */
    bool unended;     /* frames of it are written, but not its end */
    uint32_t turn;    /* the number of its frames */
    size_t composed;  /* the offset in pending of the last frame, which is not finished yet */
    uint32_t end_off; /* its end_off */
    struct amp_watermark *wm;
    struct amp_chain *chain;
    uint64_t gen;
    struct {
        uint32_t seg;
        int fd;
    } old[AMP_LOG_OLD]; /* earlier segments, open for reading */
    unsigned next_old;
    struct amp_buf scan, look;
};

void amp_log_init(struct amp_log *l, int dirfd, bool read_only, struct amp_watermark *wm,
                  struct amp_chain *chain);
void amp_log_release(struct amp_log *l);

void amp_log_name(uint32_t seg, char out[32]);
/* A descriptor of a segment, owned by the log; -1 on failure. */
int amp_log_fd(struct amp_log *l, uint32_t seg, struct amp_error *err);
/* Lists the segments and opens the last one. IOERR log_damaged: a segment between the first and the
 * last is missing; CONFIG log_format: they have another format. */
int amp_log_list(struct amp_log *l, struct amp_error *err);
/* Creates segment `seg` as the last one, synced with its directory. */
int amp_log_create(struct amp_log *l, uint32_t seg, struct amp_error *err);
/* The size of the last segment; *linked (may be NULL): it still has a name. */
int amp_log_size(struct amp_log *l, uint64_t *size, bool *linked, struct amp_error *err);
/* Whether the log has the last frame of pos at that place. */
bool amp_log_stands(struct amp_log *l, const struct amp_pos *pos);

/* Encodes f after the end, in memory; *at is the place after it, without its checksum. */
int amp_log_append(struct amp_log *l, struct amp_frame *f, struct amp_pos *at,
                   struct amp_error *err);
/* Writes the appended frames; with l->more the turn goes on, otherwise it ends with them. */
int amp_log_flush(struct amp_log *l, struct amp_error *err);
/* Ends the turn: the next flush writes its end, if frames of it were written. */
int amp_log_end_turn(struct amp_log *l, struct amp_error *err);
/* Forgets the appended frames; those of the turn that were written are a torn tail. */
void amp_log_abandon(struct amp_log *l);
int amp_log_datasync(struct amp_log *l, struct amp_error *err);
/* After a successful sync: frames up to n are on disk. */
void amp_log_synced(struct amp_log *l, uint64_t n);
/* Seal, sync, next segment. */
int amp_log_rotate(struct amp_log *l, struct amp_error *err);

/* The frame at a place, checked; valid until the next call. */
int amp_log_frame(struct amp_log *l, struct amp_place at, struct amp_span *out,
                  struct amp_frame_head *head, struct amp_error *err);

/* The number of a segment's first frame, before which the previous segment ends. 0: it has no
 * frame, or a damaged one. */
uint64_t amp_log_first_number(struct amp_log *l, uint32_t seg);
/* Moves *pos, the start of a segment, to a place before frame n, and near it if the segment is
 * intact around it. */
void amp_log_approach(struct amp_log *l, uint64_t n, struct amp_pos *pos);
/* Calls fn with the frames after *pos, which moves past them. Stops at the end, at a bad frame
 * or at a turn without its end (*bad is set; pos is the start of the turn), or when fn returns not
 * 0, which it returns. */
typedef int (*amp_scan_fn)(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                           const struct amp_pos *after, struct amp_error *err);
int amp_log_scan(struct amp_log *l, struct amp_pos *pos, bool *bad, amp_scan_fn fn, void *ctx,
                 struct amp_error *err);
/* Scans one segment in the same way; *ends: the segment ended correctly. */
int amp_log_scan_segment(struct amp_log *l, struct amp_pos *pos, bool *ends, amp_scan_fn fn,
                         void *ctx, struct amp_error *err);
/* Moves pos, at the start of the last segment, behind an intact frame that was synced, near the
 * segment's end, if there is one. durable: the last frame that is known to be on disk; an intact
 * frame may know of a later one. */
void amp_log_tail(struct amp_log *l, uint64_t durable, struct amp_pos *pos);
/* Moves pos, the start of a turn, to the frame for which a scan stopped there. */
void amp_log_bad_frame(struct amp_log *l, struct amp_pos *pos);
/* Judges a bad turn at pos: IOERR log_damaged, or 0 for a torn tail. */
int amp_log_judge(struct amp_log *l, const struct amp_pos *pos, struct amp_error *err);
int amp_log_damaged(const struct amp_pos *pos, const char *why, struct amp_error *err);
/* Truncates a torn tail and appends the cut frame. */
int amp_log_cut(struct amp_log *l, const struct amp_pos *pos, struct amp_error *err);

#endif
