/*
 * Git without the git program: typed calls to the git-worker helper, the only program that links
 * libgit2. One worker process serves many calls. After its time limit it is killed and the call
 * fails (TIMEDOUT git_timeout); the next call starts a new one. UNAVAILABLE git_unavailable: it
 * crashed three times within a minute and does not start.
 *
 * `repo` is any path inside a repository or a worktree. Errors of all calls:
 *   DATAERR repo_not_git         not a repository
 *   DATAERR repo_unsupported     an extension that the library cannot read (objectformat, …)
 *   NOPERM  repo_not_owned       the repository belongs to another user (safe.directory)
 *   NO      unknown_revision     an unknown revision, branch or commit
 *   NOPERM  branch_violation     refused by the rule for protected branches (lib/work/git/rule.h)
 */
#ifndef AMP_WORK_GIT_REPOSITORY_GIT_H
#define AMP_WORK_GIT_REPOSITORY_GIT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

#define AMP_OID_MAX 65 /* hex digits and NUL */

struct amp_git;
struct amp_loop;

struct amp_git_options {
    int64_t time_limit_ms;    /* a call; 0: 60 s */
    volatile const int *stop; /* non-zero: a call has 2 s more, then fails as INTERRUPTED
                                 "interrupted"; it may have been carried out. NULL: none */
    /* Called instead of amp_loop_wait, with its contract, while a call waits for its reply: so a
     * fiber lets others run (base/process/fiber.h). NULL: none. */
    int (*wait)(void *ctx, struct amp_loop *turn, struct amp_error *err);
    void *wait_ctx;
};
int amp_git_open(const struct amp_git_options *opt, struct amp_git **out, struct amp_error *err);
void amp_git_close(struct amp_git *g);
/* Call it before the first call: the worker starts while the caller goes on. */
int amp_git_wake(struct amp_git *g, struct amp_error *err);
/* After the last call for some time: the worker ends while the caller goes on. A later call starts
 * another one. */
void amp_git_rest(struct amp_git *g);

struct amp_git_info {
    char workdir[PATH_MAX]; /* "" for a bare repository */
    char gitdir[PATH_MAX];  /* a linked worktree's own */
    char common[PATH_MAX];  /* shared by all worktrees */
    char branch[256];       /* short name that HEAD points to, "" if detached */
    char head[AMP_OID_MAX]; /* "" before the first commit */
    bool bare, linked;
};
int amp_git_info(struct amp_git *g, const char *repo, struct amp_git_info *out,
                 struct amp_error *err);

/* The commit (tags peeled) that a revision names. */
int amp_git_resolve(struct amp_git *g, const char *repo, const char *rev, char oid[AMP_OID_MAX],
                    struct amp_error *err);
struct amp_git_look {
    char commit[AMP_OID_MAX], tree[AMP_OID_MAX];
    char parent[2][AMP_OID_MAX]; /* the first two, or "" */
    int64_t parents;             /* their number */
};
int amp_git_look(struct amp_git *g, const char *repo, const char *rev, struct amp_git_look *out,
                 struct amp_error *err);

/* Creates a linked worktree at path. With branch: on that branch, which is created from base (NULL:
 * HEAD of the main worktree) if it does not exist; without: detached at base. agent, if not NULL,
 * is written to the file amp-agent in the worktree's git directory before the checkout; agents
 * cannot use a protected branch. Also worktree_exists, and branch_checked_out (in another
 * worktree). On failure nothing is left. head may be NULL. */
struct amp_git_worktree_spec {
    const char *repo, *path, *branch, *base, *agent;
    const char *role; /* of the agent, for the marker; or NULL */
    bool no_sparse;   /* all files, although the main worktree has a sparse checkout */
};
int amp_git_worktree_add(struct amp_git *g, const struct amp_git_worktree_spec *spec,
                         char head[AMP_OID_MAX], struct amp_error *err);
