/* What is said of a gap that timed out: signals of the Runtime Protocol, in the consumer's own
 * outbox and numbered there. */
#ifndef AMP_MESSAGE_CURSOR_TELL_H
#define AMP_MESSAGE_CURSOR_TELL_H

#include "store/store.h"

/* What happens to a gap that timed out. */
#define AMP_CURSOR_GAP_WORDS(X) X(SKIP, "skip") X(TOMBSTONE, "tombstone") X(HOLD, "hold")
enum amp_on_gap {
#define X(id, word) AMP_ON_GAP_##id,
    AMP_CURSOR_GAP_WORDS(X)
#undef X
        AMP_ON_GAP_COUNT
};

struct amp_cursor_gap {
    const char *consumer;
    struct amp_span source;
    int64_t from, to;
    enum amp_on_gap on_gap;
    bool tombstone; /* the mark in the place of the gap, not the incident */
};

/* The line (without LF) and its id; both live in mem, which is added to. Takes a number of the
 * consumer's outbox, so it must not be called inside an update. */
int amp_cursor_tell(struct amp_store *s, const struct amp_cursor_gap *gap, int64_t now_ms,
                    struct amp_buf *mem, struct amp_span *id, struct amp_span *line,
                    struct amp_error *err);

#endif
