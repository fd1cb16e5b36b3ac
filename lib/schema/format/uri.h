/* URI references (RFC 3986 section 5): split and resolved, without any network. */
#ifndef SCHEMA_URI_H
#define SCHEMA_URI_H

#include <amp/base/buf.h>

struct amp_uri {
    struct amp_span scheme, authority, path, query, fragment;
    bool has_authority, has_query, has_fragment;
};

struct amp_uri amp_uri_split(struct amp_span text);
/* Appends ref resolved against base (which may be empty or itself relative), no fragment. */
int amp_uri_resolve(struct amp_span base, struct amp_span ref, struct amp_buf *out,
                    struct amp_error *err);
/* Appends text with its %XX undone. */
int amp_uri_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err);

#endif
