/* A table for people. Columns are as wide as their widest cell; text is safe for a terminal. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/cli.h"

#define AMP_TABLE_COLUMNS 8

struct amp_table {
    struct amp_buf cells; /* NUL-terminated */
    size_t rows;
    int columns, width[AMP_TABLE_COLUMNS];
};

void amp_table_init(struct amp_table *t, const char *const *head, int columns);
void amp_table_release(struct amp_table *t);
int amp_table_row(struct amp_table *t, const struct amp_span *cells, int n, struct amp_error *err);
int amp_table_print(struct amp_table *t, struct amp_error *err);

#endif
