/* The records of overrides. */
#include "work/item/permit/permit.h"

#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/record/subject.h"

AMP_WORDS(names, AMP_PERMITS);

const char *amp_permit_name(int of)
{
    return names[of];
}

static const struct amp_rec_words of_words = {.list = names};

#define EVER(as, key_, member) AMP_REC_EVER(as, struct amp_permit, key_, member)
#define SOME(as, key_, member) AMP_REC(as, struct amp_permit, key_, member)
static const struct amp_rec_field fields[] = {
    AMP_REC_ENUM(struct amp_permit, "override", of, &of_words),
    EVER(TEXT, "id", id),
    EVER(TEXT, "job", job),
    SOME(TEXT, "other", other),
    EVER(TEXT, "operator", person),
    EVER(TEXT, "by", by),
    SOME(TEXT, "key", key),
    EVER(TEXT, "reason", why),
    EVER(TEXT, "changed", changed),
    EVER(TIME, "since", since_ms),
    SOME(TIME, "until", until_ms),
    SOME(TEXT, "alg", alg),
    SOME(TEXT, "signature", signature),
};
AMP_REC_TABLE(permit_rec, "an override", struct amp_permit, fields);

int amp_permit_text(const struct amp_permit *o, struct amp_buf *out, struct amp_error *err)
{
    char since[AMP_TIME_MAX], until[AMP_TIME_MAX] = "";
    struct amp_jw w;

    amp_time_format(o->since_ms, since);
    if (o->until_ms)
        amp_time_format(o->until_ms, until);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "override", amp_permit_name((int)o->of));
    amp_jw_member_str(&w, "id", o->id);
    amp_jw_member_str(&w, "job", o->job);
    amp_jw_member_str(&w, "other", o->other);
    amp_jw_member_str(&w, "operator", o->person);
    amp_jw_member_str(&w, "by", o->by);
    amp_jw_member_str(&w, "reason", o->why);
    amp_jw_member_str(&w, "changed", o->changed);
    amp_jw_member_text(&w, "since", since);
    amp_jw_member_text(&w, "until", until);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_permit_parse(struct amp_span json, struct amp_buf *mem, struct amp_permit *out,
                     struct amp_error *err)
{
    return amp_rec_parse(&permit_rec, json, mem, out, err);
}

/* ---- recording ---- */

struct giving {
    const struct amp_permit *permit;
    int64_t keep_ms;
};

static int permit_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct giving *g = t->step->with;
    const struct amp_permit *o = g->permit;

    if (t->now->found)
        return amp_fail(err, AMP_NO, already_decided, "the override %.*s was given before",
                        AMP_CLIP(o->id, 40));
    *(struct amp_permit *)rec = *o;
    t->change->event = "override";
    t->change->due_ms = (o->until_ms > o->since_ms ? o->until_ms : o->since_ms) + g->keep_ms;
    return 0;
}

static const char *const states[] = {"GIVEN", NULL};
static const struct amp_subject permits = {.kind = AMP_PERMIT_KIND,
                                           .table = &permit_rec,
                                           .states = states,
                                           .state = AMP_SUBJECT_AT(struct amp_permit, state),
                                           .carry = permit_set};

int amp_permit_record(struct amp_store *s, const struct amp_permit *o, int64_t keep_ms,
                      const char *actor, struct amp_error *err)
{
    const struct giving g = {o, keep_ms};
    const struct amp_subject_step step = {
        .key = AMP_KEY(permits.kind, o->id), .with = &g, .actor = actor};

    if (o->why.n == 0 || o->why.n > AMP_PERMIT_TEXT_MAX)
        return amp_fail(err, AMP_DATAERR, buffer_full, "the reason has %zu bytes (1 to %d)",
                        o->why.n, AMP_PERMIT_TEXT_MAX);
    if (o->until_ms && o->until_ms <= amp_now_ms())
        return amp_fail(err, AMP_NO, expired, "the time until which it permits has passed");
    return amp_subject_step(&permits, s, &step, NULL, NULL, NULL, err);
}

/* ---- reading ---- */

struct about {
    struct amp_span job;
    amp_permit_fn fn;
    void *ctx;
};

static int about_visit(void *ctx, const void *rec, struct amp_error *err)
{
    const struct about *a = ctx;
    const struct amp_permit *o = rec;

    return !a->job.n || amp_span_eq(o->job, a->job) || amp_span_eq(o->other, a->job)
               ? a->fn(a->ctx, o, err)
               : 0;
}

int amp_permit_each(struct amp_store *s, struct amp_span job, amp_permit_fn fn, void *ctx,
                    struct amp_error *err)
{
    struct about a = {job, fn, ctx};

    return amp_subject_each(&permits, s, NULL, about_visit, &a, err);
}
