/* Outcomes, acknowledgements, and AMP's signs of life. */
#include "message/delivery/settle/outcome.h"

#include <string.h>

#include "base/codes.h"
#include "message/delivery/facts.h"
#include "message/delivery/ledger/awaited.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/ledger/load.h"
#include "message/delivery/operation/retry.h"
#include "message/delivery/record/record.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/cost.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/work.h"

/* ---- AMP ---- */

static bool is_progress(const struct amp_view *v)
{
    return amp_work_of(v->protocol)->watched && v->task.n > 0 && v->kind != AMP_KIND_DISPATCH &&
           v->kind != AMP_KIND_REVIEW;
}

struct hearing {
    struct amp_store *store;
    const struct amp_view *v;
    const char *type; /* of the work whose outcome the message is; NULL: it is none */
    bool refers;      /* to work in the ledger */
    int64_t now_ms;
    char by[256];
    struct amp_reader *reader;
};

/* The message may be unknown, or beyond the stage. */
static int work_answer(struct hearing *h, struct amp_span id, bool done, struct amp_error *err)
{
    struct amp_error e = {0};
    struct amp_message_answer a = {.stage = done ? AMP_STAGE_FULFILLED : AMP_STAGE_READ,
                                   .by = h->by,
                                   .worded = true,
                                   .alive = !done};
    return amp_settle_answer(h->store, id, &a, h->now_ms, NULL, &e) < 0
               ? amp_fail_unless_no(err, &e)
               : 0;
}

/* Whether the dispatch has the subtask of the result, or names no subtasks. */
static int dispatch_asks(struct hearing *h, struct amp_span line, bool *asks, struct amp_error *err)
{
    const struct amp_check_options opt = {.only = h->v->protocol};
    struct amp_view v;
    *asks = false;
    if (!h->reader && !(h->reader = amp_reader_new(NULL, err)))
        return -1;
    if (amp_reader_line(h->reader, line, &opt, &v, NULL, NULL, err) < 0)
        return -1;
    if (v.kind != AMP_KIND_DISPATCH)
        return 0;
    *asks = v.body.dispatch.n_subtasks == 0;
    for (uint32_t i = 0; i < v.body.dispatch.n_subtasks && !*asks; i++)
        *asks = amp_span_eq(v.body.dispatch.subtasks[i].id, h->v->body.result.subtask);
    return 0;
}

static int work_settle(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct hearing *h = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_message_find(h->store, id, &mem, &r, err) < 0)
        return -1;
    if (!r.found || !amp_work_is(&r) || !amp_work_holds(&r, h->by))
        return 0;
    bool arrived = r.state != AMP_DELIVERY_SENT;
    bool done = arrived && h->type && !h->refers && amp_span_is(r.type, h->type);
    if (done && h->v->kind == AMP_KIND_RESULT && dispatch_asks(h, r.line, &done, err) < 0)
        return -1;
    return work_answer(h, id, done, err);
}

/* Settles the work that the message refers to by ids. */
static int named_settle(struct hearing *h, struct amp_error *err)
{
    for (uint32_t i = 0; h->type && i < h->v->context.n; i++) {
        struct amp_message_rec r;
        AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
        if (amp_message_find(h->store, h->v->context.v[i], &mem, &r, err) < 0)
            return -1;
        if (!r.found || !amp_work_is(&r) || !amp_span_is(r.type, h->type) ||
            !amp_span_eq(r.task, h->v->task))
            continue;
        h->refers = true;
        if (amp_work_holds(&r, h->by) && work_answer(h, h->v->context.v[i], true, err) < 0)
            return -1;
    }
    return 0;
}

int amp_progress_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       struct amp_error *err)
{
    struct hearing h = {.store = s, .v = v, .now_ms = now_ms};
    if (!is_progress(v) || !amp_span_copy(v->from, h.by, sizeof(h.by)))
        return 0;
    const struct amp_watched *work = amp_work_of(v->protocol)->watched;
    while (work->type && work->ended_by != v->kind)
        work++;
    h.type = work->type;
    int rc = named_settle(&h, err);
    if (rc == 0)
        rc = amp_awaited_each(s, v, work_settle, &h, err);
    amp_reader_free(h.reader);
    return rc;
}

/* ---- outcomes ---- */

/* The answer that the message gives to its request; false: it neither begins nor ends the work. */
static bool answer_read(const struct amp_view *v, struct amp_message_answer *a, char by[256])
{
    struct amp_outcome o;
    if (!amp_outcome_read(v, &o))
        return false;
    amp_span_copy(o.by, by, 256);
    *a = (struct amp_message_answer){.stage = o.stage,
                                     .by = by,
                                     .worded = true,
                                     .code = o.code,
                                     .result = o.result,
                                     .holds = o.holds,
                                     .releases = o.releases,
                                     .takes_up = o.takes_up,
                                     .eta_ms = o.eta_ms};
    if (o.classed)
        a->failure = amp_retry_class(a->code);
    if (v->kind == AMP_KIND_PROGRESS && amp_answers_of(v->protocol)->progress_least_ms > 0)
        a->progress_ms = v->created_ms;
    return true;
}

