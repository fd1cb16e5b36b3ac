/* What questions are about, and whether that is over. */
#include "flow/subject.h"

#include <stdio.h>
#include <string.h>

#include "message/ledger/ledger.h"
#include "message/record/record.h"
#include "message/settle/outcome.h"
#include "protocol/amp/compose.h"
#include "task/task.h"

#define LINE_MAX_BYTES (256u << 20)
#define ATTEMPTS_MAX   32 /* later attempts that are followed */

static const char *const kinds[] = {[AMP_SUBJECT_UNKNOWN] = "unknown",
                                    [AMP_SUBJECT_TASK] = "task",
                                    [AMP_SUBJECT_MESSAGE] = "message"};

int amp_subject_find(struct amp_store *s, const struct amp_view *v, struct amp_subject *out,
                     struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    const struct amp_spans *affected = &v->body.escalation.affected;
    *out = (struct amp_subject){.kind = AMP_SUBJECT_UNKNOWN};
    if (v->protocol != AMP_PROTO_AMP || !amp_span_is(v->task, AMP_TASK_NONE)) {
        bool ours = v->protocol == AMP_PROTO_AMP;
        out->kind = ours ? AMP_SUBJECT_TASK : AMP_SUBJECT_UNKNOWN;
        snprintf(out->protocol, sizeof out->protocol, "%s", amp_protocol_name(v->protocol));
        amp_span_copy(v->task, out->task, sizeof out->task);
        return 0;
    }
    if (affected->n == 0)
        return 0;
    amp_buf_init(&mem, LINE_MAX_BYTES);
    if (amp_message_find(s, affected->v[0], &mem, &rec, err) < 0)
        return -1;
    if (!rec.found || !amp_span_copy(affected->v[0], out->id, sizeof out->id))
        return 0;
    out->kind = AMP_SUBJECT_MESSAGE;
    amp_span_copy(rec.protocol, out->protocol, sizeof out->protocol);
    amp_span_copy(rec.task, out->task, sizeof out->task);
    return 0;
}

json_t *amp_subject_json(const struct amp_subject *a)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "kind", kinds[a->kind], "protocol", a->protocol, "id",
                     a->id, "task", a->task);
}

static void member(const json_t *j, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(j, key));
    amp_span_copy(amp_span_str(text ? text : ""), out, size);
}

void amp_subject_read(const json_t *j, struct amp_subject *out)
{
    const char *kind = json_string_value(json_object_get(j, "kind"));
    *out = (struct amp_subject){.kind = AMP_SUBJECT_UNKNOWN};
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            out->kind = (enum amp_subject_kind)i;
    member(j, "protocol", out->protocol, sizeof out->protocol);
    member(j, "id", out->id, sizeof out->id);
    member(j, "task", out->task, sizeof out->task);
}

/* This message, or a later attempt at the same work, has an outcome. */
static int message_ended(struct amp_store *s, const char *first, bool *ended, struct amp_error *err)
{
    char id[AMP_SUBJECT_MAX];
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, LINE_MAX_BYTES);
    amp_span_copy(amp_span_str(first), id, sizeof id);
    for (int i = 0; i < ATTEMPTS_MAX && !*ended; i++) {
        if (amp_message_find(s, amp_span_str(id), &mem, &r, err) < 0)
            return -1;
        if (!r.found)
            return 0;
        *ended = r.state == AMP_DELIVERY_FULFILLED || amp_record_has_stage(&r, "FULFILLED") ||
                 (r.wants_outcome && amp_outcome_known(&r));
        if (r.next.n == 0 || !amp_span_copy(r.next, id, sizeof id))
            return 0;
    }
    return 0;
}

int amp_subject_ended(struct amp_store *s, const struct amp_subject *a, bool *ended,
                      struct amp_error *err)
{
    struct amp_task_status st;
    *ended = false;
    switch (a->kind) {
    case AMP_SUBJECT_TASK:
        if (amp_task_status(s, amp_span_str(a->task), &st, err) < 0)
            return -1;
        *ended = st.terminal;
        return 0;
    case AMP_SUBJECT_MESSAGE:
        return message_ended(s, a->id, ended, err);
    default:
        return 0;
    }
}
