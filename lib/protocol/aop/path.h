/*
 * AOP paths, lexically, without the file system. A path starts at a drive (C:/…), at the root (/…),
 * or at the workspace. `\` is a separator in drive paths only. `.` and `..` are resolved, and then
 * complete components are compared.
 */
#ifndef AMP_PROTOCOL_AOP_PATH_H
#define AMP_PROTOCOL_AOP_PATH_H

#include <amp/base/buf.h>

enum { AMP_AOP_PARTS_MOST = 256 };

struct amp_aop_path {
    char drive; /* its letter in upper case; '/': the root; 0: unknown, relative to it */
    unsigned n;
    struct amp_span part[AMP_AOP_PARTS_MOST]; /* of the texts that it was read from */
};

/* Reads a path; a relative one starts from `base`, NULL: from an unknown directory. Returns NULL,
 * or the fault as the end of a sentence ("leaves its root by .."); then out is undefined. */
const char *amp_aop_path_read(const struct amp_aop_path *base, struct amp_span path,
                              struct amp_aop_path *out);

/* Whether a canonical text (amp_aop_path_write) is the directory or below it. */
bool amp_aop_path_within(struct amp_span dir, struct amp_span path);

/* The same for texts that are not canonical. True only if both are plain, as nearly all are; false
 * means that the path has to be read. */
bool amp_aop_path_plainly_within(struct amp_span dir, struct amp_span path);

/* Its canonical text: "C:/a/b", "/a/b", "a/b" or ".". */
int amp_aop_path_write(const struct amp_aop_path *p, struct amp_buf *out, struct amp_error *err);

#endif
