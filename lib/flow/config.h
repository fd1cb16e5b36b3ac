/* amp.json against its published schema: a misspelt setting is said, not passed over. */
#ifndef AMP_FLOW_CONFIG_H
#define AMP_FLOW_CONFIG_H

#include <amp/base/buf.h>

/* text is a whole amp.json. */
int amp_config_check(struct amp_span text, struct amp_error *err);

#endif