/* Removes a linked worktree; its branch stays. Without force: NO worktree_dirty if files are
 * changed or untracked. NO worktree_not_found, worktree_locked; worktree_unknown: the directory's
 * .git does not lead back to the repository; worktree_outside: not inside <repo>.worktrees. 1: the
 * directory has no .git and was not removed, only git's entry for it. */
int amp_git_worktree_remove(struct amp_git *g, const char *repo, const char *path, bool force,
                            struct amp_error *err);

struct amp_git_worktree {
    char path[PATH_MAX], gitdir[PATH_MAX];
    char branch[256]; /* "" if detached */
    char head[AMP_OID_MAX];
    char agent[128];            /* of the marker file, or "" */
    bool main, locked, missing; /* missing: .git does not exist at path */
    bool foreign;               /* the .git at path leads elsewhere */
    /* Only of amp_git_worktree_lives: why it must be kept, or "". */
    char keep[32];
    /* Only of amp_git_worktree_facts: files that differ from HEAD, untracked ones included; commits
     * that the main worktree's HEAD lacks, and that it has in addition; the time of HEAD's commit.
     * -1, 0 for the time: unknown. */
    int64_t changes, ahead, behind, head_ms;
};
typedef int (*amp_git_worktree_fn)(void *ctx, const struct amp_git_worktree *w);
int amp_git_worktrees(struct amp_git *g, const char *repo, amp_git_worktree_fn fn, void *ctx,
                      struct amp_error *err);
/* The linked worktrees, each with the reason for which its removal would lose something: foreign,
 * locked, submodules, unreadable, unfinished_operation, uncommitted, no_commit, unmerged (neither a
 * protected branch nor, if it is given, the revision `into` has its commit), unpushed (there are
 * remote branches, and none has it). */
int amp_git_worktree_lives(struct amp_git *g, const char *repo, const char *into,
                           amp_git_worktree_fn fn, void *ctx, struct amp_error *err);
/* The linked worktrees with these facts, in one call. */
int amp_git_worktree_facts(struct amp_git *g, const char *repo, amp_git_worktree_fn fn, void *ctx,
                           struct amp_error *err);
/* Copies the ignored files that the patterns of .worktreeinclude in the main worktree match into
 * the worktree at path; existing files stay. bytes 0: copies nothing. NO include_limit: more than
 * `bytes`, or too many files; USAGE bad_pattern; DATAERR not_a_file: .worktreeinclude is not a
 * regular file. */
struct amp_git_included {
    int64_t copied, bytes; /* files */
    int64_t skipped;       /* links and the like */
    int64_t submodules;    /* of the worktree; they are not fetched */
};
int amp_git_worktree_include(struct amp_git *g, const char *repo, const char *path, int64_t bytes,
                             struct amp_git_included *out, struct amp_error *err);
/* Removes what crashes left of worktrees that were being made; calls fn for each path. */
int amp_git_worktree_repair(struct amp_git *g, const char *repo,
                            void (*fn)(void *ctx, const char *path), void *ctx,
                            struct amp_error *err);

/* Commits everything in a worktree of repo (ignored files excepted) under an identity. NO
 * worktree_unknown: the path is not a worktree of repo. 1: there was
 * nothing to commit and oid is HEAD; 0: oid is the new commit. The rule is checked when the
 * worktree has an agent or agent is given. No hook is run. NO worktree_unfinished: a merge or the
 * like was left; NO filter_unsupported: a file that git would send through a program; NO
 * nested_repository; NOPERM quarantine_limit: a file above object_bytes. Where the guard has rules
 * about contents, they are applied (NOPERM with the code of the rule), and the required trailers
 * Agent and Task are added to the message. */
struct amp_git_commit_spec {
    const char *repo, *worktree, *name, *email, *message, *agent;
    const char *task;     /* for the trailer Task, where the guard requires it; or NULL */
    int64_t object_bytes; /* the largest file; 0: 256 MiB */
};
int amp_git_commit(struct amp_git *g, const struct amp_git_commit_spec *spec, char oid[AMP_OID_MAX],
                   struct amp_error *err);

