/* The record of a dead letter. */
#include "message/dead/record.h"

#include <string.h>

#include "message/record/record.h"

#define MAX_HISTORY    32
#define MAX_RECIPIENTS 16
#define MAX_HOPS       (MAX_RECIPIENTS + 2)
#define REQUEUED       "requeued"
#define TEMPORARY      "temporary"

static const char *const classes[] = {
#define X(id, name, doc) name,
    AMP_DEAD_CLASSES(X)
#undef X
};

const char *amp_dead_class_name(enum amp_dead_class c)
{
    return c < AMP_DEAD_CLASS_COUNT ? classes[c] : "";
}

/* COUNT: unknown */
static enum amp_dead_class class_find(const char *name)
{
    unsigned c = AMP_DEAD_UNDELIVERABLE;
    while (c < AMP_DEAD_CLASS_COUNT && strcmp(classes[c], name) != 0)
        c++;
    return (enum amp_dead_class)c;
}

/* For those who know only the code. */
static enum amp_dead_class class_of(const struct amp_dead_letter *d)
{
    static const struct {
        const char *code;
        enum amp_dead_class class;
    } rows[] = {
        {"ttl_expired", AMP_DEAD_EXPIRED},
        {"expired", AMP_DEAD_EXPIRED},
        {"retries_exhausted", AMP_DEAD_EXHAUSTED},
        {"ack_timeout", AMP_DEAD_EXHAUSTED},
        {"unsigned", AMP_DEAD_POLICY},
        {"permission_denied", AMP_DEAD_TERMINAL},
        {"oversize_payload", AMP_DEAD_POLICY},
        {"branch_violation", AMP_DEAD_POLICY},
        {"not_idempotent", AMP_DEAD_POLICY},
        {"suspended", AMP_DEAD_POLICY},
        {"rejected", AMP_DEAD_POLICY},
        {"kept_back", AMP_DEAD_POLICY},
        {"no_route", AMP_DEAD_UNDELIVERABLE},
        {"invalid_targets", AMP_DEAD_UNDELIVERABLE},
        {"capability_unavailable", AMP_DEAD_UNDELIVERABLE},
    };
    for (size_t i = 0; d->final == AMP_DEAD_UNSET && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].code, d->code) == 0)
            return rows[i].class;
    if (d->final != AMP_DEAD_UNSET)
        return d->final;
    return d->retryable ? AMP_DEAD_UNDELIVERABLE : AMP_DEAD_TERMINAL;
}

/* What an operator needs to see where it was lost. */
struct routing {
    struct amp_span by;
    struct amp_span *recipients, *tried;
    struct amp_span *hops; /* from its sender to where it was lost */
    uint32_t n_recipients, n_tried, n_hops;
    int64_t all; /* recipients, where not all are listed */
    const char *lane;
};
static const struct amp_rec_field routing_fields[] = {
    AMP_REC_EVER(TEXT, struct routing, "by", by),
    AMP_REC_WORDS(struct routing, "recipients", recipients, true),
    AMP_REC(INT, struct routing, "n_recipients", all),
    AMP_REC_WORDS(struct routing, "tried", tried, true),
    AMP_REC_WORDS(struct routing, "hops", hops, true),
    AMP_REC(CSTR, struct routing, "lane", lane),
};
AMP_REC_TABLE(routing_rec, "a dead letter's routing", struct routing, routing_fields);

struct requeued {
    int64_t n, at_ms;
};
static const struct amp_rec_field requeued_fields[] = {
    AMP_REC_EVER(INT, struct requeued, "n", n),
    AMP_REC_EVER(INT, struct requeued, "at_ms", at_ms),
};
AMP_REC_TABLE(requeued_rec, "a dead letter's requeues", struct requeued, requeued_fields);

