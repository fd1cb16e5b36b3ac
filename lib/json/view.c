/* The members of views. */
#include "json/view.h"

#include <string.h>

#include "json/record.h"

static int64_t number_read(const void *at, uint32_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)at;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const int64_t *)at;
    }
}

int64_t amp_view_number(const struct amp_column *c, const void *row)
{
    return number_read((const char *)row + c->at, c->size);
}

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
        return amp_span_str(c->word((int)amp_view_number(c, row)));
    case AMP_FORM_STATE:
        return amp_span_str(c->machine->states[amp_view_number(c, row)].name);
    case AMP_FORM_MADE:
        return c->made(row, mem);
    default:
        return *(const struct amp_span *)at;
    }
}

static void rows_write(const struct amp_column *c, const void *row, struct amp_jw *w)
{
    const char *const *first = (const void *)((const char *)row + c->at);
    const int64_t n = number_read((const char *)row + c->n_at, c->n_size);

    if (!c->ever && n == 0)
        return;
    amp_jw_member_open(w, c->key, '[');
    for (int64_t i = 0; i < n; i++) {
        amp_jw_open(w, '{');
        amp_view_members(c->of, *first + (size_t)i * c->size, w);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static void member_write(const struct amp_column *c, const void *row, struct amp_jw *w)
{
    const bool *flag = (const void *)((const char *)row + c->at);
    char mem[AMP_CELL_MAX];
    struct amp_span text;

    switch (c->form) {
    case AMP_FORM_INT:
    case AMP_FORM_COST:
        if (c->ever || amp_view_number(c, row))
            amp_jw_member_int(w, c->key, amp_view_number(c, row));
        return;
    case AMP_FORM_COUNT:
        if (amp_view_number(c, row) >= 0)
            amp_jw_member_int(w, c->key, amp_view_number(c, row));
        return;
    case AMP_FORM_FLAG:
        if (c->ever || *flag)
            amp_jw_member_bool(w, c->key, *flag);
        return;
    case AMP_FORM_AGE:
    case AMP_FORM_LEFT:
    case AMP_FORM_TIME:
        amp_rec_time(w, c->key, amp_view_number(c, row));
        return;
    case AMP_FORM_RAW:
        text = amp_view_text(c, row, mem);
        if (text.n)
            amp_jw_member_raw(w, c->key, text);
        return;
    case AMP_FORM_ROWS:
        rows_write(c, row, w);
        return;
    case AMP_FORM_PUT:
        c->put(row, c->key, w);
        return;
    default:
        text = amp_view_text(c, row, mem);
        if (c->ever || text.n)
            amp_jw_member_str(w, c->key, text);
    }
}

void amp_view_members(const struct amp_column *column, const void *row, struct amp_jw *w)
{
    for (const struct amp_column *c = column; c->key || c->head; c++)
        if (c->key)
            member_write(c, row, w);
}

int amp_view_line(const struct amp_column *column, const void *row, struct amp_buf *out,
                  struct amp_error *err)
{
    struct amp_jw w;

    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_view_members(column, row, &w);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
