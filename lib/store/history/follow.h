/* Reading the log on and on: what was read before is not read again, whatever rotates meanwhile. */
#ifndef AMP_STORE_FOLLOW_H
#define AMP_STORE_FOLLOW_H

#include "store/history/history.h"
#include "store/log/log.h"
#include "store/store.h"

/* Zeros: before the first frame that there is. */
struct amp_store_place {
    struct amp_pos pos;
};

/* Calls fn with the frames behind the place up to the verified end, which is on disk then; the
 * place moves behind the last frame that fn was called with. fn returns 0 to go on. */
int amp_store_frames_on(struct amp_store *s, struct amp_store_place *at, amp_store_frame_fn fn,
                        void *ctx, struct amp_error *err);

#endif
