/* The members of views. */
#include "json/view.h"

#include "json/record.h"

struct amp_span amp_view_text(const struct amp_column *c, const void *row, char mem[AMP_CELL_MAX])
{
    const void *at = (const char *)row + c->at;
    const char *const *cstr = at;

    switch (c->form) {
    case AMP_FORM_CSTR:
        return amp_span_str(*cstr ? *cstr : "");
    case AMP_FORM_CHARS:
        return amp_span_str(at);
    case AMP_FORM_WORD:
        return amp_span_str(c->word(*(const uint8_t *)at));
    case AMP_FORM_MADE:
        return c->made(row, mem);
    default:
        return *(const struct amp_span *)at;
    }
}

int64_t amp_view_number(const struct amp_column *c, const void *row)
{
    const void *at = (const char *)row + c->at;

    return c->form == AMP_FORM_U32 ? *(const uint32_t *)at : *(const int64_t *)at;
}

void amp_view_members(const struct amp_column *column, const void *row, struct amp_jw *w)
{
    for (const struct amp_column *c = column; c->key || c->head; c++) {
        const bool *flag = (const void *)((const char *)row + c->at);
        char mem[AMP_CELL_MAX];
        struct amp_span text;
        if (!c->key)
            continue;
        switch (c->form) {
        case AMP_FORM_INT:
        case AMP_FORM_U32:
        case AMP_FORM_COST:
            if (c->ever || amp_view_number(c, row))
                amp_jw_member_int(w, c->key, amp_view_number(c, row));
            break;
        case AMP_FORM_FLAG:
            if (c->ever || *flag)
                amp_jw_member_bool(w, c->key, *flag);
            break;
        case AMP_FORM_AGE:
        case AMP_FORM_LEFT:
        case AMP_FORM_TIME:
            amp_rec_time(w, c->key, amp_view_number(c, row));
            break;
        default:
            text = amp_view_text(c, row, mem);
            if (c->ever || text.n)
                amp_jw_member_str(w, c->key, text);
        }
    }
}
