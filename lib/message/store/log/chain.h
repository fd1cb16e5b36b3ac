/*
 * The keyed chain of the log.
 *
 * The last member of a frame, m, is a keyed BLAKE2b (128 bits) of the frame from its number up to
 * m. It includes p, the checksum of the previous frame, which includes that frame's m. So a frame
 * cannot be changed, made or linked to another one without the key. The key is in STATE/keys/log
 * with the number of the first frame that has an m: earlier frames, of builds without keys, are
 * not covered. STATE/keys/log.end is a mapped page with two numbers: the last frame that was
 * synced, and the first one that must still be there. It shows that frames are missing at an end.
 *
 * Crash safety. The end is raised after a successful fdatasync, so it never exceeds what is on
 * disk. The first number is raised and synced before a segment is removed. The key is on disk
 * before the first frame that uses it is written, and the page before the key.
 */
#ifndef AMP_MESSAGE_STORE_LOG_CHAIN_H
#define AMP_MESSAGE_STORE_LOG_CHAIN_H

#include "message/store/store.h"

struct amp_chain_page;

enum {
    AMP_CHAIN_HEX = 32,
    AMP_CHAIN_TAIL = 6 + AMP_CHAIN_HEX + 3, /* ,"m":"…32…"}LF */
    AMP_CHAIN_HEAD_HEX = 64,
};

struct amp_chain {
    int dirfd; /* of the state directory, borrowed */
    bool read_only;
    bool opened, has_key;
    unsigned char key[32];
    uint64_t start;              /* the first frame with an m */
    struct amp_chain_page *page; /* NULL: none */
    bool page_gone;              /* there is a key, but no page: it was removed or overwritten */
    amp_store_sign_fn sign;      /* NULL: none */
    const char *dir;             /* for sign, borrowed */
};

void amp_chain_init(struct amp_chain *c, int dirfd, bool read_only);
void amp_chain_release(struct amp_chain *c);
/* Reads the key and maps the page, if there is a key. A missing page is not made again: frames may
 * be missing that it noted. CONFIG log_key_invalid. */
int amp_chain_open(struct amp_chain *c, struct amp_error *err);
/* Under main, before a frame is appended: makes the key if there is none. next: the number of that
 * frame; first: of the log's first frame. */
int amp_chain_ready(struct amp_chain *c, uint64_t next, uint64_t first, struct amp_error *err);

/* The last synced frame, and the first frame that must exist; 0: unknown. */
uint64_t amp_chain_end(const struct amp_chain *c);
uint64_t amp_chain_first(const struct amp_chain *c);
void amp_chain_raise(struct amp_chain *c, uint64_t end);
/* Before frames below `first` are removed; returns after it is on disk. */
int amp_chain_drop(struct amp_chain *c, uint64_t first, struct amp_error *err);
/* After a repair, under main: sets both numbers, in a new page if it was gone. */
int amp_chain_reset(struct amp_chain *c, uint64_t first, uint64_t end, struct amp_error *err);

/* Appends the members head and sig of a seal frame, of which body is the part before them; nothing
 * without a signer, or if it fails. */
int amp_chain_sign(const struct amp_chain *c, uint64_t n, struct amp_span body, struct amp_buf *out,
                   struct amp_error *err);
/* Writes AMP_CHAIN_HEX digits. */
void amp_chain_hash(const struct amp_chain *c, struct amp_span body, char *out);
/* Whether the m of a complete frame is right. false also if it has none. */
bool amp_chain_holds(const struct amp_chain *c, struct amp_span frame);
/* Whether a complete frame ends with an m. */
bool amp_chain_has(struct amp_span frame);
/* The text that is signed for a seal frame, and the member sig. false: it has no signature. */
bool amp_chain_head(const struct amp_chain *c, uint64_t n, struct amp_span frame,
                    struct amp_buf *text, struct amp_span *sig);

#endif
