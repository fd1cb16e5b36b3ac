/*
 * Checks who may say what to the coordinator. A result is accepted only from the executor that the
 * dispatch is bound to, a verdict only from a reviewer that did not produce the result, a task and
 * a decision only from an operator, an acknowledgement only from the addressee.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/intake.h"
#include "message/delivery/ledger/ledger.h"
#include "message/protocol/amp/amp.h"
#include "people/proof/votes.h"
#include "work/loop/coordinate/coordinator.h"

#define LINES_MAX   ((size_t)256 << 20)
#define ALARM_AFTER 3 /* refusals about a task */
#define EXECUTOR    "executor"
#define REVIEWER    "reviewer"
#define ADMIN       "admin"
#define SYSTEM      "system"
#define CI          "ci"

/* Reads the task of a message; of an invalid message it may have no usable id: then *t is empty. */
static int task_look(struct amp_coordinator *c, const struct amp_view *v, struct amp_task *t,
                     struct amp_error *err)
{
    return amp_is_task_id(v->task) ? amp_task_load(c->store, v->task, t, NULL, err) : 0;
}

/* An executor that rotated its key since the binding has the same name. */
static bool is_bound_to_other(const struct amp_coordinator *c, const struct amp_task_part *p,
                              const struct amp_said *said)
{
    return p && *p->executor && said->how == AMP_SAID_SIGNED &&
           strcmp(p->executor, said->by.key) != 0 &&
           !amp_identities_is_named(c->opt->ids, &said->by, p->executor_name);
}

static int bound_refuse(const struct amp_task_part *p, struct amp_error *why)
{
    amp_fail(why, AMP_NO, bad_sender,
             "is signed by another key than that of %s, to which the "
             "dispatch %s is bound",
             p->executor_name, p->dispatch_ref);
    return 0;
}

static int result_check(struct amp_coordinator *c, const struct amp_view *v,
                        const struct amp_said *said, struct amp_error *why, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    if (!amp_said_by(c->opt->ids, said, EXECUTOR))
        return amp_said_refuse(said, why, "only an executor sends results");
    if (task_look(c, v, &t, err) < 0)
        return -1;
    const struct amp_task_part *p = amp_task_part(&t, v->body.result.subtask);
    return is_bound_to_other(c, p, said) ? bound_refuse(p, why) : 1;
}

/* Whether an id is TYPE-TASK- and something. */
bool amp_coordinator_is_id(struct amp_span id, const char *type, struct amp_span task)
{
    size_t n = strlen(type);
    return task.n > 0 && id.n > n + task.n + 2 && memcmp(id.p, type, n) == 0 && id.p[n] == '-' &&
           memcmp(id.p + n + 1, task.p, task.n) == 0 && id.p[n + 1 + task.n] == '-';
}

/* The result that the ids are about is found later, by comparing them (kinds.c). */
static bool names_judged(const struct amp_view *v)
{
    for (uint32_t i = 0; i < v->context.n; i++)
        if (amp_coordinator_is_id(v->context.v[i], "review_request", v->task) ||
            amp_coordinator_is_id(v->context.v[i], "task_result", v->task))
            return true;
    return false;
}

static int verdict_check(struct amp_coordinator *c, const struct amp_view *v,
                         const struct amp_said *said, struct amp_error *why, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    if (!amp_said_by(c->opt->ids, said, REVIEWER))
        return amp_said_refuse(said, why, "only a reviewer sends verdicts");
    if (task_look(c, v, &t, err) < 0)
        return -1;
    const struct amp_task_part *p = amp_step_judged(&t, v);
    if (said->how != AMP_SAID_SIGNED)
        return 1;
    /* Without it, the verdict could be kept back and used for a later result. */
    if (!names_judged(v)) {
        amp_fail(why, AMP_NO, unknown_ref,
                 "names neither the review request nor the result that it is about");
        return 0;
    }
    if (p && strcmp(p->executor, said->by.key) == 0)
        return amp_said_refuse(said, why, "the same key signed the result");
    if (p && amp_identities_is_named(c->opt->ids, &said->by, p->executor_name))
        return amp_said_refuse(said, why, "another key of the executor signed the result");
    return 1;
}