/* Keeps uncommitted work in a worktree of repo under the new ref spec->ref: a commit of the files
 * on top of HEAD, or HEAD itself if no ref reaches it. Changes nothing else. */
enum amp_git_kept {
    AMP_KEPT_ERROR = -1,
    AMP_KEPT_ALL,
    AMP_KEPT_NOTHING, /* there was nothing to keep */
    /* A repository inside the worktree could not be kept. With release, HEAD is detached, so that
     * another worktree can have the branch. */
    AMP_KEPT_PART,
};
struct amp_git_keep_spec {
    const char *repo, *worktree, *ref, *name, *email;
    bool release;
};
enum amp_git_kept amp_git_keep(struct amp_git *g, const struct amp_git_keep_spec *spec,
                               struct amp_error *err);
#define AMP_KEEP_REF_MAX 200
/* A new name for such a ref: refs/amp/kept/NAME/TIME-RANDOM. */
void amp_git_keep_ref(const char *name, int64_t now_ms, char out[AMP_KEEP_REF_MAX]);

/* Differences from the tree of `from` to that of `to`; to NULL: to the files of repo's worktree
 * at that path (else NULL), untracked ones included; NO worktree_unknown as with amp_git_commit.
 * NOPERM quarantine_limit: a file of the worktree above object_bytes (0: 256 MiB). patch, if not
 * NULL, is the file to write the text to. */
struct amp_git_diff {
    char **files; /* NULL-terminated, in path order */
    uint32_t n_files;
    int64_t lines_added, lines_removed;
    bool truncated; /* more than 10,000 files: the list is cut, the counts are complete */
};
int amp_git_diff(struct amp_git *g, const char *repo, const char *worktree, int64_t object_bytes,
                 const char *from, const char *to, const char *patch, struct amp_git_diff *out,
                 struct amp_error *err);
void amp_git_diff_release(struct amp_git_diff *d);

/* Finds what the commits after `from`, up to `to`, claim about others: an author or committer with
 * the address of another agent, a trailer Agent or Task with another value than name and task, or a
 * trailer that a reviewer would write (Reviewed-by, Approved-by, Acked-by). Calls fn for each, at
 * most 32 times: claim is "Reviewed-by: ann". from and to are full ids. */
struct amp_git_forgeries_spec {
    const char *repo, *from, *to;
    const char *name, *email, *task;
};
typedef void (*amp_git_forgery_fn)(void *ctx, const char *commit, const char *claim);
int amp_git_forgeries(struct amp_git *g, const struct amp_git_forgeries_spec *spec,
                      amp_git_forgery_fn fn, void *ctx, struct amp_error *err);

/* The notes with the proofs of task-dispatch export. */
#define AMP_PROOF_NOTES "refs/notes/amp"

/* All refs with their values, to be compared later (the trip-wire). */
#define AMP_REF_VALUE_MAX 320
struct amp_git_ref {
    char *name;                    /* "refs/heads/main", "remote origin: refs/heads/main" */
    char value[AMP_REF_VALUE_MAX]; /* hex digits; of a symbolic ref: "ref: NAME HEX" */
};
struct amp_git_refs {
    struct amp_git_ref *v; /* sorted by name */
    uint32_t n;
};
/* protected_only: only branches that the rule protects here, their remote-tracking refs, the
 * symbolic refs of remotes, AMP_PROOF_NOTES, and the protected branches of remotes that are
 * directories. */
int amp_git_refs(struct amp_git *g, const char *repo, bool protected_only, struct amp_git_refs *out,
                 struct amp_error *err);
void amp_git_refs_release(struct amp_git_refs *r);
/* Calls fn for every ref that differs; the old or new value is "" if the ref does not exist.
 * Returns the number of differences. */
typedef void (*amp_git_change_fn)(void *ctx, const char *ref, const char *before,
                                  const char *after);
uint32_t amp_git_refs_compare(const struct amp_git_refs *before, const struct amp_git_refs *after,
                              amp_git_change_fn fn, void *ctx);

