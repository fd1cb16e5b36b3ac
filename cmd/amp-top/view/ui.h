/* The view has the person's focus, the selected rows, the filter, and the typed text. */
#ifndef TOP_UI_H
#define TOP_UI_H

#include "../model/detail.h"

#define TOP_LIST_MOST 100000 /* rows of a list that are shown */
#define TOP_TYPED_MAX 1000
#define TOP_NO_LINE   SIZE_MAX

enum top_mode {
    TOP_MODE_LIST,
    TOP_MODE_DETAIL,
    TOP_MODE_HELP,
    TOP_MODE_FILTER, /* the filter is typed */
    TOP_MODE_ASK,    /* text is typed for an action */
};

/* A person's place in one list. Rows are counted after the filter. */
struct top_place {
    uint64_t at, top; /* the selected row, the first visible one */
    char key[600];    /* of the selected row */
    uint32_t *order;  /* the rows in the order shown */
    size_t n, cap;
    int8_t sort; /* the column, -1: the most urgent first */
    bool down;
};

struct top_ui {
    enum top_mode mode, under;  /* under: what is below the help or the typed line */
    enum top_pane focus, other; /* other: of the panes that share a place in the layout */
    struct top_place place[TOP_PANE_COUNT];
    char filter[200];
    struct top_text text; /* behind the selected row */
    uint64_t text_top;    /* its first visible line */
    uint64_t text_lines;  /* lines after wrapping, of the last view */
    size_t text_at;       /* the selected line, which leads to something; TOP_NO_LINE: none */
    /* The question, and the text that is typed after it. */
    char ask[400], typed[TOP_TYPED_MAX];
    char hint[400];
    /* The result of the last action. */
    char said[600];
    bool said_bad;
};
void top_ui_init(struct top_ui *ui);
void top_ui_release(struct top_ui *ui);

/* Sorts and filters a list again, and keeps the selected row if it is still there. */
int top_ui_order(struct top_ui *ui, const struct top_model *m, enum top_pane p,
                 struct amp_error *err);
/* The selected row of a list; NULL: none. */
const struct top_row *top_ui_row(const struct top_ui *ui, const struct top_model *m,
                                 enum top_pane p);
/* The number of rows that can be selected. */
uint64_t top_ui_rows(const struct top_ui *ui, const struct top_model *m, enum top_pane p);
/* Selects a row. */
void top_ui_select(struct top_ui *ui, const struct top_model *m, enum top_pane p, uint64_t row);
/* The nearest line of the text that leads to something, after `from` or (by -1) before it;
 * TOP_NO_LINE as `from`: the first one. TOP_NO_LINE: there is none. */
size_t top_ui_link(const struct top_text *t, size_t from, int by);
/* The next column to sort by; after the last one the rows are in their own order again. */
void top_ui_sort(struct top_ui *ui, enum top_pane p);

/* ---- layout ---- */

enum top_size {
    TOP_SIZE_TINY,   /* too small for anything */
    TOP_SIZE_SMALL,  /* one list, the others as tabs */
    TOP_SIZE_MEDIUM, /* lists on the left, what is behind the selected row on the right */
    TOP_SIZE_LARGE,  /* all lists in two columns, details and activity in a third */
};
#define TOP_LEAST_W 40
#define TOP_LEAST_H 10
struct top_layout {
    enum top_size size;
    struct top_rect pane[TOP_PANE_COUNT]; /* w 0: not shown */
    struct top_rect tabs, text, feed, body;
};
void top_layout(const struct top_ui *ui, const struct top_model *m, int w, int h,
                struct top_layout *out);
/* Rows of a list in its place. */
int top_layout_rows(const struct top_layout *l, enum top_pane p);
/* Moves the first visible rows so that the selected ones are visible. */
void top_ui_fit(struct top_ui *ui, const struct top_model *m, const struct top_layout *l);

/* ---- view ---- */

/* Draws everything into the grid. It depends on its arguments only. */
void top_view(const struct top_ui *ui, const struct top_model *m, const struct top_layout *l,
              struct top_grid *g);
/* The parts. The lines of a text after wrapping, which it draws from line `from` on. */
void top_view_list(const struct top_ui *ui, const struct top_model *m, enum top_pane p,
                   struct top_rect r, struct top_grid *g);
uint64_t top_view_text(const struct top_text *t, uint64_t from, struct top_rect r,
                       struct top_grid *g);
/* The first of these lines that shows line number i of the text. */
uint64_t top_view_text_row(const struct top_text *t, size_t i, struct top_rect r);
void top_view_help(const struct top_ui *ui, struct top_rect r, struct top_grid *g);

#endif
