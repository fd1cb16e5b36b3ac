/* The lines of amp-ack log on a terminal. */
#ifndef AMP_ACK_LOG_LOG_H
#define AMP_ACK_LOG_LOG_H

#include "message/history/history.h"

struct log_text {
    int columns; /* 0: no limit */
    bool color, all;
    char day[16]; /* of the last line, "2026-11-23" */
};
void log_text_init(struct log_text *t, bool all);
/* Appends a line, and before the first one of a day the day; nothing for bookkeeping, unless all.
 */
int log_text_row(struct log_text *t, const struct amp_history_row *r, struct amp_buf *out,
                 struct amp_error *err);

#endif
