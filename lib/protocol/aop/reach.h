/*
 * Where a task may reach, for one path after another. The plain paths, which are nearly all, cost a
 * comparison; for the others the granted directories are read once, whatever their number.
 */
#ifndef AMP_PROTOCOL_AOP_REACH_H
#define AMP_PROTOCOL_AOP_REACH_H

#include <amp/protocol/aop_policy.h>

#include "protocol/aop/path.h"

struct amp_aop_reach {
    const struct amp_view *v;
    const struct amp_aop_paths *to;
    struct amp_span root; /* the workspace, decoded */
    bool read;            /* root and the directories: what follows is filled */
    const char *fault;    /* of the root, or NULL */
    struct amp_aop_path base;
    struct amp_buf dirs; /* canonical, each with a NUL behind it */
    struct amp_buf room;
};

/* Everything is borrowed, and outlives it. */
void amp_aop_reach_init(struct amp_aop_reach *r, const struct amp_view *v,
                        const struct amp_aop_paths *to, struct amp_span root);
void amp_aop_reach_release(struct amp_aop_reach *r);

/* NULL: the path may be reached; else why not, as the end of a sentence. */
const char *amp_aop_reach_denies(struct amp_aop_reach *r, struct amp_span path);

#endif
