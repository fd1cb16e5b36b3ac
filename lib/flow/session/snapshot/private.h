/*
 * What the files of snapshot/ share. A snapshot is the directory STATE/snapshots/SESSION/TASK/N
 * (N: the attempt); it has this name as soon as it is complete:
 *
 *     meta.json            what the TASK asked for, where, and the digests
 *     copy/ diff/ stash/   for each strategy that is used: tree, contents/ (git/snapshot.h)
 *     journal/             of a rollback (worktree/snapshot/restore.h)
 *     lock                 held during a rollback
 *
 * STATE/snapshots/at/ has a file for each snapshot_path: the digest of what was written there.
 */
#ifndef AMP_FLOW_SESSION_SNAPSHOT_PRIVATE_H
#define AMP_FLOW_SESSION_SNAPSHOT_PRIVATE_H

#include "flow/session/snapshot.h"
#include "worktree/git/snapshot.h"
#include "worktree/snapshot/tree.h"

/* The most of all snapshots of a TASK. */
#define AMP_SHOT_FILES 200000
#define AMP_SHOT_BYTES ((int64_t)4 << 30)

enum amp_shot_kind { AMP_SHOT_COPY, AMP_SHOT_DIFF, AMP_SHOT_STASH, AMP_SHOT_KINDS };

struct amp_shot_output {
    char *path, *shown;     /* as the TASK has it; snapshot_path or "" */
    char *below, *shown_at; /* below the workspace; shown_at: also below `kept`, or NULL */
    bool in_state;          /* shown_at is below STATE/snapshots/kept */
    enum amp_shot_kind kind;
};

struct amp_shot {
    const struct amp_snapshot_of *of;
    char root[PATH_MAX], place[PATH_MAX], home[PATH_MAX];
    char dir[PATH_MAX];   /* of the snapshot, without a suffix for an incomplete one */
    int fd;               /* of the directory that is open now, or -1 */
    char trail[PATH_MAX]; /* the audit trail below the workspace; "": elsewhere */
    int place_fd;
    struct stat state; /* of the state directory */
    struct amp_shot_output *v;
    size_t n, cap;
    bool has[AMP_SHOT_KINDS];
    bool with_ignored;             /* the stash has ignored files, too */
    char gitdir[PATH_MAX];         /* "": no repository */
    char ref[512];                 /* the start of the refs' names */
    struct amp_git *git, *own_git; /* own_git: closed with the shot */
    char digest[AMP_SHOT_KINDS][AMP_TREE_DIGEST_MAX];
    char oid[AMP_SHOT_KINDS][AMP_OID_MAX];
    char git_digest[AMP_SHA256_MAX]; /* of HEAD and the index, of a stash */
    /* What is left out: paths, sorted. */
    char **ignored;
    size_t n_ignored, cap_ignored;
    struct amp_buf *nested; /* collects the repositories in the workspace; or NULL */
    bool nested_lost;       /* not all of them */
    /* Of a rollback: those that the snapshot has, each with a NUL. A new one is removed. NULL: any
     * is left out. */
    const struct amp_buf *repositories;
    enum amp_shot_kind kind; /* that is scanned */
    /* Directories above a snapshot_path that were missing: removed with an incomplete shot. */
    char **made;
    size_t n_made, cap_made;
    bool complete;
    const struct amp_tree *only; /* only what this tree has is looked at; NULL: everything */
};

int amp_shot_init(struct amp_shot *s, const struct amp_snapshot_of *of, struct amp_error *err);
void amp_shot_release(struct amp_shot *s);
/* Sets root, place and home from `of`, and opens the place. */
int amp_shot_place(struct amp_shot *s, struct amp_error *err);
/* The outputs, and artifacts of checkpoints, that the TASK wants a snapshot of. */
int amp_shot_plan(struct amp_shot *s, const json_t *message, struct amp_error *err);
int amp_shot_git(struct amp_shot *s, struct amp_error *err); /* a connection */
/* For amp_tree_scan and amp_restore_spec: s->kind, s->only. */
bool amp_shot_skip(void *shot, const char *path, const struct stat *st);
/* Directories above what is left out that were made since then, such as that of the audit trail:
 * adds them to the list of files if they are in a directory of it, so that they stay. */
int amp_shot_ways(const struct amp_shot *s, struct amp_tree *want, struct amp_error *err);
/* Reads the list of ignored files that git-worker wrote, in addition to those it has. */
int amp_shot_ignored(struct amp_shot *s, int dir, struct amp_error *err);
/* The arguments for git-worker for one strategy; dir is filled. */
void amp_shot_args(const struct amp_shot *s, enum amp_shot_kind k, const char *suffix,
                   char dir[PATH_MAX], char ref[600], struct amp_git_snapshot *out);
const char *amp_shot_name(enum amp_shot_kind k); /* of the directory */
const char *amp_shot_strategy(enum amp_shot_kind k);
/* The digest of all that the snapshot has. */
void amp_shot_digest(const struct amp_shot *s, char out[AMP_SHA256_MAX]);

/* meta.json */
int amp_shot_write(const struct amp_shot *s, struct amp_error *err);
/* 1: there is no complete snapshot. */
int amp_shot_read(struct amp_shot *s, struct amp_error *err);

/* publish.c: what is at the snapshot_paths. check: before anything is taken, also makes the
 * directories above; unmake removes them again. */
void amp_shot_unmake(struct amp_shot *s);
int amp_shot_publish_check(struct amp_shot *s, struct amp_error *err);
int amp_shot_publish(struct amp_shot *s, const struct amp_tree *trees, struct amp_error *err);

/* The name of an id in a path and a ref: itself, if it is of letters, digits, '-' and '_'; else
 * '%' and its SHA-256. */
void amp_shot_id(const char *id, char out[80]);

#endif
