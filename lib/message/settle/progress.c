/* AMP's work under way: what is heard of it. */
#include "message/settle/progress.h"

#include "message/ledger/awaited.h"
#include "message/ledger/work.h"
#include "message/settle/answer.h"
#include "protocol/terms.h"

bool amp_progress_is(const struct amp_view *v)
{
    return amp_terms_of(v->protocol)->watched && v->task.n > 0 && v->kind != AMP_KIND_DISPATCH &&
           v->kind != AMP_KIND_REVIEW;
}

struct hearing {
    struct amp_store *store;
    const struct amp_view *v;
    const char *type; /* of the work that the message is an outcome of; NULL: it is none */
    bool refers;      /* to work that is known */
    int64_t now_ms;
    char by[256];
    struct amp_reader *reader;
};

/* NO: it came further, or was never known: nothing to settle. */
static int work_answer(struct hearing *h, struct amp_span id, bool done, struct amp_error *err)
{
    struct amp_error e = {0};
    struct amp_message_answer a = {.stage = done ? AMP_STAGE_FULFILLED : AMP_STAGE_READ,
                                   .by = h->by,
                                   .worded = true,
                                   .alive = !done};
    if (amp_settle_answer(h->store, id, &a, h->now_ms, NULL, &e) == 0 || e.status == AMP_NO)
        return 0;
    *err = e;
    return -1;
}

/* Whether the dispatch has that subtask; one that names none has all. */
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

static int each_fn(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct hearing *h = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
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

/* What it refers to by its id. */
static int named_settle(struct hearing *h, struct amp_error *err)
{
    for (uint32_t i = 0; h->type && i < h->v->context.n; i++) {
        struct amp_message_rec r;
        AMP_BUF struct amp_buf mem = {0};
        amp_buf_init(&mem, AMP_RECORD_MAX);
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
    if (!amp_progress_is(v) || !amp_span_copy(v->from, h.by, sizeof(h.by)))
        return 0;
    const struct amp_watched *work = amp_terms_of(v->protocol)->watched;
    while (work->type && work->ended_by != v->kind)
        work++;
    h.type = work->type;
    int rc = named_settle(&h, err);
    if (rc == 0)
        rc = amp_awaited_each(s, v, each_fn, &h, err);
    amp_reader_free(h.reader);
    return rc;
}
