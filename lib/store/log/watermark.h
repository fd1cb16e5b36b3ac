/*
 * The watermark: how far the log is known to be on disk, shared by all processes of this boot in
 * a mapped file. It may spare a sync and supplies a frame's s; nothing is wrong without it.
 */
#ifndef AMP_STORE_WATERMARK_H
#define AMP_STORE_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

struct amp_wm_page;

struct amp_watermark {
    struct amp_wm_page *page; /* NULL: none */
    bool ours;                /* the page is of this boot and this log */
    bool read_only;
    uint64_t own; /* what this process made durable by itself */
};

/* Maps log/watermark; a failure only means that there is none. */
void amp_wm_open(struct amp_watermark *w, int logfd, bool read_only);
void amp_wm_close(struct amp_watermark *w);
/* Under main: makes the page ours when it is another boot's. Returns whether the last segment was
 * verified in this boot already. */
bool amp_wm_claim(struct amp_watermark *w, int logfd);
void amp_wm_set_verified(struct amp_watermark *w, bool verified);

/* The number of the last frame known to be durable, 0 when nothing is known. */
uint64_t amp_wm_get(const struct amp_watermark *w);
void amp_wm_raise(struct amp_watermark *w, uint64_t n);
/* Under main, after repair: what was known is forgotten, and all processes look at the log anew. */
void amp_wm_reset(struct amp_watermark *w);
/* How often there was a repair; 0 without a page of ours. */
uint32_t amp_wm_epoch(const struct amp_watermark *w);

void amp_wm_set_failed(struct amp_watermark *w, bool failed);
bool amp_wm_failed(const struct amp_watermark *w);

/* The index's file that was checked in this boot, by its inode, and when it was written last; 0: by
 * one of us, just now. false: no such file, or no page of ours. */
bool amp_wm_index(const struct amp_watermark *w, uint64_t ino, uint64_t *written);
bool amp_wm_set_index(struct amp_watermark *w, uint64_t ino, uint64_t written);

/* The turnstile's word; NULL: none. */
_Atomic uint32_t *amp_wm_crowd(const struct amp_watermark *w);

#endif
