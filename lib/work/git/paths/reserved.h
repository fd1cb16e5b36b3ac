/*
 * Reserved paths as the hooks read them: the file <git-common-dir>/amp/reservations, written by
 * reserve.h from the state.
 *
 *     amp-reservations 1
 *     HOLDER TASK PATTERN
 *
 * TASK is "-" if there is none. Links only libc, for branch-guard.
 */
#ifndef AMP_WORK_GIT_PATHS_RESERVED_H
#define AMP_WORK_GIT_PATHS_RESERVED_H

#include "work/git/paths/glob.h"

#define AMP_RESERVED_FILE "reservations" /* below <git-common-dir>/amp */
#define AMP_RESERVED_MAX  (256u << 10)

struct amp_reservation {
    struct amp_span holder, task, pattern; /* task may be empty */
};
/* Empty if the file does not exist. CONFIG bad_reservations: the file is malformed; the caller must
 * not take it for empty. amp_buf_release(text) afterwards. */
int amp_reserved_load(struct amp_buf *text, int common_fd, struct amp_error *err);
/* The first reservation of another holder that covers the path. false: none. */
bool amp_reserved_by(const struct amp_buf *text, struct amp_span holder, struct amp_span path,
                     struct amp_reservation *out);
#endif
