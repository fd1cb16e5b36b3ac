/* Compares a message with the state: ids, references, suspensions, failed checks, budgets. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/facts.h"
#include "message/delivery/ledger/awaited.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/load.h"
#include "message/delivery/settle/outcome.h"
#include "message/delivery/settle/rails.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/spec.h"
#include "message/protocol/work.h"
#include "people/question/escalation.h"
#include "rtp.h"
#include "work/task/task.h"
#include "worker.h"

/* Writes one finding. Its dotted field is made from the pointer. */
static void finding_write(struct checks *c, const char *severity, const char *code,
                          const char *pointer, struct amp_span found, const char *expected,
                          const char *text)
{
    char field[128];
    snprintf(field, sizeof field, "%s", pointer + 1);
    for (char *p = field; *p; p++)
        if (*p == '/')
            *p = '.';
    amp_jw_open(c->out, '{');
    amp_jw_member_text(c->out, "code", code);
    amp_jw_member_text(c->out, "field", field);
    amp_jw_member_text(c->out, "pointer", pointer);
    amp_jw_member_text(c->out, "rule", "history");
    amp_jw_member_text(c->out, "message", text);
    if (found.n > 120)
        found.n = 120;
    amp_jw_member_str(c->out, "found", found);
    amp_jw_member_text(c->out, "expected", expected);
    amp_jw_member_text(c->out, "severity", severity);
    amp_jw_close(c->out, '}');
}

__attribute__((format(printf, 6, 7))) static void
checks_finding(struct checks *c, const char *code, const char *pointer, struct amp_span found,
               const char *expected, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    finding_write(c, "error", code, pointer, found, expected, text);
    c->findings++;
}