/* The newest reflog entry of ref whose new value is oid (NULL: the newest). NO unknown_revision
 * when there is none. */
struct amp_git_reflog {
    char old_oid[AMP_OID_MAX], new_oid[AMP_OID_MAX];
    char name[256], email[256], message[512];
    int64_t time_ms;
};
int amp_git_reflog(struct amp_git *g, const char *repo, const char *ref, const char *oid,
                   struct amp_git_reflog *out, struct amp_error *err);

/* Resets a branch to a commit, and the worktree that has it checked out. Protected branches are
 * always refused. expect, if not NULL, is the value that the branch must have (NO branch_moved).
 * keep, if not NULL, is a new ref for work that would be lost: commits that no other ref reaches,
 * and uncommitted work in an agent's worktree. Without keep, and for a person's worktree, the
 * latter is NO worktree_dirty. 1: something was kept. */
struct amp_git_rollback_spec {
    const char *repo, *branch, *commit, *expect, *name, *email, *keep;
};
int amp_git_rollback(struct amp_git *g, const struct amp_git_rollback_spec *spec,
                     struct amp_error *err);

/* Landing approved work on a branch (work/loop/land/land.h). The plan checks that the branch can
 * move to the commit without a merge of contents: NO target_moved, the commit does not contain the
 * branch; target_behind, the branch is behind `base` (NULL: not checked). forward, for a push that
 * a hook judges: a branch that has the commit and later ones is target_behind, too, not `already`.
 * expect: the branch's value, else NO branch_moved; NULL: any. merge: it makes a merge commit with
 * the commit's tree, by name and email, which no ref reaches yet. contents: a branch that the
 * commit does not contain is merged with it, in memory, without a program of the repository. files:
 * the worktree that has
 * the branch is examined too, with the codes of amp_git_land_move. Rules for protected branches are
 * not applied: the caller is a person. */
struct amp_git_land_spec {
    const char *repo, *branch, *commit, *base, *expect;
    bool merge, contents, files, forward;
    const char *name, *email, *message;
};
struct amp_git_land {
    char from[AMP_OID_MAX], to[AMP_OID_MAX]; /* equal if `already` */
    bool already;                            /* the branch has the commit */
    bool merged;             /* `to` is a merge of contents, unless there are conflicts */
    uint32_t n_conflicts;    /* the first ones; their texts are for people */
    char conflicts[2048];    /* "PATH: what each side did", each with LF; cut */
    char worktree[PATH_MAX]; /* that has the branch checked out, or "" */
};
int amp_git_land_plan(struct amp_git *g, const struct amp_git_land_spec *spec,
                      struct amp_git_land *out, struct amp_error *err);
/* Carries the plan out: first the files of the worktree, then the branch by compare-and-set, with
 * spec->message in its reflog. It may be repeated after a crash. NO branch_moved, and of the
 * worktree: worktree_dirty, worktree_unfinished, worktree_sparse, filter_unsupported,
 * branch_checked_out (by an agent). Then nothing has changed. No hook is run. */
int amp_git_land_move(struct amp_git *g, const struct amp_git_land_spec *spec,
                      const struct amp_git_land *plan, struct amp_error *err);

/* One value of the repository's configuration ("core.hookspath"); 1 if it is not set. is_path:
 * expands a leading ~/. */
int amp_git_config(struct amp_git *g, const char *repo, const char *key, bool is_path, char *out,
                   size_t size, struct amp_error *err);

/* Notes (git-notes(1)): a text beside a commit, under the ref. */
struct amp_git_note {
    const char *repo, *rev, *ref;
};
/* Replaces the note of the commit. */
int amp_git_note_write(struct amp_git *g, const struct amp_git_note *note, const char *text,
                       struct amp_error *err);
/* Appends the note. 1: there is one; 0: there is none. */
int amp_git_note_read(struct amp_git *g, const struct amp_git_note *note, struct amp_buf *out,
                      struct amp_error *err);

#endif
