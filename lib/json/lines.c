/* The line reader. The buffer has the bytes that were read but not yet returned. A line longer than
 * the limit is returned once with its first bytes, and its rest is dropped as it is read, so memory
 * is bounded for any input. */
#include <amp/json/lines.h>

#include <string.h>

#include <amp/base/pipe.h>

enum { CHUNK = 64 << 10 };

void amp_lines_init(struct amp_lines *l, size_t max_line)
{
    *l = (struct amp_lines){.max_line = max_line};
    /* One line with its CRLF, and one read beyond. */
    amp_buf_init(&l->buf, max_line + 2 + CHUNK + 1);
}

void amp_lines_release(struct amp_lines *l)
{
    amp_buf_release(&l->buf);
}

/* Removes `whole` bytes from the front of the buffer. */
static void line_take(struct amp_lines *l, size_t whole)
{
    l->pos += whole;
    l->scanned = l->pos;
    l->offset += whole;
}

enum amp_line_result amp_lines_next(struct amp_lines *l, struct amp_line *out)
{
    if (!l->buf.data)
        return l->eof ? AMP_LINE_END : AMP_LINE_MORE;
    for (;;) {
        const char *first = l->buf.data + l->pos;
        size_t have = l->buf.len - l->pos;
        size_t from = l->scanned > l->pos ? l->scanned - l->pos : 0;
        const char *lf = have > from ? memchr(first + from, '\n', have - from) : NULL;

        if (l->skipping) { /* the rest of a line that was too long */
            size_t n = lf ? (size_t)(lf - first) + 1 : have;
            line_take(l, n);
            if (lf)
                l->skipping = false;
            else
                return l->eof ? AMP_LINE_END : AMP_LINE_MORE;
            continue;
        }
        if (!lf && !l->eof && have <= l->max_line + 1) {
            l->scanned = l->buf.len;
            return AMP_LINE_MORE;
        }
        if (!lf && have == 0)
            return AMP_LINE_END;

        size_t whole = lf ? (size_t)(lf - first) + 1 : have;
        size_t n = lf ? whole - 1 : whole;
        if (n > 0 && first[n - 1] == '\r')
            n--;
        struct amp_line line = {
            .bytes = {first, n},
            .whole = {first, whole},
            .number = ++l->number,
            .offset = l->offset,
        };
        bool unfinished = !lf && !l->eof;
        line_take(l, whole);
        if (n > l->max_line || unfinished) {
            line.bytes.n = n < l->max_line ? n : l->max_line;
            line.whole = line.bytes;
            l->skipping = unfinished;
            *out = line;
            return AMP_LINE_TOO_LONG;
        }
        if (n == 0)
            continue;
        *out = line;
        return AMP_LINE;
    }
}

enum amp_read amp_lines_fill(struct amp_lines *l, int fd, struct amp_error *err)
{
    if (l->eof)
        return AMP_READ_END;
    if (l->pos > 0) {
        amp_buf_drop(&l->buf, l->pos);
        l->scanned -= l->pos;
        l->pos = 0;
    }
    enum amp_read got = amp_read_more(fd, &l->buf, CHUNK, "the input", err);
    if (got == AMP_READ_END)
        l->eof = true;
    return got;
}