struct stored {
    struct amp_span msg_id, type, from, to, task, correlation, content_type, excerpt, line;
    const char *protocol, *code, *class, *failure_class, *why, *route;
    struct routing routing;
    int64_t created_ms, first_failed_ms, failed_ms, frame, attempts, size;
    struct amp_message_try *history;
    uint32_t n_history;
    struct requeued requeued;
};
#define ALWAYS(as, key, member) AMP_REC_EVER(as, struct stored, key, member)
static const struct amp_rec_field fields[] = {
    ALWAYS(TEXT, "msg_id", msg_id),
    ALWAYS(CSTR, "protocol", protocol),
    ALWAYS(TEXT, "type", type),
    ALWAYS(TEXT, "from", from),
    ALWAYS(TEXT, "to", to),
    ALWAYS(TEXT, "task", task),
    ALWAYS(TEXT, "correlation", correlation),
    ALWAYS(TEXT, "content_type", content_type),
    ALWAYS(CSTR, "code", code),
    ALWAYS(CSTR, "class", class),
    ALWAYS(CSTR, "failure_class", failure_class),
    ALWAYS(CSTR, "why", why),
    ALWAYS(CSTR, "route", route),
    AMP_REC_IN(struct stored, "routing", routing, &routing_rec, true),
    ALWAYS(INT, "created_ms", created_ms),
    ALWAYS(INT, "first_failed_ms", first_failed_ms),
    ALWAYS(INT, "failed_ms", failed_ms),
    AMP_REC(INT, struct stored, "frame", frame),
    ALWAYS(INT, "attempts", attempts),
    ALWAYS(INT, "size", size),
    ALWAYS(TEXT, "excerpt", excerpt),
    AMP_REC_MANY(struct stored, "history", history, &amp_message_try_rec, true),
    ALWAYS(LINE, "msg", line),
    AMP_REC_IN(struct stored, REQUEUED, requeued, &requeued_rec, false),
};
AMP_REC_TABLE(stored_rec, "a dead letter's record", struct stored, fields);

static struct routing routing_of(const struct amp_dead_letter *d, struct amp_span by,
                                 struct amp_span *to, struct amp_span *route)
{
    uint32_t n = d->n_recipients;
    struct routing r = {.by = by,
                        .recipients = to,
                        .n_recipients = to->n > 0,
                        .tried = route,
                        .n_tried = route->n > 0,
                        .lane = d->lane};
    if (n > 0) {
        r.recipients = d->recipients;
        r.n_recipients = n < MAX_RECIPIENTS ? n : MAX_RECIPIENTS;
        r.all = n > MAX_RECIPIENTS ? n : 0;
    }
    if (d->n_tried > 0) {
        r.tried = d->tried;
        r.n_tried = d->n_tried < MAX_RECIPIENTS ? d->n_tried : MAX_RECIPIENTS;
    }
    return r;
}

/* Who had it, one after the other: its sender, the outbox, the ports. */
static void hops_add(struct routing *r, struct amp_span from, struct amp_span hops[MAX_HOPS])
{
    if (from.n > 0)
        hops[r->n_hops++] = from;
    if (r->by.n > 0)
        hops[r->n_hops++] = r->by;
    for (uint32_t i = 0; i < r->n_tried; i++)
        hops[r->n_hops++] = r->tried[i];
    r->hops = hops;
}

/* The attempts so far, and the last one. */
static uint32_t history_of(const struct amp_dead_kept *old, const struct amp_dead_letter *d,
                           struct amp_message_try out[MAX_HISTORY])
{
    const struct amp_message_try *before = old->n_history > 0 ? old->history : d->before;
    uint32_t n = old->n_history > 0 ? old->n_history : d->n_before;
    uint32_t most = old->n_history > 0 ? MAX_HISTORY : MAX_HISTORY - 1;
    n = n < most ? n : most;
    for (uint32_t i = 0; i < n; i++)
        out[i] = before[i];
    if (n < MAX_HISTORY)
        out[n++] =
            (struct amp_message_try){.msg_id = d->last_code ? d->msg_id : (struct amp_span){"", 0},
                                     .at_ms = d->failed_ms,
                                     .code = d->last_code ? d->last_code : d->code,
                                     .route = d->route,
                                     .why = d->why};
    return n;
}

