/*
 * Composing AMP messages and control records with jansson. A message is built as a document and
 * written at once, so that a failure leaves the output unchanged.
 */
#include "protocol/amp/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "protocol/amp/amp.h"

#define AMP_VERSION_WORD "AMP/1.0"

static json_t *str_span(struct amp_span s)
{
    return json_stringn(s.p ? s.p : "", s.n);
}

static json_t *str_list(const char *const *v)
{
    json_t *a = json_array();
    for (size_t i = 0; a && v && v[i]; i++)
        if (json_array_append_new(a, json_string(v[i])) < 0) {
            json_decref(a);
            return NULL;
        }
    return a;
}

static json_t *time_json(int64_t ms)
{
    char t[AMP_TIME_MAX];
    amp_time_format(ms, t);
    return json_string(t);
}

/* Sets a member. If the value is NULL (no memory, or text that is not UTF-8), the document is
 * released and becomes NULL, which document_write reports. */
static void member_put(json_t **j, const char *key, json_t *value)
{
    if (!*j) {
        json_decref(value);
    } else if (json_object_set_new(*j, key, value) < 0) {
        json_decref(*j);
        *j = NULL;
    }
}

/* Writes and releases j; fails if it is NULL. */
static int document_write(json_t *j, struct amp_buf *out, struct amp_error *err)
{
    if (!j)
        return amp_fail_memory(err);
    size_t before = out->len;
    int rc = amp_json_dump(j, out, err);
    json_decref(j);
    if (rc == 0 && amp_buf_add(out, "\n", 1, err) < 0) {
        out->len = before;
        rc = -1;
    }
    return rc;
}

int amp_compose_message(const struct amp_envelope *e, json_t *payload, struct amp_buf *out,
                        char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    char tail[AMP_ID_TAIL_MAX], id[AMP_MSG_ID_MAX];
    amp_id_tail(e->now_ms, tail);
    int n = snprintf(id, sizeof id, "%s-%s-%s", e->type, e->task_id, tail);
    if (n < 0 || (size_t)n >= sizeof id) {
        json_decref(payload);
        return amp_fail(err, AMP_DATAERR, "bad_msg_id", "the message id would be too long");
    }
    bool wants_ack = strcmp(e->type, "escalation") != 0;
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:b}", "msg_id", id, "protocol_version",
                  AMP_VERSION_WORD, "type", e->type, "from", e->from, "to", e->to, "task_id",
                  e->task_id, "timestamp", time_json(e->now_ms), "requires_ack", wants_ack);
    int rc = j && payload ? 0 : -1;
    if (rc == 0 && wants_ack && e->ack_timeout_sec > 0)
        rc = json_object_set_new(j, "ack_timeout_sec", json_integer(e->ack_timeout_sec));
    if (rc == 0 && e->context_ref && e->context_ref[0])
        rc = json_object_set_new(j, "context_ref", str_list(e->context_ref));
    if (rc == 0)
        rc = json_object_set_new(j, "payload", payload);
    else
        json_decref(payload);
    if (rc < 0) {
        json_decref(j);
        return amp_fail_memory(err);
    }
    if (document_write(j, out, err) < 0)
        return -1;
    if (id_out)
        memcpy(id_out, id, (size_t)n + 1);
    return 0;
}

int amp_compose_text(const struct amp_envelope *e, struct amp_span payload, struct amp_buf *out,
                     char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    json_t *j = amp_json_load(payload, err);
    if (!j)
        return -1;
    if (!json_is_object(j)) {
        json_decref(j);
        return amp_fail(err, AMP_DATAERR, "invalid_json", "the payload is not an object");
    }
    return amp_compose_message(e, j, out, id_out, err);
}

static json_t *parts_list(const struct amp_dispatch_args *a)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < a->n_parts; i++)
        if (json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "subtask_id", a->parts[i].id,
                                                  "description", a->parts[i].description,
                                                  "estimated_lines",
                                                  (json_int_t)a->parts[i].estimated_lines)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

int amp_compose_dispatch(const struct amp_dispatch_args *a, struct amp_buf *out,
                         char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    json_t *p = json_object();
    member_put(&p, "description", json_string(a->description));
    member_put(&p, "repo", json_string(a->repo));
    member_put(&p, "branch", json_string(a->branch));
    member_put(&p, "subtasks", parts_list(a));
    member_put(&p, "acceptance_criteria", json_incref(a->criteria));
    member_put(&p, "risk_level", json_string(amp_risk_name(a->risk)));
    if (json_array_size(a->forbidden))
        member_put(&p, "forbidden_actions", json_incref(a->forbidden));
    if (json_object_size(a->constraints))
        member_put(&p, "tech_constraints", json_incref(a->constraints));
    struct amp_envelope e = {
        .type = "task_dispatch",
        .from = a->from,
        .to = a->to,
        .task_id = a->task_id,
        .now_ms = a->now_ms,
        .context_ref = a->context_ref,
        .ack_timeout_sec = a->ack_timeout_sec,
    };
    return p ? amp_compose_message(&e, p, out, id_out, err) : amp_fail_memory(err);
}

