/* Compares a message with the state: ids, references, suspensions, failed checks, budgets. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hitl/escalation.h"
#include "message/ledger/holder.h"
#include "message/settle/outcome.h"
#include "message/settle/rails.h"
#include "protocol/spec.h"
#include "protocol/terms.h"
#include "task/task.h"
#include "worker.h"

void checks_finding(struct checks *c, const char *code, const char *pointer, struct amp_span found,
                    const char *expected, const char *fmt, ...)
{
    char text[300], field[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
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
    amp_jw_member_text(c->out, "severity", "error");
    amp_jw_close(c->out, '}');
    c->findings++;
}

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
        checks_finding(c, "duplicate_msg_id", pointer, v->id, "an unused id",
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
        checks_finding(c, "unknown_ref", pointer, id, "a message in the state directory",
                       "refers to a message that is not in the state directory");
    else if (type && (!amp_span_is(rec.type, type) || !amp_span_eq(rec.task, v->task)))
        checks_finding(c, "unknown_ref", pointer, id, type,
                       "refers to a message that is not a %s of this task", type);
    return 0;
}

static int check_suspension(struct checks *c, const struct amp_view *v,
                            const struct amp_task_status *task)
{
    if (task->suspended)
        checks_finding(c, "suspended", "/task_id", v->task, "a decision of the admin first",
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
        checks_finding(c, "unknown_ref", "/payload/subtask_id", v->body.result.subtask,
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
        checks_finding(c, "ci_failed", "/payload/ci_status", (struct amp_span){"", 0},
                       "a new task_dispatch instead", "a check of this task failed");
    return 0;
}

/* Compares the cost of the work with the budgets of its request. */
static int check_budget(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_rails_found found;
    if (amp_rails_find(c->store, v, &found, err) < 0)
        return -1;
    if (found.fault)
        checks_finding(c, found.fault, "/cost_tracking", (struct amp_span){"", 0},
                       "a cost within the lower of the TASK's budgets",
                       "exceeds a budget of the TASK");
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

int checks_holder(struct checks *c, const struct amp_view *v, struct amp_error *err)
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
        bad = amp_terms_of(v->protocol)->results_name_subtasks ? check_subtask(c, v, &task, err)
                                                               : check_budget(c, v, err);
        break;
    case AMP_KIND_ACK:
    case AMP_KIND_NACK:
        if (amp_terms_of(v->protocol)->acks_are_known)
            bad = check_reference(c, v, v->body.ack.ref, "/ref_msg_id", NULL, err);
        break;
    case AMP_KIND_DECISION:
        bad = check_escalation(c, v, err);
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
