/* The parts of a takeover: the objects of a quarantine, its packs, and the checks of trees and
 * commits. */
#ifndef GIT_WORKER_QUARANTINE_H
#define GIT_WORKER_QUARANTINE_H

#include "../worker.h"

/* incoming.c: the new objects of a quarantine, read and checked, then written. */
struct incoming;
struct incoming_limits {
    int64_t objects, bytes, object_bytes, tree_paths, tree_bytes;
};
struct incoming_count {
    int64_t commits, objects, bytes;
};
/* dir: the quarantine; it stays the caller's. Opens also its packs. */
int incoming_open(struct request *r, int dir, const struct incoming_limits *limits,
                  struct incoming **out);
void incoming_close(struct incoming *in);
/* Checks the commit and everything that it needs; then git_graph_… work on incoming_view. */
int incoming_check(struct incoming *in, const git_oid *tip, struct incoming_count *count);
git_repository *incoming_view(struct incoming *in); /* the repository's objects and the new ones */
int incoming_write(struct incoming *in);            /* what incoming_check found, in order */
int refuse_incoming(struct request *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* pack.c: checks a pack's entries and sizes without resolving its deltas, so that the library gets
 * only packs within the limits. fd is read from its beginning. */
int pack_check(struct request *r, int fd, const char *name, const struct incoming_limits *limits,
               struct incoming_count *count);
/* fsck.c: checks what the library's parser does not. */
int fsck_tree(struct request *r, const git_tree *tree);
int fsck_commit(struct request *r, git_odb_object *object, const git_commit *commit);

#endif
