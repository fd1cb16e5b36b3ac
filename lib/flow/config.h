/* Checks amp.json against its published schema, which rejects misspelt settings. */
#ifndef AMP_FLOW_CONFIG_H
#define AMP_FLOW_CONFIG_H

#include <amp/base/buf.h>

#include "flow/admit/access.h"
#include "flow/admit/tokens.h"
#include "flow/suspend.h"
#include "message/ledger/claims.h"
#include "message/ledger/timeouts.h"
#include "message/transfer/units.h"
#include "protocol/redact/redact.h"

/* text: the content of amp.json. CONFIG if it does not match the schema. */
int amp_config_check(struct amp_span text, struct amp_error *err);

/* Whether the amp.json of a state directory may hold the setting with this dotted key: the schema
 * marks its section with "x-state-directory": true. */
bool amp_config_state_may_set(struct amp_span key);

/* Members of struct amp_tool (cli/cli.h) for a tool that reads amp.json. */
#define AMP_CONFIG_OF_TOOL                                                                         \
    .check_config = amp_config_check, .state_may_set = amp_config_state_may_set,                   \
    .redact = amp_redact_pattern_list

/* The same for a tool that records messages, and its table of settings. */
#define AMP_CONFIG_OF_RECORDER AMP_CONFIG_OF_TOOL, .settings = recorder_settings
#define AMP_CONFIG_RECORDER                                                                        \
    static const struct amp_setting recorder_settings[] = {                                        \
        AMP_TIMEOUTS_SETTINGS, AMP_CLAIMS_SETTINGS, AMP_ACCESS_SETTINGS,                           \
        AMP_TOKENS_SETTINGS,   AMP_UNIT_SETTINGS,   {0}}
/* The table of a tool that also suspends. */
#define AMP_CONFIG_SUSPENDER                                                                       \
    static const struct amp_setting recorder_settings[] = {AMP_TIMEOUTS_SETTINGS,                  \
                                                           AMP_CLAIMS_SETTINGS,                    \
                                                           AMP_SUSPEND_SETTINGS,                   \
                                                           AMP_ACCESS_SETTINGS,                    \
                                                           AMP_TOKENS_SETTINGS,                    \
                                                           AMP_UNIT_SETTINGS,                      \
                                                           {0}}
/* The table of a tool that takes messages but records none. */
#define AMP_CONFIG_TAKER                                                                           \
    static const struct amp_setting taker_settings[] = {                                           \
        AMP_ACCESS_SETTINGS, AMP_TOKENS_SETTINGS, AMP_UNIT_SETTINGS, {0}}
#define AMP_CONFIG_OF_TAKER AMP_CONFIG_OF_TOOL, .settings = taker_settings

#endif
