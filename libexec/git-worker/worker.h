/*
 * git-worker: requests {"q":N,"op":…} as NDJSON on stdin, exactly one reply each on stdout:
 * {"q":N,"ok":true,…} or {"q":N,"ok":false,"status":…,"code":…,"what":…}. The operations are the
 * functions of lib/work/git/repository/git.h; this program alone links libgit2.
 */
#ifndef GIT_WORKER_H
#define GIT_WORKER_H

#include <git2.h>
#include <stdbool.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "work/git/rule.h"

/* The members of requests; each operation needs some of them. Absent texts are NULL. */
struct request_in {
    int64_t q;
    const char *agent, *base, *branch, *commit, *email, *expect, *from, *keep, *key, *message;
    const char *name, *oid, *op, *patch, *path, *ref, *repo, *rev, *role, *start, *task, *to,
        *worktree;
    bool contents, files, force, forward, is_path, merge, no_sparse, protected, release;
    int64_t bytes, object_bytes, objects, tree_bytes, tree_paths; /* limits; 0: the default */
};

struct request {
    struct request_in in;
    git_repository *repo; /* the repository of in.repo */
    struct amp_jw out;    /* inside the reply object */
    struct amp_error *err;
};

void reply_text(struct request *r, const char *key, const char *value);
void reply_flag(struct request *r, const char *key, bool value);
void reply_oid(struct request *r, const char *key, const git_oid *oid); /* NULL: "" */

/* Fills r->err from libgit2's last error and returns -1. */
int fail_git(struct request *r, int rc, enum amp_status status, const char *code,
             const char *doing);

/* open.c: directories of the request in which no link is followed; after git_libgit2_init, once:
 * the places of this user's configuration, in which links are followed. */
void open_guard(const char *repo, const char *worktree, const char *path);
void open_init(void);
/* Whether this user or the system has a file of attributes. */
bool open_has_attributes(void);
/* The last path that was refused because it is neither a regular file nor a directory. */
const char *open_refused(void); /* NULL: none since the last clear */
void open_refused_clear(void);

/* repository.c */
int open_repository(struct request *r, const char *path, git_repository **out);
/* In a pre-receive hook: the objects of the push, which git keeps apart until the hook permits it,
 * can be read, too. */
int incoming_add(struct request *r);
int find_commit(struct request *r, git_repository *repo, const char *rev, git_commit **out);
/* Reads the branch policy of a repository. */
int load_rule(struct request *r, git_repository *repo, struct amp_rule *rule);
/* The agent that works in a git directory: `agent` if it is not NULL, else the one that the marker
 * file names. false: a person. */
bool find_agent(const char *agent, const char *gitdir, char *name, size_t size);
/* contents.c: checks the contents of the commits up to tip that are on no branch, as the agent's.
 * NOPERM with the code of the guard. Nothing is checked without an agent or without such a rule. */
int check_contents(struct request *r, git_repository *repo, const struct amp_rule *rule,
                   const char *agent, const git_oid *tip);
/* in.message with the required trailers Agent and Task that it lacks and that are known. */
int add_trailers(struct request *r, const struct amp_rule *rule, struct amp_buf *out);

/* Refuses a branch that the caller may not move. */
int check_branch(struct request *r, const struct amp_rule *rule, const struct amp_rule_caller *c,
                 const char *branch);
int refuse_branch(struct request *r, const char *branch, const char *agent);
/* The full name of the branch under HEAD; "" if it is detached. */
void head_branch(git_repository *repo, char *out, size_t size);
/* Copies path without its last slashes; false if it is truncated. */
bool trim_path(const char *path, char *out, size_t size);

/* linked.c: linked worktrees as git lays them out on disk. */
struct linked {
    char name[256], gitdir[4096], path[4096];
    bool locked, unfinished;
    bool missing;  /* PATH/.git does not exist */
    bool foreign;  /* PATH/.git exists but does not lead back here: the files belong elsewhere */
    bool dangling; /* foreign, and its target does not exist */
};
/* Whether both paths, each relative to its descriptor, are the same directory. */
bool same_dir(int a_fd, const char *a, int b_fd, const char *b);
typedef int (*linked_fn)(void *ctx, const struct linked *w); /* non-zero stops, and is returned */
int linked_lock(struct request *r);                          /* a descriptor to close, or -1 */
int linked_each(git_repository *repo, linked_fn fn, void *ctx);
/* Removes the remains of a crash at path, and the entry of a worktree whose files are gone. */
void linked_clear(git_repository *repo, const char *path);
/* Whether a worktree has the branch (a full name) checked out. */
bool linked_checked_out(git_repository *repo, const char *ref);
/* Creates the entry and the file .git of the worktree in.path, for the agent in.agent; head is the
 * contents of its HEAD. It is unfinished until linked_finish. */
