/* The codes of all protocols as values for completion, each once, with its severity. */
#ifndef AMP_MESSAGE_PROTOCOL_CODES_VALUES_H
#define AMP_MESSAGE_PROTOCOL_CODES_VALUES_H

#include "base/values.h"

/* The result is that of ask->fn. */
int amp_code_values(const struct amp_values_ask *ask, struct amp_error *err);

#endif