bool amp_outcome_is(const struct amp_view *v)
{
    struct amp_message_answer a;
    char by[256];
    return is_progress(v) || (answer_read(v, &a, by) && amp_awaited_is_named(v));
}

/* An answer to all attempts at an operation. */
struct answering {
    struct amp_store *store;
    const struct amp_view *v;
    const struct amp_message_answer *answer;
    int64_t now_ms;
    bool check; /* change nothing */
    bool taken; /* by at least one attempt */
    bool spent; /* the message has a usage */
    struct amp_usage usage;
    struct amp_error denied;
};

/* Whether the message ends the work that this attempt asked for. */
static int attempt_ends(const struct answering *t, struct amp_span id, bool *ends,
                        struct amp_error *err)
{
    const struct amp_work_terms *terms = amp_work_of(t->v->protocol);
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    *ends = true;
    if (!terms->ends || t->answer->stage != AMP_STAGE_FULFILLED)
        return 0;
    if (amp_message_find(t->store, id, &mem, &r, err) < 0)
        return -1;
    *ends = !r.found || terms->ends(r.line, t->v);
    return 0;
}

/* Reports the end of work to the room that records what follows from it. */
static int attempt_ended(const struct answering *t, struct amp_span id, struct amp_error *err)
{
    const struct amp_message_facts *facts = amp_store_facts(t->store);
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    bool ends = t->answer->stage == AMP_STAGE_FAILED || t->answer->stage == AMP_STAGE_FULFILLED;
    if (!ends || !facts || !facts->ended || !amp_work_of(t->v->protocol)->reviews)
        return 0;
    if (amp_message_find(t->store, id, &mem, &r, err) < 0)
        return -1;
    const struct amp_work_end e = {
        .request = r.line, .done = t->v, .actor = t->answer->by, .now_ms = t->now_ms};
    return r.found ? facts->ended(t->store, &e, err) : 0;
}

/* Answers the attempt if its holder, or an agent that may become it, gives the answer. */
static int attempt_answer(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct answering *t = ctx;
    struct amp_error e = {0};
    bool ends;
    int rc = t->check ? amp_message_may_answer(t->store, id, NULL, t->answer, &e) : 0;
    if (attempt_ends(t, id, &ends, err) < 0)
        return -1;
    if (rc == 0 && !ends) {
        amp_fail_text(
            &t->denied, AMP_NO, AMP_OUTCOME_UNCONFIRMED,
            "the work of %.*s is not done: the outcome does not confirm what was asked for",
            AMP_CLIP(id, 200));
        return 0;
    }
    if (rc == 0 && t->answer->takes_up)
        rc = amp_load_check(t->store, t->answer->by, id, &e);
    if (rc == 0 && !t->check)
        rc = amp_settle_answer(t->store, id, t->answer, t->now_ms, NULL, &e);
    if (rc == 0 && !t->check && t->answer->takes_up && amp_load_most(t->v->protocol) > 0 &&
        amp_load_note(t->store, t->answer->by, id, err) < 0)
        return -1;
    t->taken |= rc == 0;
    /* After a crash between the two commits, the repeated outcome records the usage. */
    if (rc == 0 && !t->check && t->spent &&
        amp_cost_record(t->store, id, t->v, &t->usage, t->now_ms, err) < 0)
        return -1;
    if (rc == 0 && !t->check && attempt_ended(t, id, err) < 0)
        return -1;
    if (rc < 0 && amp_holder_denied(&e))
        t->denied = e; /* other negative results: unknown, or not in this state */
    return rc < 0 ? amp_fail_unless_no(err, &e) : 0;
}

/* Answers the attempts with `a`, or only checks whether the sender may. */
static int attempts_answer(struct amp_store *s, const struct amp_view *v,
                           const struct amp_message_answer *a, int64_t now_ms, bool check,
                           struct amp_error *err)
{
    struct answering t = {.store = s, .v = v, .answer = a, .now_ms = now_ms, .check = check};
    const struct amp_work_terms *terms = amp_work_of(v->protocol);
    t.spent = !check && terms->usage && terms->usage(v, &t.usage);
    if (amp_awaited_each(s, v, attempt_answer, &t, err) < 0)
        return -1;
    if (t.taken || t.denied.status != AMP_NO)
        return 0;
    *err = t.denied;
    return -1;
}

int amp_outcome_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_answer a;
    char by[256];
    return answer_read(v, &a, by) ? attempts_answer(s, v, &a, 0, true, err) : 0;
}

int amp_outcome_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                      struct amp_error *err)
{
    struct amp_message_answer a;
    char by[256];
    if (is_progress(v))
        return amp_progress_apply(s, v, now_ms, err);
    return answer_read(v, &a, by) ? attempts_answer(s, v, &a, now_ms, false, err) : 0;
}

