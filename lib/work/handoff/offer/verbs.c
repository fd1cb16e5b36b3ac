/* Requests and answers that a verb composes; they go the way of messages. */
#include "work/handoff/offer/handoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/answers.h"
#include "json/record.h"

/* Views a composed line as its receiver would, and takes it. 1: it changed nothing. */
static int line_take(struct amp_handoffs *h, struct amp_reader *reader, struct amp_buf *line,
                     enum amp_protocol protocol, struct amp_error *err)
{
    const struct amp_check_options opt = {.only = protocol, .now_ms = h->now_ms};
    struct amp_error why = {0};
    struct amp_view v;

    if (line->len > 0 && line->data[line->len - 1] == '\n')
        line->len--;
    int rc = amp_reader_line(reader, amp_buf_span(line), &opt, &v, NULL, NULL, err);
    if (rc <= 0)
        return rc < 0 ? -1 : amp_fail(err, AMP_NO, bad_value, "the message would not be valid");
    switch (amp_handoffs_take(h, &v, &why, err)) {
    case AMP_HANDOFF_TAKEN:
        return 0;
    case AMP_HANDOFF_REFUSED:
        *err = why;
        return -1;
    case AMP_HANDOFF_PASSES:
        return 1;
    case AMP_HANDOFF_FAILED:
        break;
    }
    return -1;
}

/* The first protocol that can offer work. */
static enum amp_protocol protocol_choose(void)
{
    for (int p = 0; p < AMP_PROTO_COUNT; p++) {
        const struct amp_handoff_terms *t = amp_answers_of((enum amp_protocol)p)->handoffs;
        if (t && t->offer)
            return (enum amp_protocol)p;
    }
    return AMP_PROTO_NONE;
}

int amp_handoffs_request(struct amp_handoffs *h, const struct amp_handoff_request *r,
                         char id[AMP_HANDOFF_ID_MAX + 1], struct amp_error *err)
{
    const enum amp_protocol protocol = protocol_choose();
    AMP_BUF struct amp_buf line = {.max = AMP_HANDOFF_LINE_MAX};
    AMP_BUF struct amp_buf value = {.max = AMP_HANDOFF_LINE_MAX};
    char uuid[AMP_UUID_MAX];

    amp_uuid4(uuid);
    snprintf(id, AMP_HANDOFF_ID_MAX + 1, "%s", r->id ? r->id : uuid);
    AMP_FREE struct amp_span *wanted = calloc(r->n_wanted + 1, sizeof *wanted);
    if (!wanted)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < r->n_wanted; i++)
        wanted[i] = amp_span_str(r->wanted[i]);
    struct amp_handoff_says says = {.by = amp_span_str(r->from),
                                    .to = amp_span_str(r->to ? r->to : ""),
                                    .id = amp_span_str(id),
                                    .from = amp_span_str(r->from),
                                    .reason = amp_span_str(r->reason),
                                    .task = amp_span_str(r->task ? r->task : ""),
                                    .wanted = wanted,
                                    .n_wanted = r->n_wanted,
                                    .priority = r->priority,
                                    .timeout_ms =
                                        r->timeout_ms > 0 ? r->timeout_ms : AMP_HANDOFF_TIMEOUT_MS,
                                    .now_ms = h->now_ms};
    if (r->context.p) {
        if (amp_handoff_context_value(r->context, amp_span_str(r->content_type), false, &value,
                                      err) < 0)
            return -1;
        says.context = amp_buf_span(&value);
    }
    if (amp_sequence_rise(h->store, says.by, 1, h->now_ms, h->box, &says.sequence, err) < 0 ||
        amp_answers_of(protocol)->handoffs->offer(&says, &line, err) < 0)
        return -1;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    /* The origin itself makes the first offer. */
    struct amp_handoffs own = *h;
    own.service = r->from;
    int rc = line_take(&own, reader, &line, protocol, err);
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0; /* it may have been made before */
}

/* Composes the answer to the request that the record keeps. */
static int answer_compose(struct amp_handoffs *h, struct amp_reader *reader,
                          const struct amp_handoff *r, struct amp_reply_said *said,
                          struct amp_buf *line, struct amp_error *err)
{
    const enum amp_protocol protocol = amp_protocol_find(r->protocol);
    const struct amp_check_options opt = {.only = protocol, .now_ms = h->now_ms};
    const struct amp_answer_terms *terms = amp_answers_of(protocol);
    struct amp_answer a = {.by = said->by, .node = said->by, .now_ms = h->now_ms};
    struct amp_view of;

