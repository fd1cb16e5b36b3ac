/* Inputs become chunks of whole lines. */
#ifndef AMP_VALIDATE_STREAM_H
#define AMP_VALIDATE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/pipe.h>

struct amp_found;

/* Whole lines; only the last of an input may lack its end. */
struct chunk {
    const char *file; /* for people */
    struct amp_span bytes;
    uint64_t line, offset; /* of the first line in its input, from 1; of the first byte, from 0 */
    bool too_long;         /* the beginning of one line that passes --max-line */
    bool document;         /* one text, whatever line ends are in it */
    const struct amp_found *found; /* --extract: where it stood, or NULL */
};

/* An input. What stream_chunk gave is valid until the next fill, unless stream_give moved it. */
struct stream {
    const char *file;
    int fd;
    struct amp_buf buf;
    size_t pos, scanned; /* first byte that was not taken; up to where there is no line end */
    uint64_t line, offset;
    size_t max_line;
    bool eof, skipping;
};
void stream_init(struct stream *s, const char *file, int fd, size_t max_line);
void stream_release(struct stream *s);
/* One read(2). */
enum amp_read stream_fill(struct stream *s, struct amp_error *err);
/* The whole lines that have been read. false: more has to be read first, or it is the end. */
bool stream_chunk(struct stream *s, struct chunk *out);
/* That many bytes and lines of the chunk are done with. */
void stream_take(struct stream *s, size_t bytes, uint64_t lines);
/* The chunk's memory becomes *buf's, whose own becomes the stream's: the chunk is taken. */
int stream_give(struct stream *s, const struct chunk *c, uint64_t lines, struct amp_buf *buf,
                struct amp_error *err);

#endif
