/*
 * Further attempts. The decision sets the next attempt's id (RETRYING, due at the end of the wait).
 * When it is due, the attempt claims the operation, and one commit puts its line into the outbox.
 * Then the attempt gets a record of its own, before the outbox is emitted. After a crash the record
 * is still due, and repeating a step changes nothing.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "message/delivery/dead/withdraw.h"
#include "message/delivery/facts.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/operation/retry.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/step.h"
#include "message/delivery/settle/sweep.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/delivery.h"

/* ---- whether a tool may be called twice ---- */

struct tool {
    struct amp_span name;
    bool idempotent, refused;
};

/* Looks for the tool in a list of descriptions. */
static void tools_look_at(const struct amp_tape *t, uint32_t list, struct tool *tool)
{
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY)
        return;
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        uint32_t name = amp_tape_get(t, i, AMP_SPAN("tool_name"));
        uint32_t says = amp_tape_get(t, i, AMP_SPAN("idempotent"));
        if (name == AMP_TOK_NONE)
            name = amp_tape_get(t, i, AMP_SPAN("name"));
        if (name == AMP_TOK_NONE || !amp_tok_is(t, name, tool->name))
            continue;
        bool yes = says != AMP_TOK_NONE && t->tok[says].type == AMP_JSON_TRUE;
        tool->idempotent |= yes;
        tool->refused |= !yes;
    }
}

static int descriptor_look(void *ctx, struct amp_span descriptor, struct amp_error *err)
{
    static const char *const places[] = {"/tools", "/payload/tools"};
    AMP_TAPE struct amp_tape t = {0};
    amp_rec_tape(&t);
    int rc = amp_rec_scan(&t, descriptor, "an agent's descriptor", err);
    for (size_t i = 0; rc == 0 && i < sizeof(places) / sizeof(places[0]); i++)
        tools_look_at(&t, amp_tape_pointer(&t, 0, amp_span_str(places[i])), ctx);
    return rc;
}

/* Whether the tool is idempotent: configured so, or so described by all of its providers. */
static int tool_may_repeat(struct amp_overdue *o, const struct amp_view *v, bool *may)
{
    const char *const *names = o->sw->opt->retry->idempotent;
    struct tool tool = {.name = v->body.tool_call.tool};
    *may = true;
    for (; names && *names; names++)
        if (amp_span_is(tool.name, *names))
            return 0;
    const struct amp_message_facts *facts = amp_store_facts(o->sw->store);
    if (facts && facts->descriptors(o->sw->store, descriptor_look, &tool, o->sw->err) < 0)
        return -1;
    *may = tool.idempotent && !tool.refused;
    return 0;
}

/* ---- deciding ---- */

static int attempt_give_up(struct amp_overdue *o, enum amp_retry_verdict verdict)
{
    char what[400], code[128];
    amp_step_code(&o->r, code);
    snprintf(what, sizeof(what), "%s: %s, after %lld %s, the last %.*s: %s",
             amp_retry_word(verdict), amp_retry_why(verdict), (long long)amp_step_attempts(&o->r),
             amp_step_attempts(&o->r) == 1 ? "attempt" : "attempts", AMP_CLIP(o->id, 100), code);
    /* A producer that gets nacks had one for the timeout. */
    o->st.event = AMP_DELIVERY_EV_GIVE_UP;
    o->st.notified =
        amp_delivery_of(amp_protocol_find(o->r.protocol))->notifies == AMP_NOTIFIES_NACK ||
        o->r.notified;
    /* Its time is over: that is the end of the work, not only of this message. */
    o->end.stage = verdict == AMP_RETRY_EXPIRED ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED;
    o->end.code = amp_retry_word(verdict);
    o->end.what = what;
    o->end.level = AMP_LEVEL_CRITICAL;
    o->r.given_up = amp_span_str(amp_retry_word(verdict));
    /* Work that was answered has its outcome; its sender has it, too. */
    if (amp_delivery_of(amp_protocol_find(o->r.protocol))->notifies == AMP_NOTIFIES_OUTCOME &&
        o->r.failure.n == 0) {
        snprintf(what, sizeof what, "%s by %.*s within %g s, after %lld %s",
                 o->r.silent ? "no sign of life" : "no RESPONSE", AMP_CLIP(o->r.to, 100),
                 (double)(o->r.silent ? o->r.beat_ms : o->r.ack_timeout_ms) / 1e3,
                 (long long)amp_step_attempts(&o->r),
                 amp_step_attempts(&o->r) == 1 ? "attempt" : "attempts");
        o->st.notified = false;
        o->end.stage = AMP_STAGE_TIMED_OUT;
        o->end.code = code;
    }
    return amp_step_commit(o) < 0 ? -1 : 1;
}

