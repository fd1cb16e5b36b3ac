/*
 * Taking one message: into the ledger, through one step of its task, out again what follows. The
 * order keeps every promise over a crash: the step and what it emits are one commit; agents are
 * suspended or let go, and senders answered, after it, and again when the message comes again.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "flow/coordinate/coordinator.h"
#include "flow/question.h"
#include "flow/suspend.h"
#include "flow/work/decide.h"
#include "hitl/escalation.h"
#include "message/ledger/ledger.h"
#include "message/settle/answer.h"
#include "message/settle/heard.h"

#define LINES_MAX ((size_t)256 << 20)

static int begin(struct amp_coordinator *c, struct amp_error *err)
{
    if (c->turn)
        return 0;
    if (amp_store_begin(c->store, err) < 0)
        return -1;
    c->turn = true;
    return 0;
}

/* Before anything that may take its time. */
void amp_coordinator_pause(struct amp_coordinator *c)
{
    if (c->turn)
        amp_store_end(c->store);
    c->turn = false;
}

struct amp_known_task *amp_coordinator_know(struct amp_coordinator *c, struct amp_span id,
                                            bool open, struct amp_error *err)
{
    for (size_t i = 0; i < c->n_tasks; i++)
        if (amp_span_is(id, c->tasks[i].id)) {
            c->tasks[i].open = open;
            return &c->tasks[i];
        }
    if (c->n_tasks == c->cap_tasks) {
        size_t cap = c->cap_tasks ? c->cap_tasks * 2 : 64;
        struct amp_known_task *v = realloc(c->tasks, cap * sizeof *v);
        if (!v) {
            amp_fail_memory(err);
            return NULL;
        }
        c->tasks = v;
        c->cap_tasks = cap;
    }
    struct amp_known_task *k = &c->tasks[c->n_tasks];
    memset(k, 0, sizeof *k);
    if (!amp_span_copy(id, k->id, sizeof k->id)) {
        amp_fail(err, AMP_DATAERR, "bad_task_id", "a task id that is too long");
        return NULL;
    }
    k->open = open;
    c->n_tasks++;
    return k;
}

int amp_coordinator_queue(struct amp_coordinator *c, struct amp_span id, struct amp_span line,
                          bool wants_ack, struct amp_error *err)
{
    if (c->n_said == c->cap_said) {
        size_t cap = c->cap_said ? c->cap_said * 2 : 64;
        struct amp_said *v = realloc(c->said, cap * sizeof *v);
        if (!v)
            return amp_fail_memory(err);
        c->said = v;
        c->cap_said = cap;
    }
    if (!c->lines.max)
        amp_buf_init(&c->lines, LINES_MAX);
    if (amp_buf_reserve(&c->lines, line.n + 1, err) < 0 ||
        amp_buf_add(&c->lines, line.p, line.n, err) < 0 || amp_buf_add(&c->lines, "\n", 1, err) < 0)
        return -1;
    if (wants_ack || !id.n)
        return 0;
    struct amp_said *s = &c->said[c->n_said];
    s->mark = c->lines_base + c->lines.len;
    if (amp_span_copy(id, s->id, sizeof s->id))
        c->n_said++;
    return 0;
}

/* The ledger holds what we send, so that those who get it can refer to it. */
static int record_own(struct amp_coordinator *c, struct amp_span line, int64_t now_ms,
                      struct amp_error *err)
{
    struct amp_view v;
    const struct amp_check_options any = {0};
    enum amp_store_outcome outcome;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    if (rc <= 0 || !v.id.n)
        return rc == 0  ? amp_fail(err, AMP_INTERNAL, "invalid_output",
                                   "a composed line does not pass our own check")
               : rc > 0 ? 0
                        : -1;
    return amp_message_record(c->store, &v, now_ms, &outcome, err);
}

