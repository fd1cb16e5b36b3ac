/* The word lists in the form that the pointer tables take. */
#ifndef AMP_PROTOCOL_NAMES_H
#define AMP_PROTOCOL_NAMES_H

#include "protocol/view/fill.h"

extern const struct amp_words amp_words_risk, amp_words_completion, amp_words_verdict,
    amp_words_level, amp_words_do, amp_words_stage;

#endif
