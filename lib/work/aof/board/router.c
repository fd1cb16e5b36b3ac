/* Lines of messages: which of them concern the protocol, their checks, and the message's handler.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/question.h"
#include "work/aof/board/private.h"

int amp_aof_router_new(const struct amp_aof_options *o, bool make, struct amp_aof_router **out,
                       struct amp_error *err)
{
    struct amp_aof_router *r = calloc(1, sizeof *r);
    if (!r)
        return amp_fail_memory(err);
    r->o = *o;
    if (amp_aof_open(o->data, make, &r->data, err) < 0) {
        free(r);
        return -1;
    }
    if (!(r->reader = amp_reader_new(NULL, err))) {
        amp_aof_router_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

void amp_aof_router_free(struct amp_aof_router *r)
{
    if (!r)
        return;
    amp_aof_seen_release(&r->beats);
    amp_aof_queue_release(&r->queue);
    amp_reader_free(r->reader);
    amp_aof_close(&r->data);
    free(r);
}

/* The first error of a line, and whether its criteria have a fault. */
struct findings {
    char code[64], field[256], message[256];
    bool error, criteria;
};

static void finding_note(void *ctx, const struct amp_finding *f)
{
    struct findings *out = ctx;
    if (f->severity == AMP_SEV_WARNING) {
        out->criteria = true;
    } else if (!out->error) {
        out->error = true;
        snprintf(out->code, sizeof out->code, "%s", f->code ? f->code : "");
        snprintf(out->field, sizeof out->field, "%s", f->field ? f->field : "");
        snprintf(out->message, sizeof out->message, "%s", f->message ? f->message : "");
    }
}

/* The reasons of the protocol; faults of other names are those of the envelope or of the JSON. */
static const char *reason_of(const struct findings *f)
{
    static const char *const own[] = {AMP_CODE(payload_too_large), AMP_CODE(invalid_envelope),
                                      AMP_CODE(invalid_project_id), AMP_CODE(taskId_mismatch),
                                      AMP_CODE(bad_signature)};
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(f->code, own[i]) == 0)
            return own[i];
    return f->field[0] ? AMP_CODE(invalid_envelope) : AMP_CODE(invalid_json);
}

static int line_reject(struct amp_aof_router *r, const struct amp_view *v, const struct findings *f,
                       struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    bool unknown = strcmp(f->code, "protocol.message.unknown") == 0;
    const struct amp_aof_why why = {
        .reason = unknown ? NULL : reason_of(f), .field = f->field, .errors = f->message, .v = v};
    if (amp_aof_work_begin(r, &w, err) < 0)
        return -1;
    struct amp_span task = v && amp_aof_is_id(v->task) ? v->task : (struct amp_span){"", 0};
    return amp_aof_why_event(&w, unknown ? "protocol.message.unknown" : "protocol.message.rejected",
                             task, &why, err) < 0
               ? -1
               : amp_aof_work_commit(&w, err);
}

int amp_aof_router_too_long(struct amp_aof_router *r, struct amp_error *err)
{
    struct findings f = {.error = true};
    amp_span_copy(AMP_CODE_SPAN(payload_too_large), f.code, sizeof f.code);
    return line_reject(r, NULL, &f, err);
}

static int refuse(struct amp_aof_work *w, const struct amp_view *v, const char *reason,
                  const char *what, struct amp_error *err)
{
    const struct amp_aof_why why = {.reason = reason, .errors = what, .v = v};
    return amp_aof_why_event(w, "protocol.message.rejected", v->task, &why, err);
}

int amp_aof_refuse_review(struct amp_aof_work *w, const struct amp_view *v, struct amp_error *err)
{
    return refuse(w, v, AMP_CODE(unauthorized_agent), "the task waits for a review by a person",
                  err);
}

/* Unsigned, a person is whom hitl-prompt sends the answer from. */
static bool is_person(const struct amp_view *v, const struct amp_said *said)
{
    struct amp_span op;
    return said->how == AMP_SAID_SIGNED ? said->is_operator : amp_questions_aof.reviewed(v, &op);
}

/* Whether the message counts as said by its sender. 1; 0: *why has the reason; -1. */
static int sender_check(struct amp_aof_router *r, const struct amp_view *v, struct amp_error *why,
                        struct amp_error *err)
{
    struct amp_said said;
    r->person = false;
    if (r->speaker) {
        if (amp_span_is(v->from, r->speaker))
            return 1;
        amp_fail(why, AMP_NO, unauthorized_agent, "the message names another sender");
        return 0;
    }
    if (amp_identities_refresh(r->o.ids, err) < 0)
        return -1;
    int rc = amp_identities_who(r->o.ids, v, r->o.trusted, &said, why, err);
    r->person = rc > 0 && is_person(v, &said);
    return rc;
}

