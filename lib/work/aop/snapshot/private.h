/*
 * These declarations are for the files of snapshot/. A snapshot is the directory
 * STATE/snapshots/SESSION.TASK.N (N: the attempt); it has this name as soon as it is complete:
 *
 *     meta.json    the TASK, where, and the digest
 *     tree         the list of the files (work/git/snapshot/tree.h)
 *     contents/    their contents, by their sums
 *     stash patch  what GIT_STASH and DIFF show, if there is a commit
 *     lock         held during a rollback
 *
 * STATE/snapshots/at/ has a file for each snapshot_path: the digest of what was written there.
 */
#ifndef AMP_WORK_AOP_SNAPSHOT_PRIVATE_H
#define AMP_WORK_AOP_SNAPSHOT_PRIVATE_H

#include "work/aop/snapshot/snapshot.h"
#include "work/git/repository/snapshot.h"
#include "work/git/snapshot/restore.h"

/* The most of a TASK's snapshot. */
#define AMP_SHOT_FILES    200000
#define AMP_SHOT_BYTES    ((int64_t)4 << 30)
#define AMP_SHOT_TREE_MAX ((size_t)1 << 30) /* the text of its tree */
#define AMP_SHOT_STASH    "stash"
#define AMP_SHOT_PATCH    "patch"
#define AMP_SHOT_CONTENTS "contents"

enum amp_shot_kind { AMP_SHOT_COPY, AMP_SHOT_GIT_STASH, AMP_SHOT_DIFF, AMP_SHOT_KINDS };

struct amp_shot_output {
    char *path, *shown;     /* as the TASK has it; snapshot_path or "" */
    char *below, *shown_at; /* below the workspace; shown_at: NULL without snapshot_path */
    enum amp_shot_kind kind;
};

struct amp_shot {
    const struct amp_snapshot_of *of;
    char root[PATH_MAX], place[PATH_MAX], home[PATH_MAX];
    char dir[PATH_MAX];   /* of the snapshot */
    int fd, place_fd;     /* of the directory that is open now, and of the place; or -1 */
    char trail[PATH_MAX]; /* the audit trail below the workspace; "": elsewhere */
    struct stat state;    /* of the state directory */
    struct amp_shot_output *v;
    size_t n, cap;
    char repository[PATH_MAX]; /* the git directory that has the commit; "": there is none */
    char ref[512], oid[AMP_OID_MAX];
    char digest[AMP_TREE_DIGEST_MAX];
    struct amp_git *git, *own_git; /* own_git: closed with the shot */
};

int amp_shot_init(struct amp_shot *s, const struct amp_snapshot_of *of, struct amp_error *err);
void amp_shot_release(struct amp_shot *s);
/* Sets root, place and home from `of`, and opens the place. */
int amp_shot_place(struct amp_shot *s, struct amp_error *err);
int amp_shot_place_open(struct amp_shot *s, struct amp_error *err);
/* Finds what the expected outputs, and artifacts of checkpoints, want a snapshot of. */
int amp_shot_plan(struct amp_shot *s, const json_t *message, struct amp_error *err);
int amp_shot_git(struct amp_shot *s, struct amp_error *err); /* a connection */
/* For amp_tree_scan and amp_restore_spec. */
enum amp_tree_skip amp_shot_skip(void *shot, const char *path, const struct stat *st);

/* meta.json */
int amp_shot_write(const struct amp_shot *s, const json_t *message, struct amp_error *err);
/* 1: there is no complete snapshot. */
int amp_shot_read(struct amp_shot *s, struct amp_error *err);

/* Removes the snapshot at s->dir, and its ref. Files at snapshot_path stay. Does nothing if there
 * is none. */
int amp_shot_forget(struct amp_shot *s, struct amp_error *err);

/* publish.c: writes what is at the snapshot_paths. check: before anything is taken. */
int amp_shot_publish_check(const struct amp_shot *s, struct amp_error *err);
int amp_shot_publish(const struct amp_shot *s, const struct amp_tree *t, struct amp_error *err);

/* The name of an id in a path and a ref: itself, if it is of letters, digits, '-' and '_'; else
 * '%' and its SHA-256. */
void amp_shot_id(const char *id, char out[80]);

#endif
