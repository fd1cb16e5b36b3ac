/* Inputs as chunks of complete lines. */
#ifndef AMP_VALIDATE_STREAM_H
#define AMP_VALIDATE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/pipe.h>

struct amp_found;

/* Complete lines. Only the last line of an input may lack its end. */
struct chunk {
    const char *file; /* for people */
    struct amp_span bytes;
    uint64_t line, offset; /* of the first line in its input, from 1; of the first byte, from 0 */
    bool too_long;         /* the beginning of a line that is longer than --max-line */
    bool document;         /* one text, also with line ends */
    const struct amp_found *found; /* --extract: its place, or NULL */
};

/* An input. A chunk is valid until the next stream_fill, or longer after stream_give. */
struct input_stream {
    const char *file;
    int fd;
    struct amp_buf buf;
    size_t pos, scanned; /* the first byte not taken; no line end is before this */
    uint64_t line, offset;
    size_t max_line;
    bool eof, skipping;
};
void stream_init(struct input_stream *s, const char *file, int fd, size_t max_line);
void stream_release(struct input_stream *s);
/* One read(2). */
enum amp_read stream_fill(struct input_stream *s, struct amp_error *err);
/* The complete lines that have been read. False if there is none: read more, unless at the end. */
bool stream_chunk(struct input_stream *s, struct chunk *out);
/* Takes bytes and lines from the front. */
void stream_take(struct input_stream *s, size_t bytes, uint64_t lines);
/* Takes the chunk and exchanges the memory of the stream and *buf, so that *buf owns the chunk. */
int stream_give(struct input_stream *s, const struct chunk *c, uint64_t lines, struct amp_buf *buf,
                struct amp_error *err);

#endif
