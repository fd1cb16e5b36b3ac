/* Traces for OpenTelemetry: OTLP/JSON, as its collectors and file receivers read it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "message/history/draw/private.h"

enum { TRACE = 32, SPAN = 16, KIND_INTERNAL = 1, KIND_PRODUCER = 4, STATUS_OK = 1, STATUS_ERROR };

/* `digits` hex digits of the digest of a kind and a name. */
static int id_make(const char *kind, struct amp_span name, int digits, char out[TRACE + 1],
                   struct amp_error *err)
{
    char hex[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 4096);
    if (amp_buf_fmt(&text, err, "%s\n", kind) < 0 || amp_buf_add(&text, name.p, name.n, err) < 0)
        return -1;
    amp_sha256_hex(amp_buf_span(&text), hex);
    snprintf(out, TRACE + 1, "%.*s", digits, hex);
    return 0;
}

static struct amp_span trace_of(const struct draw_delivery *m)
{
    return m->task.n ? m->task : m->correlation.n ? m->correlation : m->id;
}

static void nanos_put(struct amp_jw *w, const char *key, int64_t ms)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64 "000000", ms);
    amp_jw_member_text(w, key, text);
}

static void attribute_put(struct amp_jw *w, const char *key, struct amp_span value)
{
    if (!value.n)
        return;
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "key", key);
    amp_jw_member_open(w, "value", '{');
    amp_jw_member_str(w, "stringValue", value);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
}

static void head_put(struct amp_jw *w, const char *trace, const char *span, const char *parent,
                     struct amp_span name, int kind, int64_t from, int64_t to)
{
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "traceId", trace);
    amp_jw_member_text(w, "spanId", span);
    if (*parent)
        amp_jw_member_text(w, "parentSpanId", parent);
    amp_jw_member_str(w, "name", name.n ? name : AMP_SPAN("message"));
    amp_jw_member_int(w, "kind", kind);
    nanos_put(w, "startTimeUnixNano", from);
    nanos_put(w, "endTimeUnixNano", to < from ? from : to);
}

/* The transitions of a record, as events. */
static void events_put(struct amp_jw *w, const struct amp_drawing *d, const char *kind,
                       struct amp_span id)
{
    amp_jw_member_open(w, "events", '[');
    for (size_t i = 0; i < d->n; i++) {
        const struct draw_row *r = &d->row[i];
        if (r->what != AMP_HISTORY_STEP || !amp_span_eq(r->id, id) || !amp_span_is(r->kind, kind))
            continue;
        amp_jw_open(w, '{');
        nanos_put(w, "timeUnixNano", r->at_ms);
        amp_jw_member_str(w, "name", r->event);
        amp_jw_member_open(w, "attributes", '[');
        attribute_put(w, "amp.state", r->to);
        attribute_put(w, "amp.actor", r->actor);
        attribute_put(w, "amp.code", r->code);
        amp_jw_close(w, ']');
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static int delivery_put(struct amp_jw *w, const struct amp_drawing *d,
                        const struct draw_delivery *m, struct amp_error *err)
{
    char trace[TRACE + 1], span[TRACE + 1], parent[TRACE + 1] = "";
    bool again = m->original.n && !amp_span_eq(m->original, m->id);
    if (id_make("trace", trace_of(m), TRACE, trace, err) < 0 ||
        id_make("message", m->id, SPAN, span, err) < 0 ||
        (again && id_make("message", m->original, SPAN, parent, err) < 0) ||
        (!again && m->task.n && id_make("task", m->task, SPAN, parent, err) < 0))
        return -1;
    head_put(w, trace, span, parent, m->type, KIND_PRODUCER, m->sent_ms,
             m->end_ms ? m->end_ms : d->last_ms);
    amp_jw_member_open(w, "attributes", '[');
    attribute_put(w, "messaging.message.id", m->id);
    attribute_put(w, "messaging.message.conversation_id", m->correlation);
    attribute_put(w, "messaging.destination.name", m->recipient);
    attribute_put(w, "amp.sender", m->sender);
    attribute_put(w, "amp.protocol", m->protocol);
    attribute_put(w, "amp.task", m->task);
    attribute_put(w, "amp.state", m->state);
    attribute_put(w, "error.type", draw_failed(m) ? m->code : (struct amp_span){"", 0});
    amp_jw_close(w, ']');
    events_put(w, d, "message", m->id);
    amp_jw_member_open(w, "status", '{');
    if (draw_failed(m))
        amp_jw_member_int(w, "code", STATUS_ERROR);
    else if (m->end_ms)
        amp_jw_member_int(w, "code", STATUS_OK);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
    return 0;
}

/* A span for each task, around its messages. */
static int task_put(struct amp_jw *w, const struct amp_drawing *d, struct amp_span task,
                    struct amp_error *err)
{
    char trace[TRACE + 1], span[TRACE + 1];
    int64_t from = INT64_MAX, to = 0;
    for (size_t i = 0; i < d->n; i++)
        if (amp_span_eq(d->row[i].task, task)) {
            from = d->row[i].at_ms < from ? d->row[i].at_ms : from;
            to = d->row[i].at_ms > to ? d->row[i].at_ms : to;
        }
    if (id_make("trace", task, TRACE, trace, err) < 0 || id_make("task", task, SPAN, span, err) < 0)
        return -1;
    head_put(w, trace, span, "", task, KIND_INTERNAL, from, to);
    events_put(w, d, "task", task);
    amp_jw_member_open(w, "status", '{');
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
    return 0;
}

int amp_drawing_otlp(struct amp_drawing *d, struct amp_buf *out, struct amp_error *err)
{
    struct draw_names tasks = {0};
    struct amp_jw w;
    size_t number;
    int rc = draw_deliveries(d, err);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_open(&w, "resourceSpans", '[');
    amp_jw_open(&w, '{');
    amp_jw_member_open(&w, "resource", '{');
    amp_jw_member_open(&w, "attributes", '[');
    attribute_put(&w, "service.name", AMP_SPAN("amp"));
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    amp_jw_member_open(&w, "scopeSpans", '[');
    amp_jw_open(&w, '{');
    amp_jw_member_open(&w, "scope", '{');
    amp_jw_member_text(&w, "name", "amp-ack log");
    amp_jw_close(&w, '}');
    amp_jw_member_open(&w, "spans", '[');
    for (size_t i = 0; rc == 0 && i < d->n; i++)
        if (d->row[i].task.n)
            rc = draw_name(&tasks, d->row[i].task, &number, err);
    for (size_t i = 0; rc == 0 && i < tasks.n; i++)
        rc = task_put(&w, d, tasks.v[i], err);
    for (size_t i = 0; rc == 0 && i < d->n_delivery; i++)
        rc = delivery_put(&w, d, &d->delivery[i], err);
    for (const char *c = "]}]}]}"; *c; c++)
        amp_jw_close(&w, *c);
    free(tasks.v);
    return rc == 0 ? amp_jw_end_line(&w, err) : -1;
}
