/*
 * The front matter of a task file: the lines between two lines "---" at its start. A subset of YAML
 * is understood: scalars (plain, '…', "…"), mappings of scalars by indentation, and {a: b} on one
 * line. Other lines belong to the key above them and are kept byte for byte.
 */
#ifndef AMP_WORK_AOF_FRONT_H
#define AMP_WORK_AOF_FRONT_H

#include <amp/base/buf.h>

/* The scalar at a path of one or two keys ("status", "lease.agent"), decoded into mem, which has
 * room for the text's length once more and does not move. 1: found; 0: absent, empty or not a
 * scalar; -1: DATAERR "bad_front_matter" (it does not end), or out of memory. */
int amp_front_get(struct amp_span text, const char *path, struct amp_buf *mem,
                  struct amp_span *value, struct amp_error *err);

/* Replaces or adds the scalar at a path; p NULL removes the key with everything under it. A text
 * without front matter gets one. On failure the text is unchanged. */
int amp_front_set(struct amp_buf *text, const char *path, struct amp_span value,
                  struct amp_error *err);

/* Adds a line at the end of the section "## Work Log", which is made if there is none. 0: the text
 * has this line already, 1: added. */
int amp_front_log(struct amp_buf *text, struct amp_span line, struct amp_error *err);

#endif
