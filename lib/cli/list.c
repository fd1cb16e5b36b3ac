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
    case AMP_FORM_COUNT:
    case AMP_FORM_COST:
    case AMP_FORM_AGE:
    case AMP_FORM_LEFT:
    case AMP_FORM_TIME:
        break;
    default:
        return amp_view_text(c, row, mem);
    }
    int64_t number = amp_view_number(c, row);
    if (c->form == AMP_FORM_COUNT ? number < 0 : !c->ever && number == 0)
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

static int cells_print(const struct amp_span *cells, int n, struct amp_buf *line,
                       struct amp_error *err)
{
    amp_buf_reset(line);
    for (int i = 0; i < n; i++)
        if ((i > 0 && amp_buf_str(line, "\t", err) < 0) ||
            amp_text_safe(cells[i], 0, line, err) < 0)
            return -1;
    return amp_buf_str(line, "\n", err) < 0 ? -1 : amp_out(amp_buf_span(line), err);
}

static int table_row(struct amp_listing *l, const void *row, struct amp_error *err)
{
    struct amp_span cells[AMP_TABLE_COLUMNS];
    char mem[AMP_TABLE_COLUMNS][AMP_CELL_MAX];
    int tints[AMP_TABLE_COLUMNS] = {0}, n = 0;

    for (const struct amp_column *c = l->column; c->key || c->head; c++)
        if (c->head) {
            cells[n] = cell_text(l, c, row, mem[n]);
            tints[n++] = c->tint ? c->tint(row) : AMP_TINT_NONE;
        }
    if (l->tabs)
        return cells_print(cells, n, &l->line, err);
    if (amp_table_row(&l->table, cells, n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        amp_table_tint(&l->table, i, (enum amp_tint)tints[i]);
    return 0;
}

/* ---- lists ---- */

bool amp_listing_json;

void amp_listing_init(struct amp_listing *l, const struct amp_column *column)
{
    const char *head[AMP_TABLE_COLUMNS];
    int heads = 0;

    *l = (struct amp_listing){.column = column, .now_ms = amp_now_ms()};
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

    l->rows++;
    if (!amp_listing_json)
        return table_row(l, row, err);
    if (!l->w) {
        amp_buf_reset(&l->line);
        return amp_view_line(l->column, row, &l->line, err) < 0
                   ? -1
                   : amp_out(amp_buf_span(&l->line), err);
    }
    amp_jw_open(l->w, '{');
    amp_view_members(l->column, row, l->w);
    amp_jw_close(l->w, '}');
    return 0;
}

int amp_listing_flush(struct amp_listing *l, struct amp_error *err)
{
    if (amp_listing_json || !l->rows || l->tabs)
        return 0;
    int rc = amp_table_print(&l->table, err);
    amp_buf_reset(&l->table.cells);
    amp_buf_reset(&l->table.tints);
    l->table.rows = 0;
    return rc;
}

int amp_listing_end(struct amp_listing *l, int rc, struct amp_error *err)
{
    if (rc >= 0 && l->w)
        amp_jw_close(l->w, ']');
    if (rc >= 0 && amp_listing_flush(l, err) < 0)
        rc = -1;
    amp_table_release(&l->table);
    amp_buf_release(&l->line);
    return rc;
}
