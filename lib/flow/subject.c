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

static int kind_find(struct amp_span word)
{
    int i = AMP_SUBJECT_MESSAGE;
    while (i > AMP_SUBJECT_UNKNOWN && !amp_span_is(word, kinds[i]))
        i--;
    return i;
}

static const char *kind_name(int kind)
{
    return kinds[kind];
}

static const struct amp_rec_words kind_words = {kind_find, kind_name};
static const struct amp_rec_field fields[] = {
    AMP_REC_ENUM(struct amp_subject, "kind", kind, &kind_words),
    AMP_REC_EVER(CHARS, struct amp_subject, "protocol", protocol),
    AMP_REC_EVER(CHARS, struct amp_subject, "id", id),
    AMP_REC_EVER(CHARS, struct amp_subject, "task", task),
};
const struct amp_rec amp_subject_rec = {"what a question is about", fields,
                                        sizeof(fields) / sizeof(fields[0]),
                                        sizeof(struct amp_subject)};

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
