/* The parts of the extraction: the walk over a candidate, the claims to be a message, the place in
 * the text. */
#ifndef AMP_MESSAGE_PROTOCOL_EXTRACT_EXTRACT_H
#define AMP_MESSAGE_PROTOCOL_EXTRACT_EXTRACT_H

#include <amp/protocol/extract.h>

/* ---- a candidate: text from a '{' on, while it can be JSON (walk.c) */

enum amp_walk_result { AMP_WALK_MORE, AMP_WALK_DONE, AMP_WALK_FAIL };

enum { AMP_PREFIX_MOST = 160 };

/* Whether the byte belongs to a terminal's escape sequence. *state is the progress in the sequence;
 * 0: none is open. A line feed always ends a sequence. */
bool amp_ansi_takes(uint8_t *state, char c);

struct amp_walk {
    uint8_t state, ansi;
    bool key;         /* the string that is open is a key */
    const char *word; /* the rest of true, false or null */
    uint32_t depth, max_depth;
    struct amp_walk_level {
        size_t at; /* where it opened */
        char bracket;
    } * level;
    char prefix[AMP_PREFIX_MOST]; /* of the first line; later lines may start with it */
    unsigned n_prefix;
};

int amp_walk_init(struct amp_walk *w, uint32_t max_depth, struct amp_error *err);
void amp_walk_release(struct amp_walk *w);
/* Begins at text[at], which is '{'. */
void amp_walk_begin(struct amp_walk *w, size_t at);
/* Continues from *pos, and sets it to the end of the object (DONE), to the byte that is not JSON
 * (FAIL), or to the text that is still missing (MORE). */
enum amp_walk_result amp_walk_on(struct amp_walk *w, const char *text, size_t n, size_t *pos);
/* Appends the candidate without white space between tokens, colours and prefixes. */
int amp_walk_clean(const struct amp_walk *w, struct amp_span raw, struct amp_buf *out,
                   struct amp_error *err);

/* ---- claims to be a message (claim.c) */

/* Whether an object of a scanned text has a protocol's marks; the name of its id is not enough. */
bool amp_claim_object(const struct amp_tape *t, uint32_t object, enum amp_protocol only);
/* Tells whether text that begins with '{' and is not JSON has such marks among the keys at its top.
 */
bool amp_claim_text(struct amp_span text, enum amp_protocol only);

/* ---- the place (place.c) */

enum { AMP_HEAD_INDENT, AMP_HEAD_TICKS, AMP_HEAD_PAST };

struct amp_scan_place {
    uint64_t line, line_start; /* number from 1; offset of its first byte */
    char fence;                /* the character of the open fence, or 0 */
    unsigned fence_ticks;
    char tick; /* the character of a run that may become a fence */
    unsigned ticks;
    uint8_t head; /* the part at the start of the line; AMP_HEAD_PAST: after it */
    bool clean;   /* only white space and messages so far */
    bool closing; /* the line closes the fence unless more follows */
    uint8_t ansi;
};

void amp_place_init(struct amp_scan_place *p);
/* Whether only a new line, a '{' or a colour would change anything. */
static inline bool amp_place_is_dull(const struct amp_scan_place *p)
{
    return p->head == AMP_HEAD_PAST && !p->clean && !p->closing && !p->ansi;
}
/* Passes one byte of ordinary text; offset is its own. */
void amp_place_pass(struct amp_scan_place *p, char c, uint64_t offset);
/* Passes a message; offset: of its first byte. */
void amp_place_skip(struct amp_scan_place *p, struct amp_span text, uint64_t offset);
struct amp_found amp_place_found(const struct amp_scan_place *p, uint64_t offset);

#endif