/* The checks, and the time of their states. */
static json_t *ci_json(const struct amp_review_args *a)
{
    json_t *ci = a->checks ? json_copy(a->checks) : json_pack("{s:s}", "ci", "not_configured");
    if (ci && !json_object_get(ci, "last_updated"))
        member_put(&ci, "last_updated", time_json(a->now_ms));
    return ci;
}

int amp_compose_review(const struct amp_review_args *a, struct amp_buf *out,
                       char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    const char *refs[] = {a->dispatch_ref, a->result_ref, NULL};
    json_t *p = json_object();
    member_put(&p, "original_dispatch_ref", json_string(a->dispatch_ref));
    member_put(&p, "task_result_ref", json_string(a->result_ref));
    member_put(&p, "review_scope", json_string(a->incremental ? "incremental" : "full"));
    member_put(&p, "diff_url", json_string(a->diff_url));
    member_put(&p, "reject_count", json_integer(a->reject_count));
    if (*a->notes)
        member_put(&p, "coordinator_notes", json_string(a->notes));
    member_put(&p, "ci_status", ci_json(a));
    struct amp_envelope e = {
        .type = "review_request",
        .from = "coordinator",
        .to = "reviewer",
        .task_id = a->task_id,
        .now_ms = a->now_ms,
        .context_ref = refs,
        .ack_timeout_sec = a->ack_timeout_sec,
    };
    return p ? amp_compose_message(&e, p, out, id_out, err) : amp_fail_memory(err);
}

/* The first members of every control record. */
static json_t *control_record(const char *type)
{
    return json_pack("{s:s, s:s}", "protocol_version", AMP_VERSION_WORD, "type", type);
}

int amp_compose_ack(const struct amp_view *of, enum amp_ack_stage stage, const char *from,
                    const char *note, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    json_t *j = control_record("ack");
    member_put(&j, "ref_msg_id", str_span(of->id));
    member_put(&j, "task_id", str_span(of->task));
    member_put(&j, "from", json_string(from));
    member_put(&j, "ack_stage", json_string(amp_ack_stage_name(stage)));
    member_put(&j, "timestamp", time_json(now_ms));
    if (note && *note)
        member_put(&j, "note", json_string(note));
    return document_write(j, out, err);
}

int amp_compose_nack(const struct amp_view *of, enum amp_ack_stage failed_stage, const char *from,
                     const char *code, const char *message, const char *rule, bool retryable,
                     int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_span none = {"", 0};
    json_t *j = control_record("nack");
    member_put(&j, "ref_msg_id", str_span(of->id.n <= AMP_NACK_REF_MAX ? of->id : none));
    member_put(&j, "task_id", str_span(amp_is_task_id(of->task) ? of->task : none));
    member_put(&j, "from", json_string(from));
    member_put(&j, "failed_stage", json_string(amp_ack_stage_name(failed_stage)));
    member_put(&j, "code", json_string(code));
    member_put(&j, "message", amp_json_text(message));
    member_put(&j, "rule", json_string(rule && *rule ? rule : code));
    member_put(&j, "retryable", json_boolean(retryable));
    member_put(&j, "timestamp", time_json(now_ms));
    return document_write(j, out, err);
}

int amp_compose_escalation(const struct amp_escalation_args *a, struct amp_buf *out,
                           char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    json_t *p = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:{s:s, s:I, s:s}, s:o, s:b}", "escalation_type", a->type,
        "severity", amp_level_name(a->severity), "triggered_by", a->triggered_by, "description",
        amp_json_text(a->description), "affected_msgs", str_list(a->affected),
        "system_state_snapshot", "task_status", a->task_status ? a->task_status : "unknown",
        "reject_count", (json_int_t)a->reject_count, "last_successful_msg_id",
        a->last_successful ? a->last_successful : "", "suggested_actions", str_list(a->suggested),
        "auto_suspended", a->severity != AMP_LEVEL_INFO);
    if (!p)
        return amp_fail_memory(err);
    struct amp_envelope e = {
        .type = "escalation",
        .from = a->from,
        .to = "admin",
        .task_id = a->task_id,
        .now_ms = a->now_ms,
    };
    return amp_compose_message(&e, p, out, id_out, err);
}

int amp_compose_decision(const struct amp_decision_args *a, struct amp_buf *out,
                         struct amp_error *err)
{
    json_t *criteria = NULL;

    if (a->criteria && !(criteria = amp_json_load(amp_span_str(a->criteria), err)))
        return -1;
    json_t *j = control_record("decision");
    member_put(&j, "ref_msg_id", json_string(a->ref_msg_id));
    member_put(&j, "task_id", json_string(a->task_id));
    member_put(&j, "decision", json_string(amp_operator_word_name(a->word)));
    if (a->note && *a->note)
        member_put(&j, "note", json_string(a->note));
    if (criteria)
        member_put(&j, "acceptance_criteria", criteria);
    if (a->commit && *a->commit)
        member_put(&j, "commit", json_string(a->commit));
    member_put(&j, "operator", json_string(a->op));
    member_put(&j, "timestamp", time_json(a->now_ms));
    return document_write(j, out, err);
}
