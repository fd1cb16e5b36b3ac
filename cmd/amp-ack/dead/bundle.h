/* A bundle of files that appears completely or not at all: a directory, or a tar archive. */
#ifndef AMP_ACK_BUNDLE_H
#define AMP_ACK_BUNDLE_H

#include <amp/base/buf.h>

#define BUNDLE_FILES 16

struct bundle {
    struct {
        const char *name;
        struct amp_buf text;
    } file[BUNDLE_FILES];
    unsigned n;
};

/* A new file, to be filled. */
struct amp_buf *bundle_file(struct bundle *b, const char *name);
/* Adds manifest.json: name, bytes and SHA-256 of each file, and the members of `about`, a JSON
 * object without braces. */
int bundle_manifest(struct bundle *b, struct amp_span about, struct amp_error *err);
/* Writes all; a path that ends in .tar is an archive. CANTCREAT where the path exists. */
int bundle_write(const struct bundle *b, const char *path, struct amp_error *err);
void bundle_release(struct bundle *b);

#endif