/* An unsigned decision of a trusted input counts as that of the operator whom it names. */
static int decider_check(struct amp_coordinator *c, const struct amp_view *v,
                         const struct amp_said *said, const struct amp_matter *m,
                         const struct amp_question_rec *rec, struct amp_error *why)
{
    char named[AMP_PRINCIPAL_MAX];
    struct amp_span name = v->body.decision.op;
    bool sig = said->how == AMP_SAID_SIGNED;

    snprintf(named, sizeof named, AMP_OPERATOR_ROLE "/%.*s", AMP_CLIP(name, 100));
    return amp_operators_signed(c->opt->operators, m, sig ? said->by.principal : named,
                                !sig || said->by.local, amp_votes_by(rec, v), why);
}

/* Whether the operator may decide this matter, and whether as many agreed as the configuration
 * wants. The question's record has the decisions that they signed; one person cannot get around
 * them by sending a decision alone. */
static int decision_check(struct amp_coordinator *c, const struct amp_view *v,
                          const struct amp_said *said, struct amp_error *why, struct amp_error *err)
{
    char reason[64] = "", type[64] = "", risk[16] = "";
    AMP_BUF struct amp_buf mem = {0}, votes = {0};
    struct amp_question_rec rec = {0};
    uint32_t n = 0;
    amp_buf_init(&mem, LINES_MAX);
    amp_buf_init(&votes, LINES_MAX);
    int found = v->body.decision.ref.n == 0
                    ? 0
                    : amp_question_find(c->store, v->body.decision.ref, &mem, &rec, err);
    if (found < 0)
        return -1;
    if (found) {
        amp_span_copy(rec.reason, reason, sizeof reason);
        amp_span_copy(rec.type, type, sizeof type);
        amp_span_copy(rec.risk, risk, sizeof risk);
    }
    const struct amp_matter m = {amp_protocol_name(v->protocol), reason, type, risk};
    const struct amp_votes_of of = {
        v->task, v->body.decision.ref, v->body.decision.word, c->opt->operators,
        &m,      found ? &rec : NULL};
    if (!decider_check(c, v, said, &m, of.record, why))
        return 0;
    const struct amp_quorum a = amp_operators_need(c->opt->operators, &m);
    uint32_t need = a.need;
    if (need <= 1 || (a.one_denies && v->body.decision.word == AMP_DO_TERMINATE))
        return 1;
    if (found && (amp_votes_collect(&rec, &votes, err) < 0 ||
                  amp_votes_verify(c->opt->ids, c->own, amp_buf_span(&votes), &of, &n, err) < 0))
        return -1;
    if (n >= need)
        return 1;
    amp_fail(why, AMP_NO, not_authorized, "%u of the %u operators who have to agree signed it", n,
             need);
    return 0;
}

/* Answers come from the addressee of the message that they are about, or from our own tools about
 * their delivery. */
static int answer_check(struct amp_coordinator *c, const struct amp_view *v,
                        const struct amp_said *said, struct amp_error *why, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    struct amp_span ref = v->body.ack.ref;
    int rc = amp_said_by_addressee(c->store, v, said, why, err);
    if (rc <= 0)
        return rc;
    if (task_look(c, v, &t, err) < 0)
        return -1;
    for (size_t i = 0; i < t.n_parts; i++)
        if (amp_span_is(ref, t.parts[i].dispatch_ref) && is_bound_to_other(c, &t.parts[i], said))
            return bound_refuse(&t.parts[i], why);
    return 1;
}

/* Only the agent that asked withdraws its question. The step refuses what is not open. */
static int withdrawal_check(struct amp_coordinator *c, const struct amp_view *v,
                            const struct amp_said *said, struct amp_error *why,
                            struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    char ref[AMP_MSG_ID_MAX] = "";
    if (task_look(c, v, &t, err) < 0)
        return -1;
    amp_span_copy(v->body.ack.ref, ref, sizeof ref);
    const json_t *e = amp_task_find_escalation(&t, ref);
    if (!e)
        return 1;
    const char *key = amp_json_str(e, "key");
    bool same = amp_span_is(v->from, amp_json_str(e, "from"));
    if (*key && same)
        same = said->how == AMP_SAID_SIGNED &&
               (strcmp(key, said->by.key) == 0 ||
                amp_identities_is_named(c->opt->ids, &said->by, amp_json_str(e, "by")));
    return same ? 1
                : amp_said_refuse(said, why, "only the agent that asked withdraws its question");
}

