/*
 * Reads an input as chunks of complete lines. The buffer holds the bytes that have been read and
 * not yet taken. The beginning of a line that is too long is returned once, and the rest of the
 * line is dropped, so memory is bounded for any input.
 */
#include "stream.h"

#include <string.h>

#include <amp/base/pipe.h>

enum { READ_SIZE = 64 << 10, GATHERED_MOST = 512 << 10 };

void stream_init(struct input_stream *s, const char *file, int fd, size_t max_line)
{
    *s = (struct input_stream){.file = file, .fd = fd, .line = 1, .max_line = max_line};
    /* One line with its CRLF, and further lines. */
    amp_buf_init(&s->buf, max_line + 2 + GATHERED_MOST);
}

void stream_release(struct input_stream *s)
{
    amp_buf_release(&s->buf);
}

enum amp_read stream_fill(struct input_stream *s, struct amp_error *err)
{
    if (s->eof)
        return AMP_READ_END;
    if (s->pos > 0) {
        amp_buf_drop(&s->buf, s->pos);
        s->scanned -= s->pos;
        s->pos = 0;
    }
    enum amp_read got = amp_read_more(s->fd, &s->buf, READ_SIZE, s->file, err);
    if (got == AMP_READ_END)
        s->eof = true;
    return got;
}

void stream_take(struct input_stream *s, size_t bytes, uint64_t lines)
{
    s->pos += bytes;
    s->offset += bytes;
    s->line += lines;
    if (s->scanned < s->pos)
        s->scanned = s->pos;
}

/* Drops the rest of a line that is too long; false if the line goes on. */
static bool skip_rest(struct input_stream *s)
{
    size_t have = s->buf.len - s->pos;
    const char *first = s->buf.data + s->pos;
    const char *lf = have ? memchr(first, '\n', have) : NULL;
    stream_take(s, lf ? (size_t)(lf - first) + 1 : have, 0);
    s->skipping = !lf && !s->eof;
    return !s->skipping;
}

bool stream_chunk(struct input_stream *s, struct chunk *out)
{
    if (s->skipping && !skip_rest(s))
        return false;
    size_t have = s->buf.len - s->pos;
    if (have == 0)
        return false;
    const char *first = s->buf.data + s->pos;
    const char *lf = memrchr(s->buf.data + s->scanned, '\n', s->buf.len - s->scanned);
    *out = (struct chunk){.file = s->file, .line = s->line, .offset = s->offset};
    if (lf || s->eof) {
        size_t n = s->eof ? have : (size_t)(lf - first) + 1;
        out->bytes = (struct amp_span){first, n};
        return true;
    }
    s->scanned = s->buf.len;
    if (have <= s->max_line + 1)
        return false;
    out->bytes = (struct amp_span){first, have};
    out->too_long = true;
    s->skipping = true;
    return true;
}

int stream_give(struct input_stream *s, const struct chunk *c, uint64_t lines, struct amp_buf *buf,
                struct amp_error *err)
{
    const char *rest = c->bytes.p + c->bytes.n;
    size_t n = s->buf.len - s->pos - c->bytes.n;
    amp_buf_reset(buf);
    buf->max = s->buf.max;
    if (n > 0 && amp_buf_add(buf, rest, n, err) < 0)
        return -1;
    struct amp_buf full = s->buf;
    s->buf = *buf;
    *buf = full;
    stream_take(s, c->bytes.n, lines);
    s->pos = s->scanned = 0;
    return 0;
}
