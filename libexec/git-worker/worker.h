/*
 * git-worker: requests {"q":N,"op":…} as NDJSON on stdin, exactly one reply each on stdout:
 * {"q":N,"ok":true,…} or {"q":N,"ok":false,"status":…,"code":…,"what":…}. The operations are the
 * functions of lib/worktree/git/git.h; this program alone links libgit2.
 */
#ifndef GIT_WORKER_H
#define GIT_WORKER_H

#include <git2.h>
#include <stdbool.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "worktree/rule.h"

#define TEXTS_MAX 16

struct request {
    const struct amp_tape *tape;
    char *texts[TEXTS_MAX]; /* decoded strings handed out, freed after the reply */
    int n_texts;
    struct amp_jw out; /* inside the reply object */
    struct amp_error *err;
};

/* A string field; NULL when it is absent or null. wanted: absence is the error bad_request. */
int request_text(struct request *r, const char *key, bool wanted, const char **out);
bool request_flag(const struct request *r, const char *key);
void reply_text(struct request *r, const char *key, const char *value);
void reply_oid(struct request *r, const char *key, const git_oid *oid);

/* Fills err from libgit2's last error and returns -1. */
int fail_git(struct request *r, int rc, enum amp_status status, const char *code,
             const char *doing);

/* open.c: the last path that was refused because it is neither a regular file nor a directory. */
const char *open_refused(void); /* NULL: none since the last clear */
void open_refused_clear(void);

/* repository.c */
int open_repository(struct request *r, const char *path, git_repository **out);
int find_commit(struct request *r, git_repository *repo, const char *rev, git_commit **out);
/* The policy of a repository and the agent that works in this git directory. */
int load_rule(struct request *r, git_repository *repo, struct amp_rule *rule);
/* agent: the request's word for it, or NULL: then the marker decides. False for people. */
bool find_agent(const char *agent, const char *gitdir, char *name, size_t size);
int refuse_branch(struct request *r, const char *branch, const char *agent);
/* path without its last slash */
bool trim_path(const char *path, char *out, size_t size);

/* linked.c: linked worktrees as git lays them out on disk. */
struct linked {
    char name[256], gitdir[4096], path[4096];
    bool locked, unfinished;
    bool missing;  /* there is no PATH/.git */
    bool foreign;  /* there is one, and it does not lead back here: nothing at path is ours */
    bool dangling; /* foreign, and it leads nowhere at all */
};
/* Whether both paths, each relative to its descriptor, are one directory. */
bool same_dir(int a_fd, const char *a, int b_fd, const char *b);
typedef int (*linked_fn)(void *ctx, const struct linked *w); /* non-zero stops, and is returned */
int linked_lock(struct request *r, git_repository *repo);    /* a descriptor to close, or -1 */
int linked_each(git_repository *repo, linked_fn fn, void *ctx);
/* Removes what a crash left of a worktree at path, or what is registered there but gone. */
void linked_clear(git_repository *repo, const char *path);
/* Whether some worktree stands on the branch (a full name). */
bool linked_checked_out(git_repository *repo, const char *ref);
int linked_make(struct request *r, git_repository *repo, const char *path, const char *head,
                const char *agent, struct linked *out);
int linked_finish(struct request *r, const struct linked *w);
/* Removes the entry; with_files: also the directory, if it leads back to the entry now. */
void linked_remove(const struct linked *w, bool with_files);
/* Whether the HEAD in a git directory names the branch (a full name). */
bool linked_head_is(const char *gitdir, const char *ref);

/* worktree.c: opens the worktree at path for reading and changing its files: NO worktree_unknown
 * unless the library takes path for its work directory, gitdir for its git directory and common
 * for the shared one. */
int tree_open(struct request *r, const char *common, const char *gitdir, const char *path,
              git_repository **out);
/* The same for the linked worktree that the repository has at path. */
int open_worktree(struct request *r, git_repository *repo, const char *path, git_repository **out);

/* keep.c: what nobody committed goes under a new ref. keep_tip: the commit, unless a ref other than
 * `except`, or the commit `extra`, reaches it (both may be NULL). keep_tree: the files of a
 * worktree, or its HEAD when no ref reaches that; partial: a repository inside was left out. */
bool keep_is_reachable(git_repository *repo, const git_oid *oid, const char *except,
                       const git_oid *extra);
int keep_tip(struct request *r, git_repository *repo, const git_oid *tip, const char *except,
             const git_oid *extra, const char *ref, bool *kept);
int keep_tree(struct request *r, git_repository *tree, const char *name, const char *email,
              const char *ref, bool *kept, bool *partial);

int op_info(struct request *r);
int op_resolve(struct request *r);
int op_tree(struct request *r);
int op_config(struct request *r);
int op_reflog(struct request *r);
int op_refs(struct request *r);
int op_worktree_add(struct request *r);
int op_worktree_remove(struct request *r);
int op_worktrees(struct request *r);
int op_commit(struct request *r);
int op_rollback(struct request *r);
int op_keep(struct request *r);
int op_diff(struct request *r);

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define DEFINE_CLEANUP(type)                                                                       \
    static inline __attribute__((unused)) void type##_cleanup(type **p)                            \
    {                                                                                              \
        type##_free(*p);                                                                           \
    }
DEFINE_CLEANUP(git_repository)
DEFINE_CLEANUP(git_reference)
DEFINE_CLEANUP(git_commit)
DEFINE_CLEANUP(git_tree)
DEFINE_CLEANUP(git_object)
DEFINE_CLEANUP(git_index)
DEFINE_CLEANUP(git_signature)
DEFINE_CLEANUP(git_config)
DEFINE_CLEANUP(git_reflog)
DEFINE_CLEANUP(git_diff)
DEFINE_CLEANUP(git_diff_stats)
DEFINE_CLEANUP(git_status_list)

#endif
