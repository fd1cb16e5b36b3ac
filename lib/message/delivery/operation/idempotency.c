/*
 * Operations and their attempts. A claim reads the operation's record and the ledger's records of
 * its attempts, decides, and commits by compare-and-set. If the operation's record has changed, it
 * decides again. So of two concurrent attempts only one passes.
 */
#include "message/delivery/operation/idempotency.h"

#include <string.h>
#include <strings.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/record/forget.h"
#include "message/delivery/record/operation_key.h"
#include "message/delivery/record/record.h"
#include "message/protocol/work.h"
#include "json/record.h"

#define ATTEMPTS_MAX AMP_IDEM_ATTEMPTS /* kept in a record: the first, and the newest */
#define RACES_MAX    64

AMP_WORDS(words, AMP_IDEM_VERDICTS);

const char *amp_idem_word(enum amp_idem_verdict v)
{
    return v < AMP_IDEM_COUNT ? words[v] : "unknown";
}

void amp_idem_answer_init(struct amp_idem_answer *a)
{
    *a = (struct amp_idem_answer){.original = {.max = AMP_RECORD_MAX},
                                  .result = {.max = AMP_RECORD_MAX},
                                  .code = {.max = 1 << 16},
                                  .status = ""};
}

void amp_idem_answer_release(struct amp_idem_answer *a)
{
    amp_buf_release(&a->original);
    amp_buf_release(&a->result);
    amp_buf_release(&a->code);
}

/* The store's record of an operation. */
struct operation {
    struct amp_span producer, token;
    int64_t sequence; /* of an operation without a token */
    int64_t attempt;  /* the highest count seen */
    struct amp_span original;
    struct amp_span *attempts; /* ids: the first, and the newest */
    uint32_t n_attempts;
    int64_t answered;
    struct operation_last {
        struct amp_span id, correlation;
        const char *decision, *original_status;
        int64_t at_ms;
    } last;
    int64_t cached_ms;
};

#define LAST(as, key, member) AMP_REC_EVER(as, struct operation_last, key, member)
static const struct amp_rec_field last_fields[] = {
    LAST(TEXT, "id", id),
    LAST(TEXT, "correlation", correlation),
    LAST(CSTR, "decision", decision),
    LAST(CSTR, "original_status", original_status),
    LAST(INT, "at_ms", at_ms),
};
AMP_REC_TABLE(last_rec, "the last decision about an operation", struct operation_last, last_fields);

#define MEMBER(as, key, member) AMP_REC(as, struct operation, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(TEXT, "producer", producer),
    MEMBER(TEXT, "token", token),
    MEMBER(INT, "sequence", sequence),
    MEMBER(INT, "attempt", attempt),
    MEMBER(TEXT, "original", original),
    AMP_REC_WORDS(struct operation, "attempts", attempts, true),
    AMP_REC_EVER(INT, struct operation, "answered", answered),
    AMP_REC_IN(struct operation, "last", last, &last_rec, false),
    MEMBER(INT, "cached_ms", cached_ms),
};
AMP_REC_TABLE(operation_rec, "an operation's record", struct operation, fields);

/* The record, empty if there is none; its texts are in mem. */
static int operation_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                          struct operation *out, struct amp_error *err)
{
    return rec->found ? amp_rec_parse(&operation_rec, rec->json, mem, out, err)
                      : amp_rec_init(&operation_rec, out, err);
}

/* The operation's record on which the decision is based. */
struct op {
    struct operation rec;
    struct amp_span ids[ATTEMPTS_MAX]; /* of rec.attempts, as they change */
    uint64_t rev;
    bool found;
};

/* One attempt, by its record in the ledger. */
enum attempt_state { OPEN, AT_WORK, SUCCEEDED, FAILED };
struct attempt {
    enum attempt_state state;
    const char *status;
    int64_t at_ms;
};

struct work {
    struct amp_store *store;
    const struct amp_view *view;
    const struct amp_idem_options *opt;
    struct amp_idem_answer *answer;
    struct amp_operation_key key;
    struct amp_buf mem, was, out; /* was: of op */
    struct op op;
    bool raced;
};

#define WORK AMP_CLEANUP(work_release) struct work

static struct work work_make(struct amp_store *s, const struct amp_view *v,
                             const struct amp_idem_options *opt, struct amp_idem_answer *answer)
{
    return (struct work){.store = s,
                         .view = v,
                         .opt = opt,
                         .answer = answer,
                         .mem = {.max = AMP_RECORD_MAX},
                         .out = {.max = AMP_RECORD_MAX},
                         .was = {.max = AMP_RECORD_MAX}};
}

