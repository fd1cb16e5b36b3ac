/*
 * The values that a state directory knows, for the completion of operands and options: agents,
 * tasks, dead letters, questions, messages, consumers, sources, capabilities, bindings; and codes.
 */
#ifndef AMP_SHARED_VALUES_H
#define AMP_SHARED_VALUES_H

#include "base/values.h"

/* The callback `values` of struct amp_tool. A state directory that is missing has no values. Dead
 * letters that were requeued are left out, and so are questions and messages that have ended. */
int amp_values(const struct amp_values_ask *ask, struct amp_error *err);

#endif
