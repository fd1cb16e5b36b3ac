/*
 * The RESPONSE (AOP §5). The end, the report and the extensions are the agent's; name, provider,
 * model, times, artifacts, checkpoints and costs are the executor's. It is checked as its receiver
 * checks it, by its schema, its rules and against its TASK. A faulty one becomes a failure with the
 * code of the fault.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/aop/against.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/work.h"
#include "work/aop/run/private.h"
#include "work/attempt/io.h"

enum { RESPONSE_MAX = 8 << 20 };

static json_t *time_make(int64_t ms)
{
    char text[AMP_TIME_MAX];
    amp_time_format(ms, text);
    return json_string(text);
}

static const char *message_of(const struct amp_tasking *t)
{
    const struct amp_tasking_outcome *o = &t->outcome;
    if (*o->what)
        return o->what;
    return strcmp(o->signal, "PARTIAL_SUCCESS") == 0 ? "A part of the work is done."
           : strcmp(o->signal, "SUCCESS") == 0       ? "The work is done."
                                                     : "The work is not done.";
}

/* The parts of the RESPONSE that are written. While a fault remains, the next value is used. */
enum much {
    MUCH_ALL,
    MUCH_AGAIN, /* the same, as a failure */
    MUCH_OWN,   /* nothing of the agent's answer, and short lists */
    MUCH_LEAST, /* no artifacts, checkpoints and costs */
};
enum { OWN_TEXTS = 50, OWN_BYTES = 2000, OWN_ARTIFACTS = 200 };

/* The first texts of a list that are short. */
static json_t *list_make(json_t *list, enum much much)
{
    const json_t *one;
    size_t i;
    if (much < MUCH_OWN)
        return json_incref(list);
    json_t *out = json_array();
    json_array_foreach (list, i, one)
        if (json_is_string(one) && json_string_length(one) <= OWN_BYTES &&
            json_array_size(out) < OWN_TEXTS)
            json_array_append_new(out, json_string(json_string_value(one)));
    return out;
}

/* The extensions of the answer; a review is not the agent's to report. */
static json_t *extensions_make(json_t *own)
{
    json_t *ext = json_is_object(own) ? json_copy(own) : NULL;
    json_object_del(ext, "x_human_review");
    return ext;
}

static json_t *summary_make(const struct amp_tasking *t, enum much much)
{
    const json_t *own = json_object_get(t->answer, "execution_summary");
    json_auto_t *text = much < MUCH_OWN ? amp_tasking_summary(t) : NULL;
    json_t *s = json_object(), *ext = extensions_make(json_object_get(own, "extensions"));
    bool report = json_array_size(t->actions) > 0 && much < MUCH_OWN;
    json_object_set_new(s, "summary", text ? json_incref(text) : json_string(message_of(t)));
    json_object_set_new(s, "actions",
                        report
                            ? json_incref(t->actions)
                            : json_pack("[s]", t->has_begun ? "Ran the command of the provider."
                                                            : "Checked the TASK before the work."));
    size_t n = json_array_size(t->artifacts.items);
    if (n > 0 && much < MUCH_LEAST && (much < MUCH_OWN || n <= OWN_ARTIFACTS))
        json_object_set(s, "output_artifacts", t->artifacts.items);
    json_object_set_new(s, "warnings", list_make(t->warnings, much));
    json_object_set_new(s, "errors", list_make(t->errors, much));
    if (ext && much < MUCH_OWN)
        json_object_set(s, "extensions", ext);
    json_decref(ext);
    return s;
}

static json_t *agent_make(const struct amp_tasking *t)
{
    const json_t *target = json_object_get(t->task, "target");
    const char *provider = t->model.provider ? t->model.provider : amp_json_str(target, "provider");
    const char *model = t->model.name ? t->model.name : amp_json_str(target, "model");
    return json_pack("{s:s, s:s, s:s}", "name", t->agent, "provider", provider, "model", model);
}

static json_t *timing_make(const struct amp_tasking *t, int64_t now_ms)
{
    int64_t began = t->has_begun && t->began_ms < now_ms ? t->began_ms : now_ms;
    int64_t former = t->v->has_attempt && t->v->attempt > 1 ? t->v->attempt - 1 : 0;
    return json_pack("{s:o, s:o, s:f, s:I}", "started_at", time_make(began), "completed_at",
                     time_make(now_ms), "duration_seconds", (double)(now_ms - began) / 1000,
                     "retries_attempted",
                     (json_int_t)(former + t->repeats + __builtin_popcount(t->tried)));
}

static json_t *progress_make(const struct amp_tasking *t)
{
    const struct amp_beats *b = &t->beats;
    if (b->progress_wall_ms == 0 && b->percent < 0)
        return NULL;
    json_t *p = json_object();
    if (b->progress_wall_ms > 0)
        json_object_set_new(p, "last_progress_event_at", time_make(b->progress_wall_ms));
    if (b->percent >= 0)
        json_object_set_new(p, "progress_percentage", json_integer(b->percent));
    return p;
}

/* checkpoint_results; of the executor's own only which they are. */
static int points_make(struct amp_tasking *t, enum much much, json_t **out, struct amp_error *err)
{
    json_t *point;
    size_t i;
    *out = NULL;
    if (much == MUCH_LEAST)
        return 0;
    if (amp_phases_report(t, out, err) < 0)
        return -1;
    json_array_foreach (*out, i, point) {
        if (much < MUCH_OWN)
            break;
        json_array_set_new(*out, i,
                           json_pack("{s:s, s:s}", "checkpoint_id",
                                     amp_json_str(point, "checkpoint_id"), "status",
                                     amp_json_str(point, "status")));
    }
    return 0;
}