static void work_release(struct work *w)
{
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
    amp_buf_release(&w->was);
}

/* Codes of refusals before any work, after which another attempt may succeed. */
static bool is_passing(struct amp_span code)
{
    static const char *const codes[] = {
        AMP_CODE(buffer_full),           AMP_CODE(no_route), AMP_CODE(agent_unavailable),
        AMP_CODE(agent_shutdown),        "overloaded",       AMP_CODE(ack_timeout),
        AMP_CODE(capability_unavailable)};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code.n == strlen(codes[i]) && strncasecmp(code.p, codes[i], code.n) == 0)
            return true;
    return false;
}

/* The acknowledgements of an attempt. */
struct acks {
    bool taken_up, admitted;
    int64_t fulfilled_ms, last_ms;
    struct amp_span code; /* the last one */
};

static void acks_sum(const struct amp_message_rec *r, struct acks *out)
{
    for (uint32_t i = 0; i < r->n_acks; i++) {
        const struct amp_ack_note *a = &r->acks[i];
        out->last_ms = a->at_ms > 0 ? a->at_ms : out->last_ms;
        if (strcmp(a->stage, "FULFILLED") == 0 &&
            (out->fulfilled_ms == 0 || a->at_ms < out->fulfilled_ms))
            out->fulfilled_ms = a->at_ms > 0 ? a->at_ms : 1;
        out->admitted |= strcmp(a->stage, "RECEIVED") == 0;
        out->taken_up |= strcmp(a->stage, "READ") == 0;
        if (a->code.n > 0)
            out->code = a->code;
    }
}

static struct attempt attempt_classify(const struct amp_message_rec *r, const struct acks *a,
                                       int64_t now_ms)
{
    struct attempt t = {.state = AT_WORK, .at_ms = a->last_ms};
    if (!r->found)
        return (struct attempt){.state = OPEN, .status = "SENT"};
    t.status = amp_delivery_fsm.states[r->state].name;
    if (a->fulfilled_ms > 0)
        return (struct attempt){SUCCEEDED, "FULFILLED", a->fulfilled_ms};
    switch (r->state) {
    case AMP_DELIVERY_FULFILLED:
        t.state = SUCCEEDED;
        break;
    case AMP_DELIVERY_FAILED:
        t.state = FAILED;
        break;
    case AMP_DELIVERY_REJECTED:
        t.state = !a->taken_up && is_passing(a->code) ? OPEN : FAILED;
        break;
    case AMP_DELIVERY_SENT: /* overdue before a sweep */
        t.state = r->due_ms > 0 && r->due_ms <= now_ms ? OPEN : AT_WORK;
        break;
    case AMP_DELIVERY_TIMED_OUT:
    case AMP_DELIVERY_RETRYING: /* after a failure another attempt follows */
        t.state = r->failure.n == 0 && (a->taken_up || a->admitted) ? AT_WORK : OPEN;
        break;
    default:
        break;
    }
    return t;
}

/* Copies an attempt's result or code to the answer. */
static int result_keep(struct work *w, const struct attempt *t, const struct amp_message_rec *r,
                       const struct acks *a, struct amp_error *err)
{
    struct amp_idem_answer *out = w->answer;
    out->status = t->status;
    out->at_ms = t->at_ms;
    amp_buf_reset(&out->result);
    amp_buf_reset(&out->code);
    if (r->result.n > 0 && amp_buf_add(&out->result, r->result.p, r->result.n, err) < 0)
        return -1;
    return t->state == FAILED && a->code.n > 0 ? amp_buf_add(&out->code, a->code.p, a->code.n, err)
                                               : 0;
}

/* Selects the attempt that counts: the earliest success, else one in progress, else the newest.
 * *same: it is the message itself, or the message is one of several open attempts. */