struct pace {
    struct amp_store *store;
    int64_t last_ms;
};

static int pace_look(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct pace *p = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_message_find(p->store, id, &mem, &r, err) < 0)
        return -1;
    if (r.found && r.progress_ms > p->last_ms)
        p->last_ms = r.progress_ms;
    return 0;
}

int amp_progress_early(struct amp_store *s, const struct amp_view *v, int64_t *since_ms,
                       struct amp_error *err)
{
    struct pace p = {.store = s};
    int64_t least = amp_answers_of(v->protocol)->progress_least_ms;
    if (v->kind != AMP_KIND_PROGRESS || least <= 0 || v->created_ms <= 0)
        return 0;
    if (amp_awaited_each(s, v, pace_look, &p, err) < 0)
        return -1;
    *since_ms = v->created_ms - p.last_ms;
    return *since_ms > 0 && *since_ms < least;
}

int amp_outcome_fail(struct amp_store *s, const struct amp_view *v, const char *code,
                     int64_t now_ms, struct amp_error *err)
{
    char by[256];
    const struct amp_message_answer a = {.stage = AMP_STAGE_FAILED,
                                         .by = by,
                                         .worded = true,
                                         .code = amp_span_str(code),
                                         .failure = AMP_FAILURE_TERMINAL};
    amp_span_copy(v->from, by, sizeof(by));
    return attempts_answer(s, v, &a, now_ms, false, err);
}

bool amp_outcome_known(const struct amp_message_rec *r)
{
    return !r->wants_outcome || amp_record_has_stage(r, "FULFILLED") ||
           amp_record_has_stage(r, "FAILED");
}

/* ---- acknowledgements ---- */

enum amp_ack_stage amp_message_stage_of(const struct amp_view *v)
{
    enum amp_ack_stage stage = v->body.ack.stage;
    if (v->kind != AMP_KIND_NACK || stage > AMP_STAGE_FULFILLED)
        return stage;
    return stage == AMP_STAGE_FULFILLED ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED;
}

/* In a protocol in which FULFILLED means that there is an outcome, the ledger must have one. */
static int ack_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = (size_t)256 << 20};
    if (!amp_delivery_of(v->protocol)->acks_are_durable || v->body.ack.stage != AMP_STAGE_FULFILLED)
        return 0;
    if (amp_message_find(s, v->body.ack.ref, &mem, &r, err) < 0)
        return -1;
    return !r.found || amp_outcome_known(&r)
               ? 0
               : amp_fail(err, AMP_NO, outcome_missing,
                          "processed, but no reply, task_complete or task_failed is known");
}

static struct amp_message_answer ack_read(const struct amp_view *v, char by[256])
{
    const struct amp_delivery_terms *t = amp_delivery_of(v->protocol);
    struct amp_message_answer a = {.stage = amp_message_stage_of(v),
                                   .by = by,
                                   .id = v->id,
                                   .code = v->body.ack.code,
                                   .eta_ms = v->body.ack.eta_ms};
    amp_span_copy(v->from, by, 256);
    if (t->ack_result)
        a.result = t->ack_result(v);
    if (a.stage == AMP_STAGE_REJECTED || a.stage == AMP_STAGE_FAILED)
        a.failure = !t->acks_say_retryable  ? amp_retry_class(a.code)
                    : v->body.ack.retryable ? AMP_FAILURE_PASSING
                                            : AMP_FAILURE_TERMINAL;
    return a;
}

int amp_message_acknowledge_check(struct amp_store *s, const struct amp_view *v,
                                  struct amp_error *err)
{
    char by[256];
    struct amp_message_answer a = ack_read(v, by);
    return amp_message_may_answer(s, v->body.ack.ref, NULL, &a, err);
}

int amp_message_acknowledge(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                            struct amp_error *err)
{
    char by[256];
    struct amp_message_answer a = ack_read(v, by);
    if (ack_check(s, v, err) < 0 ||
        amp_settle_answer(s, v->body.ack.ref, &a, now_ms, NULL, err) < 0)
        return -1;
    return amp_progress_apply(s, v, now_ms, err);
}

int amp_idem_reply(struct amp_store *s, const struct amp_view *v, const struct amp_idem_answer *a,
                   const char *node, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    struct amp_answer to = {.by = node, .now_ms = now_ms};
    const struct amp_first_attempt first = {.done = a->verdict == AMP_IDEM_DONE,
                                            .id = amp_buf_span(&a->original),
                                            .code = amp_buf_span(&a->code),
                                            .result = amp_buf_span(&a->result),
                                            .status = a->status,
                                            .at_ms = a->at_ms};
    return amp_sequence_answer(s, v, node, &to, err) < 0
               ? -1
               : amp_answers_of(v->protocol)->duplicate(v, &to, &first, out, err);
}
