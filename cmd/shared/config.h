/* The settings of amp.json that several tools have without an option. */
#ifndef AMP_SHARED_CONFIG_H
#define AMP_SHARED_CONFIG_H

#include "message/delivery/admit/access.h"
#include "message/delivery/admit/tokens.h"
#include "message/delivery/ledger/load.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/transfer/units.h"
#include "work/task/suspend.h"

/* AMP_CONFIG_OF_TOOL (cli/config_schema.h) for a tool that records messages, and its table of
 * settings. */
#define AMP_CONFIG_OF_RECORDER AMP_CONFIG_OF_TOOL, .settings = recorder_settings
#define AMP_CONFIG_RECORDER                                                                        \
    static const struct amp_setting recorder_settings[] = {                                        \
        AMP_TIMEOUTS_SETTINGS, AMP_LOAD_SETTINGS, AMP_ACCESS_SETTINGS,                             \
        AMP_TOKENS_SETTINGS,   AMP_UNIT_SETTINGS, {0}}
/* The table of a tool that also suspends. */
#define AMP_CONFIG_SUSPENDER                                                                       \
    static const struct amp_setting recorder_settings[] = {AMP_TIMEOUTS_SETTINGS,                  \
                                                           AMP_LOAD_SETTINGS,                      \
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
