/*
 * The artifacts of a TASK, measured by us (AOP §5): what its command created, changed and deleted.
 * The place is measured before the first run and after the last one.
 */
#ifndef AMP_WORK_AOP_ARTIFACT_ARTIFACT_H
#define AMP_WORK_AOP_ARTIFACT_ARTIFACT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <amp/base/error.h>

struct amp_measure_of {
    const char *root;  /* task.environment.workspace_root */
    const char *place; /* its directory here, absolute */
    const char *state; /* the state directory, which is left out; or NULL */
    const char *trail; /* the directory of the audit trail, which is left out; or NULL */
    volatile const int *stop;
    int64_t files, bytes; /* limits; 0: 1,000,000 files, 4 GiB hashed */
};

struct amp_measure;
/* Measures the expected outputs and everything else in the place, apart from .git, the audit trail
 * and what the TASK names as snapshot_path. No link is followed, so files behind one do not count.
 * A file counts if its size, times and inode are the same before and after it was hashed; otherwise
 * it is read again up to 3 times. Expected outputs are always hashed. Of the other files 256 MiB
 * are, in the order of their paths; one of the rest has changed if its inode, size or ctime has.
 * file: where the result is written, for amp_measure_load after a crash; or NULL. NOPERM
 * E_PERMISSION_DENIED  an expected output outside of workspace_root NO E_CONTEXT_OVERFLOW more
 * files than the limit, or more bytes in expected outputs TEMPFAIL file_changing      an expected
 * output did not hold still */
int amp_measure_take(const struct amp_measure_of *of, const json_t *message, const char *file,
                     struct amp_measure **out, struct amp_error *err);
int amp_measure_load(const char *file, struct amp_measure **out, struct amp_error *err);
void amp_measure_free(struct amp_measure *m);

/* Lists what changed between two measures, as execution_summary.output_artifacts: first the
 * expected outputs in their order, then the other files that changed, by path. Items are
 * {"type","path", "status"} with "hash" (sha256:HEX, over the contents) and "size_bytes" where
 * there is a file now; of a directory the hash is the digest of its tree (work/git/snapshot/tree.h)
 * and the size that of its files. A link's is over its target. Special files have neither, and
 * extensions.x_special true. Paths are those of the TASK, of others workspace_root and the path
 * below. An expected output that was missing before and is missing now is not an item: its path is
 * in `missing`, an array of texts. The path of one with the type FILE that is a link or a special
 * file is there as well. `most`: at most so many items (0: 1,000); the number of those left out is
 * *omitted, expected outputs never are. */
struct amp_artifacts {
    json_t *items, *missing; /* references of the caller's */
    int64_t omitted;
};
int amp_measure_compare(const struct amp_measure_of *of, const json_t *message,
                        const struct amp_measure *before, const struct amp_measure *after,
                        int64_t most, struct amp_artifacts *out, struct amp_error *err);
void amp_artifacts_release(struct amp_artifacts *a);

#endif
