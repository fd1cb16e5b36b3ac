/* Envelopes around payloads, with new ids and numbers. */
#include "work/agent/voice.h"

#include <stdio.h>
#include <stdlib.h>

#include <amp/base/clock.h>

#include "message/delivery/record/sequence.h"
#include "message/protocol/sw4rm/answer.h"

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
                    struct amp_buf *out, char id[AMP_UUID_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf body = {.max = 1 << 20};
    const struct amp_sw4rm_said said = {.from = v->name,
                                        .type = s->type,
                                        .id = id,
                                        .correlation = amp_span_str(s->correlation),
                                        .sequence = v->next < v->end ? v->next++ : 0,
                                        .now_ms = s->now_ms};
    amp_uuid4(id);
    int rc = payload ? amp_json_dump(payload, &body, err) : amp_fail_memory(err);
    json_decref(payload);
    if (rc < 0 || amp_sw4rm_line(s->to, &said, amp_buf_span(&body), out, err) < 0)
        return -1;
    out->len--; /* LF */
    return 0;
}

int amp_voice_rtp(struct amp_voice *v, const struct amp_rtp_say *s, json_t *payload,
                  struct amp_buf *out, char id[AMP_RTP_ID_MAX], struct amp_error *err)
{
    const struct amp_rtp_event e = {.kind = s->kind,
                                    .by = v->name,
                                    .node = v->node,
                                    .id = id,
                                    .to = s->to,
                                    .correlation = amp_span_str(s->corr),
                                    .policies = {amp_span_str(s->routing), amp_span_str(s->policy)},
                                    .sequence = v->event > 0 ? v->event++ : 0,
                                    .now_ms = s->now_ms};
    struct amp_jw w;
    amp_rtp_id(id);
    amp_rtp_open(&w, &e, out);
    amp_jw_json(&w, payload);
    json_decref(payload);
    if (amp_rtp_close(&w, &e, err) < 0)
        return -1;
    out->len--; /* LF */
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