/* Writes a finding if the ledger does not allow the agent to report this about the work. */
static int checks_holder(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_outcome o;
    struct amp_error e = {0};
    int rc = 0;
    if (amp_outcome_read(v, &o))
        rc = amp_outcome_check(c->store, v, &e);
    else if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        rc = amp_message_acknowledge_check(c->store, v, &e);
    if (rc < 0 && e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    if (rc < 0 && amp_holder_denied(&e))
        checks_finding(c, e.code, o.by_at, o.by, "the agent that has the work", "%s", e.what);
    return 0;
}

/* ---- the Runtime Protocol: ids and outbox numbers, attempts (§1), the order in which a task is
 * created, accepted, worked on and ended (§4), what an ack may refer to (§5). The same event again,
 * byte for byte, is a redelivery and passes. ---- */

/* The greatest age of what was read of the ledger, so that reading takes at most a twentieth of the
 * time. */
enum { OLD_MS = 1000, SHARE = 20 };

static int history_refresh(struct checks *c, struct amp_error *err)
{
    if (!c->rtp && rtp_history_new(&c->rtp, err) < 0)
        return -1;
    struct rtp_history *h = c->rtp;
    int64_t age = h->took_ms * SHARE;
    if (h->loaded && amp_mono_ms() - h->read_ms < (age > OLD_MS ? age : OLD_MS))
        return 0;
    return rtp_history_load(h, c, err);
}

/* Returns 1 if the same event came before, 0 if it is new or its id is another event's (a finding).
 */
static int is_redelivery(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec rec;
    enum seen_result seen = seen_find(&c->seen, v->id, v->message);
    if (seen == SEEN_NEW) {
        if (amp_message_find(c->store, v->id, &c->mem, &rec, err) < 0)
            return -1;
        int same = rec.found ? amp_line_has_message(rec.line, v, err) : 0;
        if (same < 0)
            return -1;
        if (rec.found)
            seen = same ? SEEN_SAME : SEEN_OTHER;
    }
    if (seen == SEEN_OTHER)
        checks_finding(c, AMP_CODE(duplicate_event), "/eventId", v->id, "an unused id",
                       "is the id of another event");
    return seen == SEEN_SAME;
}

static void number_text(int64_t n, char *out, size_t size, const char *before)
{
    snprintf(out, size, "%s%lld", before, (long long)n);
}

static void check_outbox(struct checks *c, const struct rtp_fact *f)
{
    const int64_t *next = amp_map_find(&c->rtp->outboxes, f->outbox);
    char found[32], expected[48];
    if (!next || f->seq >= *next)
        return;
    number_text(f->seq, found, sizeof found, "");
    number_text(*next, expected, sizeof expected, "at least ");
    checks_finding(c, AMP_CODE(seq_not_monotonic), "/seq", amp_span_str(found), expected,
                   "is not above the last number of this outbox");
}

static void check_attempt(struct checks *c, const struct rtp_fact *f)
{
    const int64_t *last = f->operation ? amp_map_find(&c->rtp->operations, f->operation) : NULL;
    char found[32], expected[48];
    if (!last || f->attempt > *last)
        return;
    number_text(f->attempt, found, sizeof found, "");
    number_text(*last + 1, expected, sizeof expected, "at least ");
    checks_finding(c, AMP_CODE(attempt_not_incremented), "/trace/attempt", amp_span_str(found),
                   expected, "did not increase although the operation was sent before");
}

static bool is_assignee(const struct rtp_task *task, uint64_t agent, uint64_t everyone)
{
    for (uint32_t i = 0; i < task->n_assignees; i++)
        if (task->assignees[i] == agent || task->assignees[i] == everyone)
            return true;
    return task->n_assignees == 0;
}

/* A finding that quotes the event's value at the pointer. */
static void add_finding(struct checks *c, const struct amp_view *v, const char *code,
                        const char *pointer, const char *expected, const char *says)
{
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    struct amp_span found = {"", 0};
    if (tok != AMP_TOK_NONE)
        found = amp_tok_raw(v->tape, tok);
    checks_finding(c, code, pointer, found, expected, "%s", says);
}

/* The task's facts for an agent, by its name or by its role. */
static int claim_read(struct checks *c, struct amp_span agent, const struct rtp_fact *f,
                      const struct rtp_task *task, struct amp_work_claim *out,
                      struct amp_error *err)
{
    char name[256], role[128] = "";
    uint64_t called[2] = {f->agent, 0};
    if (amp_span_copy(agent, name, sizeof name) && amp_holder_role(c->store, name, role, err) < 0)
        return -1;
    if (*role)
        called[1] = amp_keyed_hash(c->rtp->key, amp_span_str(role));
    *out = (struct amp_work_claim){.begins = f->begins,
                                   .must_accept = f->kind != AMP_RTP_ACK,
                                   .is_claimed = task->claimant != 0};
    for (int i = 0; i < (called[1] ? 2 : 1); i++) {
        out->is_claimant |= out->is_claimed && task->claimant == called[i];
        out->is_addressee |= is_assignee(task, called[i], c->rtp->everyone);
    }
    return 0;
}

/* An agent has at most so many tasks at a time. */
static int check_claims(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                        const char *by_at)
{
    const int64_t *n = amp_map_find(&c->rtp->claims, f->agent), most = amp_load_most(v->protocol);
    char expected[64];
    snprintf(expected, sizeof expected, "an agent with less than %lld open tasks", (long long)most);
    if (most > 0 && n && *n >= most)
        add_finding(c, v, amp_terms_denial(amp_work_of(v->protocol), AMP_WORK_FULL), by_at,
                    expected, "has accepted as many tasks as it may");
    return 0;
}

static int request_check(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct checks *c = ctx;
    const struct amp_message_facts *facts = amp_store_facts(c->store);
    struct amp_message_rec rec;
    struct amp_error why = {0};
    if (amp_message_find(c->store, id, &c->mem, &rec, err) < 0)
        return -1;
    if (c->findings > 0 || !rec.found || !facts || !facts->approved ||
        facts->approved(c->store, rec.line, &why) == 0)
        return 0;
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    checks_finding(c, why.code, "/payload/taskId", rec.task, "a task that a person approved", "%s",
                   "is a task with a high risk that no person approved");
    return 0;
}

/* A task of high risk is accepted after a person approved it. */
static int check_approval(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    return amp_awaited_each(c->store, v, request_check, c, err) < 0 ? -1 : 0;
}

/* Writes a finding if a completion does not confirm what was asked for, such as the version of a
 * skill (§7). */
static int confirmation_check(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_outcome_check(c->store, v, &e) == 0)
        return 0;
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    if (strcmp(e.code, AMP_OUTCOME_UNCONFIRMED) == 0)
        checks_finding(c, e.code, "/payload/installedVersion", AMP_SPAN(""),
                       "the version that the task distributes", "%s", e.what);
    return 0;
}

