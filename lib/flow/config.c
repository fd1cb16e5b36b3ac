/* The check of amp.json, for the tools to hand to the command line's room. */
#include "flow/config.h"

#include <amp/schema/schema.h>

int amp_config_check(struct amp_span text, struct amp_error *err)
{
    return amp_schema_check_text("config/amp.json", text, err);
}
