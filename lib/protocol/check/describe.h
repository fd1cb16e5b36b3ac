/* What a schema says about a property, for the message that it is missing. */
#ifndef AMP_PROTOCOL_DESCRIBE_H
#define AMP_PROTOCOL_DESCRIBE_H

#include <amp/schema/schema.h>

/* The first sentence of the description of property `name`, beside the keyword at a place of a
 * schema file; a reference to another file of the same protocol is followed. Leaves out empty where
 * nothing is said. */
void amp_describe(const char *schema_path, struct amp_span schema_at, struct amp_span name,
                  char *out, size_t size);

/* A description's first sentence, as the middle of another one. */
void amp_describe_shortly(struct amp_span description, char *out, size_t size);

#endif
