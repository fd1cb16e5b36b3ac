/* The record of an operation. */
#include "message/operation/record.h"

#include "json/record.h"

#define LAST(as, key, member) AMP_REC_EVER(as, struct amp_operation_last, key, member)
static const struct amp_rec_field last_fields[] = {
    LAST(TEXT, "id", id),
    LAST(TEXT, "correlation", correlation),
    LAST(CSTR, "decision", decision),
    LAST(CSTR, "original_status", original_status),
    LAST(INT, "at_ms", at_ms),
};
AMP_REC_TABLE(last_rec, "the last decision about an operation", struct amp_operation_last,
              last_fields);

#define MEMBER(as, key, member) AMP_REC(as, struct amp_operation_rec, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(TEXT, "producer", producer),
    MEMBER(TEXT, "token", token),
    MEMBER(INT, "sequence", sequence),
    MEMBER(INT, "attempt", attempt),
    MEMBER(TEXT, "original", original),
    AMP_REC_WORDS(struct amp_operation_rec, "attempts", attempts, true),
    AMP_REC_EVER(INT, struct amp_operation_rec, "answered", answered),
    AMP_REC_IN(struct amp_operation_rec, "last", last, &last_rec, false),
    MEMBER(INT, "cached_ms", cached_ms),
};
AMP_REC_TABLE(operation_rec, "an operation's record", struct amp_operation_rec, fields);

int amp_operation_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                       struct amp_operation_rec *out, struct amp_error *err)
{
    return rec->found ? amp_rec_parse(&operation_rec, rec->json, mem, out, err)
                      : amp_rec_init(&operation_rec, out, err);
}

int amp_operation_write(const struct amp_operation_rec *r, struct amp_buf *out,
                        struct amp_error *err)
{
    return amp_rec_write(&operation_rec, r, out, err);
}
