/* A grid of cells, and text in it. */
#include "grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define MARKS_MAX 4 /* combining characters of one cell */

int top_grid_init(struct top_grid *g, int w, int h, struct amp_error *err)
{
    w = w < 1 ? 1 : w > TOP_SIZE_MAX ? TOP_SIZE_MAX : w;
    h = h < 1 ? 1 : h > TOP_SIZE_MAX ? TOP_SIZE_MAX : h;
    if (w != g->w || h != g->h) {
        void *cells = calloc((size_t)w * (size_t)h, sizeof *g->cell);
        if (!cells)
            return amp_fail_memory(err);
        free(g->cell);
        g->cell = cells;
        g->w = w;
        g->h = h;
    }
    top_fill(g, (struct top_rect){0, 0, w, h}, TOP_PLAIN, " ");
    return 0;
}

void top_grid_release(struct top_grid *g)
{
    free(g->cell);
    *g = (struct top_grid){0};
}

static struct top_cell_text *cell_at(struct top_grid *g, int x, int y)
{
    return x < 0 || y < 0 || x >= g->w || y >= g->h ? NULL : &g->cell[y * g->w + x];
}

/* A wide character that loses one half becomes a blank. */
static void cell_set(struct top_grid *g, int x, int y, uint8_t tone, const char *text)
{
    struct top_cell_text *c = cell_at(g, x, y);
    if (!c)
        return;
    if (!c->text[0] && x > 0)
        snprintf(c[-1].text, sizeof c->text, " ");
    if (x + 1 < g->w && c->text[0] && !c[1].text[0])
        snprintf(c[1].text, sizeof c->text, " ");
    snprintf(c->text, sizeof c->text, "%s", text);
    c->tone = tone;
}

/* A combining character belongs to the cell before it. */
static void mark_add(struct top_grid *g, int x, int y, const char *mark)
{
    struct top_cell_text *c = cell_at(g, x, y);
    if (c && !c->text[0] && x > 0)
        c--;
    size_t n = c ? strlen(c->text) : 0;
    if (c && n + strlen(mark) < sizeof c->text)
        memcpy(c->text + n, mark, strlen(mark) + 1);
}

/* A character of a terminal whose locale has only ASCII. */
static const char *ascii_of(const char *piece)
{
    static const struct {
        const char *of, *is;
    } same[] = {{"…", "~"}, {"─", "-"}, {"│", "|"}, {"╭", "+"}, {"╮", "+"}, {"╰", "+"}, {"╯", "+"},
                {"├", "+"}, {"┤", "+"}, {"→", ">"}, {"·", "."}, {"●", "*"}, {"○", "o"}, {"◆", "!"},
                {"✔", "+"}, {"✘", "x"}, {"▌", ">"}, {"↑", "^"}, {"↓", "v"}, {"█", "#"}, {"░", "."},
                {"‖", "="}, {"▁", "."}, {"▂", "."}, {"▃", ":"}, {"▄", ":"}, {"▅", "|"}, {"▆", "|"},
                {"▇", "#"}, {"▲", "^"}, {"▼", "v"}, {"—", "-"}, {"×", "x"}, {"┃", "|"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(piece, same[i].of) == 0)
            return same[i].is;
    return "?";
}

/* Puts the pieces that fit; stops before the first that does not. Returns the bytes used. */
static size_t pieces_put(struct top_grid *g, int x, int y, int width, uint8_t tone,
                         struct amp_span text, int *used)
{
    char piece[AMP_TEXT_PIECE];
    int columns, marks = 0;
    size_t i = 0;

    *used = 0;
    while (i < text.n) {
        size_t n = amp_text_piece((struct amp_span){text.p + i, text.n - i}, piece, &columns);
        if (*used + columns > width)
            break;
        i += n;
        if (columns == 0) {
            if (*used > 0 && marks++ < MARKS_MAX && !g->ascii)
                mark_add(g, x + *used - 1, y, piece);
            continue;
        }
        marks = 0;
        if (piece[0] == '\\' && piece[1]) { /* a cell for each character of a visible escape */
            for (int k = 0; piece[k]; k++)
                cell_set(g, x + *used + k, y, tone, (char[]){piece[k], '\0'});
        } else {
            bool plain = (unsigned char)piece[0] < 0x80;
            cell_set(g, x + *used, y, tone, g->ascii && !plain ? ascii_of(piece) : piece);
            if (columns == 2)
                cell_set(g, x + *used + 1, y, tone, g->ascii ? "?" : "");
        }
        *used += columns;
    }
    return i;
}

int top_columns(struct amp_span text)
{
    char piece[AMP_TEXT_PIECE];
    int columns, sum = 0;
    for (size_t i = 0; i < text.n && sum < 10 * TOP_SIZE_MAX;) {
        i += amp_text_piece((struct amp_span){text.p + i, text.n - i}, piece, &columns);
        sum += columns;
    }
    return sum;
}

int top_put(struct top_grid *g, int x, int y, int width, uint8_t tone, struct amp_span text)
{
    int used, more;
    if (width <= 0 || !cell_at(g, x < 0 ? 0 : x, y))
        return 0;
    if (top_columns(text) <= width) {
        pieces_put(g, x, y, width, tone, text, &used);
        return used;
    }
    pieces_put(g, x, y, width - 1, tone, text, &used);
    pieces_put(g, x + used, y, 1, tone, AMP_SPAN("…"), &more);
    return used + more;
}

int top_puts(struct top_grid *g, int x, int y, int width, uint8_t tone, const char *text)
{
    return top_put(g, x, y, width, tone, amp_span_str(text));
}

int top_putf(struct top_grid *g, int x, int y, int width, uint8_t tone, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return top_puts(g, x, y, width, tone, text);
}

int top_put_right(struct top_grid *g, int x, int y, int width, uint8_t tone, struct amp_span text)
{
    int n = top_columns(text);
    return n > width ? top_put(g, x, y, width, tone, text)
                     : top_put(g, x + width - n, y, n, tone, text);
}

void top_fill(struct top_grid *g, struct top_rect r, uint8_t tone, const char *with)
{
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            cell_set(g, x, y, tone,
                     g->ascii && (unsigned char)*with >= 0x80 ? ascii_of(with) : with);
}

void top_shade(struct top_grid *g, struct top_rect r, uint8_t flag)
{
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++) {
            struct top_cell_text *c = cell_at(g, x, y);
            if (c)
                c->tone = (uint8_t)(c->tone | flag);
        }
}

