/* Overrides that change the records of the queue. */
#include "work/item/judge/permit.h"

#include <stdio.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/item/judge/private.h"
#include "json/record.h"

__attribute__((format(printf, 1, 2))) static void note_quiet(const char *fmt, ...)
{
    (void)fmt;
}

static int job_check(struct amp_store *s, struct amp_span id, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_queue_job j;

    amp_buf_init(&mem, AMP_REC_MAX);
    int found = amp_queue_read(s, id, &mem, &j, err);
    if (found < 0)
        return -1;
    if (!found)
        return amp_fail(err, AMP_NO, unknown_job, "no job %.*s", AMP_CLIP(id, 64));
    if (amp_queue_ended(j.state))
        return amp_fail(err, AMP_NO, ended, "the job %.*s has ended: it is %s", AMP_CLIP(id, 64),
                        amp_queue_fsm.states[j.state].name);
    return 0;
}

/* The pair, with texts in mem; refused if it has the permission already. */
static int pair_check(struct amp_store *s, const struct amp_permit *o, struct amp_buf *mem,
                      struct amp_conflict *c, struct amp_error *err)
{
    if (job_check(s, o->job, err) < 0 || job_check(s, o->other, err) < 0 ||
        amp_conflict_read(s, o->job, o->other, mem, c, err) < 0)
        return -1;
    if (c->state == AMP_CONFLICT_PARALLEL && c->until_ms == o->until_ms)
        return amp_fail(err, AMP_NO, already_decided, "%.*s let them run side by side before%s",
                        AMP_CLIP(c->person.n ? c->person : AMP_SPAN("conflict_exec"), 100),
                        c->until_ms ? ", until the same time" : "");
    return 0;
}

static int pair_allow(struct amp_store *s, const struct amp_permit *o,
                      const struct amp_conflict *was, const char *actor, struct amp_error *err)
{
    const struct amp_conflict_desk d = {
        .store = s, .actor = actor, .now_ms = amp_now_ms(), .note = note_quiet};
    const struct amp_conflict set = {.decision = AMP_SPAN("override"),
                                     .person = o->person,
                                     .by = o->by,
                                     .why = o->why,
                                     .permit = o->id,
                                     .until_ms = o->until_ms};
    struct amp_conflict_step st = {
        .x = o->job, .y = o->other, .event = AMP_CONFLICT_EV_ALLOW, .set = &set};

    if (amp_conflict_try(&d, &st, err) < 0)
        return -1;
    return was->state == AMP_CONFLICT_ASKED
               ? amp_conflict_unask(&d, was->question, "a person overrode it", err)
               : 0;
}

int amp_permit_give(struct amp_store *s, const struct amp_permit *o, int64_t keep_ms,
                    const char *actor, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_conflict was = {.state = AMP_CONFLICT_NEW};
    bool beside = o->of == AMP_PERMIT_BESIDE;

    amp_buf_init(&mem, AMP_REC_MAX);
    if ((beside && pair_check(s, o, &mem, &was, err) < 0) ||
        amp_permit_record(s, o, keep_ms, actor, err) < 0 ||
        (beside && pair_allow(s, o, &was, actor, err) < 0))
        return -1;
    return amp_store_sync(s, err);
}
