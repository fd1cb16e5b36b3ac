/* Reads messages about questions: whether they ask, their requests, and whether they end one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "message/delivery/ledger/awaited.h"
#include "message/delivery/ledger/ledger.h"
#include "message/protocol/question.h"
#include "people/question/question.h"

#define LINE_MAX_BYTES (33u << 20)

/* ---- requests ---- */

/* The newest attempt at the request that a result answers. */
struct newest_request {
    struct amp_store *store;
    struct amp_buf line; /* its message; empty: unknown */
};

static int request_add(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct newest_request *r = ctx;
    AMP_BUF struct amp_buf mem = {.max = LINE_MAX_BYTES};
    struct amp_message_rec m;

    if (amp_message_find(r->store, id, &mem, &m, err) < 0)
        return -1;
    amp_buf_reset(&r->line);
    return m.found ? amp_buf_add(&r->line, m.line.p, m.line.n, err) : 0;
}

static int request_find(struct amp_store *s, const struct amp_view *result, struct amp_buf *line,
                        struct amp_error *err)
{
    struct newest_request r = {.store = s};

    amp_buf_init(&r.line, LINE_MAX_BYTES);
    int rc = amp_awaited_each(s, result, request_add, &r, err);
    *line = r.line;
    return rc;
}

/* Whether the request of a result demands that a person looks at it. */
static int request_asks(struct amp_store *s, const struct amp_view *result, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    const struct amp_check_options opt = {.only = result->protocol};
    struct amp_view request;
    int asks = 0;

    if (request_find(s, result, &line, err) < 0)
        return -1;
    if (line.len == 0)
        return 0;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader ||
        amp_reader_line(reader, amp_buf_span(&line), &opt, &request, NULL, NULL, err) < 0)
        asks = -1;
    else if (request.kind == AMP_KIND_DISPATCH && request.tape)
        asks = amp_questions_of(result->protocol)->request_asks(&request);
    amp_reader_free(reader);
    return asks;
}

int amp_question_is(struct amp_store *s, const struct amp_view *v, struct amp_view *named,
                    char id[AMP_MSG_ID_MAX], struct amp_error *err)
{
    const struct amp_question_terms *t = amp_questions_of(v->protocol);

    *named = *v;
    if (!t)
        return 0;
    int asks = t->asks(v);
    if (!asks && t->may_ask && t->may_ask(v))
        asks = request_asks(s, v, err);
    if (asks <= 0)
        return asks;
    if (v->id.n == 0 && t->id) {
        int n = t->id(v, id);
        if (n <= 0 || n >= AMP_MSG_ID_MAX) /* longer than a name may be */
            return 0;
        named->id = (struct amp_span){id, (size_t)n};
    }
    return named->id.n > 0;
}

int amp_question_request(struct amp_hitl *h, const struct amp_question *q, json_t **out,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = LINE_MAX_BYTES}, line = {0};
    const struct amp_check_options opt = {.only = q->protocol};
    struct amp_message_rec m;
    struct amp_view v;

    *out = NULL;
    if (!amp_question_terms(q)->request_asks)
        return 0;
    if (amp_message_find(h->store, amp_span_str(q->id), &mem, &m, err) < 0)
        return -1;
    struct amp_reader *reader = m.found ? amp_reader_new(NULL, err) : NULL;
    if (m.found && !reader)
        return -1;
    int rc = reader ? amp_reader_line(reader, m.line, &opt, &v, NULL, NULL, err) : 0;
    if (rc >= 0 && reader)
        rc = request_find(h->store, &v, &line, err);
    if (rc == 0 && line.len > 0 && !(*out = amp_question_load(amp_buf_span(&line), err)))
        rc = -1;
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0;
}

/* ---- later messages ---- */

bool amp_question_may_settle(const struct amp_view *later)
{
    const struct amp_question_terms *t = amp_questions_of(later->protocol);

    if (!t || t->carried_out_by)
        return false;
    return (later->kind == AMP_KIND_DECISION && later->body.decision.ref.n > 0) ||
           (t->settles && t->settles(later));
}

struct settled {
    const struct amp_view *later; /* NULL: the task has ended */
    struct amp_span task;
    char (*keys)[AMP_QUESTION_KEY_MAX];
    size_t n, cap;
};

static bool is_about(const struct amp_view *later, const struct amp_question_rec *r,
                     struct amp_span id)
{
    if (later->kind == AMP_KIND_DECISION)
        return amp_span_eq(later->body.decision.ref, r->invocation) ||
               amp_span_eq(later->body.decision.ref, id);
    /* The review item's name is in the payload. */
    const struct amp_question_terms *t = amp_questions_of(later->protocol);
    if (t->subject)
        return amp_span_eq(t->subject(later), id);
    return amp_span_eq(later->task, r->task) &&
           (r->correlation.n == 0 || amp_span_eq(later->correlation, r->correlation));
}

static int settled_add(void *ctx, struct amp_span key, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct settled *s = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_question_rec r;
    char text[AMP_QUESTION_KEY_MAX];

    if (amp_question_rec_read(rec->json, &mem, &r, err) < 0)
        return -1;
    enum amp_protocol p = amp_question_protocol(&r);
    if (!amp_span_copy(key, text, sizeof text))
        return 0;
    if (s->later ? p != s->later->protocol ||
                       !is_about(s->later, &r, amp_span_str(amp_question_key_id(p, text)))
                 : r.about.kind != AMP_ABOUT_TASK || !amp_span_is(s->task, r.about.task))
        return 0;
    if (amp_grow(&s->keys, &s->cap, s->n, sizeof *s->keys, err) < 0)
        return -1;
    memcpy(s->keys[s->n++], text, sizeof text);
    return 0;
}

/* Ends the questions of a selection; why: for the note. *n: how many. */
static int settled_end(struct amp_hitl *h, struct settled *s, const char *why, uint32_t *n,
                       struct amp_error *err)
{
    struct amp_error no;
    int rc = 0;

    *n = 0;
    for (uint8_t i = AMP_ESC_OPEN; rc == 0 && i <= AMP_ESC_DEFERRED; i++)
        rc = amp_store_each(h->store, AMP_ESCALATION_KIND, amp_escalation_fsm.states[i].name,
                            settled_add, s, err);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct amp_question_update u = {
            .event = AMP_ESC_EV_END, .set = {.ended_ms = amp_now_ms()}, .now_ms = amp_now_ms()};
        if (amp_question_step(h, s->keys[i], &u, &no) == 0) {
            h->note("%s is no longer asked: %s", s->keys[i], why);
            ++*n;
        } else if (no.status != AMP_NO) {
            *err = no;
            rc = -1;
        }
    }
    free(s->keys);
    return rc;
}

int amp_question_withdraw(struct amp_hitl *h, const struct amp_view *later, struct amp_error *err)
{
    struct settled s = {.later = later};
    uint32_t n;

    return settled_end(h, &s, "a later message settled it", &n, err);
}

int amp_question_end_task(struct amp_hitl *h, struct amp_span task, uint32_t *n,
                          struct amp_error *err)
{
    struct settled s = {.task = task};

    return settled_end(h, &s, "the task has ended", n, err);
}
