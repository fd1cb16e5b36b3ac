/* A command that checks the work, and what is kept of its output. amp_confined_check runs it. */
#ifndef AMP_WORK_ATTEMPT_WALLS_KEPT_H
#define AMP_WORK_ATTEMPT_WALLS_KEPT_H

#include <amp/base/buf.h>
#include <amp/base/child.h>

/* A command's output is kept with its beginning and its end, of at most this many bytes each; the
 * rest is read and dropped, so that the command never blocks. */
#define AMP_KEPT_BYTES 4096
struct amp_kept_output {
    char head[AMP_KEPT_BYTES], tail[AMP_KEPT_BYTES];
    size_t n_head, n_tail;
    size_t at;     /* where the next byte of the tail goes */
    int64_t bytes; /* of all */
};
void amp_kept_add(struct amp_kept_output *s, struct amp_span more);
/* Appends bytes as text: invalid UTF-8 and control characters become '?'. */
int amp_kept_clean(struct amp_span in, struct amp_buf *out, struct amp_error *err);
/* Appends the beginning and the end as text, with the number of bytes that were left out between
 * them. */
int amp_kept_text(const struct amp_kept_output *s, struct amp_buf *out, struct amp_error *err);
/* Appends the end of the output, at most `most` bytes, as clean text without blanks at its end. */
int amp_kept_end(const struct amp_kept_output *s, size_t most, struct amp_buf *out,
                 struct amp_error *err);

/* A command to run, and how it ended. */
struct amp_walled_check {
    const char *const *argv;
    const char *cwd;
    int64_t limit_ms; /* of the complete process tree */
    struct amp_child_end end;
    struct amp_kept_output out, errs;
    char trouble[300]; /* it could not be started; "": it was */
};

#endif
