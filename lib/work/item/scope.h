/*
 * The scope of a job (SW4RM §9.2). A scope is a set of points (repository, branch, path) and a set
 * of other resources. Two scopes overlap if they have a common element.
 *
 * {"repositories":[…],"branches":[…],"paths":[…],"resources":[…]}; an absent member of the first
 * three means all. Without any of these three it touches no repository. In repositories, branches
 * and resources `*` matches any characters; paths are patterns as in gitignore. Of two different
 * absolute repositories one may be inside the other: they overlap. A path without a repository may
 * be one of the file system, so it is also compared with absolute repositories.
 *
 * "exclusive":true is the scope of work that does not say what it touches: it overlaps every scope
 * of the same type of agents, also an empty one.
 */
#ifndef AMP_WORK_ITEM_SCOPE_H
#define AMP_WORK_ITEM_SCOPE_H

#include <amp/base/buf.h>

enum { AMP_SCOPE_LIST_MAX = 256, AMP_SCOPE_ITEM_MAX = 1024 };

struct amp_scope {
    struct amp_span *repos, *branches, *paths, *resources;
    uint32_t n_repos, n_branches, n_paths, n_resources;
    bool exclusive;
};
/* Reads a scope; its texts are in mem. An empty text is the empty scope, which overlaps none. NO
 * bad_scope: not such an object, empty items, too many of them. */
int amp_scope_parse(struct amp_span json, struct amp_buf *mem, struct amp_scope *out,
                    struct amp_error *err);
/* Appends the canonical text: lists sorted, without duplicates and empty ones; nothing for the
 * empty scope. The same scope always gives the same text. Sorts the lists of s. */
int amp_scope_write(struct amp_scope *s, struct amp_buf *out, struct amp_error *err);
/* Symmetric. same_type: both are of work for one type of agents. patterns: whether two patterns of
 * paths have a common path. */
bool amp_scope_overlap(const struct amp_scope *a, const struct amp_scope *b, bool same_type,
                       bool (*patterns)(struct amp_span, struct amp_span));

/* Appends what two scopes have in common, a JSON object with the members of a scope: of each list a
 * text that both have, or [one, other] of two patterns that meet, at most 16. A list that one of
 * them lacks is that of the other. */
int amp_scope_common(const struct amp_scope *a, const struct amp_scope *b, bool same_type,
                     bool (*patterns)(struct amp_span, struct amp_span), struct amp_buf *out,
                     struct amp_error *err);

#endif
