/* The connection to git-worker, for the typed functions of git.h. */
#ifndef AMP_WORK_GIT_REPOSITORY_CALL_H
#define AMP_WORK_GIT_REPOSITORY_CALL_H

#include <amp/base/child.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "work/git/repository/git.h"

#define AMP_GIT_CRASHES_MAX 3 /* in AMP_GIT_CRASHES_MS */
#define AMP_GIT_CRASHES_MS  60000

struct amp_git {
    int64_t time_limit_ms;
    volatile const int *stop;
    int (*wait)(void *ctx, struct amp_loop *turn, struct amp_error *err);
    void *wait_ctx;
    struct amp_child child;
    int fd;      /* a socket to the worker's stdin and stdout; -1: no worker serves */
    bool ending; /* the last worker is not waited for yet */
    int64_t q;
    int64_t crashes[AMP_GIT_CRASHES_MAX]; /* when, a ring */
    uint32_t n_crashes;
    struct amp_buf request, reply;
    struct amp_tape tape; /* of the last reply */
    struct amp_buf arena; /* a decoded field of it */
};

/* An argument of a request: a text (NULL: left out), a flag or a number (0: left out). ARGS makes a
 * list of them. */
struct amp_git_arg {
    const char *key, *text;
    bool flag;
    int64_t number;
};
/* The first element of a list in the reply, and the number of elements. */
uint32_t amp_git_list(const struct amp_git *g, const char *key, uint32_t *n);
#define ARGS(...) ((const struct amp_git_arg[]){__VA_ARGS__, {NULL}})
/* Sends a request and waits for its reply, which is then in g->tape. A reply that reports a failure
 * is -1 with the worker's error. */
int amp_git_call(struct amp_git *g, const char *op, const struct amp_git_arg *args,
                 struct amp_error *err);

/* Fields of an object in the reply: text is cut to size; a missing field is "" or 0. */
/* The text is valid until the next call of these functions. */
struct amp_span amp_git_field(struct amp_git *g, uint32_t object, const char *key);
void amp_git_field_copy(struct amp_git *g, uint32_t object, const char *key, char *out,
                        size_t size);
int64_t amp_git_field_int(struct amp_git *g, uint32_t object, const char *key);
bool amp_git_field_bool(struct amp_git *g, uint32_t object, const char *key);

#endif
