/* Answers and further attempts, by the terms of the protocol. */
#include "message/protocol/compose/answer.h"

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"

int amp_answer_check(enum amp_protocol p, enum amp_ack_stage stage, struct amp_error *err)
{
    const struct amp_answer_terms *t = amp_answers_of(p);
    if (!(t->no_stages & (1u << stage)))
        return 0;
    return amp_fail(err, AMP_NO, unsupported_stage, "%s, not %s", t->stages,
                    amp_ack_stage_name(stage));
}

int amp_answer_line(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err)
{
    return amp_answers_of(of->protocol)->answer(of, a, out, err);
}

int amp_again_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX],
                 struct amp_error *err)
{
    const struct amp_delivery_terms *t = amp_delivery_of(of->protocol);
    int n = 0;
    if (t->again_id)
        n = t->again_id(of, now_ms, out);
    else
        amp_uuid4(out);
    if (n >= AMP_MSG_ID_MAX)
        return amp_fail(err, AMP_NO, bad_msg_id, "the next attempt's id would be too long");
    return 0;
}

void amp_again_terms(const struct amp_view *of, struct amp_again_terms *out)
{
    const struct amp_delivery_terms *t = amp_delivery_of(of->protocol);
    *out = (struct amp_again_terms){.most = -1};
    if (t->own_retries && of->payload != AMP_TOK_NONE)
        t->own_retries(of, out);
}

int64_t amp_again_until(const struct amp_view *of)
{
    struct amp_again_terms t;
    amp_again_terms(of, &t);
    return t.until_ms > 0 && (of->expires_ms == 0 || t.until_ms < of->expires_ms) ? t.until_ms
                                                                                  : of->expires_ms;
}

/* Whether the message is a part of the line that can be edited: it is not inside a string. */
static bool is_editable(const struct amp_view *v)
{
    return v->json && v->text.p >= v->message.p &&
           v->text.p + v->text.n <= v->message.p + v->message.n;
}

int amp_assigned_line(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_delivery_terms *t = amp_delivery_of(v->protocol);
    struct amp_edit e = {.v = v, .err = err};
    if (!t->assign || v->sig.key.n > 0 || !is_editable(v))
        return 0;
    int rc = t->assign(&e);
    if (rc > 0 && amp_edit_line(&e, out) < 0)
        rc = -1;
    amp_edit_release(&e);
    return rc;
}

int amp_again_line(const struct amp_view *of, const struct amp_again *a, struct amp_buf *out,
                   struct amp_error *err)
{
    const struct amp_delivery_terms *t = amp_delivery_of(of->protocol);
    struct amp_edit e = {.v = of, .err = err};
    if (!t->again)
        return amp_fail(err, AMP_NO, unsupported_protocol,
                        "messages of this protocol have no id of their own");
    if (!is_editable(of))
        return amp_fail(err, AMP_NO, unsupported_protocol,
                        "a message inside a string is not sent again");
    int rc = t->again(&e, a) < 0 ? -1 : amp_edit_line(&e, out);
    amp_edit_release(&e);
    return rc;
}