/* True if a role may say this, for inputs with a role. */
static bool is_of_role(const struct amp_view *v, const char *role)
{
    return amp_span_is(v->from, role) || (strcmp(role, CI) == 0 && v->kind == AMP_KIND_CI_STATUS);
}

int amp_coordinator_hears(struct amp_coordinator *c, const struct amp_coordinate_input *in,
                          const struct amp_view *v, struct amp_said *said, struct amp_error *why,
                          struct amp_error *err)
{
    *said = (struct amp_said){.from = v->from};
    if (!amp_coordinator_has_protocol(v))
        return 1; /* passed on: its receiver checks it */
    if (*in->role && !is_of_role(v, in->role)) {
        amp_fail(why, AMP_NO, role_mismatch, "is from \"%.*s\", but %s is the input of \"%s\"",
                 (int)(v->from.n < 100 ? v->from.n : 100), v->from.p, in->path, in->role);
        return 0;
    }
    int known = amp_identities_who(c->opt->ids, v, in->trusted, said, why, err);
    if (known <= 0 || said->how == AMP_SAID_UNCHECKED)
        return known;
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
    case AMP_KIND_DECISION:
        if (!amp_coordinator_is_ours(v))
            return 1;
        if (!amp_said_by(c->opt->ids, said, ADMIN))
            return amp_said_refuse(said, why, "only an operator sends tasks and decisions");
        return v->kind == AMP_KIND_DECISION && c->opt->operators
                   ? decision_check(c, v, said, why, err)
                   : 1;
    case AMP_KIND_RESULT:
        return result_check(c, v, said, why, err);
    case AMP_KIND_VERDICT:
        return verdict_check(c, v, said, why, err);
    case AMP_KIND_CI_STATUS:
        return amp_said_by(c->opt->ids, said, SYSTEM) || amp_said_by(c->opt->ids, said, CI) ||
                       amp_said_by(c->opt->ids, said, ADMIN)
                   ? 1
                   : amp_said_refuse(said, why, "only ci, system and operators report CI");
    case AMP_KIND_ACK:
    case AMP_KIND_NACK:
        if (amp_coordinator_withdraws(v))
            return withdrawal_check(c, v, said, why, err);
        return answer_check(c, v, said, why, err);
    default:
        return 1;
    }
}

/* ---- refusals ---- */

/* One notice about the task for the admin. It is not recorded and asks for no decision. */
static int admin_alarm(struct amp_coordinator *c, const struct amp_coordinate_input *in,
                       const struct amp_view *v, const struct amp_error *why, struct amp_error *err)
{
    char id[AMP_MSG_ID_MAX], task[AMP_TASK_ID_MAX], text[600];
    static const char *const suggested[] = {
        "look for the process that wrote to the input; the error log has the lines", NULL};
    static const char *const none[] = {NULL};
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    amp_span_copy(v->task, task, sizeof task);
    snprintf(text, sizeof text, "A message in %s was refused: %s: %.*s %s", in->path, why->code,
             (int)(v->type.n < 60 ? v->type.n : 60), v->type.p ? v->type.p : "", why->what);
    const struct amp_escalation_args a = {
        .type = "permission_denied",
        .from = "coordinator",
        .severity = AMP_LEVEL_INFO,
        .triggered_by = "coordinator",
        .task_id = task,
        .description = text,
        .affected = none,
        .suggested = suggested,
        .task_status = "",
        .last_successful = "",
        .now_ms = amp_now_ms(),
    };
    if (amp_compose_escalation(&a, &line, id, err) < 0)
        return -1;
    line.len--;
    return amp_coordinator_queue(c, amp_buf_span(&line), err);
}

