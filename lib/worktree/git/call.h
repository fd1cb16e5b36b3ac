/* The connection to git-worker, for the typed functions of git.h. */
#ifndef AMP_WORKTREE_GIT_CALL_H
#define AMP_WORKTREE_GIT_CALL_H

#include <amp/base/child.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "worktree/git/git.h"

#define AMP_GIT_CRASHES_MAX 3 /* in AMP_GIT_CRASHES_MS */
#define AMP_GIT_CRASHES_MS  60000

struct amp_git {
    int64_t time_limit_ms;
    volatile const int *stop;
    struct amp_child child;
    int fd; /* a socket to the worker's stdin and stdout; -1 when none runs */
    int64_t q;
    int64_t crashes[AMP_GIT_CRASHES_MAX]; /* when, a ring */
    uint32_t n_crashes;
    struct amp_buf request, reply;
    struct amp_jw w;
    struct amp_tape tape; /* of the last reply */
    struct amp_buf arena; /* a decoded field of it */
};

/* Begins a request; fields follow by amp_git_put (NULL values are left out). */
void amp_git_begin(struct amp_git *g, const char *op);
void amp_git_put(struct amp_git *g, const char *key, const char *value);
void amp_git_put_flag(struct amp_git *g, const char *key, bool value);
/* Sends it and waits for the reply, which then stands in g->tape. -1 also for a reply that says
 * no, with the worker's error. */
int amp_git_call(struct amp_git *g, struct amp_error *err);

/* Fields of a reply's object: text is cut to size; a missing field is "" or 0. */
struct amp_span amp_git_field(struct amp_git *g, uint32_t object, const char *key);
void amp_git_field_copy(struct amp_git *g, uint32_t object, const char *key, char *out,
                        size_t size);
int64_t amp_git_field_int(struct amp_git *g, uint32_t object, const char *key);
bool amp_git_field_bool(struct amp_git *g, uint32_t object, const char *key);

#endif
