/*
 * x_human_review_required: a person decides about the RESPONSE before it is sent. The record
 * "session_review.<message>" has the RESPONSE and the ids of the question, so that the work is not
 * repeated after a crash; it is made before the question, which is made again if it is missing.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/protocol/aop/aop.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/question.h"
#include "message/record/subject.h"
#include "people/answer/ask/ask.h"
#include "work/aop/run/private.h"
#include "work/aop/run/review.h"

enum { KEPT_DAYS = 7, WAIT_DAYS = 7, EVIDENCE_MAX = 200 << 10 };
#define DAY_MS INT64_C(86400000)

struct review {
    const char *response, *id, *invocation;
    int64_t due_ms;
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct review, "response", response),
    AMP_REC_EVER(CSTR, struct review, "question", id),
    AMP_REC_EVER(CSTR, struct review, "invocation", invocation),
};
AMP_REC_TABLE(review_rec, "the record of a review", struct review, fields);

static const char *const states[] = {"ASKED", NULL};
static const struct amp_subject reviews = {.kind = AMP_SESSION_REVIEW_KIND,
                                           .table = &review_rec,
                                           .states = states,
                                           .due = AMP_SUBJECT_AT(struct review, due_ms)};

/* 1: found; the texts are in mem. */
static int review_load(struct amp_tasking *t, struct amp_buf *mem, struct review *r,
                       struct amp_error *err)
{
    return amp_subject_find(&reviews, t->w->store, AMP_KEY(reviews.kind, t->v->id), mem, r, err);
}

int amp_tasking_review_find(struct amp_tasking *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct review r = {0};
    int found = review_load(t, &mem, &r, err);
    if (found <= 0)
        return found;
    amp_buf_reset(&t->response);
    return amp_buf_str(&t->response, r.response, err) < 0 ? -1 : 1;
}

static int review_save(struct amp_tasking *t, const struct amp_asking *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = AMP_REC_MAX};
    if (amp_buf_add(&text, t->response.data, t->response.len, err) < 0 ||
        amp_buf_add(&text, "", 1, err) < 0)
        return -1;
    const struct review r = {text.data, a->id, a->invocation,
                             amp_now_ms() + (WAIT_DAYS + KEPT_DAYS) * DAY_MS};
    return amp_subject_put(&reviews, t->w->store, AMP_KEY(reviews.kind, t->v->id), &r, true, "ask",
                           t->w->opt->consumer, err);
}

/* The person sees the TASK's objective and the RESPONSE, or the part of it that fits. */
static int evidence_make(struct amp_tasking *t, struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *response = amp_json_load(amp_buf_span(&t->response), err);
    if (!response)
        return -1;
    if (t->response.len > EVIDENCE_MAX / 2) {
        json_t *s = json_object_get(response, "execution_summary");
        json_object_del(response, "checkpoint_results");
        json_object_del(response, "extensions");
        json_object_del(json_object_get(response, "task_status"), "extensions");
        json_object_del(s, "output_artifacts");
        json_object_del(s, "extensions");
        json_object_del(s, "warnings");
        json_object_del(s, "actions");
        json_object_del(s, "errors");
        json_object_set_new(s, "shortened", json_true());
    }
    json_auto_t *context =
        json_pack("{s:s, s:s, s:o, s:O}", "session_id", t->session, "agent", t->agent, "objective",
                  amp_tasking_objective(t), "response", response);
    return context ? amp_json_dump(context, out, err) : amp_fail_memory(err);
}

static int question_make(struct amp_tasking *t, struct amp_asking *a, bool known,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf context = {.max = EVIDENCE_MAX + (64 << 10)};
    static const char *const proposed[] = {"approve", "reject", NULL};
    if (evidence_make(t, &context, err) < 0)
        return -1;
    char from[300];
    snprintf(from, sizeof from, "%s/%s", t->w->opt->role, t->w->opt->agent);
    const struct amp_ask q = {.from = from,
                              .reason = "TASK_ESCALATION",
                              .task = t->of.task,
                              .context = amp_buf_span(&context),
                              .proposed = proposed,
                              .until_ms = amp_now_ms() + WAIT_DAYS * DAY_MS,
                              .ids = t->w->opt->ids};
    if (amp_asking_make(a, &q, err) < 0)
        return -1;
    if (!known) {
        if (review_save(t, a, err) < 0)
            return -1;
        t->w->opt->note("%s: waits for a person (%s)", t->of.task, a->id);
    }
    return amp_asking_commit(a, err);
}

