/*
 * amp-ack track: a pass-through that lets no message by before the ledger has it on disk. Messages
 * that need an acknowledgement get a deadline; acknowledgements that pass settle what they answer.
 * An operation of SW4RM is passed once; a duplicate is answered and does not pass.
 */
#include "pass.h"

#include <amp/base/clock.h>

#include "count.h"
#include "message/ledger/holder.h"
#include "message/ledger/ledger.h"
#include "message/ledger/timeouts.h"
#include "message/operation/idempotency.h"
#include "message/record/named.h"
#include "message/record/record.h"
#include "message/settle/acknowledge.h"
#include "message/settle/answer.h"
#include "message/settle/outcome.h"
#include "message/settle/rails.h"
#include "message/settle/sweep.h"
#include "protocol/terms.h"

static const char *in_path = "-", *out_path = "-";
static const char *now_text;
static int64_t open_timeout_ms = AMP_OPEN_TIMEOUT_MS, window_ms = AMP_IDEM_WINDOW_MS, pretended_ms;
static bool hold, resend;

const struct amp_opt track_opts[] = {
    {'i', "in", AMP_OPT_PATH, &in_path, "PATH",
     .doc = "read from PATH (a FIFO is opened without waiting)"},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write to PATH"},
    {0, "hold", AMP_OPT_FLAG, &hold, NULL, .doc = "keep an input FIFO open: no end of file"},
    AMP_OPT_OPEN_TIMEOUT(open_timeout_ms),
    {0, "resend", AMP_OPT_FLAG, &resend, NULL, .doc = "first write unacknowledged messages again"},
    {0, "window", AMP_OPT_DURATION, &window_ms, "TIME",
     .doc = "how long the outcome of an operation is remembered", .config = "ack.window"},
    ACK_TERMS_OPTS,
    {0, "now", AMP_OPT_STRING, &now_text, "TIME", .doc = "use TIME as the current time (RFC 3339)"},
    AMP_METRICS_OPTS(ack_metrics),
    AMP_OPT_END,
};

static int64_t now_ms(void)
{
    return now_text ? pretended_ms : amp_now_ms();
}

static int acknowledge(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_message_acknowledge(p->store, v, now_ms(), &e) == 0) {
        count_acknowledgement(p->metrics, p->store, v, now_ms());
        return pass_emit(p, v->line, err);
    }
    if (amp_holder_denied(&e))
        return pass_reject(p, v, &e, err);
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    /* It answers nothing that we know (or comes out of turn): worth a word, not worth losing. */
    pass_warn(p, "an acknowledgement of %.*s: %s: %s",
              (int)(v->body.ack.ref.n < 200 ? v->body.ack.ref.n : 200), v->body.ack.ref.p, e.code,
              e.what);
    return pass_emit(p, v->line, err);
}

/* Answers a message whose operation was begun or done before, and passes the answer instead. */
static int answer(struct pass *p, const struct amp_view *v, const struct amp_idem_answer *a,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, (size_t)64 << 20);
    if (amp_idem_reply(p->store, v, a, ack_as ? ack_as : "amp-ack.track", now_ms(), &line, err) < 0)
        return -1;
    line.len--; /* its LF */
    return pass_emit(p, amp_buf_span(&line), err);
}

/* 1: it may pass; 0: it was answered. */
static int claim(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    struct amp_idem_options opt = {
        .now_ms = now_ms(), .window_ms = window_ms, .actor = ack_as ? ack_as : "amp-ack.track"};
    struct amp_idem_answer a;
    amp_idem_answer_init(&a);
    int rc = amp_idem_claim(p->store, v, &opt, &a, err);
    if (rc == 0 && a.verdict < AMP_IDEM_RUNNING)
        rc = 1;
    else if (rc == 0) {
        count_decision(p->metrics, v, amp_idem_word(a.verdict));
        rc = answer(p, v, &a, err);
    }
    amp_idem_answer_release(&a);
    return rc;
}

/* Another process may have changed the work's holder since the check: the message is in the ledger
 * then, and must not be sent again. */
