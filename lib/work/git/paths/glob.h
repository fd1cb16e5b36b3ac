/*
 * Patterns of paths, as in gitignore: `*` and `?` match within a component, `**` any number of
 * components. A pattern with a slash, other than at its end, begins at the top; one without matches
 * at any depth. A pattern without `*` and `?` in its last component also matches everything below a
 * directory of that name; with a slash at its end, only that. Links only libc, for branch-guard.
 */
#ifndef AMP_WORK_GIT_PATHS_GLOB_H
#define AMP_WORK_GIT_PATHS_GLOB_H

#include <stdbool.h>

#include <amp/base/buf.h>

#define AMP_GLOB_MAX   255 /* bytes of a pattern */
#define AMP_GLOB_PARTS 32  /* its components */

/* USAGE bad_pattern: empty, too long, with too many components, with a component "." or "..", or
 * with a control character. */
int amp_glob_check(struct amp_span pattern, struct amp_error *err);
/* path: relative to the top, without "." and "..". false also for an invalid pattern. */
bool amp_glob_match(struct amp_span pattern, struct amp_span path);
/* Whether some path matches both patterns; also if one of them is invalid. */
bool amp_glob_overlap(struct amp_span a, struct amp_span b);

#endif
