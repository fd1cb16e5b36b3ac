/*
 * Attempts whose worker was killed. A confined agent's commits are then only in the quarantine of
 * its attempt. While an attempt runs, a file in STATE/run/.unfinished names it; the worker's next
 * start, or `worktree-bind repair`, checks the quarantine as at the end of an attempt and keeps the
 * commits under a ref. The branch stays, because the attempt is repeated from its beginning.
 */
#ifndef AMP_WORK_ATTEMPT_LEFT_UNFINISHED_H
#define AMP_WORK_ATTEMPT_LEFT_UNFINISHED_H

#include "message/store/store.h"
#include "work/git/repository/quarantine.h"

struct amp_unfinished {
    const char *agent, *task;
    const char *dir; /* the attempt's, below the state directory */
    const char *repo, *branch, *base;
    const char *start; /* "": a review, whose commits are dropped */
};
/* Records an attempt, before its command starts; name gets the file's path. */
int amp_unfinished_record(const char *state_dir, const struct amp_unfinished *u,
                          char name[PATH_MAX], struct amp_error *err);

struct amp_unfinished_spec {
    struct amp_store *store;
    struct amp_git *git;
    const char *state_dir; /* absolute */
    const char *tool;
    const char *agent; /* whose lock the caller holds; NULL: all agents that are not at work */
    struct amp_git_take_limits limits;
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};
/* Settles all of them. Commits are kept as refs/amp/kept/AGENT/…, which is noted and recorded in
 * the error log (attempt_kept). A refused attempt (quarantine_refused, quarantine_limit, a rule
 * about contents) stays in its directory, which is noted and recorded with the code. After another
 * failure, such as a missing repository, the attempt is tried again the next time. *failed counts
 * those two. -1: failure of the store or the worker. */
int amp_unfinished_settle(const struct amp_unfinished_spec *s, uint32_t *failed,
                          struct amp_error *err);

#endif
