/* Whether a question still waits, for a person who is being asked it. */
#include <stdio.h>
#include <string.h>

#include "people/question/question.h"

int amp_question_settled(struct amp_store *s, const struct amp_question *q, char *how, size_t size,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store_rec rec;
    struct amp_question_rec r;

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_store_get(s, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(q->key)), &rec, err) < 0)
        return -1;
    if (!rec.found) {
        snprintf(how, size, "it is no longer in the state directory");
        return 1;
    }
    int state = amp_fsm_state(&amp_escalation_fsm, rec.state);
    if (state == AMP_ESC_OPEN || state == AMP_ESC_ASKED)
        return 0;
    if (amp_question_rec_read(rec.json, &mem, &r, err) < 0)
        return -1;
    if (state == AMP_ESC_DECIDED && r.policy.n)
        snprintf(how, size, "decided by the fallback %.*s: %.*s", AMP_CLIP(r.policy, 60),
                 AMP_CLIP(r.decision, 100));
    else if (state == AMP_ESC_DECIDED)
        snprintf(how, size, "decided by %.*s%s%.*s: %.*s", AMP_CLIP(r.operator, 100),
                 r.channel.n ? " through " : "", AMP_CLIP(r.channel, 30),
                 AMP_CLIP(r.decision, 100));
    else if (state == AMP_ESC_ENDED && r.withdrawn.n)
        snprintf(how, size, "withdrawn by its sender: %.*s", AMP_CLIP(r.withdrawn, 100));
    else if (state == AMP_ESC_ENDED)
        snprintf(how, size, "no longer asked: its subject has ended");
    else
        snprintf(how, size, "no longer asked now: it is %s", amp_escalation_fsm.states[state].name);
    return 1;
}
