/* A table for people. */
#include "cli/table.h"

#include <string.h>

#define CELL_MAX 80

/* The columns of a text: the number of bytes that begin a character. */
static int text_columns(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

int amp_table_row(struct amp_table *t, const struct amp_span *cells, int n, struct amp_error *err)
{
    for (int i = 0; i < n; i++) {
        size_t at = t->cells.len;
        struct amp_span cell = cells[i].n > 0 ? cells[i] : AMP_SPAN("-");
        if (amp_text_safe(cell, CELL_MAX, &t->cells, err) < 0 ||
            amp_buf_add(&t->cells, "", 1, err) < 0)
            return -1;
        int w = text_columns(t->cells.data + at);
        if (w > t->width[i])
            t->width[i] = w;
    }
    t->rows++;
    return 0;
}

void amp_table_init(struct amp_table *t, const char *const *head, int columns)
{
    struct amp_span cells[AMP_TABLE_COLUMNS];
    memset(t, 0, sizeof(*t));
    t->columns = columns;
    amp_buf_init(&t->cells, (size_t)256 << 20);
    for (int i = 0; i < columns; i++)
        cells[i] = amp_span_str(head[i]);
    amp_table_row(t, cells, columns, NULL);
}

void amp_table_release(struct amp_table *t)
{
    amp_buf_release(&t->cells);
}

int amp_table_print(struct amp_table *t, struct amp_error *err)
{
    const char *cell = t->cells.data;
    for (size_t row = 0; row < t->rows; row++) {
        AMP_BUF struct amp_buf line = {0};
        amp_buf_init(&line, 1 << 16);
        for (int i = 0; i < t->columns; i++) {
            int pad = i + 1 < t->columns ? t->width[i] - text_columns(cell) + 2 : 0;
            if (amp_buf_fmt(&line, err, "%s%*s", cell, pad, "") < 0)
                return -1;
            cell += strlen(cell) + 1;
        }
        if (amp_buf_add(&line, "\n", 1, err) < 0 || amp_out(amp_buf_span(&line), err) < 0)
            return -1;
    }
    return 0;
}
