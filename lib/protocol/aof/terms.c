/* AOF/1: the terms of delivery. */
#include "protocol/terms.h"

/* A task's dueBy is a wish: the protocol does not say what happens afterwards. */
const struct amp_terms amp_terms_aof = {
    .expiry_is_wish = true,
    .to_holds = true,
    .not_holder = "unauthorized_agent",
    .retries = {.base_ms = 1000, .cap_ms = 300000, .steady = true},
    .answer = amp_terms_record,
};
