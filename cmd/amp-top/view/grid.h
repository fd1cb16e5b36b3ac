/*
 * A grid of cells holds what the terminal shows. Nothing here knows a terminal, so a test compares
 * the grid of a fixed model. All text that is put into a grid is made safe first: a control
 * character, an escape sequence or a direction override becomes a visible escape.
 */
#ifndef TOP_GRID_H
#define TOP_GRID_H

#include <amp/base/buf.h>

/* A cell's look; screen/screen.c has the colours for terminals with 256, 8 or no colours. */
enum top_tone {
    TOP_PLAIN,
    TOP_DIM,    /* of secondary importance */
    TOP_STRONG, /* names */
    TOP_GOOD,
    TOP_WARN,
    TOP_BAD,
    TOP_INFO,   /* at work */
    TOP_ACCENT, /* keys, counts, what has the focus */
    TOP_FRAME,  /* lines between the parts */
    TOP_TITLE,  /* the bar at the top */
    TOP_TONES
};
/* Flags of a tone: the selected row in the pane with the focus, and in other panes. */
enum { TOP_SELECTED = 32, TOP_MARKED = 64, TOP_TONE_MASK = 31 };

#define TOP_CELL_MAX 24 /* bytes of a character with its combining characters, and a NUL */
struct top_cell_text {
    char text[TOP_CELL_MAX]; /* "": the right half of a wide character */
    uint8_t tone;
};

struct top_grid {
    int w, h;
    bool ascii; /* the terminal's locale is not UTF-8: lines and marks are ASCII, the rest "?" */
    struct top_cell_text *cell;
};
#define TOP_SIZE_MAX 1000 /* columns, and rows; a larger terminal shows the rest empty */

/* Initialises the grid with blanks; a grid that was initialised before is resized. */
int top_grid_init(struct top_grid *g, int w, int h, struct amp_error *err);
void top_grid_release(struct top_grid *g); /* also of a zeroed struct */

struct top_rect {
    int x, y, w, h;
};

/* Puts text at a place, at most `width` columns, cut with "…". Returns the columns used. Text
 * outside of the grid is left out. */
int top_put(struct top_grid *g, int x, int y, int width, uint8_t tone, struct amp_span text);
int top_puts(struct top_grid *g, int x, int y, int width, uint8_t tone, const char *text);
int top_putf(struct top_grid *g, int x, int y, int width, uint8_t tone, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Like top_put, but at the right end of the columns. */
int top_put_right(struct top_grid *g, int x, int y, int width, uint8_t tone, struct amp_span text);
/* Blanks, or one character repeated. */
void top_fill(struct top_grid *g, struct top_rect r, uint8_t tone, const char *with);
/* Changes the tone of cells, and keeps their text. */
void top_shade(struct top_grid *g, struct top_rect r, uint8_t flag);
/* A frame with a title in its upper line, and a note at the right of it. */
void top_frame(struct top_grid *g, struct top_rect r, bool focus, const char *title,
               const char *note);

/* The columns of a text after it was made safe. */
int top_columns(struct amp_span text);
/* The length of the beginning of a text that fits into `width` columns, cut at a blank if possible;
 * at least one character. *skip: bytes to skip after it. */
size_t top_wrap(struct amp_span text, int width, size_t *skip);

#endif
