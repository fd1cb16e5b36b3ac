/* amp-ack send: writes the acknowledgements of the messages on stdin. With a state directory, each
 * one is recorded in the ledger first. */
#include "pass.h"

#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/words.h"
#include "count.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/delivery.h"
#include "work/git/person.h"

static const char *stage, *from, *note, *code, *message = "refused";
static bool every, retryable, by_agent;

static const char *const stages[] = {"RECEIVED", "READ", "FULFILLED", "REJECTED", "FAILED", NULL};

static const struct amp_opt send_opts[] = {
    {0, "stage", AMP_OPT_CHOICE, &stage, "STAGE",
     .doc = "stage (default: the one that the message waits for)", .choices = stages},
    {0, "from", AMP_OPT_STRING, &from, "ROLE",
     .doc = "agent that acknowledges (default: the recipient)"},
    {0, "note", AMP_OPT_STRING, &note, "TEXT", .doc = "a note for people"},
    {0, "code", AMP_OPT_STRING, &code, "CODE", .doc = "code of REJECTED or FAILED",
     .values = "code"},
    {0, "message", AMP_OPT_STRING, &message, "TEXT", .doc = "reason of REJECTED or FAILED"},
    {0, "retryable", AMP_OPT_FLAG, &retryable, NULL, .doc = "sending it again may succeed"},
    {0, "every", AMP_OPT_FLAG, &every, NULL,
     .doc = "include messages that need no acknowledgement"},
    ACK_TERMS_OPTS,
    PASS_IN_OPT("read from PATH"),
    PASS_OUT_OPT,
    PASS_OPEN_OPT,
    AMP_METRICS_OPTS(ack_metrics),
    AMP_OPT_END,
};

/* The stage of --stage, or the one that the message's protocol waits for. */
static enum amp_ack_stage stage_for(const struct amp_view *v)
{
    const struct amp_delivery_terms *t = amp_delivery_of(v->protocol);
    if (stage)
        return (enum amp_ack_stage)amp_word_find(stages, amp_span_str(stage));
    return t->acknowledges ? t->waits_for : AMP_STAGE_READ;
}

/* Refuses an acknowledgement that would be false; see terms.h. */
static int check_stage(struct pass *p, const struct amp_view *v, enum amp_ack_stage st,
                       struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, (size_t)256 << 20);
    if (amp_answer_check(v->protocol, st, err) < 0)
        return -1;
    if (!amp_delivery_of(v->protocol)->acks_are_durable)
        return 0;
    if (!p->store && (st == AMP_STAGE_RECEIVED || st == AMP_STAGE_FULFILLED))
        return amp_fail(err, AMP_NO, not_durable,
                        "accepting an event needs a state directory: --state DIR");
    if (st != AMP_STAGE_FULFILLED || !v->wants_outcome)
        return 0;
    if (amp_message_find(p->store, v->id, &mem, &r, err) < 0)
        return -1;
    return r.found && amp_outcome_known(&r)
               ? 0
               : amp_fail(err, AMP_NO, outcome_missing,
                          "it has no reply, task_complete or task_failed yet");
}

/* Records the acknowledgement. The turn is synced before its line is written. */
static int answer_record(struct pass *p, const struct amp_view *v, struct amp_answer *a,
                         struct amp_error *err)
{
    bool refusal = a->stage == AMP_STAGE_REJECTED || a->stage == AMP_STAGE_FAILED;
    struct amp_message_answer said = {
        .stage = a->stage, .by = a->by, .code = amp_span_str(refusal ? a->code : "")};
    enum amp_store_outcome how;
    if (refusal)
        said.failure = retryable ? AMP_FAILURE_PASSING : AMP_FAILURE_TERMINAL;
    if (amp_message_may_answer(p->store, v->id, v, &said, err) < 0 ||
        amp_message_record(p->store, v, a->now_ms, &how, err) < 0 ||
        amp_settle_answer(p->store, v->id, &said, a->now_ms, NULL, err) < 0)
        return -1;
    return amp_sequence_answer(p->store, v, "amp-ack.send", a, err);
}

static int message_take(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    char by[128] = "system";
    struct amp_error e = {0};
    count_taken(p->metrics, v);
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK || v->id.n == 0 ||
        !(amp_timeouts_ack(v) > 0 || v->needs_ack || every))
        return 0;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 20);
    if (from)
        snprintf(by, sizeof(by), "%s", from);
    else if (v->n_to > 0)
        amp_span_copy(v->to[0], by, sizeof(by));
    struct amp_answer a = {.stage = stage_for(v),
                           .by = by,
                           .code = code,
                           .note = note,
                           .rule = "send",
                           .retryable = retryable,
                           .node = ack_as ? ack_as : by,
                           .now_ms = amp_now_ms()};
    if (a.stage == AMP_STAGE_REJECTED || a.stage == AMP_STAGE_FAILED) {
        a.code = code ? code : AMP_CODE(rejected);
        a.note = message;
    }
    if (by_agent && p->store &&
        amp_person_or_self(environ, by, "acknowledge in an agent's name", err) < 0)
        return -1;
    int rc = check_stage(p, v, a.stage, &e);
    if (rc == 0 && p->store)
        rc = answer_record(p, v, &a, &e);
    if (rc == 0)
        rc = amp_answer_line(v, &a, &line, &e);
    if (rc < 0 && e.status == AMP_NO)
        return pass_reject(p, v, &e, err);
    if (rc < 0) {
        *err = e;
        return -1;
    }
    if (line.len == 0)
        return 0; /* the protocol has no such answer */
    line.len--;   /* its LF */
    struct count_answer counted = {.protocol = v->protocol,
                                   .stage = a.stage,
                                   .by = by,
                                   .code = amp_span_str(a.code),
                                   .now_ms = a.now_ms,
                                   .ours = true};
    count_answer(p->metrics, p->store, v->id, &counted);
    return pass_say(p, by, amp_buf_span(&line), err);
}

static int send_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    if (ack_terms(err) < 0)
        amp_die_usage("%s", err->what);
    return from ? ack_person_or_self(from, "acknowledge in an agent's name", err) : 0;
}

static int ack_send(struct amp_command *c, struct amp_error *err)
{
    struct pass p = {.store = c->store, .name = "amp-ack.send", .take = message_take};
    struct amp_agent_caller caller;
    by_agent = amp_agent_calls(environ, &caller);
    return pass_run(&p, err);
}

const struct amp_verb send_verbs[] = {
    {"send", "", "acknowledge the messages on stdin", send_opts, ack_send, .check = send_check,
     .opens = AMP_OPENS_GIVEN, .signals = true, .who = AMP_WHO_SELF},
    {0},
};
