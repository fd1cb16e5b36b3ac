/* The attempts at an operation, as the record of its claims names them. */
#include "message/operation/idempotency.h"
#include "message/record/record.h"

int amp_idem_attempts(struct amp_store *s, struct amp_span operation, struct amp_buf *mem,
                      struct amp_span ids[AMP_IDEM_ATTEMPTS], uint32_t *n, struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_tape t;
    *n = 0;
    amp_buf_reset(mem);
    if (amp_store_get(s, "token", operation, &rec, err) < 0)
        return -1;
    /* The texts never need more than the record, so that the spans stay where they are. */
    if (!rec.found || amp_buf_reserve(mem, rec.json.n, err) < 0)
        return rec.found ? -1 : 0;
    amp_record_tape(&t);
    int rc = amp_record_scan(&t, rec.json, err);
    uint32_t list = rc == 0 ? amp_tape_get(&t, 0, AMP_SPAN("attempts")) : AMP_TOK_NONE;
    if (list != AMP_TOK_NONE && t.tok[list].type == AMP_JSON_ARRAY)
        for (uint32_t i = list + 1; rc == 0 && i < t.tok[list].next && *n < AMP_IDEM_ATTEMPTS;
             i = t.tok[i].next) {
            struct amp_span text;
            size_t at = mem->len;
            rc = amp_tok_text(&t, i, mem, &text, err);
            if (rc == 0 && mem->len == at)
                rc = amp_buf_add(mem, text.p, text.n, err);
            if (rc == 0)
                ids[(*n)++] = (struct amp_span){mem->data + at, text.n};
        }
    amp_tape_release(&t);
    return rc < 0 ? -1 : 0;
}
