/*
 * Snapshots and the rollback of a TASK (AOP §7). Before the first run of an attempt, the files that
 * rollback_snapshot names are recorded: the path of its expected output or, if that has none, the
 * paths of access.filesystem.write_paths. A rollback makes them so again: contents, permissions,
 * links, and which names exist (work/git/snapshot/restore.h).
 *
 * The strategy decides what is at snapshot_path, for people:
 *   COPY       a copy; nothing if the path does not exist. Also without snapshot_strategy
 *   GIT_STASH  a line with the repository, the ref and the commit that has the recorded files
 *   DIFF       the difference of that commit to HEAD; without a repository, a copy
 *
 * The record is in STATE/snapshots/, where a confined command cannot write. The rollback reads
 * only it. No snapshot contains the .git at the top of the workspace, the state directory, the
 * audit trail or a snapshot_path.
 */
#ifndef AMP_WORK_AOP_SNAPSHOT_SNAPSHOT_H
#define AMP_WORK_AOP_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "work/git/repository/git.h"

/* Names the TASK and the place of a snapshot. All texts are borrowed; directories are absolute. */
struct amp_snapshot_of {
    struct amp_git *git;        /* used by DIFF and GIT_STASH; NULL: a connection for the call */
    const char *state;          /* the state directory */
    const char *session, *task; /* the ids */
    int64_t attempt;
    const char *root;         /* task.environment.workspace_root */
    const char *place;        /* its directory here: where the command works */
    const char *home;         /* the same for snapshot_path, if the place is a worktree of it; NULL:
                                 the place */
    const char *trail;        /* the directory of the session's audit trail, which is no part of the
                                 workspace; absolute, or NULL */
    volatile const int *stop; /* as in amp_git_options; or NULL */
    int64_t files, bytes;     /* limits of a TASK's snapshot; 0: 200,000 and 4 GiB */
};

#define AMP_SNAPSHOT_KEEP_S (30 * 86400) /* older ones are removed by amp_snapshot_take */

/* Takes the snapshot that the TASK (the complete message) asks for; before its first run. 1: it is
 * there, also from an earlier call for the same attempt, whose snapshot stays; 0: the TASK asks for
 * none; -1: nothing is left of it.
 *   NOPERM E_PERMISSION_DENIED  a path or snapshot_path is not below workspace_root, leads through
 *                               a link, or is not readable; snapshot_path is taken by something
 *                               that is not an unchanged snapshot; a special file; GIT_STASH where
 *                               there is no repository
 *   NO E_CONTEXT_OVERFLOW       past a limit
 * Other errors (a full disk) are of the machine: the caller may call again. */
int amp_snapshot_take(const struct amp_snapshot_of *of, const json_t *message,
                      struct amp_error *err);

/* The effect of a rollback on one path. Texts are as in the TASK. */
struct amp_snapshot_file {
    char *path, *restored_from; /* snapshot_path; "" if the TASK has none */
    bool restored;
};
struct amp_snapshot_result {
    struct amp_snapshot_file *v;
    size_t n;
    char digest[65]; /* of the files as they were before the run */
};
void amp_snapshot_result_release(struct amp_snapshot_result *r);

/* The rollback. 0: everything is as it was; also if it was before. 1: there is no snapshot. -1:
 * `out` says which paths are as they were:
 *   NO E_ROLLBACK_FAILED  the text has the reason
 *   INTERRUPTED           by `stop`
 * It may be repeated, also after kill -9. If root and place of `of` are NULL, it uses those of the
 * snapshot. */
int amp_snapshot_restore(const struct amp_snapshot_of *of, struct amp_snapshot_result *out,
                         struct amp_error *err);

/* The newest attempt of a TASK that has a snapshot; 0: none has. */
int amp_snapshot_newest(const char *state, const char *session, const char *task, int64_t *attempt,
                        struct amp_error *err);

/* The line of ROLLBACK_INITIATED, with LF, for the result of a rollback. trigger: TASK_ABORTED,
 * TASK_FAILED, FALLBACK or USER. */
int amp_snapshot_event(const struct amp_snapshot_of *of, const struct amp_snapshot_result *r,
                       const char *trigger, int64_t now_ms, struct amp_buf *out,
                       struct amp_error *err);

#endif
