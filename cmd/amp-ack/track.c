/*
 * amp-ack track: a pass-through that writes a message only after the ledger has it on disk.
 * Messages that need an acknowledgement get a deadline; acknowledgements settle the messages that
 * they answer. An operation of SW4RM is passed on once; a duplicate is answered instead.
 */
#include "pass.h"

#include <amp/base/clock.h>

#include "base/codes.h"
#include "count.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/record/record.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/outcome.h"
#include "message/delivery/settle/rails.h"
#include "message/delivery/settle/sweep.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "work/agent/publish.h"

static const char *now_text;
static int64_t window_ms = AMP_IDEM_WINDOW_MS, pretended_ms;
static bool resend;

static const struct amp_opt track_opts[] = {
    PASS_IN_OPT("read from PATH (a FIFO is opened without waiting)"),
    PASS_OUT_OPT,
    PASS_HOLD_OPT,
    PASS_OPEN_OPT,
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

static int ack_take(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error e = {0};
    int heard = pass_hears(p, v, &e, err);
    if (heard <= 0)
        return heard < 0 ? -1 : pass_reject(p, v, &e, err);
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
    /* The message is unknown, or has no use for this acknowledgement: it is passed on. */
    pass_warn(p, "an acknowledgement of %.*s: %s: %s",
              (int)(v->body.ack.ref.n < 200 ? v->body.ack.ref.n : 200), v->body.ack.ref.p, e.code,
              e.what);
    return pass_emit(p, v->line, err);
}

/* Answers a message whose operation was begun or done before; the message is not passed on. */
static int duplicate_answer(struct pass *p, const struct amp_view *v,
                            const struct amp_idem_answer *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, (size_t)64 << 20);
    if (amp_idem_reply(p->store, v, a, pass_actor(p), now_ms(), &line, err) < 0)
        return -1;
    line.len--; /* its LF */
    return pass_say(p, pass_actor(p), amp_buf_span(&line), err);
}

/* 1: the message may pass; 0: it was answered. */
static int operation_claim(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    struct amp_idem_options opt = {
        .now_ms = now_ms(), .window_ms = window_ms, .actor = pass_actor(p)};
    struct amp_idem_answer a;
    amp_idem_answer_init(&a);
    int rc = amp_idem_claim(p->store, v, &opt, &a, err);
    if (rc == 0 && a.verdict < AMP_IDEM_RUNNING)
        rc = 1;
    else if (rc == 0) {
        count_decision(p->metrics, v, amp_idem_word(a.verdict));
        rc = duplicate_answer(p, v, &a, err);
    }
    amp_idem_answer_release(&a);
    return rc;
}

/* If another process changed the holder of the work after the check, the message is already in the
 * ledger. Records the refusal, so that it is not sent again. */
static int message_withdraw(struct pass *p, const struct amp_view *v, const struct amp_error *why,
                            struct amp_error *err)
{
    struct amp_error e = {0};
    struct amp_message_answer a = {.stage = AMP_STAGE_REJECTED,
                                   .by = pass_actor(p),
                                   .code = amp_span_str(why->code),
                                   .ours = true};
    if (v->id.n == 0 || amp_settle_answer(p->store, v->id, &a, now_ms(), NULL, &e) == 0 ||
        e.status == AMP_NO)
        return 0;
    *err = e;
    return -1;
}

/* Reports of progress that come too soon are passed on. */
static int pace_look(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    int64_t since;
    int early = amp_progress_early(p->store, v, &since, err);
    if (early > 0)
        pass_warn(p,
                  "too_frequent: %.*s reports progress on %.*s after %lld s; at most one report in "
                  "%lld s is allowed",
                  AMP_CLIP(v->from, 100), AMP_CLIP(v->task, 100), (long long)since / 1000,
                  (long long)amp_answers_of(v->protocol)->progress_least_ms / 1000);
    return early < 0 ? -1 : 0;
}

/* Passes the message on, also an answer to an unknown operation. */
static int message_settle(struct pass *p, const struct amp_view *v, bool again,
                          struct amp_error *err)
{
    struct amp_error e = {0};
    if (pace_look(p, v, err) < 0)
        return -1;
    if (amp_rails_apply(p->store, v, now_ms(), &e) == 0) {
        count_passed(p->metrics, v, again);
        return pass_emit(p, v->line, err);
    }
    if (e.status == AMP_NO)
        return message_withdraw(p, v, &e, err) < 0 ? -1 : pass_reject(p, v, &e, err);
    *err = e;
    return -1;
}

