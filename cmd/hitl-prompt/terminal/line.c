/* Edits a line: inserts, deletes, moves; draws a window of it on one row. */
#include "line.h"

#include <string.h>

#include "cli/cli.h"
#include "json/text.h"

enum {
    CTRL_A = 1,
    CTRL_B,
    CTRL_D = 4,
    CTRL_E,
    CTRL_F,
    CTRL_H = 8,
    CTRL_K = 11,
    CTRL_L,
    CTRL_R = 18,
    CTRL_U = 21,
    CTRL_W = 23,
    ESC = 27,
    DEL = 127
};

void line_reset(struct input_line *l)
{
    l->len = l->at = l->n_part = 0;
    l->escape = 0;
    l->pasted = false;
    l->text[0] = '\0';
}

/* The start of the character before `at`, and the end of the one at it. */
static size_t char_before(const struct input_line *l, size_t at)
{
    while (at && ((unsigned char)l->text[--at] & 0xC0) == 0x80)
        ;
    return at;
}

static size_t char_after(const struct input_line *l, size_t at)
{
    if (at < l->len)
        at++;
    while (at < l->len && ((unsigned char)l->text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

static enum line_key range_delete(struct input_line *l, size_t from, size_t to)
{
    if (from == to)
        return LINE_SAME;
    memmove(l->text + from, l->text + to, l->len - to + 1);
    l->len -= to - from;
    l->at = from;
    return LINE_CHANGED;
}

static enum line_key cursor_move(struct input_line *l, size_t at)
{
    enum line_key key = at == l->at ? LINE_SAME : LINE_CHANGED;

    l->at = at;
    return key;
}

static enum line_key bytes_insert(struct input_line *l, const char *p, size_t n)
{
    if (l->len + n > LINE_BYTES)
        return LINE_FULL;
    memmove(l->text + l->at + n, l->text + l->at, l->len - l->at + 1);
    memcpy(l->text + l->at, p, n);
    l->len += n;
    l->at += n;
    return LINE_CHANGED;
}

static size_t word_before(const struct input_line *l)
{
    size_t at = l->at;

    while (at && l->text[at - 1] == ' ')
        at--;
    while (at && l->text[at - 1] != ' ')
        at--;
    return at;
}

/* The end of an escape sequence. */
static enum line_key sequence_end(struct input_line *l, unsigned char c)
{
    unsigned number = l->number;

    l->escape = 0;
    if (c == 'D')
        return cursor_move(l, char_before(l, l->at));
    if (c == 'C')
        return cursor_move(l, char_after(l, l->at));
    if (c == 'H' || (c == '~' && (number == 1 || number == 7)))
        return cursor_move(l, 0);
    if (c == 'F' || (c == '~' && (number == 4 || number == 8)))
        return cursor_move(l, l->len);
    if (c == '~' && number == 3)
        return range_delete(l, l->at, char_after(l, l->at));
    if (c == '~' && (number == 200 || number == 201))
        l->pasted = number == 200;
    return LINE_SAME;
}

static enum line_key sequence_byte(struct input_line *l, unsigned char c)
{
    if (l->escape == 1) {
        l->escape = c == '[' ? 2 : c == 'O' ? 3 : 0;
        l->number = 0;
        return LINE_SAME;
    }
    if (c >= '0' && c <= '9') {
        l->number = l->number < 10000 ? l->number * 10 + (c - '0') : l->number;
        return LINE_SAME;
    }
    /* Parameters and intermediate bytes go on, everything else ends it. */
    if (l->escape == 2 && c >= 0x20 && c < 0x40)
        return LINE_SAME;
    return sequence_end(l, c);
}

/* A byte of a character of more than one. */
static enum line_key part_byte(struct input_line *l, unsigned char c)
{
    static const char other[] = "\xEF\xBF\xBD"; /* U+FFFD */
    size_t want = l->n_part ? (unsigned char)l->part[0] : c;

    want = want >= 0xF5 ? 1 : want >= 0xF0 ? 4 : want >= 0xE0 ? 3 : want >= 0xC2 ? 2 : 1;
    if (l->n_part && (c & 0xC0) != 0x80) {
        l->n_part = 0;
        enum line_key key = bytes_insert(l, other, 3);
        return key == LINE_FULL ? key : line_byte(l, c);
    }
    if (want == 1)
        return bytes_insert(l, other, 3);
    l->part[l->n_part++] = (char)c;
    if (l->n_part < want)
        return LINE_SAME;
    l->n_part = 0;
    bool valid = amp_utf8_length((const unsigned char *)l->part, want) == want;
    return valid ? bytes_insert(l, l->part, want) : bytes_insert(l, other, 3);
}

enum line_key line_byte(struct input_line *l, unsigned char c)
{
    if (l->escape)
        return sequence_byte(l, c);
    if (c >= 0x80 || l->n_part)
        return part_byte(l, c);
    switch (c) {
    case '\r':
    case '\n':
        /* A pasted line end is no answer: the person presses Enter. */
        return l->pasted ? bytes_insert(l, " ", 1) : LINE_DONE;
    case ESC:
        l->escape = 1;
        return LINE_SAME;
    case CTRL_D:
        return l->len ? range_delete(l, l->at, char_after(l, l->at)) : LINE_END;
    case CTRL_H:
    case DEL:
        return range_delete(l, char_before(l, l->at), l->at);
    case CTRL_A:
        return cursor_move(l, 0);
    case CTRL_E:
        return cursor_move(l, l->len);
    case CTRL_B:
        return cursor_move(l, char_before(l, l->at));
    case CTRL_F:
        return cursor_move(l, char_after(l, l->at));
    case CTRL_K:
        return range_delete(l, l->at, l->len);
    case CTRL_U:
        return range_delete(l, 0, l->at);
    case CTRL_W:
        return range_delete(l, word_before(l), l->at);
    case CTRL_L:
    case CTRL_R:
        return LINE_REFRESH;
    case '\t':
        c = ' ';
        break;
    default:
        break;
    }
    return c < 0x20 ? LINE_SAME : bytes_insert(l, &(char){(char)c}, 1);
}

/* The columns of the text from one place to another. */
static int columns_of(const struct input_line *l, size_t from, size_t to)
{
    char piece[AMP_TEXT_PIECE];
    int sum = 0, columns;

    while (from < to) {
        from += amp_text_piece((struct amp_span){l->text + from, to - from}, piece, &columns);
        sum += columns;
    }
    return sum;
}

int line_draw(const struct input_line *l, const char *prompt, int width, struct amp_buf *out,
              struct amp_error *err)
{
    int room = width - (int)strlen(prompt) - 2, back = 0, used = 0;
    size_t from = 0, to;
    char piece[AMP_TEXT_PIECE];
    int columns;

    if (room < 8)
        room = 8;
    /* The window ends behind the cursor, if the line is longer than it. */
    while (columns_of(l, from, l->at) >= room)
        from = char_after(l, from);
    if (amp_buf_fmt(out, err, "\r%s%s", prompt, from ? "<" : "") < 0)
        return -1;
    used = from ? 1 : 0;
    for (to = from; to < l->len;) {
        size_t n = amp_text_piece((struct amp_span){l->text + to, l->len - to}, piece, &columns);
        if (used + columns > room)
            break;
        if (amp_buf_str(out, piece, err) < 0)
            return -1;
        used += columns;
        back += to >= l->at ? columns : 0;
        to += n;
    }
    if (to < l->len) {
        if (amp_buf_str(out, ">", err) < 0)
            return -1;
        back++;
    }
    if (amp_buf_str(out, "\033[K", err) < 0)
        return -1;
    while (back-- > 0)
        if (amp_buf_str(out, "\b", err) < 0)
            return -1;
    return 0;
}
