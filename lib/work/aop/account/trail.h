/*
 * The audit trail of a session: one file with a record a line (schemas/records/audit.json), in the
 * order of the log. The entries of the store are the truth; the file is made from them, so after a
 * crash it is continued from its last complete line, and nothing is missing or there twice.
 *
 * The file is DIRECTORY/<session>.ndjson. DIRECTORY is audit_trail.storage_path: an absolute path,
 * or one in the workspace's repository, which is opened without following links; the default one is
 * in its list info/exclude. An agent could write there: if the last line is not what the store has,
 * the complete file is made again.
 */
#ifndef AMP_WORK_AOP_ACCOUNT_TRAIL_H
#define AMP_WORK_AOP_ACCOUNT_TRAIL_H

#include "work/aop/entry.h"

#define AMP_TRAIL_DEFAULT "_skills/agent-orchestration-protocol_d/v2/audit_trails/"

/* Records where the trail of the session is; the first place counts. dir: absolute, the repository
 * of the workspace, or the workspace itself without one; not used with an absolute storage path.
 * USAGE bad_path: the storage path has "..", or dir is not absolute. */
int amp_trail_place(const struct amp_session_voice *v, struct amp_span session, const char *dir,
                    const char *storage, struct amp_error *err);

/* Syncs the store and adds to the file what it lacks, under a lock on it. 0; 1: the place is not
 * known. Calls note, unless it is NULL, if the file was made again. A failure changes nothing that
 * a later call does not complete: NOPERM, IOERR, CANTCREAT; TEMPFAIL lock_timeout (10 s). */
int amp_trail_write(struct amp_store *s, struct amp_span session,
                    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))),
                    struct amp_error *err);

/* Writes it, and compares all of the file with the store. */
int amp_trail_verify(struct amp_store *s, struct amp_span session,
                     void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))),
                     struct amp_error *err);

#endif
