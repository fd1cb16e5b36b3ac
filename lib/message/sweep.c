/*
 * The sweep: what nobody acknowledged in time, and agents that fell silent. The escalation is
 * composed first and then committed together with the transition: whoever loses the race throws
 * its draft away, and a crash leaves either both or neither.
 */
#include <stdio.h>
#include <string.h>

#include "message/message.h"
#include "message/record.h"
#include "protocol/compose.h"
#include "protocol/sw4rm/answer.h"

#define TASK_UNKNOWN "T-0000-000"

struct sweep {
    struct amp_store *store;
    const struct amp_sweep_options *opt;
    int64_t now_ms;
    uint32_t raised;
    struct amp_error *err;
    int rc;
    /* The escalation that is being committed, and the record that goes with it. */
    struct amp_buf line, mem, out;
    char id[AMP_MSG_ID_MAX];
    struct amp_store_emit emit;
    int64_t last_seen;
    bool committed, nack;
};

static bool is_task_id(struct amp_span t)
{
    if (t.n < 10 || t.p[0] != 'T' || t.p[1] != '-')
        return false;
    for (size_t i = 2; i < t.n; i++)
        if (i == 6 ? t.p[i] != '-' : t.p[i] < '0' || t.p[i] > '9')
            return false;
    return true;
}

/* What the task's own record says, for the snapshot in the escalation. */
static int64_t task_snapshot(struct sweep *sw, struct amp_span task, char status[64])
{
    struct amp_store_rec rec;
    int64_t rejects = 0;
    snprintf(status, 64, "unknown");
    if (amp_store_get(sw->store, "task", task, &rec, NULL) < 0 || !rec.found)
        return 0;
    amp_span_copy(rec.state, status, 64);
    struct amp_tape t;
    amp_record_tape(&t);
    if (amp_record_scan(&t, rec.json, NULL) == 0)
        rejects = amp_record_int(&t, "reject_count");
    amp_tape_release(&t);
    return rejects;
}

static int compose(struct sweep *sw, const char *type, struct amp_span task, const char *what,
                   const char *const *affected, const char *const *suggested)
{
    char task_id[128], status[64];
    if (!is_task_id(task) || !amp_span_copy(task, task_id, sizeof(task_id)))
        snprintf(task_id, sizeof(task_id), TASK_UNKNOWN);
    struct amp_escalation_args a = {
        .type = type,
        .from = sw->opt->from,
        .severity = sw->opt->severity,
        .triggered_by = "system",
        .task_id = task_id,
        .description = what,
        .affected = affected,
        .suggested = suggested,
        .task_status = status,
        .last_successful = "",
        .now_ms = sw->now_ms,
    };
    a.reject_count = task_snapshot(sw, amp_span_str(task_id), status);
    amp_buf_reset(&sw->line);
    if (amp_compose_escalation(&a, &sw->line, sw->id, sw->err) < 0)
        return -1;
    struct amp_span line = amp_buf_span(&sw->line);
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    sw->emit = (struct amp_store_emit){.id = amp_span_str(sw->id), .line = line};
    sw->committed = false;
    return 0;
}

static void emits(struct sweep *sw, struct amp_store_change *change)
{
    change->actor = sw->opt->actor;
    change->emits = &sw->emit;
    change->n_emits = 1;
    sw->committed = true;
}

static void count_escalation(const struct sweep *sw, struct amp_span type)
{
    struct amp_metric_labels l = {.code = type};
    amp_metrics_add(sw->opt->metrics, AMP_METRIC_ESCALATIONS, &l, 1);
}

static void count_timeout(const struct sweep *sw, const struct amp_message_rec *r)
{
    struct amp_metric_labels l = {.agent = r->to,
                                  .code = AMP_SPAN("ack_timeout"),
                                  .protocol = amp_protocol_name(amp_protocol_find(r->protocol))};
    amp_metrics_add(sw->opt->metrics, AMP_METRIC_TIMEOUTS, &l, 1);
    if (sw->nack)
        amp_metrics_add(sw->opt->metrics, AMP_METRIC_NACKS, &l, 1);
    else
        count_escalation(sw, AMP_SPAN("ack_timeout"));
}

