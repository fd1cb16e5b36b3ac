/* A row as a record. */
#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "message/history.h"

static void text(struct amp_jw *w, const char *key, struct amp_span s)
{
    if (s.n == 0)
        return;
    amp_jw_key(w, key);
    amp_jw_str(w, s);
}

static void moment(struct amp_jw *w, const char *key, int64_t ms)
{
    char at[AMP_TIME_MAX];
    if (ms <= 0)
        return;
    amp_time_format(ms, at);
    text(w, key, amp_span_str(at));
}

int amp_history_json(const struct amp_history_row *r, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_key(&w, "n");
    amp_jw_uint(&w, r->n);
    text(&w, "at", r->at);
    text(&w, "correlation", r->correlation);
    text(&w, "actor", r->actor);
    text(&w, "what", amp_span_str(amp_history_word(r->what)));
    text(&w, "kind", r->kind);
    text(&w, "id", r->id);
    text(&w, "event", r->event);
    text(&w, "from", r->from);
    text(&w, "to", r->to);
    amp_jw_key(&w, "details");
    amp_jw_open(&w, '{');
    text(&w, "protocol", r->protocol);
    text(&w, "type", r->type);
    text(&w, "task", r->task);
    text(&w, "sender", r->sender);
    text(&w, "recipient", r->recipient);
    text(&w, "agent", r->agent);
    text(&w, "stage", r->stage);
    text(&w, "by", r->by);
    text(&w, "code", r->code);
    text(&w, "why", r->why);
    text(&w, "original", r->original);
    text(&w, "decision", r->decision);
    if (r->attempt > 0) {
        amp_jw_key(&w, "attempt");
        amp_jw_int(&w, r->attempt);
    }
    if (r->late) {
        amp_jw_key(&w, "late");
        amp_jw_bool(&w, true);
        moment(&w, "acked_at", r->acked_ms);
        moment(&w, "timed_out_at", r->timed_out_ms);
    }
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    return amp_buf_add(out, "\n", 1, err);
}
