/* Votes, deferrals, deadlines and fallbacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "people/question/question.h"

#define EXTENSION_MIN 1000 /* ms */

int amp_question_defer(struct amp_hitl *h, const struct amp_question *q, int64_t until_ms,
                       const char *op, const char *note, struct amp_error *err)
{
    struct amp_question_update u = {
        .event = AMP_ESC_EV_DEFER,
        .set = {.until_ms = until_ms, .operator= amp_span_str(op), .note = amp_span_str(note)},
        .now_ms = amp_now_ms()};
    return amp_question_step(h, q->key, &u, err);
}

/* It is not a failure that another process made the step meanwhile. */
static int step_done(const struct amp_error *why, struct amp_error *err)
{
    if (why->status == AMP_NO)
        return 0;
    *err = *why;
    return -1;
}

static int question_wake(struct amp_hitl *h, const struct amp_question *q, int64_t now_ms,
                         struct amp_question_swept *out, struct amp_error *err)
{
    struct amp_question_update u = {.event = AMP_ESC_EV_WAKE, .now_ms = now_ms};
    struct amp_error why;

    if (amp_question_step(h, q->key, &u, &why) < 0)
        return step_done(&why, err);
    out->asked_again++;
    return 0;
}

/* The time to the next deadline is the time to the first one. */
static int question_extend(struct amp_hitl *h, const struct amp_question *q,
                           const struct amp_question_rec *r, bool unreachable, int64_t now_ms,
                           struct amp_question_swept *out, struct amp_error *err)
{
    int64_t span = r->timeout_ms > EXTENSION_MIN ? r->timeout_ms : EXTENSION_MIN;
    struct amp_question_update u = {.event = AMP_ESC_EV_EXPIRE,
                                    .facts = AMP_ESC_IF_EXTENDS,
                                    .unreachable = unreachable,
                                    .extend_ms = span,
                                    .now_ms = now_ms};
    struct amp_error why;

    if (amp_question_step(h, q->key, &u, &why) < 0)
        return step_done(&why, err);
    out->extended++;
    h->note("%s: nobody decided in time; the deadline is extended (%lld of %d)", q->name,
            (long long)r->extensions + 1, AMP_EXTENSIONS_MAX);
    return 0;
}

/* The deadline passed, and nothing decides: the sender gets a nack, the question stays open. */
static int question_expire(struct amp_hitl *h, const struct amp_question *q, int64_t now_ms,
                           struct amp_question_swept *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    char id[AMP_QUESTION_KEY_MAX + 16];
    struct amp_error why;

    if (amp_question_nack(h, q, AMP_STAGE_FULFILLED, AMP_HITL_UNAVAILABLE,
                          "nobody decided before the deadline", true, &nack, err) < 0)
        return -1;
    snprintf(id, sizeof id, "expired/%s", q->key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_EXPIRE,
        .set = {.expired_ms = now_ms, .passed = AMP_SPAN("nobody decided before the deadline")},
        .emit = {amp_span_str(id), {nack.data, nack.len ? nack.len - 1 : 0}, false},
        .now_ms = now_ms};
    if (amp_question_step(h, q->key, &u, &why) < 0)
        return step_done(&why, err);
    out->expired++;
    h->note("%s: nobody decided before the deadline; the question stays open", q->name);
    return 0;
}

static int question_fall(struct amp_hitl *h, const struct amp_question *q, const char *action,
                         bool unreachable, int64_t now_ms, struct amp_question_swept *out,
                         struct amp_error *err)
{
    const char *policy = amp_fallback_name(q->fallback);
    char note[200];
    struct amp_error why;

    snprintf(note, sizeof note, "%s: %s", policy,
             unreachable ? "no person can be reached" : "nobody decided before the deadline");
    const struct amp_operator_answer a = {.action = action,
                                          .note = note,
                                          .op = AMP_POLICY_OPERATOR,
                                          .policy = policy,
                                          .because =
                                              unreachable ? AMP_HITL_UNAVAILABLE : "deadline"};
    const struct amp_decided_by by = {
        .channel = "policy", .method = "policy", .unreachable = unreachable, .due_ms = now_ms};
    if (amp_question_decide(h, q, &a, &by, NULL, &why) != AMP_DECIDED_OK)
        return step_done(&why, err);
    out->decided++;
    h->note("%s: %s by %s", q->name, action, note);
    return 0;
}

static int fallback_apply(struct amp_hitl *h, const struct amp_question *q, bool unreachable,
                          int64_t now_ms, struct amp_question_swept *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_question_terms *t = amp_question_terms(q);
    struct amp_question_rec r;
    int found = amp_question_find(h->store, amp_span_str(q->key), &mem, &r, err);

    if (found <= 0)
        return found;
    if (q->fallback == AMP_FALLBACK_EXTEND && r.extensions < AMP_EXTENSIONS_MAX)
        return question_extend(h, q, &r, unreachable, now_ms, out, err);
    const char *action = q->fallback == AMP_FALLBACK_NONE ? NULL : t->deny;
    if (q->fallback == AMP_FALLBACK_AUTO && r.accept.n > 0)
        action = r.accept.p;
    return action ? question_fall(h, q, action, unreachable, now_ms, out, err)
                  : question_expire(h, q, now_ms, out, err);
}

struct due {
    struct amp_hitl *h;
    char (*keys)[AMP_QUESTION_KEY_MAX];
    size_t n, cap;
};

static int due_add(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct due *d = ctx;

    if (amp_grow(&d->keys, &d->cap, d->n, sizeof *d->keys, err) < 0)
        return -1;
    amp_span_copy(id, d->keys[d->n++], AMP_QUESTION_KEY_MAX);
    return 0;
}

int amp_question_sweep(struct amp_hitl *h, int64_t now_ms, struct amp_question_swept *out,
                       struct amp_error *err)
{
    struct due d = {.h = h};
    int rc = amp_store_due(h->store, AMP_ESCALATION_KIND, now_ms, due_add, &d, err);

    for (size_t i = 0; rc == 0 && i < d.n; i++) {
        struct amp_question q;
        rc = amp_question_load_key(h, d.keys[i], &q, err);
        if (rc <= 0)
            continue;
        rc = q.state == AMP_ESC_DEFERRED && q.until_ms <= now_ms
                 ? question_wake(h, &q, now_ms, out, err)
                 : fallback_apply(h, &q, false, now_ms, out, err);
        amp_question_release(&q);
    }
    free(d.keys);
    return rc < 0 ? -1 : 0;
}

int amp_question_unreachable(struct amp_hitl *h, const struct amp_question *q,
                             struct amp_question_swept *out, struct amp_error *err)
{
    return fallback_apply(h, q, true, amp_now_ms(), out, err);
}
