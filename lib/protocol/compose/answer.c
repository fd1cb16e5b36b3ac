/* An answer, by the terms of its protocol. */
#include "protocol/compose/answer.h"

int amp_answer_check(enum amp_protocol p, enum amp_ack_stage stage, struct amp_error *err)
{
    const struct amp_terms *t = amp_terms_of(p);
    if (!(t->no_stages & (1u << stage)))
        return 0;
    return amp_fail(err, AMP_NO, "unsupported_stage", "%s, not %s", t->stages,
                    amp_ack_stage_name(stage));
}

int amp_answer_line(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err)
{
    return amp_terms_of(of->protocol)->answer(of, a, out, err);
}
