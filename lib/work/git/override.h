/*
 * A person's permission to change a protected branch once: the record in the log, key
 * "override.<id>". The guard uses the file that hooks.h writes; the trip-wire uses the record.
 */
#ifndef AMP_WORK_GIT_OVERRIDE_H
#define AMP_WORK_GIT_OVERRIDE_H

#include "message/store/store.h"

struct amp_override {
    const char *branch, *agent;
    int64_t until_ms;
    const char *reason, *by;
};
/* Records and syncs an override. */
int amp_override_record(struct amp_store *s, const char *id, const struct amp_override *o,
                        struct amp_error *err);
/* 1: an override of the branch was open at since_ms or was made later; 0: none; -1: failure. ref: a
 * branch, a remote-tracking ref, or "remote NAME: refs/heads/BRANCH". */
int amp_override_covers(struct amp_store *s, const char *ref, int64_t since_ms,
                        struct amp_error *err);

#endif
