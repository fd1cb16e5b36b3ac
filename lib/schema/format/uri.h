/* URI references (RFC 3986 section 5). */
#ifndef AMP_SCHEMA_FORMAT_URI_H
#define AMP_SCHEMA_FORMAT_URI_H

#include <amp/base/buf.h>

struct amp_uri {
    struct amp_span scheme, authority, path, query, fragment;
    bool has_authority, has_query, has_fragment;
};

/* Never fails: text that is not a URI becomes a path. */
struct amp_uri amp_uri_split(struct amp_span text);
/* Appends ref resolved against base, without its fragment. base may be empty or relative. */
int amp_uri_resolve(struct amp_span base, struct amp_span ref, struct amp_buf *out,
                    struct amp_error *err);
/* Appends text with its %XX decoded. */
int amp_uri_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err);
/* Appends text with %XX for all bytes but letters, digits and those in `keep`. */
int amp_uri_encode(struct amp_span text, const char *keep, struct amp_buf *out,
                   struct amp_error *err);

#endif
