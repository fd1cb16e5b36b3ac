/*
 * Lists: the rows of a view (json/view.h), as a table for people or as JSON for programs. A
 * calling sequence:
 *
 *     struct amp_listing l;
 *     amp_listing_init(&l, columns, n_columns, json, now_ms);
 *     for each: amp_listing_row(&l, &record, err);
 *     amp_listing_end(&l, err);          prints the table; lines of JSON were printed with their
 * rows amp_listing_release(&l);
 */
#ifndef CLI_LIST_H
#define CLI_LIST_H

#include "cli/table.h"
#include "json/view.h"

struct amp_listing {
    const struct amp_column *column;
    unsigned n;
    bool json;
    int64_t now_ms;
    struct amp_jw *w; /* of the document with this list; NULL: each row is a line */
    struct amp_table table;
    struct amp_buf line;
    size_t rows;
};

void amp_listing_init(struct amp_listing *l, const struct amp_column *column, unsigned n, bool json,
                      int64_t now_ms);
/* The rows are elements of a list, the member `name` of an open object. */
void amp_listing_open(struct amp_listing *l, struct amp_jw *w, const char *name);
/* listing: a struct amp_listing; the function can be that of amp_subject_each. */
int amp_listing_row(void *listing, const void *row, struct amp_error *err);
/* Ends the list of a document, or prints the table if it has rows. */
int amp_listing_end(struct amp_listing *l, struct amp_error *err);
void amp_listing_release(struct amp_listing *l);

#endif
