/* The parts of the extraction: the walk over one candidate, what claims to be a message, and where
 * in the text it stands. */
#ifndef PROTOCOL_EXTRACT_H
#define PROTOCOL_EXTRACT_H

#include <amp/protocol/extract.h>

/* ---- a candidate: text from '{' as far as it can be JSON (walk.c) */

enum amp_walk_result { AMP_WALK_MORE, AMP_WALK_DONE, AMP_WALK_FAIL };

enum { AMP_PREFIX_MOST = 160 };

/* Whether the byte belongs to a terminal's escape sequence. The state is how far one has been read;
 * 0: none is open. A line's end is never a part of one: what was cut off there ends. */
bool amp_ansi_takes(uint8_t *state, char c);

struct amp_walk {
    uint8_t state, ansi;
    bool key;         /* the string that is open is a key */
    const char *word; /* what is left of true, false or null */
    uint32_t depth, max_depth;
    struct amp_walk_level {
        size_t at; /* where it opened */
        char bracket;
    } * level;
    char prefix[AMP_PREFIX_MOST]; /* of the line that it began on; each following may bear it */
    unsigned n_prefix;
};

int amp_walk_init(struct amp_walk *w, uint32_t max_depth, struct amp_error *err);
void amp_walk_release(struct amp_walk *w);
/* Begins at text[at], which is '{'. */
void amp_walk_begin(struct amp_walk *w, size_t at);
/* Goes on from *pos, which ends behind the object (DONE), on the byte that cannot be (FAIL), or
 * at what has yet to come (MORE). */
enum amp_walk_result amp_walk_on(struct amp_walk *w, const char *text, size_t n, size_t *pos);
/* The candidate without white space between tokens, colours and prefixes. */
int amp_walk_clean(const struct amp_walk *w, struct amp_span raw, struct amp_buf *out,
                   struct amp_error *err);

/* ---- what claims to be a message (claim.c) */

/* An object of a scanned text: of a protocol's own marks, not by the name of its id alone. */
bool amp_claim_object(const struct amp_tape *t, uint32_t object, enum amp_protocol only);
/* Text that begins with '{' and is no JSON: by the keys at its top. */
bool amp_claim_text(struct amp_span text, enum amp_protocol only);

/* ---- the place (place.c) */

enum { AMP_HEAD_INDENT, AMP_HEAD_TICKS, AMP_HEAD_PAST };

struct amp_place {
    uint64_t line, line_start; /* number from 1; offset of its first byte */
    char fence;                /* of the fence that is open, or 0 */
    unsigned fence_ticks;
    char tick; /* of what may become a fence */
    unsigned ticks;
    uint8_t head; /* how the line begins; AMP_HEAD_PAST: its beginning does not count any more */
    bool clean;   /* nothing but white space and messages so far */
    bool closing; /* the line closes the fence unless more follows */
    uint8_t ansi;
};

void amp_place_init(struct amp_place *p);
/* Whether only a new line, a '{' or a colour would change anything. */
static inline bool amp_place_is_dull(const struct amp_place *p)
{
    return p->head == AMP_HEAD_PAST && !p->clean && !p->closing && !p->ansi;
}
/* Passes one byte of ordinary text; offset is its own. */
void amp_place_pass(struct amp_place *p, char c, uint64_t offset);
/* Passes a message; offset is of its first byte. */
void amp_place_skip(struct amp_place *p, struct amp_span text, uint64_t offset);
void amp_place_say(const struct amp_place *p, uint64_t offset, struct amp_found *at);

#endif