static int answer(struct amp_coordinator *c, const struct amp_view *v, const struct amp_step *st,
                  struct amp_error *err)
{
    bool late;
    struct amp_error unknown = {0};
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    struct amp_view of = *v;
    if (v->kind == AMP_KIND_DECISION)
        of.id = v->body.decision.ref;
    else if (!v->id.n || v->kind == AMP_KIND_NACK || v->kind == AMP_KIND_ACK)
        return 0;
    bool no = *st->nack;
    if (!no && (!v->needs_ack || v->kind == AMP_KIND_DECISION))
        return 0;
    int rc = no ? amp_compose_nack(&of, AMP_STAGE_REJECTED, "coordinator", st->nack, st->why, "",
                                   false, st->now_ms, &line, err)
                : amp_compose_ack(&of, AMP_STAGE_READ, "coordinator", NULL, st->now_ms, &line, err);
    if (rc < 0)
        return -1;
    c->refused += no;
    if (no && v->kind == AMP_KIND_DISPATCH) {
        c->refused_tasks++;
        c->opt->warn("%.*s: the task was refused: %s: %s", (int)v->task.n, v->task.p, st->nack,
                     st->why);
    }
    line.len--;
    if (amp_coordinator_queue(c, AMP_SPAN(""), amp_buf_span(&line), true, err) < 0)
        return -1;
    if (v->kind == AMP_KIND_DECISION)
        return amp_coordinator_reopen(c, v, st, err);
    if (amp_settle_ack(c->store, v->id, no ? AMP_STAGE_REJECTED : AMP_STAGE_READ, "coordinator",
                       amp_span_str(st->nack), st->now_ms, &late, &unknown) < 0 &&
        unknown.status != AMP_NO) {
        if (err)
            *err = unknown;
        return -1;
    }
    return 0;
}

/* An answer shows that what it answers arrived, whether or not that was acknowledged. */
static int settle(struct amp_coordinator *c, const struct amp_view *v, enum amp_ack_stage stage,
                  struct amp_span ref, int64_t now_ms, struct amp_error *err)
{
    bool late;
    struct amp_error unknown = {0};
    char by[64] = "coordinator";
    amp_span_copy(v->from, by, sizeof by);
    struct amp_span code = v->kind == AMP_KIND_NACK ? v->body.ack.code : AMP_SPAN("");
    if (!ref.n || amp_settle_ack(c->store, ref, stage, by, code, now_ms, &late, &unknown) == 0 ||
        unknown.status == AMP_NO)
        return 0;
    if (err)
        *err = unknown;
    return -1;
}

static int settle_context(struct amp_coordinator *c, const struct amp_view *v, int64_t now_ms,
                          struct amp_error *err)
{
    static const char *const asked[] = {
        [AMP_KIND_RESULT] = "task_dispatch-", [AMP_KIND_VERDICT] = "review_request-"};
    size_t n = strlen(asked[v->kind]);
    for (uint32_t i = 0; i < v->context.n; i++)
        if (v->context.v[i].n > n && memcmp(v->context.v[i].p, asked[v->kind], n) == 0 &&
            settle(c, v, AMP_STAGE_FULFILLED, v->context.v[i], now_ms, err) < 0)
            return -1;
    return 0;
}

static int prepare(struct amp_coordinator *c, struct amp_step *st, const struct amp_store_input *in,
                   struct amp_error *err)
{
    const struct amp_view *v = st->view;
    int seen = amp_store_seen(c->store, in, err);
    if (seen != 0)
        return seen < 0 ? -1 : 0;
    if (v->kind == AMP_KIND_DISPATCH && !st->bad_code && amp_coordinator_find_base(c, st, err) < 0)
        return -1;
    if (v->kind != AMP_KIND_DECISION)
        return 0;
    if (amp_coordinator_is_open(c, v->task, v->body.decision.ref, &st->ref_open, err) < 0)
        return -1;
    if (v->body.decision.word == AMP_DO_ROLLBACK && !st->bad_code)
        return amp_coordinator_roll_back(c, st, err);
    return 0;
}

/* --- after the commit, also when the message came again --- */

