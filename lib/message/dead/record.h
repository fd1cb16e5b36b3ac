/* A dead letter as JSON: written and read here only. */
#ifndef AMP_MESSAGE_DEAD_RECORD_H
#define AMP_MESSAGE_DEAD_RECORD_H

#include "message/dead/dead.h"

struct amp_dead_kept {
    struct amp_dead_letter d;
    struct amp_span history; /* elements of a JSON array */
    uint32_t n_history;
    struct amp_span first_code, first_route; /* where it failed first; not written */
    int64_t requeues, requeued_ms;           /* how often it was sent again, and when last */
    struct amp_span code, why, route, protocol, lane; /* d's words, as spans */
};

/* d as it shall stand there; `by` refused it. Attempts that old has come before its own. */
int amp_dead_write(const struct amp_dead_kept *old, const struct amp_dead_letter *d,
                   struct amp_span by, struct amp_buf *out, struct amp_error *err);
/* The record once more, of a letter that is sent again at now_ms. */
int amp_dead_write_requeue(struct amp_span json, const struct amp_dead_kept *old, int64_t now_ms,
                           struct amp_buf *out, struct amp_error *err);
/* What is read lives in mem, which is emptied before. */
int amp_dead_read(struct amp_span json, struct amp_buf *mem, struct amp_dead_kept *out,
                  struct amp_error *err);

#endif