int linked_make(struct request *r, const char *head, struct linked *out);
int linked_finish(struct request *r, const struct linked *w);
/* Removes the entry; with_files: also the directory, if it leads back to the entry now. */
void linked_remove(const struct linked *w, bool with_files);
/* Removes name and everything in it, except the entry `keep` at the top (may be NULL). */
void linked_remove_tree(int parent, const char *name, dev_t dev, const char *keep);
/* Whether the HEAD of a git directory is the branch (a full name). */
bool linked_head_is(const char *gitdir, const char *ref);

/* worktree.c: opens the worktree at path for reading and changing its files: NO worktree_unknown
 * unless the library finds the work directory path, the git directory gitdir, and the same common
 * directory as that of r->repo. */
int tree_open(struct request *r, const char *gitdir, const char *path, git_repository **out);
/* Opens the linked worktree of r->repo at in.worktree in the same way. */
int open_worktree(struct request *r, git_repository **out);

/* Facts of a worktree that its repository's main worktree lacks (op worktree_facts). */
struct tree_facts {
    int64_t changes;       /* files that differ from HEAD, untracked ones included; -1: unknown */
    int64_t ahead, behind; /* commits, against the HEAD of the main worktree; -1: unknown */
    int64_t head_s;        /* the time of HEAD's commit; 0: unknown */
};
/* An element of a list of worktrees. keep: the reason to keep it, or "" (op worktree_lives); facts:
 * or NULL. */
void reply_worktree(struct request *r, const struct linked *w, bool is_main, const char *keep,
                    const struct tree_facts *facts);

/* checkout.c: writes the files and the index of the new worktree w, which is open as repo. With a
 * sparse checkout in the main worktree, unless in.no_sparse, only the files that it has. */
int checkout_files(struct request *r, const struct linked *w, git_repository *repo);

/* The largest file of an agent's that is committed or kept for it, without another limit. */
#define AMP_OBJECT_BYTES (256ll << 20)
/* NOPERM quarantine_limit, with the reason. */
int refuse_limit(struct request *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* commit.c: the size of a file of the worktree if it is above in.object_bytes; else 0. Hashing a
 * sparse file of a terabyte takes hours. */
int64_t file_oversize(const struct request *r, git_repository *repo, const char *path);

/* commit.c: whether the files or the index differ from HEAD; also if that is unknown. */
bool has_changes(git_repository *repo, bool untracked);

/* keep.c: creates a ref for work that would be lost. keep_tip: for the commit, unless a ref other
 * than `except`, or the commit `extra`, reaches it (both may be NULL). keep_tree: for the files of
 * a worktree, or for its HEAD if no ref reaches that; partial: a repository inside was left out. */
bool keep_is_reachable(git_repository *repo, const git_oid *oid, const char *except,
                       const git_oid *extra);
int keep_tip(struct request *r, git_repository *repo, const git_oid *tip, const char *except,
             const git_oid *extra, const char *ref, bool *kept);
int keep_tree(struct request *r, git_repository *tree, const char *ref, bool *kept, bool *partial);

/* quarantine/ */
int op_quarantine_make(struct request *r);
int op_quarantine_keep(struct request *r);
int op_quarantine_take(struct request *r);
int op_quarantine_drop(struct request *r);
/* diff.c: writes a difference to a new file, which gets its name when it is complete. */
int write_patch(struct request *r, git_diff *diff, const char *path);
int op_snapshot_save(struct request *r), op_snapshot_drop(struct request *r);
int op_info(struct request *r);
int op_resolve(struct request *r);
int op_look(struct request *r);
int op_config(struct request *r);
int op_reflog(struct request *r);
int op_refs(struct request *r);
int op_worktree_add(struct request *r);
int op_worktree_remove(struct request *r);
int op_worktrees(struct request *r);
int op_worktree_lives(struct request *r);
int op_worktree_facts(struct request *r);
int op_worktree_include(struct request *r);
int op_worktree_repair(struct request *r);
int op_commit(struct request *r);
int op_rollback(struct request *r);
int op_land_plan(struct request *r);
int op_land_move(struct request *r);
int op_keep(struct request *r);
int op_note_write(struct request *r), op_note_read(struct request *r);
int op_diff(struct request *r);
int op_claims(struct request *r);

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define DEFINE_CLEANUP(type)                                                                       \
    static inline __attribute__((unused)) void type##_cleanup(type **p)                            \
    {                                                                                              \
        type##_free(*p);                                                                           \
    }
DEFINE_CLEANUP(git_repository)
DEFINE_CLEANUP(git_blob)
DEFINE_CLEANUP(git_reference)

DEFINE_CLEANUP(git_commit)
DEFINE_CLEANUP(git_tree)
DEFINE_CLEANUP(git_tree_entry)
DEFINE_CLEANUP(git_object)
DEFINE_CLEANUP(git_index)
DEFINE_CLEANUP(git_signature)
DEFINE_CLEANUP(git_config)
DEFINE_CLEANUP(git_odb)
DEFINE_CLEANUP(git_odb_object)
DEFINE_CLEANUP(git_reflog)
DEFINE_CLEANUP(git_diff)
DEFINE_CLEANUP(git_diff_stats)
DEFINE_CLEANUP(git_status_list)

#endif