/* Applies the limits that the message itself sets for its retries. */
static void terms_restrict(const struct amp_view *v, struct amp_retry_policy *p)
{
    struct amp_again_terms t;
    amp_again_terms(v, &t);
    if (t.most >= 0 && t.most < (int64_t)p->budget)
        p->budget = (uint32_t)t.most;
    for (uint32_t i = 0; i < t.n_waits && i < AMP_RETRY_WAITS_MAX; i++)
        p->list_ms[i] = t.waits_ms[i];
    if (t.n_waits > 0)
        p->n_list = t.n_waits < AMP_RETRY_WAITS_MAX ? t.n_waits : AMP_RETRY_WAITS_MAX;
}

static int attempt_decide(struct amp_overdue *o, const struct amp_view *v)
{
    struct amp_retry_policy p = o->sw->opt->retry->of[v->protocol];
    struct amp_retry_facts f = {
        .retries = (uint32_t)(amp_step_attempts(&o->r) - 1),
        .terminal = !amp_delivery_of(v->protocol)->again,
        .tool_call = v->kind == AMP_KIND_TOOL_CALL,
        .now_ms = o->sw->now_ms,
        .expires_ms = amp_again_until(v),
    };
    char next[AMP_MSG_ID_MAX];
    int64_t at;
    amp_random(&f.dice, sizeof(f.dice));
    if (f.tool_call && tool_may_repeat(o, v, &f.idempotent) < 0)
        return -1;
    terms_restrict(v, &p);
    enum amp_retry_verdict verdict = amp_retry_decide(&p, &f, &at);
    if (verdict != AMP_RETRY_AGAIN)
        return attempt_give_up(o, verdict);
    struct amp_error e = {0};
    if (amp_again_id(v, o->sw->now_ms, next, &e) < 0) /* NO: an attempt cannot have an id */
        return amp_fail_unless_no(o->sw->err, &e) < 0 ? -1
                                                      : attempt_give_up(o, AMP_RETRY_EXHAUSTED);
    o->st.event = AMP_DELIVERY_EV_RETRY;
    o->st.at_ms = at;
    o->r.next = amp_span_str(next);
    return amp_step_commit(o) < 0 ? -1 : 1;
}

int amp_attempt_decide(struct amp_overdue *o)
{
    struct amp_view v;
    bool arrived;
    if (amp_span_is(o->r.failure, "terminal"))
        return attempt_give_up(o, AMP_RETRY_TERMINAL);
    if (amp_step_arrived(o, &arrived) < 0)
        return -1;
    /* A refused message arrived, too, but needs another attempt. */
    if (arrived && o->r.failure.n == 0)
        return amp_step_settle(o);
    if (!o->sw->opt->retry)
        return attempt_give_up(o, AMP_RETRY_EXHAUSTED);
    int rc = amp_step_read(o, o->r.line, &v);
    return rc < 0 ? -1 : rc == 0 ? attempt_give_up(o, AMP_RETRY_TERMINAL) : attempt_decide(o, &v);
}

/* ---- leaving ---- */

static int attempt_compose(struct amp_overdue *o, struct amp_buf *out)
{
    struct amp_view v;
    char id[AMP_MSG_ID_MAX], node[160];
    amp_span_copy(o->r.next, id, sizeof(id));
    amp_span_copy(o->r.node, node, sizeof(node));
    struct amp_again a = {.id = id,
                          .node = node,
                          .sequence = o->r.sequence,
                          .first = o->r.origin.n > 0 ? o->r.origin : o->id};
    return amp_step_read(o, o->r.line, &v) < 0 ? -1 : amp_again_line(&v, &a, out, o->sw->err);
}

