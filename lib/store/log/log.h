/*
 * The log: numbered segments of frames. Everything that moves its end happens under main.
 */
#ifndef AMP_STORE_LOG_H
#define AMP_STORE_LOG_H

#include "store/log/frame.h"
#include "store/log/watermark.h"

/* Where a frame is: segment, length and offset. */
struct amp_place {
    uint32_t seg, len;
    uint64_t off;
};

/* A place between two frames. */
struct amp_pos {
    uint32_t seg; /* 0: before the first segment */
    uint64_t off; /* of the byte after the last frame */
    uint32_t len; /* of the last frame; 0 when the segment has none yet */
    uint64_t n;   /* its number */
    uint64_t sum; /* its checksum */
    bool loose;   /* it was a repair frame: the next n may be larger, its p anything */
    bool sealed;  /* it was a seal frame */
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
    bool upgrades;        /* it may be used although records are still to be converted */
    uint32_t format;      /* of its frames: AMP_FRAME_FORMAT, or 1 during an upgrade */
    uint32_t first, last; /* segments that exist; 0 none */
    int fd;               /* of segment `last`, -1 none */
    uint64_t room;        /* the size of the blocks under it, as last seen */
    bool no_room;         /* the file system gives none in advance */
    uint64_t most;        /* where a segment is to end */
    struct amp_pos end;   /* verified; frames in pending counted */
    struct amp_buf pending;
    struct amp_watermark *wm;
    uint64_t gen;
    struct {
        uint32_t seg;
        int fd;
    } old[AMP_LOG_OLD]; /* earlier segments, open for reading */
    unsigned next_old;
    struct amp_buf scan, look;
};

void amp_log_init(struct amp_log *l, int dirfd, bool read_only, struct amp_watermark *wm);
void amp_log_release(struct amp_log *l);

void amp_log_name(uint32_t seg, char out[32]);
/* A descriptor of a segment, kept by the log; -1 on failure. */
int amp_log_fd(struct amp_log *l, uint32_t seg, struct amp_error *err);
/* Looks which segments exist and opens the last one. IOERR log_damaged when one between the first
 * and the last is missing; CONFIG log_old, log_newer: they are of another format. */
int amp_log_list(struct amp_log *l, struct amp_error *err);
/* The same of any format; 0: there is no frame to tell it by. *unfinished: AMP_LOG_UNFINISHED is
 * there. */
int amp_log_list_any(struct amp_log *l, uint32_t *format, bool *unfinished, struct amp_error *err);
#define AMP_LOG_UNFINISHED "UPGRADING" /* in the log: its records are still to be converted */
/* Makes segment `seg` (synced, with its directory) the last one. */
int amp_log_create(struct amp_log *l, uint32_t seg, struct amp_error *err);
/* Of the last segment; *linked (may be NULL): it still has a name. Notes its blocks. */
int amp_log_size(struct amp_log *l, uint64_t *size, bool *linked, struct amp_error *err);
/* Whether the last frame of pos stands in the log as pos says. */
bool amp_log_stands(struct amp_log *l, const struct amp_pos *pos);

/* Encodes f behind the end, in memory; *at is where it will stand. */
int amp_log_append(struct amp_log *l, struct amp_frame *f, struct amp_pos *at,
                   struct amp_error *err);
/* Writes what append left in memory. */
int amp_log_flush(struct amp_log *l, struct amp_error *err);
int amp_log_datasync(struct amp_log *l, struct amp_error *err);
/* Seal, sync, next segment. */
int amp_log_rotate(struct amp_log *l, struct amp_error *err);

/* The frame at a place, checked; valid until the next call. */
int amp_log_frame(struct amp_log *l, struct amp_place at, struct amp_span *out,
                  struct amp_frame_head *head, struct amp_error *err);

/* The number of a segment's first frame: what the segment before it must reach, and where its
 * authority ends. 0: it has none, or a damaged one. */
uint64_t amp_log_first_number(struct amp_log *l, uint32_t seg);
/* Goes through the frames behind *pos, which moves with them, and stops at the end, at a frame
 * that is bad (*bad set; pos is then where it begins) or when fn does not return 0. */
typedef int (*amp_scan_fn)(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                           const struct amp_pos *after, struct amp_error *err);
int amp_log_scan(struct amp_log *l, struct amp_pos *pos, bool *bad, amp_scan_fn fn, void *ctx,
                 struct amp_error *err);
/* The same within one segment; *ends: its last frame was reached as it should be. */
int amp_log_scan_segment(struct amp_log *l, struct amp_pos *pos, bool *ends, amp_scan_fn fn,
                         void *ctx, struct amp_error *err);
/* With a bad frame at pos: IOERR log_damaged, or 0 for a torn tail. */
int amp_log_judge(struct amp_log *l, const struct amp_pos *pos, struct amp_error *err);
int amp_log_damaged(const struct amp_pos *pos, const char *why, struct amp_error *err);
/* Truncates a torn tail and appends the cut frame. */
int amp_log_cut(struct amp_log *l, const struct amp_pos *pos, struct amp_error *err);

#endif
