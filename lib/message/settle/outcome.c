/* What ends an operation, or reports on it. */
#include "message/settle/outcome.h"

#include <string.h>

#include "message/ledger/awaited.h"
#include "message/ledger/holder.h"
#include "message/operation/retry.h"
#include "message/record/record.h"
#include "message/settle/answer.h"
#include "message/settle/progress.h"
#include "protocol/terms.h"

/* What the message says of its request: false where that is no beginning and no end of the work. */
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
    return true;
}

bool amp_outcome_is(const struct amp_view *v)
{
    struct amp_message_answer a;
    char by[256];
    return amp_progress_is(v) || (answer_read(v, &a, by) && amp_awaited_is_named(v));
}

/* One answer to all attempts at an operation. */
struct answering {
    struct amp_store *store;
    const struct amp_view *v;
    const struct amp_message_answer *answer;
    int64_t now_ms;
    bool check; /* only whether the sender may */
    bool taken; /* at least one attempt took it */
    struct amp_error denied;
};

/* Whether the message ends the work that this attempt asked for. */
static int attempt_ends(const struct answering *t, struct amp_span id, bool *ends,
                        struct amp_error *err)
{
    const struct amp_terms *terms = amp_terms_of(t->v->protocol);
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    *ends = true;
    if (!terms->ends || t->answer->stage != AMP_STAGE_FULFILLED)
        return 0;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_find(t->store, id, &mem, &r, err) < 0)
        return -1;
    *ends = !r.found || terms->ends(r.line, t->v);
    return 0;
}

/* Of several attempts, or hand-overs, the answer is to those whose holder gives it. */
static int attempt_answer(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct answering *t = ctx;
    struct amp_error e = {0};
    bool ends;
    if (attempt_ends(t, id, &ends, err) < 0)
        return -1;
    if (!ends)
        return 0;
    int rc = t->check ? amp_message_may_answer(t->store, id, NULL, t->answer, &e)
                      : amp_settle_answer(t->store, id, t->answer, t->now_ms, NULL, &e);
    if (rc == 0) {
        t->taken = true;
    } else if (e.status != AMP_NO) {
        *err = e;
        return -1;
    } else if (amp_holder_denied(&e)) {
        t->denied = e; /* else unknown, or out of turn: nothing to settle */
    }
    return 0;
}

/* Settles the attempts that the message answers with `a`, or only checks whether its sender may. */
static int attempts_answer(struct amp_store *s, const struct amp_view *v,
                           const struct amp_message_answer *a, int64_t now_ms, bool check,
                           struct amp_error *err)
{
    struct answering t = {.store = s, .v = v, .answer = a, .now_ms = now_ms, .check = check};
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
    if (amp_progress_is(v))
        return amp_progress_apply(s, v, now_ms, err);
    return answer_read(v, &a, by) ? attempts_answer(s, v, &a, now_ms, false, err) : 0;
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
