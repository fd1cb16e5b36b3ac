/* Checks amp.json against its published schema, which rejects misspelt settings. A file of its own,
 * because programs without amp.json do not link the schemas. */
#ifndef AMP_CLI_CONFIG_SCHEMA_H
#define AMP_CLI_CONFIG_SCHEMA_H

#include <amp/base/buf.h>

#include "message/protocol/redact/redact.h"

/* text: the content of amp.json. CONFIG if it does not match the schema. */
int amp_config_check(struct amp_span text, struct amp_error *err);

/* Tells whether the amp.json of a state directory may hold the setting with this dotted key: the
 * schema marks its section with "x-state-directory": true. */
bool amp_config_state_may_set(struct amp_span key);

/* Members of struct amp_tool (cli/cli.h) for a tool that reads amp.json. */
#define AMP_CONFIG_OF_TOOL                                                                         \
    .check_config = amp_config_check, .state_may_set = amp_config_state_may_set,                   \
    .redact = amp_redact_pattern_list

#endif
