/*
 * Composing AMP messages and control records. The documents of the caller are written as they are.
 */
#include "message/protocol/amp/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/amp/amp.h"
#include "json/record.h"

static void names_write(struct amp_jw *w, const char *key, const char *const *v)
{
    amp_jw_member_open(w, key, '[');
    for (; v && *v; v++)
        amp_jw_str(w, amp_span_str(*v));
    amp_jw_close(w, ']');
}

static void json_write(struct amp_jw *w, const char *key, const json_t *j)
{
    amp_jw_key(w, key);
    amp_jw_json(w, j);
}

/* Begins a message, up to the value of its payload. */
static int message_open(struct amp_jw *w, const struct amp_envelope *e, struct amp_buf *out,
                        char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    char tail[AMP_ID_TAIL_MAX], id[AMP_MSG_ID_MAX];
    amp_id_tail(e->now_ms, tail);
    int n = snprintf(id, sizeof id, "%s-%s-%s", e->type, e->task_id, tail);
    if (n < 0 || (size_t)n >= sizeof id)
        return amp_fail(err, AMP_DATAERR, bad_msg_id, "the message id would be too long");
    bool wants_ack = strcmp(e->type, "escalation") != 0;
    amp_jw_init(w, out);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "msg_id", id);
    amp_jw_member_text(w, "protocol_version", AMP_VERSION_WORD);
    amp_jw_member_text(w, "type", e->type);
    amp_jw_member_text(w, "from", e->from);
    amp_jw_member_text(w, "to", e->to);
    amp_jw_member_text(w, "task_id", e->task_id);
    amp_rec_time(w, "timestamp", e->now_ms);
    amp_jw_member_bool(w, "requires_ack", wants_ack);
    if (wants_ack)
        amp_jw_some_int(w, "ack_timeout_sec", e->ack_timeout_sec);
    if (e->context_ref && e->context_ref[0])
        names_write(w, "context_ref", e->context_ref);
    amp_jw_key(w, "payload");
    if (id_out)
        memcpy(id_out, id, (size_t)n + 1);
    return 0;
}

/* Ends an object, and the message or record, one line with LF. */
static int line_end(struct amp_jw *w, struct amp_error *err)
{
    amp_jw_close(w, '}');
    return amp_jw_end_line(w, err);
}

int amp_compose_message(const struct amp_envelope *e, json_t *payload, struct amp_buf *out,
                        char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    struct amp_jw w;
    int rc = message_open(&w, e, out, id_out, err);
    if (rc == 0) {
        amp_jw_json(&w, payload);
        rc = line_end(&w, err);
    }
    json_decref(payload);
    return rc;
}

int amp_compose_text(const struct amp_envelope *e, struct amp_span payload, struct amp_buf *out,
                     char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    json_t *j = amp_json_load(payload, err);
    if (!j)
        return -1;
    if (!json_is_object(j)) {
        json_decref(j);
        return amp_fail(err, AMP_DATAERR, invalid_json, "the payload is not an object");
    }
    return amp_compose_message(e, j, out, id_out, err);
}

int amp_compose_dispatch(const struct amp_dispatch_args *a, struct amp_buf *out,
                         char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    struct amp_jw w;
    const struct amp_envelope e = {
        .type = "task_dispatch",
        .from = a->from,
        .to = a->to,
        .task_id = a->task_id,
        .now_ms = a->now_ms,
        .context_ref = a->context_ref,
        .ack_timeout_sec = a->ack_timeout_sec,
    };
    if (message_open(&w, &e, out, id_out, err) < 0)
        return -1;
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "description", a->description);
    amp_jw_member_text(&w, "repo", a->repo);
    amp_jw_member_text(&w, "branch", a->branch);
    amp_jw_member_open(&w, "subtasks", '[');
    for (size_t i = 0; i < a->n_parts; i++) {
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "subtask_id", a->parts[i].id);
        amp_jw_member_text(&w, "description", a->parts[i].description);
        amp_jw_member_int(&w, "estimated_lines", a->parts[i].estimated_lines);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    json_write(&w, "acceptance_criteria", a->criteria);
    amp_jw_member_text(&w, "risk_level", amp_risk_name(a->risk));
    if (json_array_size(a->forbidden))
        json_write(&w, "forbidden_actions", a->forbidden);
    if (json_object_size(a->constraints))
        json_write(&w, "tech_constraints", a->constraints);
    amp_jw_close(&w, '}');
    return line_end(&w, err);
}

