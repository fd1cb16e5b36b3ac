/*
 * Deadlines: one row for each kind. Sweeping and watching go through all rows. The rows keep no
 * state of their own: when several processes run a row, or one runs it again after a crash, the
 * compare-and-set of the record with the deadline decides.
 */
#ifndef AMP_PEOPLE_DEADLINES_H
#define AMP_PEOPLE_DEADLINES_H

#include "message/delivery/deadline.h"

/* The rows, up to the one without a name. */
extern const struct amp_deadline amp_deadlines[];
unsigned amp_deadlines_count(void);
/* The earliest time at which the row has work; *ms is 0 for none. */
int amp_deadline_next(const struct amp_deadline *d, struct amp_store *s,
                      const struct amp_deadline_ctx *c, int64_t *ms, struct amp_error *err);

/* Runs every row that has work, also work that another row makes due. Adds the number of each row's
 * actions to done[row]; done may be NULL. */
int amp_deadlines_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err);

#endif
