/* The line that a person types, edited by the bytes of a terminal in raw mode. Has no input or
 * output of its own. */
#ifndef HITL_LINE_H
#define HITL_LINE_H

#include <amp/base/buf.h>

#define LINE_BYTES 8192 /* of a typed line */

struct input_line {
    char text[LINE_BYTES + 1]; /* UTF-8, with a NUL */
    size_t len, at;            /* at: of the cursor */
    char part[4];              /* of a character that has not arrived completely */
    size_t n_part;
    int escape;      /* inside an escape sequence: 1 after ESC, 2 after ESC [, 3 after ESC O */
    unsigned number; /* of the escape sequence */
    bool pasted;     /* between the marks of a bracketed paste */
};
void line_reset(struct input_line *l);

enum line_key {
    LINE_SAME,    /* nothing to draw */
    LINE_CHANGED, /* draw it again */
    LINE_DONE,    /* Enter: text is complete */
    LINE_END,     /* ^D on an empty line */
    LINE_REFRESH, /* ^L: print everything again */
    LINE_FULL,    /* no room for the character */
};
enum line_key line_byte(struct input_line *l, unsigned char c);

/* Appends what draws the line again on the current row of `width` columns, with the cursor in its
 * place: CR, the prompt, the part around the cursor ("<" and ">" where there is more), and an erase
 * to the end of the row. */
int line_draw(const struct input_line *l, const char *prompt, int width, struct amp_buf *out,
              struct amp_error *err);

#endif