int amp_compose_review(const struct amp_review_args *a, struct amp_buf *out,
                       char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    const char *refs[] = {a->dispatch_ref, a->result_ref, NULL}, *key;
    struct amp_jw w;
    json_t *state;
    const struct amp_envelope e = {
        .type = "review_request",
        .from = "coordinator",
        .to = "reviewer",
        .task_id = a->task_id,
        .now_ms = a->now_ms,
        .context_ref = refs,
        .ack_timeout_sec = a->ack_timeout_sec,
    };
    if (message_open(&w, &e, out, id_out, err) < 0)
        return -1;
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "original_dispatch_ref", a->dispatch_ref);
    amp_jw_member_text(&w, "task_result_ref", a->result_ref);
    amp_jw_member_text(&w, "review_scope", a->incremental ? "incremental" : "full");
    amp_jw_member_text(&w, "diff_url", a->diff_url);
    amp_jw_member_int(&w, "reject_count", a->reject_count);
    amp_jw_some_str(&w, "coordinator_notes", amp_span_str(a->notes));
    amp_jw_member_open(&w, "ci_status", '{');
    json_object_foreach (a->checks, key, state) {
        json_write(&w, key, state);
    }
    if (!a->checks)
        amp_jw_member_text(&w, "ci", "not_configured");
    if (!json_object_get(a->checks, "last_updated"))
        amp_rec_time(&w, "last_updated", a->now_ms);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return line_end(&w, err);
}

int amp_compose_escalation(const struct amp_escalation_args *a, struct amp_buf *out,
                           char id_out[AMP_MSG_ID_MAX], struct amp_error *err)
{
    struct amp_jw w;
    const struct amp_envelope e = {
        .type = "escalation",
        .from = a->from,
        .to = "admin",
        .task_id = a->task_id,
        .now_ms = a->now_ms,
    };
    if (message_open(&w, &e, out, id_out, err) < 0)
        return -1;
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "escalation_type", a->type);
    amp_jw_member_text(&w, "severity", amp_level_name(a->severity));
    amp_jw_member_text(&w, "triggered_by", a->triggered_by);
    amp_jw_member_text(&w, "description", a->description);
    names_write(&w, "affected_msgs", a->affected);
    amp_jw_member_open(&w, "system_state_snapshot", '{');
    amp_jw_member_text(&w, "task_status", a->task_status ? a->task_status : "unknown");
    amp_jw_member_int(&w, "reject_count", a->reject_count);
    amp_jw_member_text(&w, "last_successful_msg_id", a->last_successful);
    amp_jw_close(&w, '}');
    names_write(&w, "suggested_actions", a->suggested);
    amp_jw_member_bool(&w, "auto_suspended", a->severity != AMP_LEVEL_INFO);
    amp_jw_close(&w, '}');
    return line_end(&w, err);
}

int amp_compose_ack(const struct amp_view *of, enum amp_ack_stage stage, const char *from,
                    const char *note, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_record_open(&w, "ack", out);
    amp_jw_member_str(&w, "ref_msg_id", of->id);
    amp_jw_member_str(&w, "task_id", of->task);
    amp_jw_member_text(&w, "from", from);
    amp_jw_member_text(&w, "ack_stage", amp_ack_stage_name(stage));
    amp_rec_time(&w, "timestamp", now_ms);
    amp_jw_some_str(&w, "note", amp_span_str(note));
    return line_end(&w, err);
}

int amp_compose_decision(const struct amp_decision_args *a, struct amp_buf *out,
                         struct amp_error *err)
{
    struct amp_jw w;
    json_auto_t *criteria = a->criteria ? amp_json_load(amp_span_str(a->criteria), err) : NULL;
    if (a->criteria && !criteria)
        return -1;
    amp_record_open(&w, "decision", out);
    amp_jw_member_text(&w, "ref_msg_id", a->ref_msg_id);
    amp_jw_member_text(&w, "task_id", a->task_id);
    amp_jw_member_text(&w, "decision", amp_operator_word_name(a->word));
    amp_jw_some_str(&w, "note", amp_span_str(a->note));
    if (criteria)
        json_write(&w, "acceptance_criteria", criteria);
    amp_jw_some_str(&w, "commit", amp_span_str(a->commit));
    amp_jw_member_text(&w, "operator", a->op);
    amp_rec_time(&w, "timestamp", a->now_ms);
    return line_end(&w, err);
}
