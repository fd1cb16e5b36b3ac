/* A row as a record. */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "message/delivery/history/history.h"

static void moment_write(struct amp_jw *w, const char *key, int64_t ms)
{
    char at[AMP_TIME_MAX];
    if (ms <= 0)
        return;
    amp_time_format(ms, at);
    amp_jw_some_str(w, key, amp_span_str(at));
}

int amp_history_json(const struct amp_history_row *r, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "n", r->n);
    amp_jw_some_str(&w, "at", r->at);
    amp_jw_some_str(&w, "correlation", r->correlation);
    amp_jw_some_str(&w, "session", r->session);
    amp_jw_some_str(&w, "actor", r->actor);
    amp_jw_some_str(&w, "what", amp_span_str(amp_history_word(r->what)));
    amp_jw_some_str(&w, "kind", r->kind);
    amp_jw_some_str(&w, "id", r->id);
    amp_jw_some_str(&w, "event", r->event);
    amp_jw_some_str(&w, "from", r->from);
    amp_jw_some_str(&w, "to", r->to);
    amp_jw_member_open(&w, "details", '{');
    amp_jw_some_str(&w, "protocol", r->protocol);
    amp_jw_some_str(&w, "type", r->type);
    amp_jw_some_str(&w, "task", r->task);
    amp_jw_some_str(&w, "sender", r->sender);
    amp_jw_some_str(&w, "recipient", r->recipient);
    amp_jw_some_str(&w, "agent", r->agent);
    amp_jw_some_str(&w, "stage", r->stage);
    amp_jw_some_str(&w, "by", r->by);
    amp_jw_some_str(&w, "code", r->code);
    amp_jw_some_str(&w, "why", r->why);
    amp_jw_some_str(&w, "original", r->original);
    amp_jw_some_str(&w, "decision", r->decision);
    if (r->attempt > 0)
        amp_jw_member_int(&w, "attempt", r->attempt);
    if (r->implied)
        amp_jw_member_bool(&w, "implied", true);
    if (r->late) {
        amp_jw_member_bool(&w, "late", true);
        moment_write(&w, "acked_at", r->acked_ms);
        moment_write(&w, "timed_out_at", r->timed_out_ms);
    }
    if (r->cost_micros > 0)
        amp_jw_member_int(&w, "cost_micros", r->cost_micros);
    if (r->tokens > 0)
        amp_jw_member_int(&w, "tokens", r->tokens);
    amp_jw_close(&w, '}');
    if (r->message.n > 0)
        amp_jw_member_raw(&w, "message", r->message);
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    return amp_buf_add(out, "\n", 1, err);
}

/* The level of a row: what failed, what is late or waits for a person, everything else. */
static const char *level_of(const struct amp_history_row *r)
{
    if (amp_span_is(r->kind, "dead") || amp_span_is(r->kind, "refused") ||
        amp_span_is(r->to, "FAILED") || amp_span_is(r->to, "REJECTED"))
        return "ERROR";
    if (r->late || amp_span_is(r->to, "TIMED_OUT") || amp_span_is(r->kind, "escalation") ||
        amp_span_is(r->kind, "override"))
        return "WARN";
    return "INFO";
}

int amp_history_log_event(const struct amp_history_row *r, struct amp_buf *out,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf details = {0};
    struct amp_jw w;
    amp_buf_init(&details, (size_t)64 << 20);
    if (amp_history_json(r, &details, err) < 0)
        return -1;
    struct amp_span text = {details.data, details.len - 1};
    struct amp_span correlation = r->correlation.n ? r->correlation : r->task;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "ts", r->at);
    amp_jw_member_str(&w, "correlation_id", correlation);
    amp_jw_member_str(&w, "agent_id", r->actor.n ? r->actor : r->sender);
    amp_jw_key(&w, "event_type");
    char type[128];
    snprintf(type, sizeof type, "%.*s.%.*s", (int)(r->kind.n < 60 ? r->kind.n : 60), r->kind.p,
             (int)(r->event.n < 60 ? r->event.n : 60), r->event.p);
    amp_jw_str(&w, amp_span_str(type));
    amp_jw_member_text(&w, "level", level_of(r));
    amp_jw_member_str(&w, "details_json", text);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