static int claim_check(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                       const struct rtp_task *task, struct amp_error *err)
{
    static const struct {
        const char *expected, *says;
    } words[AMP_WORK_VERDICTS] = {
        [AMP_WORK_NOT_HOLDER] = {"the agent that has the task",
                                 "is not the agent that accepted the task"},
        [AMP_WORK_TAKEN] = {"the agent that has the task",
                            "cannot accept a task that another agent has accepted"},
        [AMP_WORK_NOT_ADDRESSEE] = {"one of the task's toAgents",
                                    "is not one of the agents of the task"},
        [AMP_WORK_NOT_ACCEPTED] = {"a task_accept first", "is a task that no agent has accepted"},
    };
    struct amp_work_claim claim;
    struct amp_outcome o;
    amp_outcome_read(v, &o);
    if (claim_read(c, o.by, f, task, &claim, err) < 0)
        return -1;
    enum amp_work_verdict verdict = amp_work_judge(&claim);
    if (verdict != AMP_WORK_ALLOWED)
        add_finding(c, v, amp_terms_denial(amp_work_of(v->protocol), verdict),
                    verdict == AMP_WORK_NOT_ACCEPTED ? "/payload/taskId" : o.by_at,
                    words[verdict].expected, words[verdict].says);
    else if (f->begins && !claim.is_claimant)
        return check_approval(c, v, err) < 0 ? -1 : check_claims(c, v, f, o.by_at);
    else if (amp_rtp_kind_of(v) == AMP_RTP_COMPLETE)
        return confirmation_check(c, v, err);
    else if (f->releases && rtp_spent(task, f))
        finding_write(c, "warning", AMP_CODE(retry_budget_exceeded), "/payload/retryable",
                      AMP_SPAN("true"), "false",
                      "is ignored: the task failed as often as it may, and has ended");
    return 0;
}

/* Whether the event repeats one from before the end of its task, because its sender has no answer.
 */
static bool is_resend(const struct checks *c, const struct rtp_fact *f)
{
    return f->operation && amp_map_find(&c->rtp->operations, f->operation);
}

static int check_task_step(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                           struct amp_error *err)
{
    const struct rtp_task *task = amp_map_find(&c->rtp->tasks, f->task);
    if (!f->begins && f->kind != AMP_RTP_UPDATE && f->kind != AMP_RTP_COMPLETE &&
        f->kind != AMP_RTP_FAILED)
        return 0;
    if (!task || !task->created)
        add_finding(c, v, AMP_CODE(unknown_ref), "/payload/taskId", "a task in the state directory",
                    "is a task without a task_create in the state directory");
    else if (task->done && is_resend(c, f))
        return 0;
    else if (task->done)
        add_finding(c, v, AMP_CODE(terminal), "/payload/taskId", "a task that has not ended",
                    "is a task that has ended");
    else
        return claim_check(c, v, f, task, err);
    return 0;
}

/* Whether the event that an ack "processed" refers to has an outcome. */
static bool has_outcome(const struct rtp_history *h, const struct rtp_event *event)
{
    const struct rtp_task *task = event->task ? amp_map_find(&h->tasks, event->task) : NULL;
    if (event->kind == AMP_RTP_CREATE || event->kind == AMP_RTP_SKILL)
        return task && (task->done || task->failed);
    if (event->kind == AMP_RTP_MESSAGE)
        return event->corr && amp_map_find(&h->replies, event->corr);
    return true;
}

static int check_ack(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                     struct amp_error *err)
{
    struct amp_span ref = v->body.ack.ref;
    const struct rtp_event *event =
        ref.n ? amp_map_find(&c->rtp->events, amp_keyed_hash(c->rtp->key, ref)) : NULL;
    const struct rtp_task *task =
        event && (event->kind == AMP_RTP_CREATE || event->kind == AMP_RTP_SKILL)
            ? amp_map_find(&c->rtp->tasks, event->task)
            : NULL;
    if (!event)
        add_finding(c, v, AMP_CODE(unknown_ref), "/payload/refEventId",
                    "an event in the state directory",
                    "refers to an event that is not in the state directory");
    else if (v->body.ack.stage == AMP_STAGE_FULFILLED && !has_outcome(c->rtp, event))
        add_finding(c, v, AMP_CODE(no_terminal_outcome), "/payload/ackType",
                    "accepted until there is a reply, a task_complete or a task_failed",
                    "reports the event as processed, but there is no outcome");
    else if (!task)
        return checks_holder(c, v, err);
    else if (v->body.ack.stage != AMP_STAGE_RECEIVED)
        return claim_check(c, v, f, task, err);
    return 0;
}

