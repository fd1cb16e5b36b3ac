/* Names of sources and consumers of numbered messages, as parts of keys. Pure. */
#ifndef AMP_MESSAGE_RECORD_SOURCE_H
#define AMP_MESSAGE_RECORD_SOURCE_H

#include <amp/base/buf.h>

/* A part of a key: the name, or a digest of one that is longer than a part may be, or has control
 * characters in it. */
#define AMP_SOURCE_NAME_MAX 304
struct amp_span amp_source_name(struct amp_span name, char out[AMP_SOURCE_NAME_MAX]);
/* The key's id: both parts with an LF between. */
#define AMP_SOURCE_KEY_MAX (2 * AMP_SOURCE_NAME_MAX)
struct amp_span amp_source_key(struct amp_span consumer, struct amp_span source,
                               char out[AMP_SOURCE_KEY_MAX]);

#endif
