/*
 * Lists: the rows of a view (json/view.h), as a table for people or as JSON for programs. A verb
 * that declares a view (`lists` of struct amp_verb) gets an open list, and only gives it its rows:
 *
 *     return amp_subject_each(&amp_NAME_subject, c->store, NULL, amp_listing_row, c->list, err);
 *
 * Several lists in one output:
 *
 *     amp_listing_init(&l, columns);
 *     rc = for each: amp_listing_row(&l, &record, err);
 *     return amp_listing_end(&l, rc, err);
 */
#ifndef AMP_CLI_LIST_H
#define AMP_CLI_LIST_H

#include "cli/table.h"
#include "json/view.h"

struct amp_listing {
    const struct amp_column *column;
    int64_t now_ms;
    struct amp_jw *w; /* of the document with this list; NULL: each row is a line */
    struct amp_table table;
    struct amp_buf line;
    size_t rows;
    bool tabs; /* rows are lines of cells with tabs between, without a head */
};

/* --json: rows are JSON. */
extern bool amp_listing_json;
#define AMP_OPT_JSON(doc_)                                                                         \
    {                                                                                              \
        0, "json", AMP_OPT_FLAG, &amp_listing_json, NULL, doc_                                     \
    }

void amp_listing_init(struct amp_listing *l, const struct amp_column *column);
/* The rows are elements of a list, the member `name` of an open object. */
void amp_listing_open(struct amp_listing *l, struct amp_jw *w, const char *name);
/* listing: a struct amp_listing; the function can be that of amp_subject_each. */
int amp_listing_row(void *listing, const void *row, struct amp_error *err);
/* Prints the rows of the table up to here; later ones follow without a head. */
int amp_listing_flush(struct amp_listing *l, struct amp_error *err);
/* Dollars and cents, rounded up, so that no cost is shown as nothing. */
struct amp_span amp_cost_text(int64_t micros, char out[AMP_CELL_MAX]);
/* Ends the list of a document, or prints the table if it has rows; lines of JSON were printed with
 * their rows. After a failure (rc < 0) nothing is printed. Releases the list; returns rc, or -1. */
int amp_listing_end(struct amp_listing *l, int rc, struct amp_error *err);

#endif