static int rtp_check(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    if (v->id.n == 0)
        return 0;
    if (history_refresh(c, err) < 0)
        return -1;
    int again = is_redelivery(c, v, err);
    if (again != 0)
        return again < 0 ? -1 : 0;
    struct rtp_fact f;
    if (rtp_fact_of(c->rtp, v, &f, err) < 0)
        return -1;
    check_outbox(c, &f);
    check_attempt(c, &f);
    int bad = f.kind == AMP_RTP_ACK     ? check_ack(c, v, &f, err)
              : f.kind == AMP_RTP_REPLY ? checks_holder(c, v, err)
                                        : check_task_step(c, v, &f, err);
    if (bad == 0 && c->findings == 0)
        bad = rtp_absorb(c->rtp, &f, err);
    rtp_fact_release(&f);
    if (bad < 0 || c->findings > 0)
        return bad;
    return seen_add(&c->seen, v->id, v->message, err);
}

/* ---- all protocols ---- */

static int check_id(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec rec;
    if (v->id.n == 0)
        return 0;
    bool other = seen_find(&c->seen, v->id, v->message) == SEEN_OTHER;
    if (!other) {
        if (amp_message_find(c->store, v->id, &c->mem, &rec, err) < 0)
            return -1;
        int same = rec.found ? amp_line_has_message(rec.line, v, err) : 1;
        if (same < 0)
            return -1;
        other = !same;
    }
    char pointer[64];
    snprintf(pointer, sizeof pointer, "/%s", amp_spec_of(v->protocol)->id);
    if (other)
        checks_finding(c, AMP_CODE(duplicate_msg_id), pointer, v->id, "an unused id",
                       "is the id of another message");
    return 0;
}

/* The message with this id must be in the ledger, and with a type, be of that type and this task.
 */
static int check_reference(struct checks *c, const struct amp_view *v, struct amp_span id,
                           const char *pointer, const char *type, struct amp_error *err)
{
    struct amp_message_rec rec;
    if (amp_message_find(c->store, id, &c->mem, &rec, err) < 0)
        return -1;
    if (!rec.found)
        checks_finding(c, AMP_CODE(unknown_ref), pointer, id, "a message in the state directory",
                       "refers to a message that is not in the state directory");
    else if (type && (!amp_span_is(rec.type, type) || !amp_span_eq(rec.task, v->task)))
        checks_finding(c, AMP_CODE(unknown_ref), pointer, id, type,
                       "refers to a message that is not a %s of this task", type);
    return 0;
}

static int check_suspension(struct checks *c, const struct amp_view *v,
                            const struct amp_task_status *task)
{
    if (task->suspended)
        checks_finding(c, AMP_CODE(suspended), "/task_id", v->task, "a decision of the admin first",
                       "the task is suspended by %.150s", task->ref);
    return 0;
}

/* A search in the dispatches of a task without a record. */
struct search {
    struct checks *c;
    const struct amp_view *v;
    char prefix[128];
    bool found;
};

static int find_subtask(void *ctx, struct amp_span id, const struct amp_store_rec *row,
                        struct amp_error *err)
{
    struct search *s = ctx;
    struct amp_message_rec rec;
    struct amp_json_fault fault;
    size_t n = strlen(s->prefix);
    if (id.n < n || memcmp(id.p, s->prefix, n) != 0)
        return 0;
    if (amp_message_parse(row, &s->c->mem, &rec, err) < 0)
        return -1;
    struct amp_tape *t = &s->c->tape;
    struct amp_span message;
    if (amp_line_message(rec.line, &message, err) < 0)
        return -1;
    if (amp_tape_scan(t, message.p, message.n, &fault) < 0)
        return 0;
    uint32_t list = amp_tape_pointer(t, 0, AMP_SPAN("/payload/subtasks"));
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY)
        return 0;
    for (uint32_t i = list + 1; i < t->tok[list].next && !s->found; i = t->tok[i].next) {
        uint32_t part = amp_tape_pointer(t, i, AMP_SPAN("/subtask_id"));
        s->found = part != AMP_TOK_NONE && t->tok[part].type == AMP_JSON_STRING &&
                   amp_tok_is(t, part, s->v->body.result.subtask);
    }
    return s->found;
}

static int check_subtask(struct checks *c, const struct amp_view *v,
                         const struct amp_task_status *task, struct amp_error *err)
{
    int has = 0;
    if (task->found) {
        has = amp_task_has_subtask(c->store, v->task, v->body.result.subtask, err);
    } else if (v->task.n < 64) {
        struct search s = {.c = c, .v = v};
        snprintf(s.prefix, sizeof s.prefix, "task_dispatch-%.*s-", (int)v->task.n, v->task.p);
        if (amp_store_each(c->store, AMP_MESSAGE_KIND, NULL, find_subtask, &s, err) < 0)
            return -1;
        has = s.found;
    }
    if (has < 0)
        return -1;
    if (!has)
        checks_finding(c, AMP_CODE(unknown_ref), "/payload/subtask_id", v->body.result.subtask,
                       "a subtask of the task's dispatch", "is not a subtask of the task");
    return 0;
}