static int withdraw(struct pass *p, const struct amp_view *v, const struct amp_error *why,
                    struct amp_error *err)
{
    struct amp_error e = {0};
    struct amp_message_answer a = {.stage = AMP_STAGE_REJECTED,
                                   .by = ack_as ? ack_as : "amp-ack.track",
                                   .code = amp_span_str(why->code),
                                   .ours = true};
    if (v->id.n == 0 || amp_settle_answer(p->store, v->id, &a, now_ms(), NULL, &e) == 0 ||
        e.status == AMP_NO)
        return 0;
    *err = e;
    return -1;
}

/* What answers an operation passes whether or not we know of one. */
static int settle(struct pass *p, const struct amp_view *v, bool again, struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_rails_apply(p->store, v, now_ms(), &e) == 0) {
        count_passed(p->metrics, v, again);
        return pass_emit(p, v->line, err);
    }
    if (e.status == AMP_NO)
        return withdraw(p, v, &e, err) < 0 ? -1 : pass_reject(p, v, &e, err);
    *err = e;
    return -1;
}

/* An expired message goes no further: its sender is notified, and it becomes a dead letter. */
static int expire(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf answers = {0};
    struct amp_sweep_options opt = {.actor = ack_as ? ack_as : "amp-ack.track",
                                    .from = "system",
                                    .answers = &answers,
                                    .metrics = p->metrics};
    amp_buf_init(&answers, 1 << 20);
    if (amp_message_sweep_one(p->store, v->id, now_ms(), &opt, err) < 0)
        return -1;
    amp_refused("ttl_expired", 1);
    if (answers.len == 0)
        return 0;
    answers.len--; /* its LF */
    return pass_emit(p, amp_buf_span(&answers), err);
}

static int take(struct pass *p, const struct amp_view *message, struct amp_error *err)
{
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *message, *v = &named;
    count_taken(p->metrics, v);
    bool answers = v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK;
    if (answers && !amp_terms_of(v->protocol)->acks_name_work)
        return acknowledge(p, v, err);
    bool own = v->id.n > 0;
    if (answers || !amp_message_name(v, name))
        return settle(p, v, false, err);
    enum amp_store_outcome how;
    struct amp_error e = {0};
    /* Whether it is refused is decided before anything is recorded. */
    int rc = amp_outcome_check(p->store, v, &e) < 0 || amp_message_check(p->store, v, &e) < 0
                 ? -1
                 : claim(p, v, &e);
    if (rc == 0)
        return 0;
    if (rc > 0 && amp_message_record(p->store, v, now_ms(), &how, &e) == 0)
        return amp_message_expired(v, now_ms()) ? expire(p, v, err)
                                                : settle(p, v, how == AMP_STORE_REDELIVERED, err);
    if (e.status == AMP_NO && !own) { /* the same attempt in other words: it bears no id */
        pass_warn(p, "%s: %s: passed on without a record", e.code, e.what);
        return pass_emit(p, v->line, err);
    }
    if (e.status == AMP_NO)
        return pass_reject(p, v, &e, err);
    *err = e;
    return -1;
}

static int open_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct pass *p = ctx;
    struct amp_message_rec r;
    if (rec->due_ms == 0 ||
        !(amp_span_is(rec->state, "SENT") || amp_span_is(rec->state, "RECEIVED")))
        return 0;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, (size_t)256 << 20);
    if (amp_message_parse(rec, &mem, &r, err) < 0 || pass_emit(p, r.line, err) < 0) {
        amp_complain(err);
        amp_status_note(err->status);
        return 1;
    }
    return 0;
}

static int begin(struct pass *p, struct amp_error *err)
{
    if (resend) {
        resend = false;
        return amp_store_each(p->store, AMP_MESSAGE_KIND, NULL, open_fn, p, err);
    }
    return 0;
}

int ack_track(int argc, char **argv)
{
    int status;
    if (now_text && !amp_time_parse(amp_span_str(now_text), &pretended_ms))
        amp_die_usage("--now takes an RFC 3339 time with an offset");
    struct amp_error err;
    if (ack_terms(&err) < 0)
        amp_die_usage("%s", err.what);
    struct pass p = {.in_path = in_path,
                     .out_path = out_path,
                     .open_timeout_ms = open_timeout_ms,
                     .hold = hold,
                     .counts = "amp-ack.track",
                     .take = take,
                     .begin = begin};
    p.store = ack_open_state(ACK_MAKE, &status);
    return p.store ? pass_run(&p) : status;
}