/* Refuses a message that is not recorded. */
static int message_refuse(struct pass *p, const struct amp_view *v, const struct amp_error *why,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = 1 << 20};
    if (pass_reject(p, v, why, err) < 0 ||
        amp_rails_answer(p->store, v, why, pass_actor(p), now_ms(), &line, err) < 0)
        return -1;
    if (line.len == 0)
        return 0;
    line.len--; /* its LF */
    return pass_say(p, pass_actor(p), amp_buf_span(&line), err);
}

/* An expired message is not passed on: its sender is notified, and it becomes a dead letter. */
static int message_expire(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf answers = {0};
    struct amp_sweep_options opt = {
        .actor = pass_actor(p), .from = "system", .answers = &answers, .metrics = p->metrics};
    amp_buf_init(&answers, 1 << 20);
    if (amp_message_sweep_one(p->store, v->id, now_ms(), &opt, err) < 0)
        return -1;
    amp_refused(AMP_CODE(ttl_expired), 1);
    if (answers.len == 0)
        return 0;
    answers.len--; /* its LF */
    return pass_say(p, "system", amp_buf_span(&answers), err);
}

static int message_track(struct pass *p, const struct amp_view *message, struct amp_error *err)
{
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *message, *v = &named;
    count_taken(p->metrics, v);
    bool answers = v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK;
    if (answers && !amp_delivery_of(v->protocol)->acks_name_work)
        return ack_take(p, v, err);
    bool own = v->id.n > 0;
    if (answers || !amp_message_name(v, name))
        return message_settle(p, v, false, err);
    enum amp_store_outcome how;
    struct amp_error e = {0};
    /* A message is refused before it is recorded. */
    int rc = amp_outcome_check(p->store, v, &e) < 0 || amp_message_check(p->store, v, &e) < 0
                 ? -1
                 : operation_claim(p, v, &e);
    if (rc == 0)
        return 0;
    if (rc > 0 && amp_message_record(p->store, v, now_ms(), &how, &e) == 0)
        return amp_message_expired(v, now_ms())
                   ? message_expire(p, v, err)
                   : message_settle(p, v, how == AMP_STORE_REDELIVERED, err);
    if (e.status == AMP_NO && !own) { /* the same attempt with other contents and without an id */
        pass_warn(p, "%s: %s: passed on without a record", e.code, e.what);
        return pass_emit(p, v->line, err);
    }
    if (e.status == AMP_NO)
        return message_refuse(p, v, &e, err);
    *err = e;
    return -1;
}

static int message_take(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = v->line.n + (2 << 20)};
    const struct amp_check_options any = {0};
    struct amp_view published;
    int rc = amp_publish_line(p->store, v, &line, err);
    if (rc > 0)
        rc = amp_reader_line(p->intake.reader, amp_buf_span(&line), &any, &published, NULL, NULL,
                             err);
    return rc < 0 ? -1 : message_track(p, rc > 0 ? &published : v, err);
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

static int messages_resend(struct pass *p, struct amp_error *err)
{
    bool first = resend;
    resend = false;
    return first ? amp_store_each(p->store, AMP_MESSAGE_KIND, NULL, open_fn, p, err) : 0;
}

static int track_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    if (now_text && !amp_time_parse(amp_span_str(now_text), &pretended_ms))
        amp_die_usage("--now takes an RFC 3339 time with an offset");
    if (ack_terms(err) < 0)
        amp_die_usage("%s", err->what);
    return 0;
}

static int ack_track(struct amp_command *c, struct amp_error *err)
{
    struct pass p = {.store = c->store,
                     .name = "amp-ack.track",
                     .answers = true,
                     .take = message_take,
                     .begin = messages_resend};
    return pass_run(&p, err);
}

const struct amp_verb default_verbs[] = {
    {
        NULL,
        "",
        "the same as track",
        track_opts,
        ack_track,
        .check = track_check,
        .opens = AMP_OPENS_MADE,
        .signals = true,
    },
    {0},
};

const struct amp_verb track_verbs[] = {
    {"track", "", "record messages and pass them on", track_opts, ack_track, .check = track_check,
     .opens = AMP_OPENS_MADE, .signals = true, .group = "Recording"},
    {0},
};