/* A nack names the refused message. If the state knows a message with this id, the nack could be
 * taken for an answer to that one. */
static int sender_nack(struct amp_coordinator *c, const struct amp_view *v,
                       const struct amp_error *why, struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0}, line = {0};
    if (v->id.n == 0 || v->task.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK ||
        !amp_intake_is_to(v, "coordinator"))
        return 0;
    amp_buf_init(&mem, LINES_MAX);
    amp_buf_init(&line, 65536);
    if (amp_message_find(c->store, v->id, &mem, &rec, err) < 0)
        return -1;
    if (rec.found)
        return 0;
    if (amp_compose_nack(v, AMP_STAGE_REJECTED, "coordinator", why->code, why->what, "", false,
                         amp_now_ms(), &line, err) < 0)
        return -1;
    line.len--;
    return amp_coordinator_queue(c, amp_buf_span(&line), err);
}

int amp_coordinator_refused(struct amp_coordinator *c, const struct amp_coordinate_input *in,
                            const struct amp_view *v, const struct amp_error *why,
                            struct amp_error *err)
{
    bool decides =
        v->kind == AMP_KIND_VERDICT || v->kind == AMP_KIND_DECISION || v->kind == AMP_KIND_DISPATCH;
    if (sender_nack(c, v, why, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n_tasks; i++) {
        struct amp_known_task *k = &c->tasks[i];
        if (!amp_span_is(v->task, k->id))
            continue;
        k->refused++;
        if (k->alarmed || (!decides && k->refused < ALARM_AFTER))
            return 0;
        k->alarmed = true;
        return admin_alarm(c, in, v, why, err);
    }
    return 0;
}

/* ---- binding ---- */

struct binding {
    struct amp_coordinator *c;
    const struct amp_view *ack;
    struct amp_task t;
    struct amp_buf json;
};

static int binding_change(void *ctx, const struct amp_store_rec *now,
                          struct amp_store_change *change, struct amp_error *err)
{
    struct binding *b = ctx;
    const struct amp_said *said = b->c->said;
    if (!now->found)
        return 1;
    if (amp_task_read(&b->t, now, b->ack->task, err) < 0)
        return -1;
    for (size_t i = 0; i < b->t.n_parts; i++) {
        struct amp_task_part *p = &b->t.parts[i];
        if (*p->executor || !amp_span_is(b->ack->body.ack.ref, p->dispatch_ref))
            continue;
        if (amp_task_set(&p->executor, amp_span_str(said->by.key), err) < 0 ||
            amp_task_set(&p->executor_name, amp_span_str(said->by.principal), err) < 0)
            return -1;
        b->t.updated_ms = amp_now_ms();
        if (amp_task_write(&b->t, &b->json, err) < 0)
            return -1;
        change->event = "bind";
        change->to = amp_task_fsm.states[b->t.state].name;
        change->json = amp_buf_span(&b->json);
        change->actor = said->by.principal;
        return 0;
    }
    return 1;
}

int amp_coordinator_bind(struct amp_coordinator *c, const struct amp_view *ack,
                         struct amp_error *err)
{
    struct binding b = {.c = c, .ack = ack};
    enum amp_store_outcome outcome;
    if (!c->said || c->said->how != AMP_SAID_SIGNED || !amp_span_is(ack->from, EXECUTOR) ||
        ack->task.n == 0 || ack->task.n >= AMP_TASK_ID_MAX ||
        !amp_span_starts(ack->body.ack.ref, "task_dispatch-"))
        return 0;
    amp_buf_init(&b.json, LINES_MAX);
    int rc = amp_store_update(c->store, AMP_KEY(AMP_TASK_KIND, ack->task), NULL, binding_change, &b,
                              &outcome, err);
    for (size_t i = 0; rc == 0 && i < c->n_tasks; i++)
        c->tasks[i].dirty |=
            amp_span_is(ack->task, c->tasks[i].id) && outcome == AMP_STORE_COMMITTED;
    amp_task_release(&b.t);
    amp_buf_release(&b.json);
    return rc;
}
