/* Format 1 of the log, as its frames are converted to format 2. */
#ifndef AMP_STORE_UPGRADE_FORMAT1_H
#define AMP_STORE_UPGRADE_FORMAT1_H

#include "store/store_int.h"

struct amp_format1;

struct amp_format1 *amp_format1_new(struct amp_store *s, struct amp_error *err);
void amp_format1_free(struct amp_format1 *c);

/* First every frame is learned from, in any order: names that other frames mention are found. */
int amp_format1_learn(struct amp_format1 *c, struct amp_span frame,
                      const struct amp_frame_head *head, struct amp_error *err);
/* Then each is converted, in the order of the log. *out lives until the next call; head.prev and
 * what follows from the bytes is left to the caller. Blobs are made where a record in a blob
 * changes. */
int amp_format1_convert(struct amp_format1 *c, struct amp_span frame,
                        const struct amp_frame_head *head, struct amp_frame *out,
                        struct amp_error *err);

#endif
