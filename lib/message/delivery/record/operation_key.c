/* Keys of operations. */
#include "message/delivery/record/operation_key.h"

#include <inttypes.h>
#include <stdio.h>

#include "message/protocol/work.h"

/* The key of an operation without a token: a digest of sender, type, conversation and payload;
 * outside of a conversation, of the id. The first part is empty, so no producer has this key. */
static int content_key_make(const struct amp_view *v, struct amp_operation_key *out,
                            struct amp_error *err)
{
    bool talk = v->correlation.n > 0 && v->payload != AMP_TOK_NONE;
    const struct amp_span parts[] = {v->from, v->type, talk ? v->correlation : v->id,
                                     talk ? amp_tok_source(v->tape, v->payload)
                                          : (struct amp_span){"", 0}};
    if (amp_key_digest(parts, sizeof(parts) / sizeof(parts[0]), out->mem, err) < 0)
        return -1;
    out->key = AMP_KEY(AMP_IDEM_KIND, AMP_SPAN(""), amp_span_str(amp_protocol_name(v->protocol)),
                       amp_span_str(out->mem));
    return 0;
}

int amp_operation_key(const struct amp_view *v, struct amp_operation_key *out,
                      struct amp_error *err)
{
    out->key = (struct amp_key){0};
    const struct amp_work_terms *t = amp_work_of(v->protocol);
    enum amp_operation_by by = t->operation ? t->operation(v) : AMP_OPERATION_NONE;
    if (by == AMP_OPERATION_NONE || v->from.n == 0)
        return 0;
    if (by == AMP_OPERATION_BY_CONTENT)
        return content_key_make(v, out, err);
    if (v->token.n > 0) {
        out->key = AMP_KEY(AMP_IDEM_KIND, v->from, v->token);
    } else if (v->has_sequence) {
        snprintf(out->mem, sizeof out->mem, "%" PRId64, (int64_t)v->sequence);
        out->key = AMP_KEY(AMP_IDEM_KIND, v->from, AMP_SPAN(""), amp_span_str(out->mem));
    }
    return 0;
}
