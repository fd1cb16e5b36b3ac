/* The metrics of track and send (--metrics). With NULL metrics these functions do nothing. */
#ifndef AMP_ACK_COUNT_H
#define AMP_ACK_COUNT_H

#include "message/delivery/ledger/ledger.h"
#include "message/metrics/metrics.h"

void count_taken(struct amp_metrics *m, const struct amp_view *v);
/* A message was passed on; again: not for the first time. */
void count_passed(struct amp_metrics *m, const struct amp_view *v, bool again);
void count_rejected(struct amp_metrics *m, enum amp_protocol protocol, const char *code);
/* A duplicate of an operation; decision: its state. */
void count_decision(struct amp_metrics *m, const struct amp_view *v, const char *decision);

struct count_answer {
    enum amp_protocol protocol;
    enum amp_ack_stage stage;
    const char *by;
    struct amp_span code;
    int64_t now_ms;
    bool ours; /* composed by this process, not received */
};
/* A received ack or nack. */
void count_acknowledgement(struct amp_metrics *m, struct amp_store *s, const struct amp_view *v,
                           int64_t now_ms);
/* An acknowledgement of the message `id`. s: the ledger with the message, or NULL. */
void count_answer(struct amp_metrics *m, struct amp_store *s, struct amp_span id,
                  const struct count_answer *a);

#endif
