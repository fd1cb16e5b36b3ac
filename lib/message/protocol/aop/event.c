/* AOP: composes events: see event.h. */
#include "message/protocol/aop/event.h"

#include <stdio.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/aop/aop.h"
#include "json/record.h"

void amp_aop_event_open(struct amp_jw *w, const char *event, const struct amp_aop_about *about,
                        struct amp_buf *out)
{
    amp_jw_init(w, out);
    amp_jw_open(w, '{');
    amp_aop_header(w, "EVENT");
    amp_jw_member_text(w, "event", event);
    amp_jw_member_str(w, "session_id", about->session);
    amp_jw_some_str(w, "task_id", about->task);
    amp_rec_time(w, "timestamp", about->now_ms);
}

int amp_aop_event_close(struct amp_jw *w, struct amp_error *err)
{
    amp_jw_close(w, '}');
    return amp_jw_end_line(w, err);
}

static int progress_check(const struct amp_aop_progress *p, struct amp_error *err)
{
    if (!(p->percentage >= 0 && p->percentage <= 100))
        return amp_fail(err, AMP_NO, bad_value, "progress of %g per cent (expected 0 to 100)",
                        p->percentage);
    if (p->eta_seconds < -1)
        return amp_fail(err, AMP_NO, bad_value, "a remaining time of %lld seconds",
                        (long long)p->eta_seconds);
    return 0;
}

/* Writes up to two decimals, without trailing zeros. */
static void percentage_write(struct amp_jw *w, const char *key, double percentage)
{
    char text[16];
    long hundredths = (long)(percentage * 100 + 0.5);
    int n = hundredths % 100 == 0 ? snprintf(text, sizeof text, "%ld", hundredths / 100)
            : hundredths % 10 == 0
                ? snprintf(text, sizeof text, "%ld.%ld", hundredths / 100, hundredths % 100 / 10)
                : snprintf(text, sizeof text, "%ld.%02ld", hundredths / 100, hundredths % 100);
    amp_jw_member_raw(w, key, (struct amp_span){text, (size_t)n});
}

static void place_write(struct amp_jw *w, const struct amp_aop_progress *p)
{
    amp_jw_some_str(w, "current_phase", p->phase);
    amp_jw_some_str(w, "current_checkpoint", p->checkpoint);
}

int amp_aop_heartbeat(const struct amp_aop_about *about, const struct amp_aop_progress *p,
                      struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    if (progress_check(p, err) < 0)
        return -1;
    amp_aop_event_open(&w, "HEARTBEAT", about, out);
    amp_jw_member_str(&w, "agent", p->agent);
    percentage_write(&w, "progress_percentage", p->percentage);
    place_write(&w, p);
    return amp_aop_event_close(&w, err);
}

int amp_aop_progress_update(const struct amp_aop_about *about, const struct amp_aop_progress *p,
                            struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    if (progress_check(p, err) < 0)
        return -1;
    amp_aop_event_open(&w, "PROGRESS_UPDATE", about, out);
    amp_jw_member_str(&w, "agent", p->agent);
    amp_jw_member_open(&w, "progress", '{');
    percentage_write(&w, "percentage", p->percentage);
    place_write(&w, p);
    amp_jw_some_str(&w, "message", p->message);
    if (p->eta_seconds >= 0)
        amp_jw_member_int(&w, "estimated_time_remaining_seconds", p->eta_seconds);
    amp_jw_close(&w, '}');
    return amp_aop_event_close(&w, err);
}

static int priority_check(struct amp_span priority, struct amp_error *err)
{
    static const char *const priorities[] = {"LOW", "NORMAL", "HIGH", "CRITICAL", NULL};
    if (amp_word_find(priorities, priority) >= 0)
        return 0;
    return amp_fail(err, AMP_NO, bad_value,
                    "'%.*s' is not a priority (LOW, NORMAL, HIGH or CRITICAL)",
                    AMP_CLIP(priority, 40));
}

int amp_aop_priority_escalation(const struct amp_aop_about *about,
                                const struct amp_aop_escalation *e, struct amp_buf *out,
                                struct amp_error *err)
{
    struct amp_jw w;
    if (priority_check(e->old_priority, err) < 0 || priority_check(e->new_priority, err) < 0)
        return -1;
    amp_aop_event_open(&w, "PRIORITY_ESCALATION", about, out);
    amp_jw_member_str(&w, "old_priority", e->old_priority);
    amp_jw_member_str(&w, "new_priority", e->new_priority);
    amp_jw_member_str(&w, "reason", e->reason);
    amp_jw_member_str(&w, "escalated_by", e->by);
    return amp_aop_event_close(&w, err);
}

int amp_aop_rollback_initiated(const struct amp_aop_about *about, struct amp_span trigger,
                               const struct amp_aop_rolled_back *files, size_t n,
                               struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_aop_event_open(&w, "ROLLBACK_INITIATED", about, out);
    amp_jw_member_str(&w, "trigger", trigger);
    amp_jw_member_open(&w, "artifacts_rolled_back", '[');
    for (size_t i = 0; i < n; i++) {
        amp_jw_open(&w, '{');
        amp_jw_member_str(&w, "path", files[i].path);
        amp_jw_member_str(&w, "restored_from", files[i].restored_from);
        amp_jw_member_str(&w, "status", files[i].status);
        if (files[i].code.n > 0) {
            amp_jw_member_open(&w, "extensions", '{');
            amp_jw_member_str(&w, "x_error_code", files[i].code);
            amp_jw_close(&w, '}');
        }
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    return amp_aop_event_close(&w, err);
}

static void json_write(struct amp_jw *w, const char *key, struct amp_span json)
{
    if (json.n > 0)
        amp_jw_member_raw(w, key, json);
}

int amp_aop_session_final_report(const struct amp_aop_about *about,
                                 const struct amp_aop_final_report *r, struct amp_buf *out,
                                 struct amp_error *err)
{
    struct amp_jw w;
    amp_aop_event_open(&w, "SESSION_FINAL_REPORT", about, out);
    json_write(&w, "cost_summary", r->cost_summary);
    json_write(&w, "delegation_graph", r->delegation_graph);
    json_write(&w, "tasks", r->tasks);
    json_write(&w, "events", r->events);
    if (r->storage_path.n > 0) {
        amp_jw_member_open(&w, "audit_trail", '{');
        amp_jw_member_str(&w, "storage_path", r->storage_path);
        amp_jw_close(&w, '}');
    }
    json_write(&w, "extensions", r->extensions);
    return amp_aop_event_close(&w, err);
}
