/*
 * The access rules of the configuration, for every message that the intake takes (intake.h). They
 * belong to the process, as the other settings do.
 */
#ifndef AMP_MESSAGE_DELIVERY_ADMIT_ACCESS_H
#define AMP_MESSAGE_DELIVERY_ADMIT_ACCESS_H

#include <amp/protocol/protocol.h>

#include "message/identity/access/rules.h"

/* access.rules (one rule, a JSON object), access.default (allow or deny) and access.log (denied, or
 * all: also decisions that allow). arg is ignored. CONFIG bad_access_rule. */
int amp_access_rule_set(void *arg, const char *text, struct amp_error *err);
int amp_access_default_set(void *arg, const char *text, struct amp_error *err);
int amp_access_log_set(void *arg, const char *text, struct amp_error *err);
#define AMP_ACCESS_SETTINGS                                                                        \
    {"access.rules", amp_access_rule_set}, {"access.default", amp_access_default_set},             \
    {                                                                                              \
        "access.log", amp_access_log_set                                                           \
    }

/* Whether there are rules, or the default is deny. */
bool amp_access_is_set(void);
/* Decides on a message. text gets what was decided and by which rule. Returns 1 if it is allowed
 * and nothing needs to be logged, 0 if it is allowed and the decision must be logged, or -1 with
 * NO access_denied. */
enum { AMP_ACCESS_TEXT_MAX = 600 };
int amp_access_check(const struct amp_view *v, char text[AMP_ACCESS_TEXT_MAX],
                     struct amp_error *err);

#endif
