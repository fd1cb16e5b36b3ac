/*
 * The watermark: the last frame that is known to be on disk, shared by all processes of this boot
 * in a mapped file. It saves syncs and is the source of a frame's s. The log is correct without it.
 */
#ifndef AMP_MESSAGE_STORE_LOG_WATERMARK_H
#define AMP_MESSAGE_STORE_LOG_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

struct amp_wm_page;

struct amp_watermark {
    struct amp_wm_page *page; /* NULL: none */
    bool ours;                /* the page is of this boot and this log */
    bool read_only;
    uint64_t own; /* the last frame that this process made durable */
};

/* Maps log/watermark; after a failure there is no page. */
void amp_wm_open(struct amp_watermark *w, int logfd, bool read_only);
void amp_wm_close(struct amp_watermark *w);
/* Under main: resets the page if it is another boot's. Returns whether the last segment was already
 * verified in this boot. */
bool amp_wm_claim(struct amp_watermark *w, int logfd);
void amp_wm_set_verified(struct amp_watermark *w, bool verified);

/* The number of the last frame that is known to be durable; 0: unknown. */
uint64_t amp_wm_get(const struct amp_watermark *w);
void amp_wm_raise(struct amp_watermark *w, uint64_t n);
/* Under main, after a repair: forgets the number, and all processes read the log again. */
void amp_wm_reset(struct amp_watermark *w);
/* The number of repairs in this boot; 0: no usable page. */
uint32_t amp_wm_epoch(const struct amp_watermark *w);

void amp_wm_set_failed(struct amp_watermark *w, bool failed);
bool amp_wm_failed(const struct amp_watermark *w);

/* For the index's file with this inode: what amp_pages_wal gave after the last commit of this
 * toolkit in this boot, 0: a process of this toolkit is writing, or nothing is known. false:
 * another file, or no usable page. */
bool amp_wm_index(const struct amp_watermark *w, uint64_t ino, uint64_t *wal);
void amp_wm_set_index(struct amp_watermark *w, uint64_t ino, uint64_t wal);

/* The turnstile's `crowd`; NULL: none. */
_Atomic uint32_t *amp_wm_crowd(const struct amp_watermark *w);

#endif
