/* The record of a dead letter. */
#include "message/delivery/dead/record.h"

#include <string.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/record/record.h"

#define MAX_HISTORY    32
#define MAX_RECIPIENTS 16
#define MAX_HOPS       (MAX_RECIPIENTS + 2)
#define REQUEUED       "requeued"

AMP_WORDS(classes, AMP_DEAD_CLASSES);

const char *amp_dead_class_name(enum amp_dead_class c)
{
    return c < AMP_DEAD_CLASS_COUNT ? classes[c] : "";
}

static const struct amp_rec_words class_words = {.list = classes};

static const char *const of_retryable[] = {"permanent", "temporary", NULL};
static const struct amp_rec_words retryable_words = {.list = of_retryable};

/* The class of a letter, by its code if it has none. */
static enum amp_dead_class class_of(const struct amp_dead_letter *d)
{
    static const struct {
        const char *code;
        enum amp_dead_class class;
    } rows[] = {
        {AMP_CODE(ttl_expired), AMP_DEAD_EXPIRED},
        {AMP_CODE(expired), AMP_DEAD_EXPIRED},
        {AMP_CODE(retries_exhausted), AMP_DEAD_EXHAUSTED},
        {AMP_CODE(ack_timeout), AMP_DEAD_EXHAUSTED},
        {AMP_CODE(unsigned), AMP_DEAD_POLICY},
        {AMP_CODE(permission_denied), AMP_DEAD_TERMINAL},
        {AMP_CODE(oversize_payload), AMP_DEAD_POLICY},
        {AMP_CODE(branch_violation), AMP_DEAD_POLICY},
        {"not_idempotent", AMP_DEAD_POLICY},
        {AMP_CODE(suspended), AMP_DEAD_POLICY},
        {AMP_CODE(rejected), AMP_DEAD_POLICY},
        {AMP_CODE(kept_back), AMP_DEAD_POLICY},
        {AMP_CODE(no_route), AMP_DEAD_UNDELIVERABLE},
        {AMP_CODE(invalid_targets), AMP_DEAD_UNDELIVERABLE},
        {AMP_CODE(capability_unavailable), AMP_DEAD_UNDELIVERABLE},
    };
    for (size_t i = 0; d->final == AMP_DEAD_UNSET && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].code, d->code) == 0)
            return rows[i].class;
    if (d->final != AMP_DEAD_UNSET)
        return d->final;
    return d->retryable ? AMP_DEAD_UNDELIVERABLE : AMP_DEAD_TERMINAL;
}

/* The way of the message until it was lost. */
struct routing {
    struct amp_span by;
    struct amp_span *recipients, *tried;
    struct amp_span *hops; /* the sender, the outbox, the ports tried */
    uint32_t n_recipients, n_tried, n_hops;
    int64_t all; /* the number of recipients if the list is incomplete, else 0 */
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
    struct amp_dead_letter d;
    struct routing routing;
    int64_t size;
    struct amp_message_try *history;
    uint32_t n_history;
    struct requeued requeued;
};
#define ALWAYS(as, key, member) AMP_REC_EVER(as, struct stored, key, member)
static const struct amp_rec_field fields[] = {
    ALWAYS(TEXT, "msg_id", d.msg_id),
    ALWAYS(CSTR, "protocol", d.protocol),
    ALWAYS(TEXT, "type", d.type),
    ALWAYS(TEXT, "from", d.from),
    ALWAYS(TEXT, "to", d.to),
    ALWAYS(TEXT, "task", d.task),
    ALWAYS(TEXT, "correlation", d.correlation),
    ALWAYS(TEXT, "content_type", d.content_type),
    ALWAYS(CSTR, "code", d.code),
    AMP_REC_ENUM(struct stored, "class", d.retryable, &retryable_words),
    AMP_REC_ENUM(struct stored, "failure_class", d.final, &class_words),
    ALWAYS(CSTR, "why", d.why),
    ALWAYS(CSTR, "route", d.route),
    AMP_REC_IN(struct stored, "routing", routing, &routing_rec, true),
    ALWAYS(INT, "created_ms", d.created_ms),
    ALWAYS(INT, "first_failed_ms", d.first_failed_ms),
    ALWAYS(INT, "failed_ms", d.failed_ms),
    AMP_REC(INT, struct stored, "frame", d.frame),
    ALWAYS(INT, "attempts", d.attempts),
    ALWAYS(INT, "size", size),
    ALWAYS(TEXT, "excerpt", d.excerpt),
    AMP_REC_MANY(struct stored, "history", history, &amp_message_try_rec, true),
    ALWAYS(LINE, "msg", d.line),
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

/* The earlier attempts and the last one. */
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
    struct stored r = {
        .d = *d,
        .routing = routing,
        .size = (int64_t)d->line.n,
        .history = history,
        .n_history = history_of(old, d, history),
        .requeued = {old->requeues, old->requeued_ms},
    };
    r.d.final = class_of(d);
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
    r.d.final = class_of(&r.d);
    if (r.d.first_failed_ms <= 0)
        r.d.first_failed_ms = r.d.failed_ms;
    *out = (struct amp_dead_kept){
        .d = r.d,
        .history = r.history,
        .n_history = r.n_history,
        .first_code = r.n_history > 0 ? r.history[0].code : r.d.code,
        .first_route = r.n_history > 0 ? r.history[0].route : r.d.route,
        .requeues = r.requeued.n,
        .requeued_ms = r.requeued.at_ms,
    };
    return 0;
}
