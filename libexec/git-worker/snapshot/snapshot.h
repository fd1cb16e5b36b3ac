/* What the operations on snapshots share. The files in their directory are the caller's:
 * lib/worktree/git/snapshot.h has them. */
#ifndef GIT_WORKER_SNAPSHOT_H
#define GIT_WORKER_SNAPSHOT_H

#include <limits.h>

#include <amp/base/id.h>

#include "../worker.h"

#define SNAPSHOT_REFS "refs/amp/snapshots/"
#define CONTENTS      "contents"
#define TREE          "tree"
#define REPOSITORIES  "repositories"
#define IGNORED       "ignored"

#define LIST_MAX  ((size_t)256 << 20)
#define STATE_MAX ((size_t)1 << 30)
#define INDEX_MAX ((size_t)512 << 20)

struct snapshot {
    git_repository *repo; /* of in.worktree; NULL: none is given */
    int dir;              /* in.path; -1: none is given */
};
int snapshot_open(struct request *r, struct snapshot *s);
void snapshot_release(struct snapshot *s);

/* The repository of the workspace, and those in it. */
struct place {
    git_repository *repo;
    char *path; /* below the workspace; "." */
};
struct places {
    struct place *v;
    size_t n, cap;
};
int places_open(struct request *r, struct snapshot *s, struct places *p);
void places_release(struct places *p);

/* Refuses a repository whose git directory an agent could have made lead elsewhere: by a link in
 * it, a file commondir, or a file .git that names one that is neither in the workspace nor that of
 * a submodule. Not the workspace's own. */
int place_check(struct request *r, const struct place *p, const char *branch);
int head_text(git_repository *repo, char *out, size_t size); /* a code of the library */
int snapshot_tree(struct request *r, git_repository *repo, git_tree **out);

#endif