static int message_take(struct amp_aof_router *r, const struct amp_view *v,
                        const struct findings *f, struct amp_error *err)
{
    static int (*const handlers[])(struct amp_aof_work *, const struct amp_view *,
                                   const struct amp_aof_said *, struct amp_error *) = {
        [AMP_AOF_REQUEST] = amp_aof_request, [AMP_AOF_ACCEPTED] = amp_aof_answer,
        [AMP_AOF_REJECTED] = amp_aof_answer, [AMP_AOF_STATUS] = amp_aof_status,
        [AMP_AOF_REPORT] = amp_aof_report,
    };
    AMP_BUF struct amp_buf mem = {0};
    AMP_AOF_WORK struct amp_aof_work w = {0};
    struct amp_aof_said said;
    struct amp_error why = {0};
    amp_buf_init(&mem, (size_t)64 << 20);
    if (amp_aof_said_read(v, &mem, &said, err) < 0)
        return -1;
    if (said.what == AMP_AOF_OTHER)
        return 0;
    int known = sender_check(r, v, &why, err);
    if (known < 0 || amp_aof_work_begin(r, &w, err) < 0)
        return -1;
    if (known == 0)
        return refuse(&w, v, why.code, why.what, err) < 0 || amp_aof_work_commit(&w, err) < 0 ? -1
                                                                                              : 1;
    const struct amp_aof_why what = {.v = v};
    const struct amp_aof_why criteria = {.reason = AMP_CODE(invalid_acceptance_criteria),
                                         .field = "payload.acceptanceCriteria",
                                         .v = v};
    if (amp_aof_why_event(&w, "protocol.message.received", v->task, &what, err) < 0 ||
        (f->criteria &&
         amp_aof_why_event(&w, "protocol.message.warning", v->task, &criteria, err) < 0) ||
        handlers[said.what](&w, v, &said, err) < 0 || amp_aof_work_commit(&w, err) < 0)
        return -1;
    return 1;
}

int amp_aof_router_line(struct amp_aof_router *r, struct amp_span line, struct amp_error *err)
{
    struct findings f = {0};
    struct amp_view v = {0};
    switch (amp_aof_line_read(r->reader, line, &v, finding_note, &f, err)) {
    case AMP_AOF_LINE_GOOD:
        return message_take(r, &v, &f, err);
    case AMP_AOF_LINE_BAD:
        return line_reject(r, &v, &f, err) < 0 ? -1 : 1;
    case AMP_AOF_LINE_OTHER:
        return 0;
    default:
        return -1;
    }
}

int amp_aof_router_line_of(struct amp_aof_router *r, struct amp_span line, const char *agent,
                           struct amp_error *err)
{
    r->speaker = agent;
    int rc = amp_aof_router_line(r, line, err);
    r->speaker = NULL;
    return rc;
}

/* ---- shared by the handlers ---- */

int amp_aof_task_for(struct amp_aof_work *w, const struct amp_view *v, const char *id,
                     struct amp_aof_task *t, struct amp_error *err)
{
    struct amp_error why;
    int rc = amp_aof_load(&w->r->data, id, t, &why);
    if (rc > 0)
        return 1;
    if (rc == 0) {
        return amp_aof_alert(w, id, AMP_CODE(task_not_found), err) < 0 ||
                       refuse(w, v, AMP_CODE(task_not_found), id, err) < 0
                   ? -1
                   : 0;
    }
    if (why.status != AMP_NO && why.status != AMP_DATAERR) {
        if (err)
            *err = why;
        return -1;
    }
    return amp_aof_alert(w, id, why.code, err) < 0 || refuse(w, v, why.code, why.what, err) < 0 ? -1
                                                                                                : 0;
}

/* The agent of the last run may repeat what it said when its lease is over. */
static int has_run(struct amp_aof_work *w, const char *id, struct amp_span agent,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_aof_run run;
    amp_buf_init(&mem, AMP_AOF_RUN_BYTES * 2);
    int rc = amp_aof_run_load(w->r, id, &mem, &run, err);
    return rc > 0 ? strcmp(run.status, "completed") == 0 && amp_span_eq(run.agent, agent) : rc;
}

int amp_aof_may_speak(struct amp_aof_work *w, const struct amp_view *v,
                      const struct amp_aof_task *t, struct amp_span also, struct amp_error *err)
{
    struct amp_span owner = amp_aof_owner(t);
    if ((owner.n > 0 && amp_span_eq(owner, v->from)) || (also.n > 0 && amp_span_eq(also, v->from)))
        return 1;
    int had = t->lease.n == 0 && t->status != AMP_AOF_READY ? has_run(w, t->id, v->from, err) : 0;
    if (had != 0)
        return had;
    const char *reason =
        owner.n > 0 || also.n > 0 ? AMP_CODE(unauthorized_agent) : "unassigned_task";
    return refuse(w, v, reason, "", err) < 0 ? -1 : 0;
}
