/*
 * The decision about two jobs whose scopes overlap (SW4RM §9.2, §9.3): key "conflict.<a>-<b>",
 * the ids in their order. Without a record the jobs run one after the other, the first that starts
 * first. The record is removed when one of the jobs ends, so a decision lives as long as both.
 *
 * work/item/order.h reads these records: jobs of a pair in PARALLEL do not block each other; of a
 * pair in SERIAL with `first` the other job does not start before that one has ended.
 */
#ifndef AMP_WORK_ITEM_CONFLICT_CONFLICT_H
#define AMP_WORK_ITEM_CONFLICT_CONFLICT_H

#include "message/record/subject.h"
#include "work/item/conflict/machine.h"
#include "work/item/queue.h"

#define AMP_CONFLICT_KIND "conflict"

enum {
    AMP_CONFLICT_ID_MAX = 2 * AMP_QUEUE_ID_MAX,
    AMP_CONFLICT_TEXT_MAX = 1024, /* bytes of a reason; longer ones are cut */
    AMP_CONFLICT_PPM = 1000000,   /* a confidence of 1 */
};

/* Texts are in the memory of the read. Times are Unix milliseconds, 0: none. */
struct amp_conflict {
    uint8_t state;        /* of amp_conflict_fsm */
    struct amp_span a, b; /* ids of the jobs, a < b */
    /* The job at work when the overlap was noticed, and the job that waited for it. */
    struct amp_span running, waiting;
    struct amp_span overlap; /* JSON, amp_scope_common */
    int64_t met_ms;
    struct amp_span worker; /* CHECKING */
    int64_t until_ms; /* CHECKING: its time limit; UNJUDGED: the next try; PARALLEL: end of the
                         permission */
    bool judged;
    int64_t confidence;           /* millionths */
    struct amp_span reason, code; /* of the command; code: why there is no judgement */
    struct amp_span question;     /* the key of the question to a person */
    struct amp_span message;      /* the id of its message */
    struct amp_span first;        /* SERIAL: the job that goes first, or empty */
    /* The decision; the person or fallback that made it; the proof of identity; the reason.
     * permit: the id of an override, or empty. */
    struct amp_span decision, person, by, why, permit;
    int64_t decided_ms;
};
/* The id of the pair, whatever the order of the two. */
void amp_conflict_id(struct amp_span x, struct amp_span y, char out[AMP_CONFLICT_ID_MAX]);
/* 1: found; 0: there is none, and out has the state NEW and the ids. */
int amp_conflict_read(struct amp_store *s, struct amp_span x, struct amp_span y,
                      struct amp_buf *mem, struct amp_conflict *out, struct amp_error *err);
/* Reads the record with the pair's id. 1: found; 0: there is none. */
int amp_conflict_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                      struct amp_conflict *out, struct amp_error *err);
extern const struct amp_subject amp_conflict_subject;

/* One step. set: what the effects of the step record; its members may be empty. NO
 * illegal_transition: another process made a step first, such as a second worker that notices the
 * pair. out (may be NULL): the pair after the step, with texts in mem. Sync afterwards. */
struct amp_conflict_step {
    struct amp_span x, y;
    uint8_t event;
    const struct amp_conflict *set;
    const char *worker; /* CHECK; of an answer: which has the check, NULL: its time must be over */
    const char *actor;
    int64_t now_ms;
};
int amp_conflict_step(struct amp_store *s, const struct amp_conflict_step *st, struct amp_buf *mem,
                      struct amp_conflict *out, struct amp_error *err);

#endif
