/* The terminal: puts a grid on it and reads keys. Only this file knows curses. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "../view/grid.h"

/* Keys that are not characters. */
enum top_key {
    TOP_KEY_NONE = 0,
    TOP_KEY_UP = 0x200000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_TAB,
    TOP_KEY_BACK_TAB,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
    TOP_KEY_RESIZE,
    TOP_KEY_CLOSED, /* the terminal is gone */
};

/* Whether standard input and output are a terminal that can show a screen: not TERM=dumb, and known
 * to terminfo. */
bool top_screen_possible(void);

struct top_screen {
    bool open, color, ascii;
    int colors;
    int signals; /* a descriptor that is readable after a resize, a stop or a continuation */
};
/* Takes the terminal. A crash, INT and TERM give it back. */
int top_screen_open(struct top_screen *s, bool color, struct amp_error *err);
void top_screen_close(struct top_screen *s); /* also of a zeroed struct */
void top_screen_size(const struct top_screen *s, int *w, int *h);
/* Puts the grid on the terminal; curses sends what differs. */
void top_screen_draw(const struct top_screen *s, const struct top_grid *g);
/* The next key, or character (a code point); TOP_KEY_NONE: there is none yet. */
int top_screen_key(struct top_screen *s);
/* Handles the signals that the descriptor announces. Returns whether everything must be drawn. */
bool top_screen_signals(struct top_screen *s);
/* Gives the terminal back and stops this process; returns after it was continued. */
void top_screen_stop(struct top_screen *s);
/* Everything is sent again with the next draw. */
void top_screen_redraw(const struct top_screen *s);

#endif
