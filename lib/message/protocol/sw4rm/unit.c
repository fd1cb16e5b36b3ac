/* SW4RM: chunks and batches (§5.4). */
#include "message/protocol/compose/unit.h"

#include <stdio.h>
#include <string.h>

#include "message/protocol/sw4rm/answer.h"
#include "message/protocol/sw4rm/sw4rm.h"
#include "json/text.h"

_Static_assert(sizeof AMP_UNIT_CHUNK_TYPE == sizeof AMP_SW4RM_CHUNK_TYPE &&
                   sizeof AMP_UNIT_BATCH_TYPE == sizeof AMP_SW4RM_CHUNK_TYPE,
               "the kind of a unit is recognized by this length");

void amp_unit_transfer_begin(struct amp_unit_transfer *t)
{
    amp_uuid4(t->id);
    amp_sha256_hex(t->line, t->digest);
    t->count = (uint32_t)((t->line.n + t->chunk_size - 1) / t->chunk_size);
}

static int envelope_write(const char *type, const char *unit, const char *by, struct amp_span flow,
                          struct amp_span payload, int64_t now_ms, char id[AMP_UUID_MAX],
                          struct amp_buf *out, struct amp_error *err)
{
    char token[160];
    amp_uuid4(id);
    snprintf(token, sizeof token, "%.64s:%s", by, unit);
    const struct amp_sw4rm_said said = {.from = by,
                                        .type = "DATA",
                                        .token = token,
                                        .id = id,
                                        .content = type,
                                        .correlation = flow,
                                        .now_ms = now_ms};
    if (amp_sw4rm_line(AMP_SPAN(""), &said, payload, out, err) < 0)
        return -1;
    out->len--; /* LF */
    return 0;
}

static void message_members(struct amp_jw *w, const struct amp_unit_transfer *t)
{
    amp_jw_member_str(w, "message_id", t->ref);
    amp_jw_member_str(w, "producer_id", t->from);
    amp_jw_member_text(w, "protocol", amp_protocol_name(t->protocol));
    amp_jw_some_str(w, "correlation_id", t->correlation);
    amp_jw_some_str(w, "task_id", t->task);
}

int amp_unit_chunk(const struct amp_unit_transfer *t, uint32_t index, const char *by,
                   int64_t now_ms, char id[AMP_UUID_MAX], struct amp_buf *out,
                   struct amp_error *err)
{
    char sum[AMP_SHA256_MAX], unit[80];
    size_t at = (size_t)index * t->chunk_size, left = t->line.n - at;
    struct amp_span bytes = {t->line.p + at, left < t->chunk_size ? left : t->chunk_size};
    AMP_BUF struct amp_buf payload = {0}, data = {0};
    struct amp_jw w;
    amp_buf_init(&payload, bytes.n * 2 + 8192);
    amp_buf_init(&data, bytes.n * 2 + 8);
    amp_sha256_hex(bytes, sum);
    if (amp_base64_add(&data, bytes, err) < 0)
        return -1;
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "transfer", t->id);
    amp_jw_member_uint(&w, "index", index);
    amp_jw_member_uint(&w, "count", t->count);
    amp_jw_member_uint(&w, "size", bytes.n);
    amp_jw_member_uint(&w, "chunk_size", t->chunk_size);
    amp_jw_member_uint(&w, "total_size", t->line.n);
    amp_jw_member_text(&w, "sha256", sum);
    amp_jw_member_text(&w, "total_sha256", t->digest);
    message_members(&w, t);
    amp_jw_member_str(&w, "data", amp_buf_span(&data));
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    snprintf(unit, sizeof unit, "chunk:%.36s-%u", t->id, index);
    return envelope_write(AMP_UNIT_CHUNK_TYPE, unit, by, amp_span_str(t->id),
                          amp_buf_span(&payload), now_ms, id, out, err);
}

int amp_unit_batch_digest(const struct amp_span *lines, uint32_t n, char out[AMP_SHA256_MAX],
                          struct amp_error *err)
{
    size_t bytes = 0;
    AMP_BUF struct amp_buf all = {0};
    for (uint32_t i = 0; i < n; i++)
        bytes += lines[i].n + 1;
    amp_buf_init(&all, bytes + 1);
    for (uint32_t i = 0; i < n; i++)
        if (amp_buf_add(&all, lines[i].p, lines[i].n, err) < 0 ||
            amp_buf_add(&all, "\n", 1, err) < 0)
            return -1;
    amp_sha256_hex(amp_buf_span(&all), out);
    return 0;
}

int amp_unit_batch(const struct amp_span *lines, uint32_t n, const char *by, int64_t now_ms,
                   char id[AMP_UUID_MAX], struct amp_buf *out, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX], batch[AMP_UUID_MAX], unit[80];
    size_t bytes = 0;
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    for (uint32_t i = 0; i < n; i++)
        bytes += lines[i].n;
    if (amp_unit_batch_digest(lines, n, sum, err) < 0)
        return -1;
    amp_uuid4(batch);
    amp_buf_init(&payload, bytes * 6 + (size_t)n * 4 + 1024);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "batch", batch);
    amp_jw_member_uint(&w, "count", n);
    amp_jw_member_uint(&w, "size", bytes);
    amp_jw_member_text(&w, "sha256", sum);
    amp_jw_member_open(&w, "messages", '[');
    for (uint32_t i = 0; i < n; i++)
        amp_jw_str(&w, lines[i]);
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    snprintf(unit, sizeof unit, "batch:%.36s", batch);
    return envelope_write(AMP_UNIT_BATCH_TYPE, unit, by, amp_span_str(batch),
                          amp_buf_span(&payload), now_ms, id, out, err);
}