    int rc = amp_reader_line(reader, r->line, &opt, &of, NULL, NULL, err);
    if (rc <= 0)
        return rc < 0 ? -1
                      : amp_fail(err, AMP_DATAERR, bad_record, "the request of %.*s is not valid",
                                 AMP_CLIP(r->id, 100));
    /* A completion of the origin is a report to the owner, which the step composes. */
    if (said->act == AMP_REPLY_COMPLETE && amp_span_is(r->from, said->by)) {
        struct amp_handoffs own = {
            .store = h->store, .box = h->box, .service = said->by, .now_ms = h->now_ms};
        rc = amp_handoff_report_line(&own, r, "COMPLETED", (struct amp_span){0}, r->to, line, err);
        if (rc <= 0)
            return rc;
    }
    if (amp_sequence_answer(h->store, &of, h->box, &a, err) < 0)
        return -1;
    said->sequence = a.sequence;
    return terms->replies->compose(&of, said, line, err);
}

/* Refuses what amp_handoff_step would refuse before a line is composed, because the line may need
 * values that the answer then lacks. */
static int answer_check(const struct amp_handoff *r, const struct amp_reply_said *said,
                        struct amp_error *err)
{
    bool completes = said->act == AMP_REPLY_COMPLETE;
    uint8_t wanted = completes ? AMP_HANDOFF_ACCEPTED : AMP_HANDOFF_PENDING;

    if (r->state == wanted)
        return 0;
    return amp_fail_text(err, AMP_NO, completes ? AMP_CODE(not_accepted) : AMP_CODE(not_pending),
                         "the handoff %.*s is %s, not in %s", AMP_CLIP(r->id, 100),
                         amp_handoff_fsm.states[r->state].name,
                         amp_handoff_fsm.states[wanted].name);
}

int amp_handoffs_answer(struct amp_handoffs *h, struct amp_span id,
                        const struct amp_reply_said *given, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    AMP_BUF struct amp_buf line = {.max = AMP_HANDOFF_LINE_MAX};
    struct amp_reply_said said = *given;
    struct amp_handoff r;

    int found = amp_handoff_find(h->store, id, &mem, &r, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, unknown_ref, "there is no handoff %.*s",
                                    AMP_CLIP(id, 200));
    if (answer_check(&r, &said, err) < 0)
        return -1;
    said.now_ms = h->now_ms;
    said.taken = said.act == AMP_REPLY_COMPLETE;
    struct amp_reader *of = amp_reader_new(NULL, err), *own = of ? amp_reader_new(NULL, err) : NULL;
    int rc = own ? answer_compose(h, of, &r, &said, &line, err) : -1;
    if (rc == 0)
        rc = line_take(h, own, &line, amp_protocol_find(r.protocol), err);
    amp_reader_free(of);
    amp_reader_free(own);
    return rc > 0 ? amp_fail(err, AMP_NO, changed, "another process changed the handoff") : rc;
}

/* ---- names ---- */

struct naming {
    struct amp_span prefix;
    char *id;
    bool exact;
    uint32_t n;
};

static int id_look(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_handoff *r = rec;
    struct naming *n = ctx;
    (void)err;
    bool exact = amp_span_eq(r->id, n->prefix);
    if (r->id.n < n->prefix.n || memcmp(r->id.p, n->prefix.p, n->prefix.n) != 0)
        return 0;
    amp_span_copy(r->id, n->id, AMP_HANDOFF_ID_MAX + 1);
    n->n = exact ? 1 : n->n + 1;
    return exact;
}

int amp_handoffs_find(struct amp_store *s, const char *prefix, char id[AMP_HANDOFF_ID_MAX + 1],
                      struct amp_error *err)
{
    struct naming n = {.prefix = amp_span_str(prefix), .id = id};

    if (amp_subject_each(&amp_handoff_subject, s, NULL, id_look, &n, err) < 0)
        return -1;
    if (n.n == 0 || n.prefix.n == 0)
        return amp_fail(err, AMP_NO, unknown_ref, "there is no handoff %s", prefix);
    return n.n == 1 ? 0 : amp_fail(err, AMP_NO, ambiguous, "%s fits %u handoffs", prefix, n.n);
}
