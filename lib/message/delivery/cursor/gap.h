/* The report of a gap that timed out: signals of the Runtime Protocol, with numbers of the
 * consumer's outbox. */
#ifndef AMP_MESSAGE_DELIVERY_CURSOR_GAP_H
#define AMP_MESSAGE_DELIVERY_CURSOR_GAP_H

#include "message/store/store.h"

/* The handling of a gap that timed out. */
#define AMP_CURSOR_GAP_WORDS(X) X(SKIP, "skip") X(TOMBSTONE, "tombstone") X(HOLD, "hold")
enum amp_on_gap {
#define X(id, word) AMP_ON_GAP_##id,
    AMP_CURSOR_GAP_WORDS(X)
#undef X
};

struct amp_cursor_gap {
    const char *consumer;
    struct amp_span source;
    int64_t from, to;
    enum amp_on_gap on_gap;
    bool tombstone; /* compose the mark that replaces the gap, not the incident */
};

/* Composes the line (without LF) and its id, both appended to mem. Reserves a number of the
 * consumer's outbox, so it must not be called in an update. */
int amp_cursor_gap_line(struct amp_store *s, const struct amp_cursor_gap *gap, int64_t now_ms,
                        struct amp_buf *mem, struct amp_span *id, struct amp_span *line,
                        struct amp_error *err);

#endif
