/* A question of an agent to a person: recording it, looking at it, ending it. */
#include "people/answer/ask/ask.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/sender/identity.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/sw4rm/answer.h"
#include "people/answer/offer.h"
#include "json/record.h"

int amp_asking_open(struct amp_asking *a, struct amp_store *s, const char *actor,
                    volatile const int *stop,
                    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))),
                    struct amp_error *err)
{
    const struct amp_worker_options opt = {
        .tool = actor, .consumer = actor, .stop = stop, .note = note};

    *a = (struct amp_asking){.store = s};
    amp_uuid4(a->id);
    amp_uuid4(a->invocation);
    amp_buf_init(&a->line, AMP_ASK_LINE_MAX + 4096);
    return amp_decider_open_bare(&a->d, s, &opt, err);
}

void amp_asking_close(struct amp_asking *a)
{
    amp_decider_close(&a->d);
    amp_buf_release(&a->line);
}

/* ---- recording ---- */

static int payload_put(const struct amp_asking *a, const struct amp_ask *q, struct amp_buf *out,
                       struct amp_error *err)
{
    struct amp_jw w;

    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "invocation_id", a->invocation);
    amp_jw_member_text(&w, "reason_type", q->reason);
    amp_jw_member_text(&w, "correlation_id", a->invocation);
    if (q->task && *q->task) {
        amp_jw_member_open(&w, "subject", '{');
        amp_jw_member_text(&w, "task_id", q->task);
        amp_jw_close(&w, '}');
    }
    amp_jw_member_raw(&w, "context", q->context);
    if (q->proposed && *q->proposed) {
        amp_jw_member_open(&w, "proposed_actions", '[');
        for (const char *const *p = q->proposed; *p; p++)
            amp_jw_str(&w, amp_span_str(*p));
        amp_jw_close(&w, ']');
    }
    amp_rec_time(&w, "deadline_ts", q->until_ms);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int line_put(const struct amp_asking *a, const struct amp_ask *q, struct amp_buf *out,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0}, line = {0};

    amp_buf_init(&payload, AMP_ASK_LINE_MAX);
    amp_buf_init(&line, AMP_ASK_LINE_MAX);
    if (payload_put(a, q, &payload, err) < 0)
        return -1;
    const struct amp_sw4rm_said said = {.from = q->from,
                                        .type = "HITL_INVOCATION",
                                        .token = a->invocation,
                                        .id = a->id,
                                        .correlation = amp_span_str(a->invocation),
                                        .now_ms = amp_now_ms()};
    if (amp_sw4rm_line(AMP_SPAN(""), &said, amp_buf_span(&payload), &line, err) < 0)
        return -1;
    line.len--; /* LF */
    return amp_identities_sign(q->ids, amp_buf_span(&line), out, err);
}

static void finding_keep(void *ctx, const struct amp_finding *f)
{
    struct amp_error *err = ctx;

    if (!err->code[0])
        amp_fail_text(err, AMP_INTERNAL, f->code, "the composed question: %s: %s", f->field,
                      f->message);
}

/* The view of the line, which a fault of ours fails. */
static int line_read(struct amp_asking *a, struct amp_reader *reader, struct amp_view *v,
                     struct amp_error *err)
{
    const struct amp_check_options opt = {.now_ms = 0};
    struct amp_error why = {0};
    int rc = amp_reader_line(reader, amp_buf_span(&a->line), &opt, v, finding_keep, &why, err);

    if (rc == 0)
        *err = why;
    return rc > 0 ? 0 : -1;
}

int amp_asking_make(struct amp_asking *a, const struct amp_ask *q, struct amp_error *err)
{
    struct amp_reader *reader;
    struct amp_view v;

    amp_buf_reset(&a->line);
    if (line_put(a, q, &a->line, err) < 0 || !(reader = amp_reader_new(NULL, err)))
        return -1;
    int rc = line_read(a, reader, &v, err);
    if (rc == 0)
        amp_question_key(v.protocol, v.id, a->key);
    amp_reader_free(reader);
    return rc;
}