static int check_review(struct checks *c, const struct amp_view *v,
                        const struct amp_task_status *task, struct amp_error *err)
{
    if (check_reference(c, v, v->body.review.dispatch_ref, "/payload/original_dispatch_ref",
                        "task_dispatch", err) < 0 ||
        check_reference(c, v, v->body.review.result_ref, "/payload/task_result_ref", "task_result",
                        err) < 0)
        return -1;
    if (task->ci_failed)
        checks_finding(c, AMP_CODE(ci_failed), "/payload/ci_status", (struct amp_span){"", 0},
                       "a new task_dispatch instead", "a check of this task failed");
    return 0;
}

/* Compares a result with its request. */
static int check_request(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_rails_found found;
    if (amp_rails_find(c->store, v, &found, err) < 0)
        return -1;
    if (found.fault.code)
        checks_finding(c, found.fault.code, found.fault.pointer, (struct amp_span){"", 0},
                       "what the TASK allows", "%s", found.fault.what);
    return 0;
}

enum { PROGRESS_MOST = 1 << 16 }; /* TASKs whose last report is remembered */

/* The time between this report of progress and the one before, in this run or in the ledger. */
static int check_pace(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    char found[64], expected[64];
    int64_t since, least = amp_answers_of(v->protocol)->progress_least_ms;
    AMP_BUF struct amp_buf key = {.max = 1 << 20};
    int early = amp_progress_early(c->store, v, &since, err);
    if (early < 0 || least <= 0 || v->created_ms <= 0)
        return early < 0 ? -1 : 0;
    if (amp_buf_add(&key, v->session.p, v->session.n, err) < 0 ||
        amp_buf_add(&key, "", 1, err) < 0 || amp_buf_add(&key, v->task.p, v->task.n, err) < 0)
        return -1;
    if (c->progress.used == PROGRESS_MOST) {
        amp_map_release(&c->progress);
        amp_map_init(&c->progress, sizeof(int64_t));
    }
    int64_t *last = amp_map_add(&c->progress, amp_keyed_hash(c->seen.key, amp_buf_span(&key)), err);
    if (!last)
        return -1;
    if (!early && *last > 0) {
        since = v->created_ms - *last;
        early = since > 0 && since < least;
    }
    if (v->created_ms > *last)
        *last = v->created_ms;
    if (!early)
        return 0;
    number_text(since / 1000, found, sizeof found, "seconds after the last: ");
    number_text(least / 1000, expected, sizeof expected, "seconds after the last: at least ");
    finding_write(c, "warning", AMP_CODE(too_frequent), "/timestamp", amp_span_str(found), expected,
                  "is too soon after the last report of progress on the task");
    return 0;
}

/* An escalation is in the ledger, or waits in the state. */
static int check_escalation(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(c->store, AMP_KEY(AMP_ESCALATION_KIND, v->body.decision.ref), &rec, err) < 0)
        return -1;
    return rec.found ? 0 : check_reference(c, v, v->body.decision.ref, "/ref_msg_id", NULL, err);
}

int checks_run(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_task_status task = {0};
    c->findings = 0;
    if (rtp_is_event(v->protocol))
        return rtp_check(c, v, err);
    if (check_id(c, v, err) < 0 || checks_holder(c, v, err) < 0)
        return -1;
    if (v->task.n > 0 && amp_task_status(c->store, v->task, &task, err) < 0)
        return -1;
    int bad = 0;
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
        bad = check_suspension(c, v, &task);
        break;
    case AMP_KIND_REVIEW:
        bad = check_suspension(c, v, &task) | check_review(c, v, &task, err);
        break;
    case AMP_KIND_RESULT:
        bad = amp_work_of(v->protocol)->results_name_subtasks ? check_subtask(c, v, &task, err)
                                                              : check_request(c, v, err);
        break;
    case AMP_KIND_ACK:
    case AMP_KIND_NACK:
        if (amp_delivery_of(v->protocol)->acks_are_known)
            bad = check_reference(c, v, v->body.ack.ref, "/ref_msg_id", NULL, err);
        break;
    case AMP_KIND_DECISION:
        bad = check_escalation(c, v, err);
        break;
    case AMP_KIND_PROGRESS:
        bad = check_pace(c, v, err);
        break;
    default:
        break;
    }
    if (bad < 0)
        return -1;
    if (c->findings == 0 && v->id.n > 0)
        return seen_add(&c->seen, v->id, v->message, err);
    return 0;
}
