/* A table for people. Columns are as wide as their widest cell; text is safe for a terminal. */
#ifndef AMP_CLI_TABLE_H
#define AMP_CLI_TABLE_H

#include "cli/page/page.h"

#define AMP_TABLE_COLUMNS 12

struct amp_table {
    struct amp_buf cells; /* NUL-terminated */
    struct amp_buf tints; /* an enum amp_tint for each cell */
    size_t rows;
    int columns, width[AMP_TABLE_COLUMNS];
    int fit; /* the longest line, in columns: the widest columns are cut; 0: no limit */
    bool color;
};

void amp_table_init(struct amp_table *t, const char *const *head, int columns);
void amp_table_release(struct amp_table *t);
int amp_table_row(struct amp_table *t, const struct amp_span *cells, int n, struct amp_error *err);
/* The tint of a cell of the last row. */
void amp_table_tint(struct amp_table *t, int column, enum amp_tint tint);
int amp_table_print(struct amp_table *t, struct amp_error *err);

#endif