static int tell_agents(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    if (v->kind == AMP_KIND_DECISION && !*st->nack)
        return settle(c, v, AMP_STAGE_FULFILLED, v->body.decision.ref, st->now_ms, err) < 0
                   ? -1
                   : amp_flow_lift_agents(c->store, v->task,
                                          v->body.decision.word == AMP_DO_TERMINATE
                                              ? AMP_SPAN("")
                                              : v->body.decision.ref,
                                          st->now_ms, err);
    if (v->kind == AMP_KIND_ESCALATION) {
        char ref[AMP_MSG_ID_MAX];
        struct amp_view asked = *v;
        amp_say_again_id(v, ref);
        asked.id = amp_span_str(ref);
        amp_coordinator_pause(c);
        const struct amp_suspend how = {
            .by = c->opt->consumer, .say = c->opt->warn, .now_ms = st->now_ms};
        return amp_flow_suspend_view(c->store, &asked, &how, err);
    }
    if (st->lift)
        return amp_flow_lift_agents(c->store, v->task, AMP_SPAN(""), st->now_ms, err);
    if (!*st->suspend_ref)
        return 0;
    const struct amp_suspend a = {.task_id = v->task,
                                  .ref = amp_span_str(st->suspend_ref),
                                  .type = st->suspend_type,
                                  .triggered_by = "coordinator",
                                  .level = AMP_LEVEL_CRITICAL,
                                  .by = c->opt->consumer,
                                  .say = c->opt->warn,
                                  .now_ms = st->now_ms};
    return amp_flow_suspend(c->store, &a, err);
}

/* What is no longer asked is neither sent again nor waited for. */
static int drop(struct amp_coordinator *c, const struct amp_step *st, const char *id,
                const char *code, struct amp_error *err)
{
    bool late;
    struct amp_error unknown = {0};
    if (!*id ||
        amp_settle_ack(c->store, amp_span_str(id), AMP_STAGE_FAILED, "coordinator",
                       amp_span_str(code), st->now_ms, &late, &unknown) == 0 ||
        unknown.status == AMP_NO)
        return 0;
    if (err)
        *err = unknown;
    return -1;
}

static int tell_ended(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    if (drop(c, st, st->dropped[0], "replaced", err) < 0 ||
        drop(c, st, st->dropped[1], "replaced", err) < 0 ||
        drop(c, st, st->told, "terminated", err) < 0)
        return -1;
    if (!*st->told)
        return 0;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    struct amp_view of = {.protocol = AMP_PROTO_AMP, .id = amp_span_str(st->told)};
    of.task = st->view->task;
    if (amp_compose_nack(&of, AMP_STAGE_FAILED, "coordinator", "terminated",
                         "the admin ended the task", "", false, st->now_ms, &line, err) < 0)
        return -1;
    line.len--;
    return amp_coordinator_queue(c, AMP_SPAN(""), amp_buf_span(&line), true, err);
}

static int committed(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    bool open = amp_task_is_open(st->t.state);
    struct amp_known_task *k = amp_coordinator_know(c, st->view->task, open, err);
    if (!k)
        return -1;
    k->dirty = true;
    k->parked = st->t.state == AMP_TASK_INCOMPLETE;
    for (uint32_t i = 0; i < st->n_out; i++) {
        struct amp_store_emit *e = &st->emits[i];
        if (record_own(c, e->line, st->now_ms, err) < 0 ||
            amp_coordinator_queue(c, e->id, e->line, e->wants_ack, err) < 0)
            return -1;
    }
    return tell_ended(c, st, err);
}

