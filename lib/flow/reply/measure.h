/* The change of the branch that a message asks for, for the files of this folder. */
#ifndef AMP_FLOW_REPLY_MEASURE_H
#define AMP_FLOW_REPLY_MEASURE_H

#include "flow/reply/reply.h"

/* Sets diff_summary and commit_hash of the data: the commits on the branch since its base, as
 * task-dispatch run measures them. NO missing_field: the base is not recorded; or an error of git.
 */
int amp_reply_measure(struct amp_store *s, const struct amp_view *dispatch,
                      const struct amp_reply *r, json_t *data, struct amp_error *err);

#endif
