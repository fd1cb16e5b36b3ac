/* Tells the git hooks which agents people suspended (work/git/stopped.h). */
#ifndef AMP_PEOPLE_PAUSE_PUBLISH_H
#define AMP_PEOPLE_PAUSE_PUBLISH_H

#include "message/pause/pause.h"

/* Writes or removes the file in each repository to which an agent of the state is bound. A
 * repository where it cannot be written is reported by `warn` and is not a failure: the suspension
 * itself does not depend on it. */
int amp_pause_publish(struct amp_store *s, const struct amp_pauses *now,
                      void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2))),
                      struct amp_error *err);

#endif
