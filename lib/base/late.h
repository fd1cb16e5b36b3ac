/*
 * Failures that are noticed when an object is closed, where no caller can return them. The program
 * reports the first of them at its end (cli/command/main.c).
 */
#ifndef AMP_BASE_LATE_H
#define AMP_BASE_LATE_H

#include <stdbool.h>

#include <amp/base/error.h>

void amp_late_note(const struct amp_error *err);
/* Returns whether a failure was noted; *out is the first one. */
bool amp_late_failure(struct amp_error *out);

#endif