static int document_make(struct amp_tasking *t, enum much much, json_t **out, struct amp_error *err)
{
    const struct amp_tasking_outcome *o = &t->outcome;
    json_auto_t *ext = extensions_make(json_object_get(t->answer, "extensions"));
    json_t *cost = NULL, *points = NULL, *progress = progress_make(t);
    json_t *status = json_object_get(json_object_get(t->answer, "task_status"), "extensions");
    int64_t now = amp_now_ms();
    json_auto_t *j = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:o, s:o}", "aop_version",
        AMP_AOP_VERSION, "schema_version", "2.0.2", "protocol_family", "AOP", "message_type",
        "RESPONSE", "session_id", t->session, "task_id",
        amp_json_str(json_object_get(t->task, "task"), "task_id"), "agent", agent_make(t),
        "task_status", "state", o->state, "final_signal", o->signal, "message", message_of(t),
        "execution_summary", summary_make(t, much), "timing", timing_make(t, now));
    if (progress)
        json_object_set_new(j, "progress_log", progress);
    if (status && much < MUCH_OWN)
        json_object_set(json_object_get(j, "task_status"), "extensions", status);
    if (ext && much < MUCH_OWN)
        json_object_set(j, "extensions", ext);
    if (*o->code)
        json_object_set_new(
            j, "error_details",
            json_pack("{s:s, s:s}", "error_code", o->code, "message", message_of(t)));
    if (!j)
        return amp_fail_memory(err);
    if (points_make(t, much, &points, err) < 0)
        return -1;
    if (points && json_object_set_new(j, "checkpoint_results", points) < 0)
        return amp_fail_memory(err);
    if (much < MUCH_LEAST && amp_expense_report(t, &cost, err) < 0)
        return -1;
    if (cost && json_object_set_new(j, "cost_tracking", cost) < 0)
        return amp_fail_memory(err);
    *out = json_incref(j);
    return 0;
}

/* ---- the check ---- */

struct checking {
    const struct amp_tasking *t;
    struct amp_error fault;
};

static void fault_keep(void *ctx, const struct amp_finding *f)
{
    struct checking *c = ctx;
    if (f->severity != AMP_SEV_ERROR || c->fault.status != 0)
        return;
    amp_fail_text(&c->fault, AMP_NO, f->code, "%.200s %.300s", f->field, f->message);
}

static unsigned waives_of(void *ctx, const struct amp_view *response)
{
    const struct checking *c = ctx;
    const struct amp_work_terms *terms = amp_work_of(c->t->v->protocol);
    (void)response;
    return terms->result_waives ? terms->result_waives(c->t->v) : 0;
}

/* 0: valid; 1: c->fault has the code of its fault; -1: failure. */
static int response_check(struct amp_tasking *t, struct checking *c, struct amp_error *err)
{
    const struct amp_check_options opt = {
        .only = t->v->protocol, .waives = waives_of, .waives_ctx = c};
    struct amp_result_fault fault;
    struct amp_view v;
    c->fault = (struct amp_error){0};
    int rc =
        amp_reader_line(t->w->own_reader, amp_buf_span(&t->response), &opt, &v, fault_keep, c, err);
    if (rc < 0)
        return -1;
    if (rc == 0) {
        if (c->fault.status == 0)
            amp_fail(&c->fault, AMP_NO, E_MALFORMED_RESPONSE, "the RESPONSE is invalid");
        return 1;
    }
    rc = amp_aop_against(t->v, &v, true, &fault, err);
    if (rc > 0)
        amp_fail_text(&c->fault, AMP_NO, fault.code, "%s %s", fault.pointer, fault.what);
    return rc;
}

int amp_tasking_response_put(struct amp_tasking *t, const json_t *response, struct amp_error *err)
{
    AMP_FREE char *text = json_dumps(response, JSON_COMPACT | JSON_REAL_PRECISION(15));
    amp_buf_reset(&t->response);
    return text ? amp_buf_str(&t->response, text, err) : amp_fail_memory(err);
}

static int response_write(struct amp_tasking *t, enum much much, struct amp_error *err)
{
    json_t *j = NULL;
    int rc = document_make(t, much, &j, err);
    if (rc == 0)
        rc = amp_tasking_response_put(t, j, err);
    json_decref(j);
    return rc;
}

int amp_tasking_respond(struct amp_tasking *t, struct amp_error *err)
{
    struct checking c = {.t = t};
    for (enum much much = MUCH_ALL;; much++) {
        if (response_write(t, much, err) < 0)
            return -1;
        int rc = response_check(t, &c, err);
        if (rc <= 0)
            return rc;
        if (much == MUCH_LEAST)
            return amp_fail(err, AMP_INTERNAL, invalid_answer, "the composed RESPONSE: %s: %s",
                            c.fault.code, c.fault.what);
        t->w->opt->note("%s: %s: %s", t->of.task, c.fault.code, c.fault.what);
        amp_tasking_end(t, "FAILED",
                        strncmp(c.fault.code, "E_", 2) == 0 ? c.fault.code
                                                            : AMP_CODE(E_MALFORMED_RESPONSE),
                        "%.500s", c.fault.what);
    }
}
