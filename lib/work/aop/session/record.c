/* Audit records and the other entries of a session. */
#include <stdio.h>
#include <string.h>

#include <amp/json/writer.h>

#include "work/aop/session/private.h"

#define AUDIT_MAX ((size_t)8 << 20)

void amp_session_dollars(struct amp_jw *w, const char *key, int64_t micros)
{
    char text[48];
    int n = snprintf(text, sizeof text, "%lld.%06lld", (long long)(micros / 1000000),
                     (long long)(micros % 1000000));

    while (text[n - 1] == '0' && text[n - 2] != '.')
        n--;
    amp_jw_member_raw(w, key, (struct amp_span){text, (size_t)n});
}

void amp_session_entry_label(char out[AMP_SESSION_NAME_MAX], int64_t attempt, const char *what,
                             const char *more)
{
    snprintf(out, AMP_SESSION_NAME_MAX, "%lld.%s%s%s", (long long)attempt, what, more ? "." : "",
             more ? more : "");
}

static void text_or_null(struct amp_jw *w, const char *key, struct amp_span text)
{
    if (text.n > 0)
        amp_jw_member_str(w, key, text);
    else
        amp_jw_member_raw(w, key, AMP_SPAN("null"));
}

void amp_session_audit_members(struct amp_jw *w, const struct amp_session_audit *a)
{
    amp_jw_member_open(w, "actor", '{');
    amp_jw_member_str(w, "name", a->actor);
    amp_jw_member_text(w, "role", a->role);
    amp_jw_some_str(w, "provider", a->provider);
    amp_jw_some_str(w, "model", a->model);
    amp_jw_close(w, '}');
    amp_jw_member_raw(w, "payload", a->payload);
    amp_jw_member_open(w, "context", '{');
    text_or_null(w, "parent_task_id", a->parent);
    amp_jw_member_int(w, "attempt", a->attempt);
    amp_jw_member_str(w, "correlation_id", a->session);
    amp_jw_close(w, '}');
    amp_jw_member_open(w, "governance", '{');
    amp_jw_member_open(w, "guard_rails_applied", '[');
    for (size_t i = 0; i < sizeof a->guards / sizeof *a->guards && a->guards[i]; i++)
        amp_jw_str(w, amp_span_str(a->guards[i]));
    amp_jw_close(w, ']');
    if (a->budgeted) {
        amp_jw_member_open(w, "budget_status", '{');
        amp_jw_member_raw(w, "max_cost_usd", a->max_cost.n > 0 ? a->max_cost : AMP_SPAN("null"));
        amp_session_dollars(w, "current_cost_usd", a->spent_micros);
        amp_jw_member_bool(w, "within_budget", a->within);
        amp_jw_close(w, '}');
    } else {
        amp_jw_member_raw(w, "budget_status", AMP_SPAN("null"));
    }
    amp_jw_member_text(w, "access_decision", a->access);
    text_or_null(w, "reason_code", a->reason);
    amp_jw_close(w, '}');
}

int amp_session_audit_add(const struct amp_session_voice *v, const struct amp_session_audit *a,
                          const char *name, const struct amp_store_emit *emits, uint32_t n_emits,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf json = {.max = AUDIT_MAX};
    struct amp_jw w;

    amp_jw_init(&w, &json);
    amp_jw_open(&w, '{');
    amp_session_audit_members(&w, a);
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    const struct amp_session_entry e = {.type = a->type,
                                        .session = a->session,
                                        .task = a->task,
                                        .attempt = a->attempt,
                                        .json = amp_buf_span(&json)};
    return amp_session_entry_add(v, &e, name, emits, n_emits, err) < 0 ? -1 : 0;
}
