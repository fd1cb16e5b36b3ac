/*
 * SW4RM: the refusal of a line, an ACKNOWLEDGEMENT with stage REJECTED (§13, §21) that repeats the
 * correlation id. The same line always gets the same idempotency token, so that receivers recognise
 * repeated refusals. answer.c is separate because its tokens need a digest that the checker does
 * not link.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/codes/classes.h"
#include "message/protocol/codes/meanings.h"
#include "message/protocol/compose/refuse.h"
#include "message/protocol/sw4rm/answer.h"
#include "message/protocol/sw4rm/sw4rm.h"
#include "json/record.h"

/* The recommended size of the message, without its other members. */
enum { NOTE_MOST = 2048, ID_MOST = 512, PAYLOAD_MOST = 16 * 1024, CODE_MOST = 48 };

void amp_sw4rm_capitals(struct amp_span code, char *out, size_t size)
{
    amp_span_copy(code, out, size);
    for (; *out; out++)
        if (*out >= 'a' && *out <= 'z')
            *out = (char)(*out - 'a' + 'A');
}

static void envelope_write(struct amp_jw *w, const struct amp_sw4rm_said *said,
                           struct amp_span payload)
{
    char id[AMP_UUID_MAX], flow[AMP_UUID_MAX], hlc[128];
    uint16_t part;
    if (!said->id)
        amp_uuid4(id);
    amp_uuid4(flow);
    amp_random(&part, sizeof part);
    snprintf(hlc, sizeof hlc, "%lld.%06u.%.64s", (long long)said->now_ms * 1000, (unsigned)part,
             said->from);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "message_id", said->id ? said->id : id);
    amp_jw_member_text(w, "producer_id", said->from);
    amp_jw_member_str(w, "correlation_id",
                      said->correlation.n > 0 ? said->correlation : amp_span_str(flow));
    amp_jw_member_int(w, "sequence_number",
                      said->sequence > 0 ? said->sequence : amp_id_number(said->now_ms));
    amp_jw_member_int(w, "retry_count", 0);
    amp_jw_member_text(w, "message_type", said->type);
    amp_jw_member_text(w, "content_type", said->content ? said->content : "application/json");
    amp_jw_member_uint(w, "content_length", payload.n);
    amp_jw_some_str(w, "idempotency_token", amp_span_str(said->token));
    /* Required if hybrid logical clocks are on, which is not known here. */
    amp_jw_member_text(w, "hlc_timestamp", hlc);
    amp_rec_time(w, "timestamp", said->now_ms);
    amp_jw_member_raw(w, "payload", payload);
    amp_jw_close(w, '}');
}

