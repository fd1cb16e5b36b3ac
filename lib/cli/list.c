/* Lists: the rows of a view, for people and for programs. */
#include "cli/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "cli/time.h"

#define LINE_MAX_BYTES ((size_t)256 << 20)

struct amp_span amp_cost_text(int64_t micros, char out[AMP_CELL_MAX])
{
    int64_t cents = (micros + 9999) / 10000;

    snprintf(out, AMP_CELL_MAX, "%" PRId64 ".%02" PRId64, cents / 100, cents % 100);
    return amp_span_str(out);
}

static struct amp_span cell_text(const struct amp_listing *l, const struct amp_column *c,
                                 const void *row, char mem[AMP_CELL_MAX])
{
    const bool *flag = (const void *)((const char *)row + c->at);
    struct amp_span text;

    switch (c->form) {
    case AMP_FORM_ID:
        text = amp_view_text(c, row, mem);
        return (struct amp_span){text.p, text.n < 12 ? text.n : 12};
    case AMP_FORM_FLAG:
        return amp_span_str(*flag ? "yes" : "");
    case AMP_FORM_INT:
    case AMP_FORM_U32:
    case AMP_FORM_COST:
    case AMP_FORM_AGE:
    case AMP_FORM_LEFT:
    case AMP_FORM_TIME:
        break;
    default:
        return amp_view_text(c, row, mem);
    }
    int64_t number = amp_view_number(c, row);
    if (!c->ever && number == 0)
        return AMP_SPAN("");
    switch (c->form) {
    case AMP_FORM_COST:
        return amp_cost_text(number, mem);
    case AMP_FORM_AGE:
        return amp_age_text(l->now_ms - number, mem);
    case AMP_FORM_LEFT:
        return amp_age_text(number - l->now_ms, mem);
    case AMP_FORM_TIME:
        amp_time_format(number, mem);
        return amp_span_str(mem);
    default:
        snprintf(mem, AMP_CELL_MAX, "%" PRId64, number);
        return amp_span_str(mem);
    }
}

static int table_row(struct amp_listing *l, const void *row, struct amp_error *err)
{
    struct amp_span cells[AMP_TABLE_COLUMNS];
    char mem[AMP_TABLE_COLUMNS][AMP_CELL_MAX];
    int n = 0;

    for (const struct amp_column *c = l->column; c->key || c->head; c++)
        if (c->head) {
            cells[n] = cell_text(l, c, row, mem[n]);
            n++;
        }
    return amp_table_row(&l->table, cells, n, err);
}

/* ---- lists ---- */

void amp_listing_init(struct amp_listing *l, const struct amp_column *column, bool json)
{
    const char *head[AMP_TABLE_COLUMNS];
    int heads = 0;

    *l = (struct amp_listing){.column = column, .json = json, .now_ms = amp_now_ms()};
    amp_buf_init(&l->line, LINE_MAX_BYTES);
    for (const struct amp_column *c = column; c->key || c->head; c++)
        if (c->head)
            head[heads++] = c->head;
    amp_table_init(&l->table, head, heads);
    l->table.fit = amp_page_columns(STDOUT_FILENO);
    l->table.color = amp_color_of(STDOUT_FILENO);
    for (int i = 0; i < heads; i++)
        amp_table_tint(&l->table, i, AMP_TINT_HEAD);
}

void amp_listing_open(struct amp_listing *l, struct amp_jw *w, const char *name)
{
    l->w = w;
    amp_jw_member_open(w, name, '[');
}

int amp_listing_row(void *listing, const void *row, struct amp_error *err)
{
    struct amp_listing *l = listing;
    struct amp_jw own, *w = l->w ? l->w : &own;

    l->rows++;
    if (!l->json)
        return table_row(l, row, err);
    if (!l->w) {
        amp_buf_reset(&l->line);
        amp_jw_init(w, &l->line);
    }
    amp_jw_open(w, '{');
    amp_view_members(l->column, row, w);
    amp_jw_close(w, '}');
    if (l->w)
        return 0;
    return amp_jw_end_line(w, err) < 0 ? -1 : amp_out(amp_buf_span(&l->line), err);
}

int amp_listing_end(struct amp_listing *l, int rc, struct amp_error *err)
{
    if (rc == 0 && l->w)
        amp_jw_close(l->w, ']');
    if (rc == 0 && !l->json && l->rows)
        rc = amp_table_print(&l->table, err);
    amp_table_release(&l->table);
    amp_buf_release(&l->line);
    return rc;
}
