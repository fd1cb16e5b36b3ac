/* A table for people: columns as wide as their widest cell, text made safe for a terminal. */
#ifndef AMP_ACK_TABLE_H
#define AMP_ACK_TABLE_H

#include "cli/cli.h"

#define TABLE_COLUMNS 8

struct table {
    struct amp_buf cells; /* each with its NUL */
    size_t rows;
    int columns, width[TABLE_COLUMNS];
};

void table_init(struct table *t, const char *const *head, int columns);
void table_release(struct table *t);
int table_row(struct table *t, const struct amp_span *cells, int n, struct amp_error *err);
int table_print(struct table *t, struct amp_error *err);

#endif
