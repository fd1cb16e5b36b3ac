/*
 * Permits: decisions of a person against a rule of the queue (SW4RM §9.4). Each is one commit,
 * signed by the person's key, that says who, why, until when, and what changed. Key "permit.<id>";
 * people know it as an override. The record is a proof only; what it permits is recorded with the
 * jobs (work/item/judge/permit.h).
 */
#ifndef AMP_WORK_ITEM_PERMIT_PERMIT_H
#define AMP_WORK_ITEM_PERMIT_PERMIT_H

#include <amp/base/id.h>

#include "message/store/store.h"

#define AMP_PERMIT_KIND      "permit"
#define AMP_PERMIT_NAMESPACE "amp-override" /* of the signature */

enum {
    AMP_PERMIT_TEXT_MAX = 1024, /* bytes of a reason */
};

/* X(NAME, word, what it allows) */
#define AMP_PERMITS(X)                                                                             \
    X(AGAIN, "again", "an identical job runs again")                                               \
    X(BESIDE, "beside", "two jobs with a common scope run side by side")                           \
    X(CANCEL, "cancel", "another person's job is cancelled")                                       \
    X(RANK, "rank", "another person's job gets another priority")                                  \
    X(PREEMPT, "preempt", "another person's job gives up its place")
enum amp_permit_of {
#define X(id, word, doc) AMP_PERMIT_##id,
    AMP_PERMITS(X)
#undef X
        AMP_PERMIT_COUNT
};
const char *amp_permit_name(int of);

struct amp_permit {
    enum amp_permit_of of;
    struct amp_span id;         /* a UUID */
    struct amp_span job, other; /* other: the second job of BESIDE */
    /* The person, how the person was known, the key, the reason, and the changes. */
    struct amp_span person, by, key, why, changed;
    int64_t since_ms, until_ms;     /* until_ms 0: as long as the jobs exist */
    struct amp_span alg, signature; /* of amp_permit_text, or empty */
    uint8_t state;
};
/* The text that the person's key signs; its time is since_ms. */
int amp_permit_text(const struct amp_permit *o, struct amp_buf *out, struct amp_error *err);

/* Records a permit. DATAERR buffer_full (a reason that is empty or too long); NO expired
 * (until_ms has passed), already_decided (this id was used before). keep_ms: the record is removed
 * so long after its end; the log has the commit. Sync afterwards. */
int amp_permit_record(struct amp_store *s, const struct amp_permit *o, int64_t keep_ms,
                      const char *actor, struct amp_error *err);
/* Calls fn for each permit about a job, empty: any, in no order; fn returns 0, 1 (stop) or -1. */
typedef int (*amp_permit_fn)(void *ctx, const struct amp_permit *o, struct amp_error *err);
int amp_permit_each(struct amp_store *s, struct amp_span job, amp_permit_fn fn, void *ctx,
                    struct amp_error *err);
/* A permit from the record in a commit. The texts are in mem. */
int amp_permit_parse(struct amp_span json, struct amp_buf *mem, struct amp_permit *out,
                     struct amp_error *err);

#endif
