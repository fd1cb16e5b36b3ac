/* The end of a question that its sender withdrew. */
#include <string.h>

#include "base/codes.h"
#include "people/question/record.h"

#define ROUNDS 3 /* between the look and the step, the question may arrive once */

static enum amp_protocol protocol_of(const struct amp_revocation *r)
{
    static const struct amp_question_rec any = {0};
    return r->protocol == AMP_PROTO_NONE ? amp_question_protocol(&any) : r->protocol;
}

/* The question is there: it ends. */
static int question_end(struct amp_store *s, struct amp_span key, const struct amp_revocation *r,
                        struct amp_error *err)
{
    struct amp_question_update u = {
        .event = AMP_ESC_EV_END,
        .set = {.ended_ms = r->now_ms, .withdrawn = amp_span_str(r->why)},
        .actor = r->by,
    };
    struct amp_error why;
    enum amp_store_outcome outcome;

    if (amp_question_update(s, key, &u, &outcome, &why) == 0 ||
        (why.status == AMP_NO && strcmp(why.code, AMP_HITL_WITHDRAWN) == 0))
        return 0;
    *err = why;
    return -1;
}

/* It is not there yet: it arrives as ended. 1: it arrived meanwhile. */
static int question_forestall(struct amp_store *s, struct amp_span key,
                              const struct amp_revocation *r, struct amp_error *err)
{
    struct amp_question_update u = {
        .event = AMP_ESC_EV_ARRIVE,
        .facts = AMP_ESC_IF_ENDED,
        .set = {.task = r->task,
                .type = r->type,
                .severity = r->severity,
                .arrived_ms = r->now_ms,
                .protocol = amp_span_str(amp_protocol_name(protocol_of(r))),
                .about = {.kind = AMP_ABOUT_TASK},
                .ended_ms = r->now_ms,
                .withdrawn = amp_span_str(r->why)},
        .actor = r->by,
    };
    enum amp_store_outcome outcome;

    amp_span_copy(u.set.protocol, u.set.about.protocol, sizeof u.set.about.protocol);
    amp_span_copy(r->task, u.set.about.task, sizeof u.set.about.task);
    if (amp_question_update(s, key, &u, &outcome, err) < 0)
        return -1;
    return outcome == AMP_STORE_UNCHANGED;
}

int amp_question_revoke(struct amp_store *s, const struct amp_revocation *r, struct amp_error *err)
{
    char text[AMP_QUESTION_KEY_MAX];
    struct amp_store_rec rec;

    amp_question_key(protocol_of(r), r->ref, text);
    struct amp_span key = amp_span_str(text);
    for (int i = 0; i < ROUNDS; i++) {
        if (amp_store_get(s, AMP_KEY(AMP_ESCALATION_KIND, key), &rec, err) < 0)
            return -1;
        if (rec.found)
            return question_end(s, key, r, err);
        int rc = question_forestall(s, key, r, err);
        if (rc <= 0)
            return rc;
    }
    return amp_fail(err, AMP_INTERNAL, internal, "the question %s is neither there nor not", text);
}
