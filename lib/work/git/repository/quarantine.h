/*
 * The quarantine: the private git directory of a confined attempt (SW4RM §6.4, §16). A confined
 * agent sees nothing of the repository but its objects, read-only. Its git works in the quarantine,
 * and afterwards git-worker takes over what became of the branch. Errors: see git.h.
 *
 * Only these files of the quarantine are read, each without following links: HEAD, the branch
 * (loose or in packed-refs), loose objects, and packs, which are indexed again. Its configuration,
 * hooks, alternates, attributes, index, shallow file, grafts, replace refs and other refs are never
 * read.
 */
#ifndef AMP_WORK_GIT_REPOSITORY_QUARANTINE_H
#define AMP_WORK_GIT_REPOSITORY_QUARANTINE_H

#include "work/git/repository/git.h"

/* Creates the directory dir (absolute, 0700): HEAD and the branch of the worktree, a copy of its
 * index, a configuration with the agent's name, and an empty object store that borrows the
 * repository's objects. CANTCREAT if dir exists. On failure nothing is left. The worktree is one of
 * repo, linked or the main one; NO worktree_unknown. Only a linked one can be taken over. */
struct amp_git_quarantine_spec {
    const char *repo, *worktree, *dir;
    const char *name, *email; /* the agent's, for its commits */
};
struct amp_git_quarantine {
    char **objects; /* the directories that the agent must be able to read; NULL-terminated */
    uint32_t n_objects;
    char common[PATH_MAX];  /* the repository's git directory: the agent must not see the rest */
    char head[AMP_OID_MAX]; /* the commit of HEAD */
};
int amp_git_quarantine_make(struct amp_git *g, const struct amp_git_quarantine_spec *spec,
                            struct amp_git_quarantine *out, struct amp_error *err);
void amp_git_quarantine_release(struct amp_git_quarantine *q);

/* Takes over the branch. Every object that the new commit needs and that the repository lacks is
 * read, its hash computed, its contents parsed, and its links followed; then the objects are
 * written, and the branch moves from start to the new commit by the rule for protected branches
 * (NOPERM branch_violation). The worktree's index is refreshed, its files stay. Objects that no new
 * commit needs are left behind.
 *   NOPERM quarantine_refused  a link or special file, a damaged, malformed or missing object, a
 *                              name such as ".git" in a tree, a symbolic or invalid branch, or a
 *                              commit without the fork of base and start among its ancestors
 *   NOPERM quarantine_limit    past one of the limits
 *   NO branch_moved            the branch is no longer at start; the new commit is kept as `keep`
 * If start is not an ancestor of the new commit, start is kept as `keep`. */
struct amp_git_take_limits {
    int64_t objects;      /* new objects, and entries of packs; 0: 200,000 */
    int64_t bytes;        /* of all new objects; 0: 1 GiB */
    int64_t object_bytes; /* of one object; 0: 256 MiB */
    int64_t tree_paths;   /* to which one tree expands; 0: 1,000,000 */
    int64_t tree_bytes;   /* of the files to which one tree expands; 0: 64 GiB */
};
struct amp_git_take_spec {
    const char *repo, *worktree, *dir, *branch; /* branch: a short name */
    const char *base, *start;                   /* commits; base "": start */
    const char *name, *email, *keep;
    struct amp_git_take_limits limits;
};
struct amp_git_taken {
    char commit[AMP_OID_MAX];        /* the branch's commit now */
    char head[256];                  /* the branch under HEAD of the quarantine, "" if detached */
    int64_t commits, objects, bytes; /* new in the repository */
    bool kept;                       /* `keep` was created */
    bool unfinished;                 /* the agent left a merge, rebase, cherry-pick or revert */
};
int amp_git_quarantine_take(struct amp_git *g, const struct amp_git_take_spec *spec,
                            struct amp_git_taken *out, struct amp_error *err);

/* Keeps the branch of an attempt whose worker was killed, after the same checks; worktree is not
 * used. Nothing is moved: the new commit is kept as `keep`, unless a ref reaches it already. */
int amp_git_quarantine_keep(struct amp_git *g, const struct amp_git_take_spec *spec,
                            struct amp_git_taken *out, struct amp_error *err);

/* Removes a quarantine with everything in it. NO quarantine_unknown: dir is not one (it has no HEAD
 * and objects, or is a link). */
int amp_git_quarantine_drop(struct amp_git *g, const char *repo, const char *dir,
                            struct amp_error *err);

#endif
