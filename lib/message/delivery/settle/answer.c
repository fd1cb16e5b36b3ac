/* Carrying out what an answer changed. */
#include "message/delivery/settle/answer.h"

#include "message/delivery/dead/withdraw.h"

int amp_settle_answer(struct amp_store *s, struct amp_span id, const struct amp_message_answer *a,
                      int64_t now_ms, bool *late, struct amp_error *err)
{
    struct amp_message_answer said = *a;
    struct amp_message_changes changes;
    /* Before the commit, because a record with a letter stays due until the letter is closed. */
    if (a->stage == AMP_STAGE_FULFILLED && id.n > 0 &&
        amp_dead_chain_look(s, id, &said.has_letter, err) < 0)
        return -1;
    if (amp_message_answered(s, id, &said, now_ms, &changes, err) < 0)
        return -1;
    if (changes.withdraw && amp_dead_chain_withdraw(s, id, a->by ? a->by : "", err) < 0)
        return -1;
    if (amp_message_close_outbox(s, id, &changes, err) < 0)
        return -1;
    if (late)
        *late = changes.late;
    return 0;
}

int amp_settle_ack(struct amp_store *s, struct amp_span id, enum amp_ack_stage stage,
                   const char *by, struct amp_span code, int64_t now_ms, bool *late,
                   struct amp_error *err)
{
    struct amp_message_answer a = {.stage = stage, .by = by, .code = code};
    return amp_settle_answer(s, id, &a, now_ms, late, err);
}

int amp_settle_known(struct amp_store *s, struct amp_span id, enum amp_ack_stage stage,
                     const char *by, struct amp_span code, int64_t now_ms, struct amp_error *err)
{
    struct amp_error e = {0};
    return amp_settle_ack(s, id, stage, by, code, now_ms, NULL, &e) < 0
               ? amp_fail_unless_no(err, &e)
               : 0;
}
