/* The line reader: reads NDJSON from a descriptor, 64 KiB at a time. A line ends with LF or CRLF;
 * empty lines are skipped. */
#ifndef AMP_JSON_LINES_H
#define AMP_JSON_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>
#include <amp/base/pipe.h>

AMP_API_BEGIN

enum amp_line_result {
    AMP_LINE,          /* a line */
    AMP_LINE_TOO_LONG, /* the first bytes of a line; the rest is skipped */
    AMP_LINE_MORE,     /* call amp_lines_fill first */
    AMP_LINE_END,      /* end of input */
};

struct amp_line {
    struct amp_span bytes; /* without its line end; valid until the next fill */
    struct amp_span whole; /* with its line end, which an unterminated last line does not have */
    uint64_t number;       /* from 1, empty lines counted */
    uint64_t offset;       /* of its first byte in the stream */
};

struct amp_lines {
    struct amp_buf buf;
    size_t pos, scanned;
    uint64_t number, offset;
    size_t max_line;
    bool eof, skipping;
};

void amp_lines_init(struct amp_lines *l, size_t max_line);
void amp_lines_release(struct amp_lines *l);
enum amp_line_result amp_lines_next(struct amp_lines *l, struct amp_line *out);
/* One read(2). */
enum amp_read amp_lines_fill(struct amp_lines *l, int fd, struct amp_error *err);

AMP_API_END

#endif
