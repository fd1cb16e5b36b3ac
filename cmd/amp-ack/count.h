/* What track and send count (--metrics). NULL metrics: nothing is counted, or looked up. */
#ifndef AMP_ACK_COUNT_H
#define AMP_ACK_COUNT_H

#include "message/ledger/ledger.h"
#include "metrics/metrics.h"

void count_taken(struct amp_metrics *m, const struct amp_view *v);
/* It went on; again: it had before. */
void count_passed(struct amp_metrics *m, const struct amp_view *v, bool again);
void count_rejected(struct amp_metrics *m, enum amp_protocol protocol, const char *code);
/* Its operation was at work, or done: the word for that. */
void count_decision(struct amp_metrics *m, const struct amp_view *v, const char *decision);

struct count_answer {
    enum amp_protocol protocol;
    enum amp_ack_stage stage;
    const char *by;
    struct amp_span code;
    int64_t now_ms;
    bool ours; /* made here, not taken in */
};
/* An ack or nack that was taken in. */
void count_acknowledgement(struct amp_metrics *m, struct amp_store *s, const struct amp_view *v,
                           int64_t now_ms);
/* An acknowledgement of the message of that id. s: the ledger that has the message, or NULL. */
void count_answer(struct amp_metrics *m, struct amp_store *s, struct amp_span id,
                  const struct count_answer *a);

#endif