void top_frame(struct top_grid *g, struct top_rect r, bool focus, const char *title,
               const char *note)
{
    uint8_t tone = focus ? TOP_ACCENT : TOP_FRAME;
    if (r.w < 4 || r.h < 2)
        return;
    top_fill(g, (struct top_rect){r.x + 1, r.y, r.w - 2, 1}, tone, "─");
    top_fill(g, (struct top_rect){r.x + 1, r.y + r.h - 1, r.w - 2, 1}, tone, "─");
    top_fill(g, (struct top_rect){r.x, r.y + 1, 1, r.h - 2}, tone, "│");
    top_fill(g, (struct top_rect){r.x + r.w - 1, r.y + 1, 1, r.h - 2}, tone, "│");
    top_puts(g, r.x, r.y, 1, tone, "╭");
    top_puts(g, r.x + r.w - 1, r.y, 1, tone, "╮");
    top_puts(g, r.x, r.y + r.h - 1, 1, tone, "╰");
    top_puts(g, r.x + r.w - 1, r.y + r.h - 1, 1, tone, "╯");
    int n = note && *note ? top_columns(amp_span_str(note)) + 2 : 0;
    int room = r.w - 4 - (n ? n + 1 : 0);
    if (room < 3) {
        n = 0;
        room = r.w - 4;
    }
    int used = top_putf(g, r.x + 2, r.y, room, focus ? TOP_ACCENT : TOP_STRONG, " %s", title);
    if (used < room)
        top_puts(g, r.x + 2 + used, r.y, 1, tone, " ");
    if (n)
        top_putf(g, r.x + r.w - 2 - n, r.y, n, focus ? TOP_PLAIN : TOP_DIM, " %s ", note);
}

size_t top_wrap(struct amp_span text, int width, size_t *skip)
{
    char piece[AMP_TEXT_PIECE];
    int columns, sum = 0;
    size_t i = 0, blank = 0;
    *skip = 0;
    while (i < text.n) {
        if (text.p[i] == '\n') {
            *skip = 1;
            return i;
        }
        size_t n = amp_text_piece((struct amp_span){text.p + i, text.n - i}, piece, &columns);
        if (sum + columns > width && i > 0) {
            if (blank > 0 && text.p[i] != ' ') {
                *skip = 1;
                return blank;
            }
            *skip = text.p[i] == ' ' ? 1 : 0;
            return i;
        }
        if (text.p[i] == ' ' && sum > width / 3)
            blank = i;
        sum += columns;
        i += n;
    }
    return text.n;
}
