/* Converts frames of format 1 to format 2. */
#ifndef AMP_STORE_UPGRADE_FORMAT1_H
#define AMP_STORE_UPGRADE_FORMAT1_H

#include "store/store_int.h"

struct amp_format1;

struct amp_format1 *amp_format1_new(struct amp_store *s, struct amp_error *err);
void amp_format1_free(struct amp_format1 *c);

/* Call it first with every frame, in any order: it finds the names that other frames use. */
int amp_format1_learn(struct amp_format1 *c, struct amp_span frame,
                      const struct amp_frame_head *head, struct amp_error *err);
/* Then converts each frame, in the order of the log. *out is valid until the next call. The caller
 * sets head.prev and encodes the frame. Writes a new blob if a record in a blob changes. */
int amp_format1_convert(struct amp_format1 *c, struct amp_span frame,
                        const struct amp_frame_head *head, struct amp_frame *out,
                        struct amp_error *err);

#endif