static int timeout_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                      struct amp_error *err)
{
    struct sweep *sw = ctx;
    struct amp_message_rec r;
    if (!now->found || now->due_ms == 0 || now->due_ms > sw->now_ms)
        return 1; /* acknowledged, or swept by somebody else, in the meantime */
    if (amp_message_parse(now, &sw->mem, &r, err) < 0)
        return -1;
    struct amp_fsm_result step;
    if (amp_fsm_step(&amp_delivery_fsm, r.state, AMP_DELIVERY_EV_TIMEOUT, 0, &step, err) < 0)
        return -1;
    r.timed_out_ms = sw->now_ms;
    r.due_ms = 0;
    amp_buf_reset(&sw->out);
    if (amp_record_write(&r, NULL, &sw->out, err) < 0)
        return -1;
    change->event = amp_delivery_fsm.events[AMP_DELIVERY_EV_TIMEOUT].name;
    change->to = amp_delivery_fsm.states[step.to].name;
    change->json = amp_buf_span(&sw->out);
    emits(sw, change);
    count_timeout(sw, &r);
    return 0;
}

/* SW4RM §11: the producer is told, in its own protocol. */
static int compose_nack(struct sweep *sw, struct amp_span id, const struct amp_message_rec *r,
                        const char *what)
{
    struct amp_answered of = {.id = id, .producer = r->from, .correlation = r->correlation};
    snprintf(sw->id, sizeof(sw->id), "answer-to-%.*s", (int)(id.n < 200 ? id.n : 200), id.p);
    amp_buf_reset(&sw->line);
    if (amp_sw4rm_nack(&of, AMP_STAGE_TIMED_OUT, AMP_SPAN("ack_timeout"), amp_span_str(what),
                       sw->opt->actor, sw->now_ms, &sw->line, sw->err) < 0)
        return -1;
    struct amp_span line = amp_buf_span(&sw->line);
    line.n--; /* its LF */
    sw->emit = (struct amp_store_emit){.id = amp_span_str(sw->id), .line = line};
    sw->committed = false;
    return 0;
}

static int overdue_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct sweep *sw = ctx;
    struct amp_message_rec r;
    char msg_id[AMP_MSG_ID_MAX], what[512], sent[AMP_TIME_MAX], look[160];
    sw->rc = -1;
    if (amp_message_parse(rec, &sw->mem, &r, sw->err) < 0)
        return 1;
    bool whole = amp_span_copy(id, msg_id, sizeof(msg_id));
    amp_time_format(r.sent_ms, sent);
    snprintf(what, sizeof(what),
             "No acknowledgement of %.*s by %.*s: sent at %s, due within %lld s, message %s",
             (int)r.type.n, r.type.p, (int)r.to.n, r.to.p, sent,
             (long long)(r.ack_timeout_ms / 1000), msg_id);
    snprintf(look, sizeof(look), "Look whether the %.*s is running and reads its input",
             (int)(r.to.n < 64 ? r.to.n : 64), r.to.p);
    const char *affected[] = {whole ? msg_id : NULL, NULL};
    const char *suggested[] = {look, "Send the message again", "Terminate the task", NULL};
    sw->nack = amp_span_is(r.protocol, "sw4rm") && r.from.n > 0;
    if ((sw->nack ? compose_nack(sw, id, &r, what)
                  : compose(sw, "ack_timeout", r.task, what, affected, suggested)) < 0)
        return 1;
    enum amp_store_outcome how;
    if (amp_store_update(sw->store, "message", id, NULL, timeout_fn, sw, &how, sw->err) < 0)
        return 1;
    sw->raised += sw->committed;
    sw->rc = 0;
    return 0;
}

/* An agent's record gives a time as people write it, or milliseconds. */
static int64_t last_seen(const struct amp_tape *t)
{
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("last_seen"));
    int64_t ms = 0;
    if (tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_STRING)
        return amp_time_parse(amp_tok_raw(t, tok), &ms) ? ms : 0;
    return tok != AMP_TOK_NONE && amp_tok_int(t, tok, &ms) ? ms : 0;
}

static int silence_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                      struct amp_error *err)
{
    struct sweep *sw = ctx;
    if (now->found) {
        struct amp_tape t;
        amp_record_tape(&t);
        int rc = amp_record_scan(&t, now->json, err);
        int64_t told = rc == 0 ? amp_record_int(&t, "last_seen_ms") : 0;
        amp_tape_release(&t);
        if (rc < 0)
            return -1;
        if (told >= sw->last_seen)
            return 1;
    }
    amp_buf_reset(&sw->out);
    if (amp_buf_fmt(&sw->out, err, "{\"last_seen_ms\":%lld,\"escalation\":\"%s\"}",
                    (long long)sw->last_seen, sw->id) < 0)
        return -1;
    change->event = "heartbeat_timeout";
    change->to = "SILENT";
    change->json = amp_buf_span(&sw->out);
    emits(sw, change);
    return 0;
}

