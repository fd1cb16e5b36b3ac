/* Envelopes around payloads, with new ids and numbers. */
#include "agent/voice.h"

#include <stdio.h>
#include <stdlib.h>

#include <amp/base/clock.h>

#include "message/record/sequence.h"

/* Appends a document, and releases it. */
static int document_dump(json_t *j, struct amp_buf *out, struct amp_error *err)
{
    int rc = j ? amp_json_dump(j, out, err) : amp_fail_memory(err);
    json_decref(j);
    return rc;
}

int amp_voice_numbers(struct amp_voice *v, struct amp_store *s, uint32_t n, int64_t now_ms,
                      struct amp_error *err)
{
    v->next = v->end = 0;
    if (n == 0)
        return 0;
    if (amp_sequence_rise(s, amp_span_str(v->name), n, now_ms, v->name, &v->next, err) < 0)
        return -1;
    v->end = v->next + n;
    return 0;
}

int amp_voice_sw4rm(struct amp_voice *v, const struct amp_sw4rm_say *s, json_t *payload,
                    struct amp_buf *out, char id_out[AMP_UUID_MAX], struct amp_error *err)
{
    char id[AMP_UUID_MAX], flow[AMP_UUID_MAX], time[AMP_TIME_MAX], hlc[192];
    AMP_BUF struct amp_buf body = {0};
    amp_buf_init(&body, 1 << 20);
    if (document_dump(json_incref(payload), &body, err) < 0) {
        json_decref(payload);
        return -1;
    }
    amp_uuid4(id);
    amp_uuid4(flow);
    amp_time_format(s->now_ms, time);
    int64_t now = amp_id_number(s->now_ms), n = v->next < v->end ? v->next++ : now;
    snprintf(hlc, sizeof hlc, "%lld.%06d.%.128s", (long long)now, 0, v->name);
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:I, s:i, s:s, s:s, s:I, s:s, s:s, s:o}", "message_id", id,
                  "producer_id", v->name, "correlation_id", s->correlation ? s->correlation : flow,
                  "sequence_number", (json_int_t)n, "retry_count", 0, "message_type", s->type,
                  "content_type", "application/json", "content_length", (json_int_t)body.len,
                  "hlc_timestamp", hlc, "timestamp", time, "payload", payload);
    if (!j)
        return amp_fail_memory(err);
    if (s->to.n > 0)
        j = json_pack("{s:s%, s:o}", "to", s->to.p, s->to.n, "msg", j);
    if (document_dump(j, out, err) < 0)
        return -1;
    if (id_out)
        snprintf(id_out, AMP_UUID_MAX, "%s", id);
    return 0;
}

int amp_voice_rtp(struct amp_voice *v, const struct amp_rtp_say *s, json_t *payload,
                  struct amp_buf *out, char id_out[AMP_UUID_MAX], struct amp_error *err)
{
    char uuid[AMP_UUID_MAX], time[AMP_TIME_MAX], id[48];
    amp_uuid4(uuid);
    snprintf(id, sizeof id, "evt_%s", uuid);
    amp_time_format(s->now_ms, time);
    int64_t seq = v->event > 0 ? v->event++ : amp_id_number(s->now_ms);
    json_t *j =
        json_pack("{s:s, s:I, s:s, s:s, s:s, s:s%, s:s, s:s, s:o, s:{s:i, s:s*, s:s*}}", "eventId",
                  id, "seq", (json_int_t)seq, "kind", s->kind, "sourceNodeId", v->node,
                  "sourceAgentId", v->name, "toAgentId", s->to.p, s->to.n, "corrId", s->corr,
                  "createdAt", time, "payload", payload, "trace", "attempt", 1,
                  "routingPolicyVersion", s->routing, "capabilityPolicyVersion", s->policy);
    if (document_dump(j, out, err) < 0)
        return -1;
    if (id_out)
        snprintf(id_out, AMP_UUID_MAX, "%s", uuid);
    return 0;
}

int amp_voice_lines_init(struct amp_voice_lines *l, size_t most, struct amp_error *err)
{
    *l = (struct amp_voice_lines){.emits = calloc(most, sizeof *l->emits),
                                  .ids = calloc(most, sizeof *l->ids)};
    amp_buf_init(&l->text, (size_t)64 << 20);
    return l->emits && l->ids ? 0 : amp_fail_memory(err);
}

void amp_voice_lines_release(struct amp_voice_lines *l)
{
    amp_buf_release(&l->text);
    free(l->emits);
    free(l->ids);
}

void amp_voice_lines_reset(struct amp_voice_lines *l)
{
    amp_buf_reset(&l->text);
    l->n = 0;
}

const char *amp_voice_lines_add(struct amp_voice_lines *l, size_t from, const char *id)
{
    char *copy = l->ids[l->n];
    snprintf(copy, sizeof l->ids[0], "%s", id);
    l->emits[l->n++] =
        (struct amp_store_emit){.id = amp_span_str(copy), .line = {NULL, l->text.len - from}};
    return copy;
}

void amp_voice_lines_commit(struct amp_voice_lines *l, struct amp_store_change *c)
{
    /* The buffer moves while lines are added, so their addresses are set here. */
    const char *line = l->text.data;
    for (uint32_t i = 0; i < l->n; i++) {
        l->emits[i].line.p = line;
        line += l->emits[i].line.n;
    }
    c->emits = l->emits;
    c->n_emits = l->n;
}