static int step(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    char digest[AMP_SHA256_MAX];
    struct amp_store_input in = {c->opt->consumer, v->id, v->line};
    enum amp_store_outcome outcome = AMP_STORE_UNCHANGED;
    if (v->kind == AMP_KIND_DECISION || v->kind == AMP_KIND_CI_STATUS || v->kind == AMP_KIND_NACK) {
        /* Control records have no id: the same bytes are the same record. */
        amp_sha256_hex(v->line, digest);
        in.id = amp_span_str(digest);
    }
    if (prepare(c, st, &in, err) < 0 || begin(c, err) < 0)
        return -1;
    if (!*st->nack) {
        struct amp_error why = {0};
        if (amp_store_update(c->store, AMP_TASK_KIND, v->task, &in, amp_step_apply, st, &outcome,
                             &why) < 0) {
            if (why.status != AMP_NO) {
                if (err)
                    *err = why;
                return -1;
            }
            amp_step_refuse(st, why.code, "%s", why.what);
        }
    }
    if (outcome == AMP_STORE_COMMITTED && committed(c, st, err) < 0)
        return -1;
    if (outcome != AMP_STORE_UNCHANGED && tell_agents(c, st, err) < 0)
        return -1;
    return begin(c, err) < 0 ? -1 : answer(c, v, st, err);
}

bool amp_coordinator_is_ours(const struct amp_view *v)
{
    if (v->protocol != AMP_PROTO_AMP)
        return false;
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
    case AMP_KIND_RESULT:
    case AMP_KIND_VERDICT:
        for (uint32_t i = 0; i < v->n_to; i++)
            if (amp_span_is(v->to[i], "coordinator"))
                return true;
        return false;
    case AMP_KIND_ESCALATION:
        return !amp_span_is(v->from, "coordinator");
    case AMP_KIND_DECISION:
    case AMP_KIND_CI_STATUS:
    case AMP_KIND_NACK:
        return true;
    default:
        return false;
    }
}

/* What an escalation about another protocol's work (AMP_TASK_NONE) brings: it passes on its way to
 * the admin, and hitl-prompt has carried the decision out. As the task of anything else the name is
 * refused. */
static int take_foreign(struct amp_coordinator *c, const struct amp_view *v, int64_t now_ms,
                        struct amp_error *err)
{
    struct amp_store_rec asked;
    struct amp_step st;
    amp_step_init(&st, c, v, now_ms);
    int rc = 0;
    switch (v->kind) {
    case AMP_KIND_ESCALATION:
        if ((rc = amp_say_again(&st, err)) == 0)
            rc = amp_coordinator_queue(c, AMP_SPAN(""),
                                       (struct amp_span){st.text.data, st.out[0].n}, true, err);
        break;
    case AMP_KIND_NACK: /* about a question that nobody answered, or that ended */
        break;
    case AMP_KIND_DECISION:
        rc = amp_store_get(c->store, AMP_ESCALATION_KIND, v->body.decision.ref, &asked, err);
        if (rc == 0 && !asked.found) {
            amp_step_refuse(&st, "unknown_ref", "%.*s is not an escalation of this state",
                            (int)v->body.decision.ref.n, v->body.decision.ref.p);
            rc = answer(c, v, &st, err);
        }
        break;
    default:
        amp_step_refuse(&st, "bad_value", "%s is not the id of a task", AMP_TASK_NONE);
        rc = answer(c, v, &st, err);
    }
    amp_step_release(&st);
    return rc;
}