/* Another process may have recorded the message, with another time. */
static int message_record(struct amp_asking *a, struct amp_reader *reader, struct amp_view *v,
                          int64_t now, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_message_rec m;

    if (amp_message_record(a->store, v, now, NULL, err) == 0)
        return 0;
    if (!amp_code_is(err->code, duplicate_msg_id))
        return -1;
    amp_buf_init(&mem, AMP_REC_MAX);
    amp_buf_reset(&a->line);
    return amp_message_find(a->store, amp_span_str(a->id), &mem, &m, err) < 0 ||
                   amp_buf_add(&a->line, m.line.p, m.line.n, err) < 0
               ? -1
               : line_read(a, reader, v, err);
}

int amp_asking_commit(struct amp_asking *a, struct amp_error *err)
{
    struct amp_reader *reader = amp_reader_new(NULL, err);
    int64_t now = amp_now_ms();
    struct amp_view v;
    uint32_t effects;

    if (!reader)
        return -1;
    int rc = line_read(a, reader, &v, err) < 0 || message_record(a, reader, &v, now, err) < 0 ||
                     amp_question_arrive(&a->d.hitl, &v, now, &effects, err) < 0 ||
                     amp_settle_known(a->store, v.id, AMP_STAGE_READ, AMP_HITL_ROLE, AMP_SPAN(""),
                                      now, err) < 0 ||
                     amp_store_sync(a->store, err) < 0
                 ? -1
                 : 0;
    amp_reader_free(reader);
    return rc;
}

int amp_asking_record(struct amp_asking *a, const struct amp_ask *q, struct amp_error *err)
{
    return amp_asking_make(a, q, err) < 0 ? -1 : amp_asking_commit(a, err);
}

/* ---- looking ---- */

enum amp_asking_is amp_asking_look(const struct amp_asking *a, struct amp_buf *mem,
                                   struct amp_question_rec *r, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(a->store, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(a->key)), &rec, err) < 0)
        return AMP_ASKING_FAILED;
    if (!rec.found) {
        amp_fail(err, AMP_INTERNAL, unknown_question, "the question has no record");
        return AMP_ASKING_FAILED;
    }
    int at = amp_fsm_state(&amp_escalation_fsm, rec.state);
    if (at != AMP_ESC_DECIDED && at != AMP_ESC_ENDED)
        return AMP_ASKING_OPEN;
    if (amp_question_rec_read(rec.json, mem, r, err) < 0)
        return AMP_ASKING_FAILED;
    return at == AMP_ESC_ENDED ? AMP_ASKING_ENDED : AMP_ASKING_DECIDED;
}

/* ---- ending ---- */

void amp_asking_name(struct amp_asking *a, struct amp_span key)
{
    amp_span_copy(key, a->key, sizeof a->key);
    const char *id = strrchr(a->key, '/');
    snprintf(a->id, sizeof a->id, "%.36s", id ? id + 1 : a->key);
}

static int end_commit(struct amp_asking *a, const struct amp_question *q, const char *code,
                      const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    struct amp_asked of;
    struct amp_error failed;
    char emit[AMP_QUESTION_KEY_MAX + 8];

    amp_buf_init(&nack, AMP_QUESTION_BYTES);
    if (amp_question_asked(&a->d.hitl, q, amp_question_answerer(&a->d.hitl, q->protocol), &of,
                           err) < 0 ||
        amp_question_terms(q)->refuse(&of, AMP_STAGE_REJECTED, code, why, false, &nack, err) < 0)
        return -1;
    snprintf(emit, sizeof emit, "ended/%s", q->key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_END,
        .set = {.ended_ms = amp_now_ms(), .withdrawn = amp_span_str(why)},
        .emit = {amp_span_str(emit), {nack.data, nack.len ? nack.len - 1 : 0}, false},
    };
    if (amp_question_step(&a->d.hitl, q->key, &u, &failed) < 0)
        return amp_fail_unless_no(err, &failed) < 0 ? -1 : 1;
    return amp_settle_known(a->store, amp_span_str(a->id), AMP_STAGE_REJECTED, AMP_HITL_ROLE,
                            amp_span_str(code), amp_now_ms(), err);
}

int amp_asking_end(struct amp_asking *a, const char *code, const char *why, struct amp_error *err)
{
    struct amp_question q;
    struct amp_error failed;

    if (amp_offer_find(&a->d, a->key, &q, &failed) < 0)
        return amp_fail_unless_no(err, &failed) < 0 ? -1 : 1;
    int rc = end_commit(a, &q, code, why, err);
    amp_question_release(&q);
    return rc < 0 || amp_store_sync(a->store, err) < 0 ? -1 : rc;
}
