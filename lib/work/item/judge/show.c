/* Shows what is known of a job's conflicts, for lists. */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "work/item/judge/private.h"
#include "work/item/permit/permit.h"
#include "json/record.h"

struct listing {
    struct amp_jw *w;
    struct amp_span job;
    uint32_t n;
};

static void list_open(struct listing *l, const char *key)
{
    if (l->n++ == 0)
        amp_jw_member_open(l->w, key, '[');
    amp_jw_open(l->w, '{');
}

static int conflict_put(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_conflict *c = rec;
    struct listing *l = ctx;
    struct amp_jw *w = l->w;

    (void)err;
    if (!amp_span_eq(c->a, l->job) && !amp_span_eq(c->b, l->job))
        return 0;
    list_open(l, "conflicts");
    amp_jw_member_str(w, "with", amp_span_eq(c->a, l->job) ? c->b : c->a);
    amp_jw_member_text(w, "state", amp_conflict_fsm.states[c->state].name);
    if (c->overlap.n)
        amp_jw_member_raw(w, "overlap", c->overlap);
    if (c->judged)
        amp_conflict_number(w, "confidence", c->confidence);
    amp_jw_some_str(w, "reason", c->reason);
    amp_jw_some_str(w, "code", c->code);
    amp_jw_some_str(w, "question", c->question);
    amp_jw_some_str(w, "first", c->first);
    amp_jw_some_str(w, "decision", c->decision);
    amp_jw_some_str(w, "person", c->person);
    amp_jw_some_str(w, "by", c->by);
    amp_jw_some_str(w, "why", c->why);
    amp_jw_some_str(w, "override", c->permit);
    amp_rec_time(w, "decided", c->decided_ms);
    amp_rec_time(w, "until", c->until_ms);
    amp_jw_close(w, '}');
    return 0;
}

static int override_put(void *ctx, const struct amp_permit *o, struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_jw *w = l->w;

    (void)err;
    list_open(l, "overrides");
    amp_jw_member_str(w, "id", o->id);
    amp_jw_member_text(w, "override", amp_permit_name((int)o->of));
    amp_jw_some_str(w, "with", amp_span_eq(o->job, l->job) ? o->other : o->job);
    amp_jw_member_str(w, "person", o->person);
    amp_jw_member_str(w, "by", o->by);
    amp_jw_some_str(w, "key", o->key);
    amp_jw_member_str(w, "why", o->why);
    amp_jw_some_str(w, "changed", o->changed);
    amp_rec_time(w, "since", o->since_ms);
    amp_rec_time(w, "until", o->until_ms);
    amp_jw_close(w, '}');
    return 0;
}

static int conflict_met(void *ctx, const void *rec, struct amp_error *err)
{
    (void)rec, (void)err;
    *(bool *)ctx = true;
    return 1;
}

static int permit_met(void *ctx, const struct amp_permit *o, struct amp_error *err)
{
    return conflict_met(ctx, o, err);
}

int amp_conflict_any(struct amp_store *s, bool *any, struct amp_error *err)
{
    *any = false;
    if (amp_subject_each(&amp_conflict_subject, s, NULL, conflict_met, any, err) < 0 ||
        (!*any && amp_permit_each(s, AMP_SPAN(""), permit_met, any, err) < 0))
        return -1;
    return 0;
}

int amp_conflict_members(struct amp_jw *w, struct amp_store *s, struct amp_span job,
                         struct amp_error *err)
{
    struct listing l = {.w = w, .job = job}, o = l;

    if (amp_subject_each(&amp_conflict_subject, s, NULL, conflict_put, &l, err) < 0)
        return -1;
    if (l.n)
        amp_jw_close(w, ']');
    if (amp_permit_each(s, job, override_put, &o, err) < 0)
        return -1;
    if (o.n)
        amp_jw_close(w, ']');
    return 0;
}

int amp_conflict_notice(struct amp_store *s, char *out, size_t size, struct amp_error *err)
{
    struct amp_breaker_now now;
    char until[AMP_TIME_MAX];

    *out = '\0';
    if (amp_breaker_read(s, AMP_CONFLICT_BREAKER, &now, err) < 0)
        return -1;
    if (now.state == AMP_BREAKER_CLOSED)
        return 0;
    amp_time_format(now.until_ms, until);
    snprintf(out, size, "conflict_exec: %s after %lld failures in a row (%.200s); %s %s",
             now.state == AMP_BREAKER_OPEN ? "not started" : "on trial", (long long)now.failures,
             now.why, now.state == AMP_BREAKER_OPEN ? "until" : "the trial ends by", until);
    return 0;
}
