/* What the files of a restore share (restore.h): the transaction, and changes of one file. */
#ifndef AMP_WORKTREE_SNAPSHOT_TRANSACTION_H
#define AMP_WORKTREE_SNAPSHOT_TRANSACTION_H

#include <limits.h>

#include "worktree/snapshot/attr.h"
#include "worktree/snapshot/restore.h"

#define AMP_RESTORE_STAGES 16

struct amp_restore_stage {
    char path[PATH_MAX]; /* below the root */
    dev_t dev;
    int fd;
};

struct amp_restore {
    struct amp_restore_spec s;
    char name[64]; /* of the stages */
    int journal;   /* open for appending, or -1 */
    struct amp_restore_stage stage[AMP_RESTORE_STAGES];
    unsigned n_stages;
    uint64_t next;  /* the number of the next file in a stage */
    uint64_t above; /* the inode of the directory whose time was noted last */
    unsigned syncs;
    size_t noted; /* bytes of the journal */
};

/* Adds a step to the journal. */
int amp_restore_note(struct amp_restore *r, struct amp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Syncs a file before its rename, and a directory after one (open as a path only). Only the end of
 * the transaction needs it: until then, the snapshot has everything. With more than a few it is the
 * file system that is synced at the end. -1 with errno. */
int amp_restore_file_sync(struct amp_restore *r, int fd);
int amp_restore_dir_sync(struct amp_restore *r, int dir);
int amp_restore_all_sync(struct amp_restore *r);

/* Follow no link; -1 with errno. */
int amp_restore_mode(int dir, const char *name, unsigned mode);
int amp_restore_time(int dir, const char *name, struct timespec mtime);
int amp_restore_attrs(int dir, const char *name, const char *attrs); /* of a directory */
/* As far as this process may. Clears set-uid bits of a file. */
int amp_restore_owner(int dir, const char *name, uid_t uid, gid_t gid);

#endif
