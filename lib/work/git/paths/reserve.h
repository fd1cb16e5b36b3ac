/*
 * Reservations of paths: while one lasts, no other holder commits a path that it covers. A holder
 * is a bound agent, whose reservations end with its binding, or a person. They are kept in the
 * store (key reservation.<holder>.<pattern>); the hooks read the file that amp_reserve_publish
 * writes (reserved.h).
 */
#ifndef AMP_WORK_GIT_PATHS_RESERVE_H
#define AMP_WORK_GIT_PATHS_RESERVE_H

#include "message/store/store.h"
#include "work/git/paths/reserved.h"

#define AMP_RESERVATION_KIND "reservation"
#define AMP_RESERVE_MOST     64 /* patterns in one call */

struct amp_reserve_spec {
    const char *holder, *task; /* task NULL: none */
    bool person;               /* the holder is not an agent */
    const char *const *patterns;
    int n;
    int64_t now_ms;
};
/* Reserves all patterns, or none. Repeating it is not an error. NO path_reserved: another holder
 * has an overlapping reservation; NO worktree_not_bound: the agent is not bound; USAGE bad_pattern.
 */
int amp_reserve(struct amp_store *s, const struct amp_reserve_spec *spec, struct amp_error *err);
/* Releases these patterns of a holder, or all of them with n 0. *n_released may be NULL. */
int amp_reserve_release(struct amp_store *s, const struct amp_reserve_spec *spec,
                        uint32_t *n_released, struct amp_error *err);

/* A reservation that is in effect. since_ms: when it was made. */
typedef int (*amp_reserve_fn)(void *ctx, const struct amp_reservation *r, int64_t since_ms,
                              struct amp_error *err);
int amp_reserve_each(struct amp_store *s, amp_reserve_fn fn, void *ctx, struct amp_error *err);
/* 1: another holder than `agent` reserved one of the n files: *file is its index, `by` gets "HOLDER
 * (TASK): PATTERN". */
int amp_reserve_holds(struct amp_store *s, const char *agent, char *const *files, uint32_t n,
                      uint32_t *file, char *by, size_t size, struct amp_error *err);

/* Writes the file for the hooks below <common>/amp, if there are reservations or it exists. */
int amp_reserve_publish(struct amp_store *s, const char *common, struct amp_error *err);

#endif
