/* Lines of text for a terminal: our own, and those of others behind a bar. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cli/page/page.h"

#define LINE_MAX_BYTES (4u << 20) /* of one line in its safe form */

static const char *const tints[AMP_TINT_COUNT] = {
    [AMP_TINT_NONE] = "",        [AMP_TINT_HEAD] = "\033[1m", [AMP_TINT_DIM] = "\033[2m",
    [AMP_TINT_OLD] = "\033[31m", [AMP_TINT_NEW] = "\033[32m", [AMP_TINT_HUNK] = "\033[36m",
    [AMP_TINT_FILE] = "\033[1m", [AMP_TINT_WARN] = "\033[33m"};

const char *amp_tint_on(bool color, enum amp_tint t)
{
    return color ? tints[t] : "";
}

const char *amp_tint_off(bool color, enum amp_tint t)
{
    return color && t != AMP_TINT_NONE ? "\033[0m" : "";
}

int amp_page_columns(int fd)
{
    struct winsize w;

    return ioctl(fd, TIOCGWINSZ, &w) || !w.ws_col ? 0 : w.ws_col;
}

/* The bytes of the first character; *columns: the most columns that it needs. */
static size_t character_measure(struct amp_span text, int *columns)
{
    size_t n = 1;

    while (n < text.n && ((unsigned char)text.p[n] & 0xC0) == 0x80)
        n++;
    *columns = (unsigned char)*text.p < 0x80 ? 1 : 2;
    return n;
}

/* The bytes that fit on one line: up to a blank, or a part of a word that is longer than a line. */
static size_t line_fit(struct amp_span text, int columns)
{
    size_t at = 0, blank = 0;
    int used = 0;

    while (at < text.n) {
        int wide;
        size_t n = character_measure((struct amp_span){text.p + at, text.n - at}, &wide);
        if (at && used + wide > columns)
            break;
        if (text.p[at] == ' ')
            blank = at;
        used += wide;
        at += n;
    }
    return at == text.n || text.p[at] == ' ' || !blank ? at : blank;
}

/* Removes the next line from *text. */
static struct amp_span line_split(struct amp_span *text)
{
    const char *nl = text->n ? memchr(text->p, '\n', text->n) : NULL;
    struct amp_span line = {text->p, nl ? (size_t)(nl - text->p) : text->n};
    size_t used = line.n + (nl != NULL);

    *text = (struct amp_span){text->p + used, text->n - used};
    return line;
}

/* One line of ours; a continuation is indented by four more columns. */
static int line_say(const struct amp_page *page, enum amp_tint tint, struct amp_span text)
{
    int indent = 0;

    while ((size_t)indent < text.n && text.p[indent] == ' ')
        indent++;
    text = (struct amp_span){text.p + indent, text.n - (size_t)indent};
    do {
        size_t n = line_fit(text, page->width - indent);
        if (amp_buf_fmt(page->out, page->err, "%*s%s%.*s%s\n", indent, "",
                        amp_tint_on(page->color, tint), (int)n, text.p,
                        amp_tint_off(page->color, tint)) < 0)
            return -1;
        text = (struct amp_span){text.p + n, text.n - n};
        if (text.n && *text.p == ' ')
            text = (struct amp_span){text.p + 1, text.n - 1};
        indent += text.n && indent < 8 ? 4 : 0;
    } while (text.n);
    return 0;
}

int amp_page_say(const struct amp_page *page, enum amp_tint tint, const char *fmt, ...)
{
    AMP_BUF struct amp_buf text = {0};
    char words[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    amp_buf_init(&text, sizeof words);
    if (amp_buf_str(&text, words, page->err) < 0)
        return -1;
    struct amp_span left = amp_buf_span(&text);
    do {
        if (line_say(page, tint, line_split(&left)) < 0)
            return -1;
    } while (left.n);
    return 0;
}

/* Appends one line of safe text as lines with a bar. */
static int line_mark(const struct amp_page *page, const char *label, struct amp_span safe)
{
    do {
        size_t n = line_fit(safe, page->width - (2 + AMP_PAGE_LABEL + 3));
        if (amp_buf_fmt(page->out, page->err, "  %s%-*s%s | %.*s\n",
                        amp_tint_on(page->color, AMP_TINT_DIM), AMP_PAGE_LABEL, label,
                        amp_tint_off(page->color, AMP_TINT_DIM), (int)n, safe.p) < 0)
            return -1;
        label = "";
        safe = (struct amp_span){safe.p + n, safe.n - n};
        if (safe.n && *safe.p == ' ')
            safe = (struct amp_span){safe.p + 1, safe.n - 1};
    } while (safe.n);
    return 0;
}

/* The length of the text if it is cut at `most` bytes, between two characters. */
static size_t text_cut(struct amp_span text, size_t most)
{
    while (most && ((unsigned char)text.p[most] & 0xC0) == 0x80)
        most--;
    return most;
}

int amp_page_quote(const struct amp_page *page, const char *label, struct amp_span text,
                   size_t most)
{
    AMP_BUF struct amp_buf safe = {0};
    size_t rest = 0;

    if (most && text.n > most) {
        size_t n = text_cut(text, most);
        rest = text.n - n;
        text.n = n;
    }
    amp_buf_init(&safe, LINE_MAX_BYTES);
    do {
        struct amp_span line = line_split(&text);
        amp_buf_reset(&safe);
        if (amp_buf_str(&safe, "", page->err) < 0 || amp_text_safe(line, 0, &safe, page->err) < 0 ||
            line_mark(page, label, amp_buf_span(&safe)) < 0)
            return -1;
        label = "";
    } while (text.n);
    return rest ? amp_page_say(page, AMP_TINT_DIM, "  %-*s   … %zu more bytes%s%s%s",
                               AMP_PAGE_LABEL, "", rest, page->more ? " (" : "",
                               page->more ? page->more : "", page->more ? ")" : "")
                : 0;
}

int amp_page_line(const struct amp_page *page, enum amp_tint tint, struct amp_span text)
{
    AMP_BUF struct amp_buf safe = {0};

    amp_buf_init(&safe, LINE_MAX_BYTES);
    if (amp_buf_str(&safe, "", page->err) < 0 || amp_text_safe(text, 0, &safe, page->err) < 0)
        return -1;
    struct amp_span left = amp_buf_span(&safe);
    do {
        size_t n = line_fit(left, page->width - 2);
        if (amp_buf_fmt(page->out, page->err, "| %s%.*s%s\n", amp_tint_on(page->color, tint),
                        (int)n, left.p, amp_tint_off(page->color, tint)) < 0)
            return -1;
        left = (struct amp_span){left.p + n, left.n - n};
    } while (left.n);
    return 0;
}