/* Writes the decision into the RESPONSE; a rejected one is ABORTED. */
static int decision_apply(struct amp_tasking *t, const char *decision, struct amp_span by,
                          struct amp_span note, struct amp_error *err)
{
    json_auto_t *j = amp_json_load(amp_buf_span(&t->response), err);
    char now[AMP_TIME_MAX];
    bool approved = strcmp(decision, "approve") == 0;
    if (!j)
        return -1;
    amp_time_format(amp_now_ms(), now);
    json_t *review = json_pack("{s:s, s:s%, s:s}", "decision", decision, "operator",
                               by.p ? by.p : "", by.n, "decided_at", now);
    json_t *ext = json_object_get(j, "extensions");
    if (review && note.n > 0)
        json_object_set_new(review, "note", json_stringn(note.p, note.n));
    if (!ext && (!(ext = json_object()) || json_object_set_new(j, "extensions", ext) < 0)) {
        json_decref(review);
        return amp_fail_memory(err);
    }
    if (json_object_set_new(ext, "x_human_review", review) < 0)
        return amp_fail_memory(err);
    if (!approved) {
        json_t *status = json_object_get(j, "task_status");
        json_object_set_new(status, "state", json_string("ABORTED"));
        json_object_set_new(status, "final_signal", json_string("ABORTED"));
    }
    return amp_tasking_response_put(t, j, err);
}

/* 0: decided; 1: open; -1. */
static int decision_look(struct amp_tasking *t, const struct amp_asking *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_question_rec r = {0};
    char word[64];
    switch (amp_asking_look(a, &mem, &r, err)) {
    case AMP_ASKING_FAILED:
        return -1;
    case AMP_ASKING_OPEN:
        return 1;
    case AMP_ASKING_ENDED:
        return decision_apply(t, "ended", AMP_SPAN(""), r.withdrawn, err);
    case AMP_ASKING_DECIDED:
        break;
    }
    snprintf(word, sizeof word, "%.*s", AMP_CLIP(r.decision, 60));
    return decision_apply(t, word, r.policy.n > 0 ? r.policy : r.operator, r.note, err);
}

static int review_step(struct amp_tasking *t, struct amp_asking *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct review r = {0};
    int known = review_load(t, &mem, &r, err);
    if (known < 0)
        return -1;
    if (known) {
        amp_span_copy(amp_span_str(r.id), a->id, sizeof a->id);
        amp_span_copy(amp_span_str(r.invocation), a->invocation, sizeof a->invocation);
        amp_buf_reset(&t->response);
        if (amp_buf_str(&t->response, r.response, err) < 0)
            return -1;
    }
    if (question_make(t, a, known > 0, err) < 0)
        return -1;
    return decision_look(t, a, err);
}

static int question_await(struct amp_tasking *t, const struct amp_asking *a, struct amp_error *err)
{
    const struct amp_key of = AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(a->key));
    struct amp_span text;
    return amp_key_text(&of, t->w->waits_for, &text, err);
}

int amp_tasking_review(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_question_terms *terms = amp_questions_of(t->v->protocol);
    struct amp_asking a;
    if (!terms || !terms->request_asks || !terms->request_asks(t->v))
        return 0;
    int rc = amp_asking_open(&a, t->w->store, t->w->opt->consumer, t->w->opt->stop, t->w->opt->note,
                             err);
    if (rc == 0)
        rc = review_step(t, &a, err);
    if (rc > 0 && question_await(t, &a, err) < 0)
        rc = -1;
    amp_asking_close(&a);
    return rc;
}