int amp_sw4rm_line(struct amp_span to, const struct amp_sw4rm_said *said, struct amp_span payload,
                   struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    if (amp_buf_reserve(out, payload.n + 1024, err) < 0)
        return -1;
    amp_jw_init(&w, out);
    if (to.n > 0) {
        amp_jw_open(&w, '{');
        amp_jw_member_str(&w, "to", to);
        amp_jw_key(&w, "msg");
    }
    envelope_write(&w, said, payload);
    if (to.n > 0)
        amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

const char *amp_sw4rm_code(const char *code)
{
    static const char *const codes[AMP_CODE_CLASSES] = {
        [AMP_CODE_FOREIGN] = AMP_CODE(internal_error),
        [AMP_CODE_INTERNAL] = AMP_CODE(internal_error),
        [AMP_CODE_WORK] = AMP_CODE(internal_error),
        [AMP_CODE_CRASH] = AMP_CODE(internal_error),
        [AMP_CODE_ANSWER] = AMP_CODE(internal_error),
        [AMP_CODE_DEPENDENCY] = AMP_CODE(internal_error),
        [AMP_CODE_VALIDATION] = AMP_CODE(validation_error),
        [AMP_CODE_PERMISSION] = AMP_CODE(permission_denied),
        [AMP_CODE_SIZE] = AMP_CODE(oversize_payload),
        [AMP_CODE_ROUTE] = AMP_CODE(no_route),
        [AMP_CODE_UNAVAILABLE] = AMP_CODE(agent_unavailable),
        [AMP_CODE_LIMIT] = AMP_CODE(agent_unavailable),
        [AMP_CODE_FULL] = AMP_CODE(buffer_full),
        [AMP_CODE_EXPIRED] = AMP_CODE(ttl_expired),
        [AMP_CODE_TIMEOUT] = AMP_CODE(tool_timeout),
        [AMP_CODE_DUPLICATE] = AMP_CODE(duplicate_detected),
        [AMP_CODE_PROGRESS] = AMP_CODE(already_in_progress),
        [AMP_CODE_CANCELLED] = AMP_CODE(cancelled),
        [AMP_CODE_PREEMPTED] = AMP_CODE(forced_preemption),
        [AMP_CODE_BUDGET] = AMP_CODE(permission_denied),
        [AMP_CODE_DEPTH] = AMP_CODE(validation_error),
    };
    for (const struct amp_meaning *m = amp_meanings_sw4rm; m->code; m++)
        if (strcasecmp(m->code, code) == 0)
            return m->code;
    return codes[amp_code_class(code)];
}

const char *amp_sw4rm_failure(struct amp_span code, struct amp_span summary)
{
    char name[CODE_MOST];

    (void)summary;
    return amp_sw4rm_code(amp_span_copy(code, name, sizeof name) ? name : "");
}

static void code_of(const struct amp_finding *f, char out[CODE_MOST])
{
    amp_sw4rm_capitals(amp_span_str(amp_sw4rm_code(f->code)), out, CODE_MOST);
}

static int payload_write(const struct amp_view *v, const struct amp_finding *first,
                         struct amp_buf *out, struct amp_error *err)
{
    char code[CODE_MOST];
    AMP_BUF struct amp_buf note = {0};
    struct amp_jw w;
    amp_buf_init(&note, NOTE_MOST);
    code_of(first, code);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "ack_for_message_id",
                      v->id.n > 0 && v->id.n <= ID_MOST ? v->id : AMP_SPAN("unknown"));
    amp_jw_member_str(&w, "ack_stage", amp_span_str(amp_ack_stage_name(AMP_STAGE_REJECTED)));
    amp_jw_member_str(&w, "error_code", amp_span_str(code));
    amp_jw_member_str(&w, "note", amp_refuse_sentence(first, ": ", &note));
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* FNV-1a: the token only has to be the same for the same line. */
static uint64_t hash_of(struct amp_span s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
    return h;
}

enum amp_refuse_result amp_sw4rm_refuse(const struct amp_view *v, const struct amp_finding *first,
                                        int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    /* A refusal is not refused: two gates would answer each other forever. */
    if (amp_span_is(v->type, "ACKNOWLEDGEMENT"))
        return AMP_REFUSE_NONE;
    char key[64], who[AMP_REFUSER_MAX];
    AMP_BUF struct amp_buf body = {0};
    amp_buf_init(&body, PAYLOAD_MOST);
    if (payload_write(v, first, &body, err) < 0)
        return AMP_REFUSE_FAILED;
    /* {producer_id}:{operation_type}:{deterministic_hash} */
    snprintf(key, sizeof key, AMP_REFUSER ":refuse:%016llx",
             (unsigned long long)hash_of(v->message));
    struct amp_sw4rm_said said = {.from = who,
                                  .type = "ACKNOWLEDGEMENT",
                                  .token = key,
                                  .sequence = amp_refuse_number(now_ms, who),
                                  .now_ms = now_ms};
    if (v->correlation.n <= ID_MOST)
        said.correlation = v->correlation;
    return amp_sw4rm_line(AMP_SPAN(""), &said, amp_buf_span(&body), out, err) < 0
               ? AMP_REFUSE_FAILED
               : AMP_REFUSE_WRITTEN;
}