/* Reads one agent's record: 1 when it is silent for too long. */
static int agent_is_silent(struct sweep *sw, struct amp_span json, struct amp_span *task)
{
    struct amp_tape t;
    amp_record_tape(&t);
    int rc = amp_record_scan(&t, json, sw->err);
    amp_buf_reset(&sw->mem);
    if (rc == 0)
        rc = amp_record_text(&t, "task", &sw->mem, task, sw->err);
    sw->last_seen = rc == 0 ? last_seen(&t) : 0;
    amp_tape_release(&t);
    if (rc < 0)
        return -1;
    return sw->last_seen > 0 && sw->last_seen + sw->opt->silence_ms <= sw->now_ms;
}

static int agent_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct sweep *sw = ctx;
    struct amp_span task;
    char what[512], seen[AMP_TIME_MAX], task_text[128];
    if (rec->due_ms == 0)
        return 0; /* it is not at work: nobody waits for it */
    sw->rc = -1;
    int silent = agent_is_silent(sw, rec->json, &task);
    if (silent <= 0) {
        sw->rc = silent;
        return silent < 0;
    }
    amp_span_copy(task, task_text, sizeof(task_text));
    amp_time_format(sw->last_seen, seen);
    snprintf(what, sizeof(what),
             "Agent %.*s, at work on %s, gave no sign of life for %lld min: last seen at %s",
             (int)id.n, id.p, task_text, (long long)(sw->opt->silence_ms / 60000), seen);
    const char *affected[] = {NULL};
    const char *suggested[] = {"Look whether the agent's process is alive",
                               "Dispatch the task again", "Terminate the task", NULL};
    if (compose(sw, "heartbeat_timeout", amp_span_str(task_text), what, affected, suggested) < 0)
        return 1;
    enum amp_store_outcome how;
    if (amp_store_update(sw->store, "silence", id, NULL, silence_fn, sw, &how, sw->err) < 0)
        return 1;
    sw->raised += sw->committed;
    if (sw->committed)
        count_escalation(sw, AMP_SPAN("heartbeat_timeout"));
    sw->rc = 0;
    return 0;
}

int amp_message_sweep(struct amp_store *s, int64_t now_ms, const struct amp_sweep_options *opt,
                      uint32_t *raised, struct amp_error *err)
{
    struct sweep sw = {.store = s, .opt = opt, .now_ms = now_ms, .err = err};
    amp_buf_init(&sw.line, 1 << 20);
    amp_buf_init(&sw.mem, AMP_RECORD_MAX);
    amp_buf_init(&sw.out, AMP_RECORD_MAX);
    int rc = amp_store_due(s, "message", now_ms, overdue_fn, &sw, err);
    if (rc == 0)
        rc = sw.rc;
    if (rc == 0 && opt->silence_ms > 0) {
        rc = amp_store_each(s, "agent", NULL, agent_fn, &sw, err);
        if (rc == 0)
            rc = sw.rc;
    }
    if (rc == 0 && raised)
        *raised = sw.raised;
    amp_buf_release(&sw.line);
    amp_buf_release(&sw.mem);
    amp_buf_release(&sw.out);
    return rc;
}

struct earliest {
    struct amp_store *store;
    int64_t silence_ms, due_ms;
};

/* Whether the silence since that sign of life was told already. */
static bool silence_told(struct amp_store *s, struct amp_span agent, int64_t seen)
{
    struct amp_store_rec rec;
    bool told = false;
    if (amp_store_get(s, "silence", agent, &rec, NULL) < 0 || !rec.found)
        return false;
    struct amp_tape t;
    amp_record_tape(&t);
    if (amp_record_scan(&t, rec.json, NULL) == 0)
        told = amp_record_int(&t, "last_seen_ms") >= seen;
    amp_tape_release(&t);
    return told;
}

static int earliest_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct earliest *e = ctx;
    struct amp_tape t;
    amp_record_tape(&t);
    if (amp_record_scan(&t, rec->json, NULL) == 0) {
        int64_t seen = last_seen(&t);
        if (rec->due_ms > 0 && seen > 0 && (e->due_ms == 0 || seen + e->silence_ms < e->due_ms) &&
            !silence_told(e->store, id, seen))
            e->due_ms = seen + e->silence_ms;
    }
    amp_tape_release(&t);
    return 0;
}

int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err)
{
    struct earliest e = {.store = s, .silence_ms = silence_ms};
    if (amp_store_next_due(s, "message", &e.due_ms, err) < 0)
        return -1;
    if (silence_ms > 0 && amp_store_each(s, "agent", NULL, earliest_fn, &e, err) < 0)
        return -1;
    *due_ms = e.due_ms;
    return 0;
}