int amp_coordinator_take(struct amp_coordinator *c, const struct amp_view *v, const char *bad_code,
                         const char *bad_field, struct amp_error *err)
{
    int64_t now_ms = amp_now_ms();
    enum amp_store_outcome outcome;
    if (begin(c, err) < 0)
        return -1;
    if (!amp_coordinator_is_ours(v)) {
        if (v->kind == AMP_KIND_ACK && v->protocol == AMP_PROTO_AMP)
            return settle(c, v, v->body.ack.stage, v->body.ack.ref, now_ms, err) < 0
                       ? -1
                       : amp_heard_apply(c->store, v, now_ms, err);
        return bad_code ? 0 : amp_coordinator_queue(c, AMP_SPAN(""), v->line, true, err);
    }
    if (amp_span_is(v->task, AMP_TASK_NONE))
        return take_foreign(c, v, now_ms, err);
    c->seen = true;
    if (amp_coordinator_is_no_answer(v))
        return amp_coordinator_park(c, v, err);
    struct amp_step st;
    amp_step_init(&st, c, v, now_ms);
    st.bad_code = bad_code;
    st.bad_field = bad_field;
    int rc = 0;
    if (v->id.n && v->kind != AMP_KIND_NACK && !bad_code) {
        struct amp_error why = {0};
        rc = amp_message_record(c->store, v, now_ms, &outcome, &why);
        if (rc < 0 && why.status == AMP_NO) {
            /* Another message under an id that was given before. */
            amp_step_refuse(&st, why.code, "%s", why.what);
            rc = 0;
        } else if (rc < 0 && err) {
            *err = why;
        }
    }
    if (rc == 0 && v->kind == AMP_KIND_NACK)
        rc = settle(c, v, v->body.ack.stage, v->body.ack.ref, now_ms, err);
    if (rc == 0 && (v->kind == AMP_KIND_RESULT || v->kind == AMP_KIND_VERDICT))
        rc = settle_context(c, v, now_ms, err);
    if (rc == 0)
        rc = step(c, &st, err);
    if (rc == 0 && !*st.nack)
        rc = amp_heard_apply(c->store, v, now_ms, err);
    amp_step_release(&st);
    return rc;
}

int amp_coordinator_commit(struct amp_coordinator *c, struct amp_error *err)
{
    amp_coordinator_pause(c);
    if (amp_store_sync(c->store, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n_tasks; i++)
        if (c->tasks[i].dirty) {
            if (amp_task_file(c->store, amp_span_str(c->tasks[i].id), err) < 0)
                return -1;
            c->tasks[i].dirty = false;
        }
    return 0;
}

/* --- what earlier runs left --- */

struct restore {
    struct amp_coordinator *c;
    struct amp_error *err;
};

static int restore_line(void *ctx, const struct amp_store_entry *e)
{
    struct restore *r = ctx;
    r->c->seen = true;
    return amp_coordinator_queue(r->c, e->id, e->line, e->wants_ack, r->err) < 0 ? -1 : 0;
}

static int restore_task(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct restore *r = ctx;
    struct amp_coordinator *c = r->c;
    struct amp_task t;
    int64_t now_ms = amp_now_ms();
    if (amp_span_is(id, AMP_TASK_NONE)) /* of a former version */
        return 0;
    if (amp_task_read(&t, rec, id, r->err) < 0)
        return -1;
    bool open = amp_task_is_open(t.state);
    struct amp_known_task *k = amp_coordinator_know(c, id, open, r->err);
    int rc = k ? 0 : -1;
    if (k)
        k->parked = t.state == AMP_TASK_INCOMPLETE;
    if (k)
        k->dirty = !amp_task_file_after(c->store, id, t.updated_ms);
    if (k && open) {
        c->seen |= t.n_parts > 0;
        const struct amp_suspend a = {.task_id = id,
                                      .ref = amp_span_str(t.suspended.ref),
                                      .type = t.suspended.type,
                                      .triggered_by = "coordinator",
                                      .level = AMP_LEVEL_CRITICAL,
                                      .by = c->opt->consumer,
                                      .say = c->opt->warn,
                                      .now_ms = now_ms};
        if (amp_task_is_suspended(&t))
            rc = amp_flow_suspend(c->store, &a, r->err);
        else if (json_array_size(t.open) == 0)
            rc = amp_flow_lift_agents(c->store, id, AMP_SPAN(""), now_ms, r->err);
    }
    amp_task_release(&t);
    return rc;
}

int amp_coordinator_restore(struct amp_coordinator *c, struct amp_error *err)
{
    struct restore r = {c, err};
    if (amp_store_each(c->store, AMP_TASK_KIND, NULL, restore_task, &r, err) < 0 ||
        amp_store_outbox(c->store, c->opt->consumer, restore_line, &r, err) < 0)
        return -1;
    return amp_coordinator_commit(c, err);
}
