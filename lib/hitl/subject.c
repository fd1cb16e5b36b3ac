/* What questions are about, and whether the work of a message is over. */
#include "hitl/subject.h"

#include <stdio.h>
#include <string.h>

#include "message/ledger/ledger.h"
#include "message/record/record.h"
#include "message/settle/outcome.h"
#include "protocol/terms.h"

#define LINE_MAX_BYTES (256u << 20)
#define ATTEMPTS_MAX   32 /* later attempts that are followed */

static const char *const kinds[] = {[AMP_SUBJECT_UNKNOWN] = "unknown",
                                    [AMP_SUBJECT_TASK] = "task",
                                    [AMP_SUBJECT_MESSAGE] = "message"};

int amp_subject_find(struct amp_store *s, const struct amp_view *v, struct amp_subject *out,
                     struct amp_error *err)
{
    const struct amp_question_terms *q = amp_terms_of(v->protocol)->questions;
    const struct amp_spans *affected = &v->body.escalation.affected;
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    *out = (struct amp_subject){.kind = q ? q->about(v) : AMP_SUBJECT_UNKNOWN};
    if (out->kind != AMP_SUBJECT_MESSAGE) {
        snprintf(out->protocol, sizeof out->protocol, "%s", amp_protocol_name(v->protocol));
        amp_span_copy(v->task, out->task, sizeof out->task);
        return 0;
    }
    out->kind = AMP_SUBJECT_UNKNOWN;
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

int amp_subject_message_ended(struct amp_store *s, const char *first, bool *ended,
                              struct amp_error *err)
{
    char id[AMP_SUBJECT_MAX];
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, LINE_MAX_BYTES);
    *ended = false;
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
