/* Lists: the rows of a view, for people and for programs. */
#include "cli/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "cli/time.h"

#define LINE_MAX_BYTES ((size_t)256 << 20)
#define CELL_TEXT      40 /* of a number or a time */

/* Dollars and cents, rounded up, so that no cost is shown as nothing. */
static struct amp_span cost_text(int64_t micros, char out[CELL_TEXT])
{
    int64_t cents = (micros + 9999) / 10000;

    snprintf(out, CELL_TEXT, "%" PRId64 ".%02" PRId64, cents / 100, cents % 100);
    return amp_span_str(out);
}

static struct amp_span cell_text(const struct amp_listing *l, const struct amp_column *c,
                                 const void *row, char mem[CELL_TEXT])
{
    const void *at = (const char *)row + c->at;
    const int64_t *number = at;
    struct amp_span text;

    switch (c->form) {
    case AMP_FORM_ID:
        text = amp_view_text(c, row);
        return (struct amp_span){text.p, text.n < 12 ? text.n : 12};
    case AMP_FORM_FLAG:
        return amp_span_str(*(const bool *)at ? "yes" : "");
    case AMP_FORM_INT:
    case AMP_FORM_COST:
    case AMP_FORM_AGE:
    case AMP_FORM_LEFT:
    case AMP_FORM_TIME:
        break;
    default:
        return amp_view_text(c, row);
    }
    if (!c->ever && *number == 0)
        return AMP_SPAN("");
    switch (c->form) {
    case AMP_FORM_COST:
        return cost_text(*number, mem);
    case AMP_FORM_AGE:
        return amp_age_text(l->now_ms - *number, mem);
    case AMP_FORM_LEFT:
        return amp_age_text(*number - l->now_ms, mem);
    case AMP_FORM_TIME:
        amp_time_format(*number, mem);
        return amp_span_str(mem);
    default:
        snprintf(mem, CELL_TEXT, "%" PRId64, *number);
        return amp_span_str(mem);
    }
}

static int table_row(struct amp_listing *l, const void *row, struct amp_error *err)
{
    struct amp_span cells[AMP_TABLE_COLUMNS];
    char mem[AMP_TABLE_COLUMNS][CELL_TEXT];
    int n = 0;

    for (const struct amp_column *c = l->column; c < l->column + l->n; c++)
        if (c->head) {
            cells[n] = cell_text(l, c, row, mem[n]);
            n++;
        }
    return amp_table_row(&l->table, cells, n, err);
}

/* ---- lists ---- */

_Static_assert(AMP_AGE_MAX <= CELL_TEXT && AMP_TIME_MAX <= CELL_TEXT, "times fit a cell");

void amp_listing_init(struct amp_listing *l, const struct amp_column *column, unsigned n, bool json,
                      int64_t now_ms)
{
    const char *head[AMP_TABLE_COLUMNS];
    int heads = 0;

    *l = (struct amp_listing){.column = column, .n = n, .json = json, .now_ms = now_ms};
    amp_buf_init(&l->line, LINE_MAX_BYTES);
    for (unsigned i = 0; i < n; i++)
        if (column[i].head)
            head[heads++] = column[i].head;
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
    amp_view_members(l->column, l->n, row, w);
    amp_jw_close(w, '}');
    if (l->w)
        return 0;
    return amp_jw_end_line(w, err) < 0 ? -1 : amp_out(amp_buf_span(&l->line), err);
}

int amp_listing_end(struct amp_listing *l, struct amp_error *err)
{
    if (l->w)
        amp_jw_close(l->w, ']');
    return l->json || l->rows == 0 ? 0 : amp_table_print(&l->table, err);
}

void amp_listing_release(struct amp_listing *l)
{
    amp_table_release(&l->table);
    amp_buf_release(&l->line);
}
