/*
 * Whether a task may access paths. A plain path, as nearly all are, costs a comparison; for the
 * others the granted directories are read once.
 *
 * Paths are compared lexically, without the file system. A path starts at a drive (C:/…), at the
 * root (/…), or at the workspace. `\` is a separator in drive paths only. `.` and `..` are
 * resolved, and then complete components are compared. An ambiguous path is refused.
 */
#ifndef AMP_MESSAGE_PROTOCOL_AOP_POLICY_REACH_H
#define AMP_MESSAGE_PROTOCOL_AOP_POLICY_REACH_H

#include <amp/base/buf.h>
#include <amp/protocol/aop_policy.h>

enum { AMP_AOP_PARTS_MOST = 256 };

struct amp_aop_path {
    char drive; /* its letter in upper case; '/': the root; 0: relative to an unknown directory */
    unsigned n;
    struct amp_span part[AMP_AOP_PARTS_MOST]; /* parts of the texts that were read */
};

struct amp_aop_reach {
    const struct amp_view *v;
    const struct amp_aop_paths *to;
    struct amp_span root; /* the workspace, decoded */
    bool read;            /* root and the directories are read: the next members are valid */
    const char *fault;    /* of the root, or NULL */
    struct amp_aop_path base;
    struct amp_buf dirs; /* canonical, each followed by a NUL */
    struct amp_buf room;
};

/* The arguments are borrowed and outlive the object. */
void amp_aop_reach_init(struct amp_aop_reach *r, const struct amp_view *v,
                        const struct amp_aop_paths *to, struct amp_span root);
void amp_aop_reach_release(struct amp_aop_reach *r);

/* Whether a canonical path (amp_aop_resolve) is the directory or below it. */
bool amp_aop_is_within(struct amp_span dir, struct amp_span path);

/* NULL: the access is allowed; else the reason against it, as the end of a sentence. */
const char *amp_aop_reach_denies(struct amp_aop_reach *r, struct amp_span path);

#endif
