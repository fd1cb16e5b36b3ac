/* For the files of lib/work/aop. */
#ifndef AMP_WORK_AOP_PRIVATE_H
#define AMP_WORK_AOP_PRIVATE_H

#include "work/aop/session.h"

/* TASKs of a session that have a place in the order and no record, because their processes were
 * killed: more than one needs several executors of one session. */
enum { AMP_SESSION_JOINS_MOST = 64 };

/* JOIN of the session of t, as amp_session_enter. after gets the root TASK before it; empty: there
 * is none, or it is not a new root. */
int amp_session_join(const struct amp_session_voice *v, const struct amp_session *x,
                     const struct amp_session_task *t, bool is_new, struct amp_buf *after,
                     struct amp_error *err);

int amp_session_read(const struct amp_store_rec *rec, struct amp_buf *mem, struct amp_session *out,
                     struct amp_error *err);

/* Visits the records of a kind whose key begins with the session, and others. */
int amp_session_each_part(struct amp_store *s, const char *kind, struct amp_span session,
                          amp_store_each_fn fn, void *ctx, struct amp_error *err);

#endif
