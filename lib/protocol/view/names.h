/* The word lists in the form that the pointer tables take. */
#ifndef AMP_PROTOCOL_NAMES_H
#define AMP_PROTOCOL_NAMES_H

#include "protocol/view/fill.h"

#define AMP_WORDS_LIST(X) X(risk) X(completion) X(verdict) X(level) X(do) X(stage)

#define X(list) extern const struct amp_words amp_words_##list;
AMP_WORDS_LIST(X)
#undef X

#endif