static int attempts_weigh(struct work *w, struct attempt *out, bool *same, struct amp_error *err)
{
    *out = (struct attempt){.state = OPEN, .status = "SENT"};
    *same = false;
    for (uint32_t i = 0; i < w->op.rec.n_attempts; i++) {
        struct amp_message_rec r;
        struct acks a = {0};
        bool this = amp_span_eq(w->view->id, w->op.ids[i]);
        if (amp_message_find(w->store, w->op.ids[i], &w->mem, &r, err) < 0)
            return -1;
        acks_sum(&r, &a);
        struct attempt t = attempt_classify(&r, &a, w->opt->now_ms);
        bool better;
        if (out->state == SUCCEEDED)
            better = t.state == SUCCEEDED && t.at_ms < out->at_ms;
        else
            better = t.state == SUCCEEDED || t.state == AT_WORK || out->state != AT_WORK;
        if (!better) {
            *same |= this && out->state == OPEN;
            continue;
        }
        *same = this || (t.state == OPEN && *same);
        *out = t;
        if (result_keep(w, &t, &r, &a, err) < 0)
            return -1;
    }
    return 0;
}

static void attempt_add(struct op *op, struct amp_span id)
{
    if (op->rec.n_attempts == ATTEMPTS_MAX)
        memmove(op->ids + 1, op->ids + 2, (--op->rec.n_attempts - 1) * sizeof(op->ids[0]));
    op->ids[op->rec.n_attempts++] = id;
}

static int record_read(struct work *w, const struct amp_store_rec *rec, struct amp_error *err)
{
    struct op *op = &w->op;
    op->found = rec->found;
    op->rev = rec->rev;
    if (operation_read(rec, &w->was, &op->rec, err) < 0)
        return -1;
    uint32_t n = op->rec.n_attempts;
    op->rec.n_attempts = 0;
    for (uint32_t i = 0; i < n; i++)
        attempt_add(op, op->rec.attempts[i]);
    return 0;
}

static int record_write(struct work *w, struct amp_error *err)
{
    const struct amp_view *v = w->view;
    const struct amp_idem_answer *a = w->answer;
    bool by_token = amp_work_of(v->protocol)->operation(v) == AMP_OPERATION_BY_TOKEN;
    bool has_token = by_token && v->token.n > 0;
    struct operation r = {
        .producer = v->from,
        .token = has_token ? v->token : (struct amp_span){"", 0},
        .sequence = by_token && !has_token ? v->sequence : 0,
        .attempt = w->op.rec.attempt,
        .original = amp_buf_span(&a->original),
        .attempts = w->op.ids,
        .n_attempts = w->op.rec.n_attempts,
        .answered = w->op.rec.answered + (a->verdict >= AMP_IDEM_RUNNING),
        .last = {.id = v->id,
                 .correlation = v->correlation,
                 .decision = amp_idem_word(a->verdict),
                 .original_status = a->status,
                 .at_ms = w->opt->now_ms},
        .cached_ms = a->verdict == AMP_IDEM_DONE ? a->at_ms : 0,
    };
    amp_buf_reset(&w->out);
    return amp_rec_write(&operation_rec, &r, &w->out, err);
}

static int claim_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                    struct amp_error *err)
{
    struct work *w = ctx;
    w->raced = now->found != w->op.found || now->rev != w->op.rev;
    if (w->raced)
        return 1;
    if (record_write(w, err) < 0)
        return -1;
    bool done = w->answer->verdict == AMP_IDEM_DONE;
    change->event = amp_idem_word(w->answer->verdict);
    change->to = done ? "DONE" : "RUNNING";
    change->json = amp_buf_span(&w->out);
    change->due_ms = (done ? w->answer->at_ms : w->opt->now_ms) + w->opt->window_ms;
    change->actor = w->opt->actor;
    return 0;
}

static bool is_known(const struct work *w)
{
    uint32_t i = 0;
    while (i < w->op.rec.n_attempts && !amp_span_eq(w->view->id, w->op.ids[i]))
        i++;
    return i < w->op.rec.n_attempts;
}

/* Whether the message is a new operation although its contents are the same: a first attempt in a
 * conversation. Tasks are identified by their ids. */
static bool is_another(const struct work *w)
{
    const struct amp_view *v = w->view;
    return amp_work_of(v->protocol)->counts_attempts && v->kind != AMP_KIND_DISPATCH &&
           v->attempt <= 1 && !is_known(w);
}

/* If the protocol counts attempts, each further one needs a higher number. */
static int attempt_check(struct work *w, struct amp_error *err)
{
    const struct amp_view *v = w->view;
    if (!amp_work_of(v->protocol)->counts_attempts || !v->has_attempt)
        return 0;
    if (!is_known(w) && v->attempt <= w->op.rec.attempt)
        return amp_fail(err, AMP_NO, attempt_not_incremented,
                        "attempt %lld of an operation that was already sent as attempt %lld",
                        (long long)v->attempt, (long long)w->op.rec.attempt);
    if (v->attempt > w->op.rec.attempt)
        w->op.rec.attempt = v->attempt;
    return 0;
}

