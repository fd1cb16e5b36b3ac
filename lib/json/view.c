/* The members of views. */
#include "json/view.h"

#include "json/record.h"

struct amp_span amp_view_text(const struct amp_column *c, const void *row)
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
    default:
        return *(const struct amp_span *)at;
    }
}

void amp_view_members(const struct amp_column *column, unsigned n, const void *row,
                      struct amp_jw *w)
{
    for (const struct amp_column *c = column; c < column + n; c++) {
        const void *at = (const char *)row + c->at;
        const int64_t *number = at;
        if (!c->key)
            continue;
        switch (c->form) {
        case AMP_FORM_INT:
        case AMP_FORM_COST:
            if (c->ever || *number)
                amp_jw_member_int(w, c->key, *number);
            break;
        case AMP_FORM_FLAG:
            if (c->ever || *(const bool *)at)
                amp_jw_member_bool(w, c->key, *(const bool *)at);
            break;
        case AMP_FORM_AGE:
        case AMP_FORM_LEFT:
        case AMP_FORM_TIME:
            amp_rec_time(w, c->key, *number);
            break;
        default:
            if (c->ever || amp_view_text(c, row).n)
                amp_jw_member_str(w, c->key, amp_view_text(c, row));
        }
    }
}
