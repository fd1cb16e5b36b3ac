/* AOF/1: the refusal of a line, a line of the event log: protocol.message.rejected with the reason,
 * or protocol.message.unknown. The protocol does not send it back. */
#include <stdatomic.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/aof/aof.h"
#include "message/protocol/codes/classes.h"

/* One of the reasons of the protocol; it has none for a line that could not be judged. */
static const char *reason_of(const struct amp_finding *f)
{
    static const char *const own[] = {AMP_CODE(payload_too_large),  AMP_CODE(invalid_envelope),
                                      AMP_CODE(invalid_project_id), AMP_CODE(taskId_mismatch),
                                      AMP_CODE(invalid_json),       NULL};
    for (unsigned i = 0; own[i]; i++)
        if (strcmp(f->code, own[i]) == 0)
            return own[i];
    switch (amp_code_class(f->code)) {
    case AMP_CODE_SIZE:
        return AMP_CODE(payload_too_large);
    case AMP_CODE_PERMISSION:
        return AMP_CODE(unauthorized_agent);
    case AMP_CODE_VALIDATION:
        return f->field[0] ? AMP_CODE(invalid_envelope) : AMP_CODE(invalid_json);
    default:
        return f->code;
    }
}

/* Makes a new number from the time at each call. The log that accepts the record replaces it. */
static int64_t event_number(int64_t now_ms)
{
    static atomic_int_least64_t last;
    int64_t before = atomic_load(&last), next;
    do
        next = now_ms * 1000 > before ? now_ms * 1000 : before + 1;
    while (!atomic_compare_exchange_weak(&last, &before, next));
    return next;
}

int amp_aof_event(const struct amp_aof_event *e, const struct amp_view *v, int64_t now_ms,
                  struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    struct amp_jw w;
    amp_time_format(now_ms, time);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "eventId", event_number(now_ms));
    amp_jw_some_str(&w, "type", amp_span_str(e->type));
    amp_jw_some_str(&w, "timestamp", amp_span_str(time));
    amp_jw_some_str(&w, "actor", amp_span_str(e->actor));
    amp_jw_some_str(&w, "taskId", v->task);
    amp_jw_member_open(&w, "payload", '{');
    amp_jw_some_str(&w, "reason", amp_span_str(e->reason));
    amp_jw_some_str(&w, "messageType", v->type);
    amp_jw_some_str(&w, "messageId", v->id);
    amp_jw_some_str(&w, "fromAgent", v->from);
    amp_jw_some_str(&w, "toAgent", e->to);
    amp_jw_some_str(&w, "field", amp_span_str(e->field));
    amp_jw_some_str(&w, "errors", amp_span_str(e->what));
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

enum amp_refuse_result amp_aof_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    static const struct amp_span log = {"protocol.", 9};
    if (v->type.n > log.n && memcmp(v->type.p, log.p, log.n) == 0)
        return AMP_REFUSE_NONE; /* a line of the log is not answered */
    bool unknown = strcmp(first->code, "protocol.message.unknown") == 0;
    const struct amp_aof_event e = {.type = unknown ? "protocol.message.unknown"
                                                    : "protocol.message.rejected",
                                    .actor = "amp-validate",
                                    .reason = unknown ? "" : reason_of(first),
                                    .field = first->field,
                                    .what = first->message};
    return amp_aof_event(&e, v, now_ms, out, err) < 0 ? AMP_REFUSE_FAILED : AMP_REFUSE_WRITTEN;
}
