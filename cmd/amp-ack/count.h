/* What track and send count, in the metrics of their pass. */
#ifndef AMP_ACK_COUNT_H
#define AMP_ACK_COUNT_H

#include "message/ledger/ledger.h"
#include "pass.h"

void count_taken(struct pass *p, const struct amp_view *v);
/* It went on; again: it had before. */
void count_passed(struct pass *p, const struct amp_view *v, bool again);
void count_rejected(struct pass *p, enum amp_protocol protocol, const char *code);
/* Its operation was at work, or done: the word for that. */
void count_decision(struct pass *p, const struct amp_view *v, const char *decision);

struct count_answer {
    enum amp_protocol protocol;
    enum amp_ack_stage stage;
    const char *by;
    struct amp_span code;
    int64_t now_ms;
    bool ours; /* made here, not taken in */
};
/* An ack or nack that was taken in. */
void count_acknowledgement(struct pass *p, const struct amp_view *v, int64_t now_ms);
/* An acknowledgement of the message of that id. */
void count_answer(struct pass *p, struct amp_span id, const struct count_answer *a);

#endif
