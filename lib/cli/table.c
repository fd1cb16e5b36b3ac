/* A table for people. */
#include "cli/table.h"

#include <string.h>

#define CELL_MAX 80
#define CELL_MIN 6 /* columns that are left of a cut one */

static int text_columns(struct amp_span text)
{
    char piece[AMP_TEXT_PIECE];
    int n = 0, one;

    while (text.n) {
        size_t used = amp_text_piece(text, piece, &one);
        text = (struct amp_span){text.p + used, text.n - used};
        n += one;
    }
    return n;
}

int amp_table_row(struct amp_table *t, const struct amp_span *cells, int n, struct amp_error *err)
{
    static const char none[AMP_TABLE_COLUMNS] = {AMP_TINT_NONE};

    for (int i = 0; i < n; i++) {
        size_t at = t->cells.len;
        struct amp_span cell = cells[i].n > 0 ? cells[i] : AMP_SPAN("-");
        if (amp_text_safe(cell, CELL_MAX, &t->cells, err) < 0 ||
            amp_buf_add(&t->cells, "", 1, err) < 0)
            return -1;
        int w = text_columns(amp_span_str(t->cells.data + at));
        if (w > t->width[i])
            t->width[i] = w;
    }
    t->rows++;
    return amp_buf_add(&t->tints, none, (size_t)n, err);
}

void amp_table_tint(struct amp_table *t, int column, enum amp_tint tint)
{
    if (t->tints.len < (size_t)t->columns) /* there was no memory for the row */
        return;
    t->tints.data[t->tints.len - (size_t)t->columns + (size_t)column] = (char)tint;
}

void amp_table_init(struct amp_table *t, const char *const *head, int columns)
{
    struct amp_span cells[AMP_TABLE_COLUMNS];
    memset(t, 0, sizeof(*t));
    t->columns = columns;
    amp_buf_init(&t->cells, (size_t)256 << 20);
    amp_buf_init(&t->tints, (size_t)64 << 20);
    for (int i = 0; i < columns; i++)
        cells[i] = amp_span_str(head[i]);
    amp_table_row(t, cells, columns, NULL);
}

void amp_table_release(struct amp_table *t)
{
    amp_buf_release(&t->cells);
    amp_buf_release(&t->tints);
}

/* Cuts the widest columns until the line fits; the first one, a name, stays complete. */
static void widths_fit(struct amp_table *t)
{
    int total = 2 * (t->columns - 1);

    for (int i = 0; i < t->columns; i++)
        total += t->width[i];
    for (; t->fit && total > t->fit; total--) {
        int widest = t->columns > 1;
        for (int i = 2; i < t->columns; i++)
            if (t->width[i] >= t->width[widest])
                widest = i;
        if (t->width[widest] <= CELL_MIN)
            break;
        t->width[widest]--;
    }
}

static int cell_print(const struct amp_table *t, int column, struct amp_span cell,
                      enum amp_tint tint, struct amp_buf *line, struct amp_error *err)
{
    AMP_BUF struct amp_buf cut = {0};

    amp_buf_init(&cut, 1 << 16);
    if (amp_buf_str(&cut, "", err) < 0 || amp_text_safe(cell, t->width[column], &cut, err) < 0)
        return -1;
    int pad = column + 1 < t->columns ? t->width[column] - text_columns(amp_buf_span(&cut)) + 2 : 0;
    return amp_buf_fmt(line, err, "%s%s%s%*s", amp_tint_on(t->color, tint), cut.data,
                       amp_tint_off(t->color, tint), pad, "");
}

int amp_table_print(struct amp_table *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    const char *cell = t->cells.data, *tint = t->tints.data;

    amp_buf_init(&line, 1 << 16);
    widths_fit(t);
    for (size_t row = 0; row < t->rows; row++) {
        amp_buf_reset(&line);
        for (int i = 0; i < t->columns; i++) {
            if (cell_print(t, i, amp_span_str(cell), (enum amp_tint) * tint++, &line, err) < 0)
                return -1;
            cell += strlen(cell) + 1;
        }
        if (amp_buf_add(&line, "\n", 1, err) < 0 || amp_out(amp_buf_span(&line), err) < 0)
            return -1;
    }
    return 0;
}
