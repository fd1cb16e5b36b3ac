/*
 * Suspended agents as the hooks read them: the file <git-common-dir>/amp/suspended, written by
 * people/pause/publish.h from the state.
 *
 *     amp-suspended 1
 *     * WHY
 *     AGENT WHY
 *
 * "*" is every agent. WHY is text up to the end of the line. Links only libc, for branch-guard.
 */
#ifndef AMP_WORK_GIT_STOPPED_H
#define AMP_WORK_GIT_STOPPED_H

#include <amp/base/buf.h>

#define AMP_STOPPED_FILE "suspended" /* below <git-common-dir>/amp */
#define AMP_STOPPED_HEAD "amp-suspended 1\n"
#define AMP_STOPPED_MAX  (256u << 10)

/* 1: the agent is suspended, and why says by whom; 0: it is not. CONFIG bad_suspended: the file is
 * malformed or cannot be read; the caller must not take it for empty. common: a descriptor. */
int amp_stopped_is(int common, const char *agent, char *why, size_t size, struct amp_error *err);

#endif