int amp_dead_write(const struct amp_dead_kept *old, const struct amp_dead_letter *d,
                   struct amp_span by, struct amp_buf *out, struct amp_error *err)
{
    struct amp_span to = d->to, route = amp_span_str(d->route);
    struct amp_message_try history[MAX_HISTORY];
    struct amp_span hops[MAX_HOPS];
    struct routing routing = routing_of(d, by, &to, &route);
    hops_add(&routing, d->from, hops);
    const struct stored r = {
        .msg_id = d->msg_id,
        .protocol = d->protocol,
        .type = d->type,
        .from = d->from,
        .to = d->to,
        .task = d->task,
        .correlation = d->correlation,
        .content_type = d->content_type,
        .code = d->code,
        .class = d->retryable ? TEMPORARY : "permanent",
        .failure_class = amp_dead_class_name(class_of(d)),
        .why = d->why,
        .route = d->route,
        .routing = routing,
        .created_ms = d->created_ms,
        .first_failed_ms = d->first_failed_ms,
        .failed_ms = d->failed_ms,
        .frame = (int64_t)d->frame,
        .attempts = d->attempts,
        .size = (int64_t)d->line.n,
        .excerpt = d->excerpt,
        .history = history,
        .n_history = history_of(old, d, history),
        .line = d->line,
        .requeued = {old->requeues, old->requeued_ms},
    };
    amp_buf_reset(out);
    return amp_rec_write(&stored_rec, &r, out, err);
}

int amp_dead_write_requeue(struct amp_span json, int64_t now_ms, struct amp_buf *out,
                           struct amp_error *err)
{
    struct stored r;
    AMP_BUF struct amp_buf mem = {.max = 2 * AMP_RECORD_MAX};
    amp_buf_reset(out);
    if (amp_rec_parse(&stored_rec, json, &mem, &r, err) < 0)
        return -1;
    r.requeued.n++;
    r.requeued.at_ms = now_ms;
    return amp_rec_write(&stored_rec, &r, out, err);
}

int amp_dead_read(struct amp_span json, struct amp_buf *mem, struct amp_dead_kept *out,
                  struct amp_error *err)
{
    struct stored r;
    if (amp_rec_parse(&stored_rec, json, mem, &r, err) < 0)
        return -1;
    enum amp_dead_class final = class_find(r.failure_class);
    struct amp_dead_letter d = {
        .msg_id = r.msg_id,
        .protocol = r.protocol,
        .type = r.type,
        .from = r.from,
        .to = r.to,
        .task = r.task,
        .correlation = r.correlation,
        .content_type = r.content_type,
        .code = r.code,
        .retryable = strcmp(r.class, TEMPORARY) == 0,
        .final = final == AMP_DEAD_CLASS_COUNT ? AMP_DEAD_UNSET : final,
        .why = r.why,
        .route = r.route,
        .created_ms = r.created_ms,
        .first_failed_ms = r.first_failed_ms > 0 ? r.first_failed_ms : r.failed_ms,
        .failed_ms = r.failed_ms,
        .frame = (uint64_t)r.frame,
        .attempts = r.attempts,
        .excerpt = r.excerpt,
        .line = r.line,
    };
    d.final = class_of(&d);
    *out = (struct amp_dead_kept){
        .d = d,
        .history = r.history,
        .n_history = r.n_history,
        .first_code = r.n_history > 0 ? r.history[0].code : r.code,
        .first_route = r.n_history > 0 ? r.history[0].route : r.route,
        .requeues = r.requeued.n,
        .requeued_ms = r.requeued.at_ms,
    };
    return 0;
}