static int claim_decide(struct work *w, struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_idem_answer *a = w->answer;
    struct attempt t;
    bool same;
    if (amp_store_get(w->store, w->key.key, &rec, err) < 0 || record_read(w, &rec, err) < 0 ||
        attempts_weigh(w, &t, &same, err) < 0)
        return -1;
    bool ended = t.state == SUCCEEDED || t.state == FAILED;
    if (w->op.rec.n_attempts == 0 || is_another(w) ||
        (ended && w->opt->now_ms - t.at_ms >= w->opt->window_ms)) {
        a->verdict = AMP_IDEM_NEW;
        w->op.rec.n_attempts = 0;
        w->op.rec.answered = w->op.rec.attempt = 0;
    } else if (ended) {
        a->verdict = AMP_IDEM_DONE;
    } else if (same) {
        a->verdict = AMP_IDEM_SAME;
    } else {
        a->verdict = t.state == AT_WORK ? AMP_IDEM_RUNNING : AMP_IDEM_RETRY;
    }
    if (attempt_check(w, err) < 0)
        return -1;
    if (a->verdict == AMP_IDEM_NEW || a->verdict == AMP_IDEM_RETRY)
        attempt_add(&w->op, w->view->id);
    if (a->verdict == AMP_IDEM_NEW)
        a->status = "SENT";
    amp_buf_reset(&a->original);
    return amp_buf_add(&a->original, w->op.ids[0].p, w->op.ids[0].n, err);
}

int amp_idem_claim(struct amp_store *s, const struct amp_view *v,
                   const struct amp_idem_options *opt, struct amp_idem_answer *out,
                   struct amp_error *err)
{
    WORK w = work_make(s, v, opt, out);
    out->verdict = AMP_IDEM_NEW;
    if (amp_operation_key(v, &w.key, err) < 0)
        return -1;
    if (w.key.key.n == 0)
        return 0;
    for (int i = 0; i <= RACES_MAX; i++) {
        if (claim_decide(&w, err) < 0 ||
            amp_store_update(s, w.key.key, NULL, claim_fn, &w, NULL, err) < 0)
            return -1;
        if (!w.raced)
            return 0;
    }
    return amp_fail(err, AMP_TEMPFAIL, busy, "another process decides on the same operation");
}

/* After the window the record is removed, unless an attempt is in progress. Open attempts do not
 * keep it, because the next attempt would pass anyway. */
static int forget_decide(void *ctx, const struct amp_store_rec *rec, int64_t *until_ms,
                         const char **state, struct amp_error *err)
{
    struct work *w = ctx;
    struct attempt t;
    bool same;
    if (record_read(w, rec, err) < 0 || attempts_weigh(w, &t, &same, err) < 0)
        return -1;
    bool ended = t.state != AT_WORK;
    int64_t from = !ended ? w->opt->now_ms : t.state == OPEN ? 0 : t.at_ms;
    *state = ended ? "DONE" : "RUNNING";
    if (!ended || from + w->opt->window_ms > w->opt->now_ms)
        *until_ms = from + w->opt->window_ms;
    return 0;
}

int amp_idem_attempts(struct amp_store *s, struct amp_span operation, struct amp_buf *mem,
                      struct amp_span ids[AMP_IDEM_ATTEMPTS], uint32_t *n, struct amp_error *err)
{
    struct amp_store_rec rec;
    struct operation r;
    if (amp_store_get(s, AMP_KEY_TEXT(operation), &rec, err) < 0 ||
        operation_read(&rec, mem, &r, err) < 0)
        return -1;
    for (*n = 0; *n < r.n_attempts && *n < AMP_IDEM_ATTEMPTS; ++*n)
        ids[*n] = r.attempts[*n];
    return 0;
}

int amp_idem_forget(struct amp_store *s, const struct amp_idem_options *opt, uint32_t *gone,
                    struct amp_error *err)
{
    const struct amp_view none = {0};
    AMP_CLEANUP(amp_idem_answer_release) struct amp_idem_answer answer = {0};
    amp_idem_answer_init(&answer);
    WORK w = work_make(s, &none, opt, &answer);
    const struct amp_forgetting f = {.kind = AMP_IDEM_KIND,
                                     .actor = opt->actor,
                                     .now_ms = opt->now_ms,
                                     .decide = forget_decide,
                                     .ctx = &w};
    return amp_forget(s, &f, gone, err);
}
