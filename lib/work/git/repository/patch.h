/* Unified diffs, diff_urls, and the paths that a change must not touch. */
#ifndef AMP_WORK_GIT_REPOSITORY_PATCH_H
#define AMP_WORK_GIT_REPOSITORY_PATCH_H

#include <amp/protocol/protocol.h>

/* "file://REPO#BASE...COMMIT" into its parts; false for anything else. */
bool amp_diff_url_parse(struct amp_span url, char *base, size_t base_size, char *commit,
                        size_t commit_size);

/* A file of a unified diff. */
struct amp_patch_file {
    char *path;
    int64_t lines; /* added and removed */
    bool created;
    bool binary;
};
struct amp_patch {
    struct amp_patch_file *v;
    size_t n, cap;
};
int amp_patch_read(const char *path, struct amp_patch *out, struct amp_error *err);
void amp_patch_release(struct amp_patch *p);

/* Whether a changed path is forbidden by the patterns of the risk level or by a dispatch's
 * forbidden_actions. A word of an action is a path pattern if it has a slash, a star, or the form
 * name.suffix. Without a slash it is compared with the last component; with one at the end, it
 * matches everything below. Copies the pattern to `by`. */
bool amp_scope_forbids(struct amp_span path, const char *const *patterns,
                       const struct amp_spans *actions, char *by, size_t size);

#endif