/* Makes the record of the new attempt, whose line is in the outbox. */
static int attempt_record(struct amp_overdue *o, struct amp_buf *line)
{
    const struct amp_message_rec *r = &o->r;
    struct amp_view v;
    struct amp_error e = {0};
    char code[128], why[200], sent[AMP_TIME_MAX];
    amp_step_code(r, code);
    amp_time_format(r->sent_ms, sent);
    snprintf(why, sizeof(why), "attempt %lld, sent at %s", (long long)amp_step_attempts(r), sent);
    struct amp_message_try first, *tries = r->n_tries > 0 ? r->tries : &first;
    tries[r->n_tries] =
        (struct amp_message_try){.msg_id = o->id,
                                 .at_ms = r->timed_out_ms > 0 ? r->timed_out_ms : r->departed_ms,
                                 .code = code,
                                 .route = "",
                                 .why = why};
    if (amp_step_read(o, amp_buf_span(line), &v) < 0)
        return -1;
    struct amp_message_former former = {.attempt = amp_step_attempts(&o->r),
                                        .first = o->r.origin.n > 0 ? o->r.origin : o->id,
                                        .tries = tries,
                                        .n_tries = r->n_tries + 1,
                                        .ack_timeout_ms = o->r.ack_timeout_ms,
                                        .sla_ms = o->r.sla_ms};
    if (amp_message_record_next(o->sw->store, &v, &former, o->sw->now_ms, NULL, &e) < 0 &&
        amp_fail_unless_no(o->sw->err, &e) < 0)
        return -1;
    if (amp_step_has_arrived(&o->r) &&
        amp_dead_chain_withdraw(o->sw->store, o->id, o->sw->opt->actor, o->sw->err) < 0)
        return -1;
    return amp_step_settle(o);
}

/* 1: the attempt may leave; 0: another attempt is being worked on or has ended the operation, or
 * the sender made a newer one. */
static int attempt_claim(struct amp_overdue *o, struct amp_span line)
{
    struct amp_view v;
    struct amp_idem_answer a;
    struct amp_idem_options opt = {
        .now_ms = o->sw->now_ms, .window_ms = o->sw->opt->window_ms, .actor = o->sw->opt->actor};
    if (amp_step_read(o, line, &v) < 0)
        return -1;
    amp_idem_answer_init(&a);
    struct amp_error e = {0};
    int rc = amp_idem_claim(o->sw->store, &v, &opt, &a, &e);
    rc = rc == 0 ? a.verdict < AMP_IDEM_RUNNING : amp_fail_unless_no(o->sw->err, &e);
    amp_idem_answer_release(&a);
    return rc;
}

int amp_attempt_depart(struct amp_overdue *o)
{
    AMP_BUF struct amp_buf line = {.max = AMP_RECORD_MAX};
    struct amp_sweep *sw = o->sw;
    bool leaves = o->r.departed_ms == 0;
    if (o->r.next.n == 0)
        return amp_step_settle(o);
    bool numbered = leaves && amp_answers_of(amp_protocol_find(o->r.protocol))->numbering ==
                                  AMP_NUMBERED_BY_NODE;
    if (numbered) {
        o->r.node = amp_span_str(sw->opt->actor);
        o->r.sequence = 1; /* takes a real number when it leaves */
    }
    if (attempt_compose(o, &line) < 0)
        return -1;
    if (!leaves)
        return attempt_record(o, &line);
    int rc = attempt_claim(o, amp_buf_span(&line));
    if (rc <= 0) {
        o->r.node = (struct amp_span){"", 0};
        o->r.sequence = 0;
        return rc < 0 ? -1 : amp_step_settle(o);
    }
    amp_buf_reset(&line);
    if ((numbered &&
         amp_sequence_next(sw->store, o->r.node, 1, sw->opt->actor, &o->r.sequence, sw->err) < 0) ||
        attempt_compose(o, &line) < 0)
        return -1;
    sw->emit = (struct amp_store_emit){.id = o->r.next, .line = amp_buf_span(&line)};
    o->st.event = AMP_DELIVERY_EV_DEPART;
    return amp_step_commit(o) < 0 ? -1 : 1;
}

/* ---- the outbox ---- */

static bool is_answered(const struct amp_message_rec *r)
{
    return amp_step_has_arrived(r) && r->failure.n == 0;
}

int amp_attempt_is_void(struct amp_store *s, struct amp_span id, bool *is_void,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX}, other = {.max = AMP_RECORD_MAX};
    struct amp_message_rec r, former;
    char next[AMP_MSG_ID_MAX];

    *is_void = false;
    if (id.n == 0)
        return 0;
    if (amp_message_find(s, id, &mem, &r, err) < 0)
        return -1;
    if (!r.found || r.attempt <= 1 || r.requeues > 0)
        return 0;
    for (uint32_t i = 0; i < r.n_tries && !*is_void; i++) {
        if (r.tries[i].msg_id.n == 0)
            continue;
        if (amp_message_find(s, r.tries[i].msg_id, &other, &former, err) < 0)
            return -1;
        *is_void = former.found && is_answered(&former);
    }
    /* This attempt, and those that followed it. */
    while (r.found && !(*is_void |= is_answered(&r)) && r.next.n > 0) {
        amp_span_copy(r.next, next, sizeof next);
        if (amp_message_find(s, amp_span_str(next), &mem, &r, err) < 0)
            return -1;
    }
    return 0;
}
