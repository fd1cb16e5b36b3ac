/* Permits against the queue's rules (work/item/permit/permit.h) that change its records. */
#ifndef AMP_WORK_ITEM_JUDGE_PERMIT_H
#define AMP_WORK_ITEM_JUDGE_PERMIT_H

#include "work/item/permit/permit.h"

/* Records the permit, and for BESIDE permits the pair; an open question about it is closed. The
 * caller has checked the person (NOPERM not_operator), signed the text, and carries out the other
 * kinds. Also NO already_decided (the pair may run side by side already, until that time),
 * unknown_job, ended (one of the jobs has ended). Synced. */
int amp_permit_give(struct amp_store *s, const struct amp_permit *o, int64_t keep_ms,
                    const char *actor, struct amp_error *err);

#endif
