/* Landings and cancelled tasks as entries of the audit trail. */
#include <string.h>

#include "audit.h"
#include "base/codes.h"
#include "work/task/landing/landing.h"
#include "work/task/task.h"

/* The record's key names another task, or its line another act. */
#define BAD_RECORD AMP_CODE(bad_record)

/* The text that the person signed is made again from the record. */
static int landing_entry(struct audit_tasks *r, const struct amp_store_commit *c,
                         struct amp_span task, struct amp_audit_entry *out, struct amp_error *err)
{
    struct amp_landing l;

    /* The commit that begins a landing says only what was tried. */
    if (amp_fsm_event(&amp_landing_fsm, c->event) != AMP_LANDING_EV_MOVED)
        return 0;
    if (amp_landing_last(c->json, &r->mem, &l, err) < 0)
        return -1;
    amp_buf_reset(&r->text);
    amp_buf_reset(&r->signed_);
    if (amp_landing_text(&l, &r->signed_, err) < 0 ||
        amp_buf_fmt(&r->text, err, "%.*s moved from %.*s to %.*s", AMP_CLIP(l.branch, 256),
                    AMP_CLIP(l.from, 12), AMP_CLIP(l.to, 12)) < 0)
        return -1;
    *out = (struct amp_audit_entry){
        .at_ms = c->at_ms,
        .frame = c->n,
        .what = AMP_SPAN("landed"),
        .task = l.task,
        .person = l.person,
        .by = l.by,
        .key = l.key,
        .channel = AMP_SPAN("command"),
        .decision = AMP_SPAN("land"),
        .changed = amp_buf_span(&r->text),
        .code = amp_span_eq(l.task, task) ? AMP_SPAN("") : AMP_SPAN(BAD_RECORD),
        .text = amp_buf_span(&r->signed_),
        .space = AMP_LANDING_NAMESPACE,
        .alg = l.alg,
        .signature = l.signature,
        .signed_ms = l.at_ms,
    };
    return 1;
}

/* A task that a person ended without a question has the decision in its record. */
static int cancel_entry(struct audit_tasks *r, const struct amp_store_commit *c,
                        struct amp_span task, struct amp_audit_entry *out, struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    const struct amp_store_rec rec = {
        .found = true,
        .state = amp_span_str(amp_task_fsm.states[AMP_TASK_TERMINATED].name),
        .json = c->json};
    struct amp_view v;

    if (amp_fsm_event(&amp_task_fsm, c->event) != AMP_TASK_EV_TERMINATE ||
        !memmem(c->json.p, c->json.n, "\"cancelled\"", 11))
        return 0;
    amp_task_release(&r->task);
    if (amp_task_read(&r->task, &rec, task, err) < 0)
        return -1;
    if (!*r->task.cancelled)
        return 0;
    if (!r->reader && !(r->reader = amp_reader_new(NULL, err)))
        return -1;
    *out = (struct amp_audit_entry){
        .at_ms = c->at_ms,
        .frame = c->n,
        .what = AMP_SPAN("cancelled"),
        .task = task,
        .channel = AMP_SPAN("command"),
        .changed = AMP_SPAN("the task ended"),
        .line = amp_span_str(r->task.cancelled),
    };
    int rc = amp_reader_line(r->reader, out->line, &any, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    if (rc == 0 || v.kind != AMP_KIND_DECISION || v.body.decision.word != AMP_DO_TERMINATE ||
        !amp_span_eq(v.task, task)) {
        out->code = AMP_SPAN(BAD_RECORD);
        return 1;
    }
    out->protocol = amp_span_str(amp_protocol_name(v.protocol));
    out->person = v.body.decision.op;
    out->key = v.sig.key;
    out->decision = amp_span_str(amp_operator_word_name(v.body.decision.word));
    out->why = v.body.decision.note;
    return 1;
}

void audit_tasks_init(struct audit_tasks *r)
{
    *r = (struct audit_tasks){0};
    amp_buf_init(&r->mem, AMP_REC_MAX);
    amp_buf_init(&r->text, AUDIT_LINE_MAX);
    amp_buf_init(&r->signed_, AUDIT_LINE_MAX);
}

void audit_tasks_release(struct audit_tasks *r)
{
    amp_buf_release(&r->mem);
    amp_buf_release(&r->text);
    amp_buf_release(&r->signed_);
    amp_task_release(&r->task);
    amp_reader_free(r->reader);
}

int audit_task_commit(struct audit_tasks *r, const struct amp_store_commit *c,
                      struct amp_audit_entry *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf parts = {0};
    struct amp_key key;

    if (c->index > 0 || c->json.n == 0)
        return 0;
    amp_buf_init(&parts, AMP_KEY_MAX);
    if (amp_key_split(c->full.n ? c->full : c->key, &parts, &key, err) < 0)
        return -1;
    bool landing = strcmp(key.kind, AMP_LANDING_KIND) == 0;
    if ((!landing && strcmp(key.kind, AMP_TASK_KIND) != 0) ||
        !amp_span_copy(key.part[0], r->id, sizeof r->id))
        return 0;
    return (landing ? landing_entry : cancel_entry)(r, c, amp_span_str(r->id), out, err);
}
