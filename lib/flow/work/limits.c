/* Time limits of agents' states: the NOTIFICATION about one that passed. */
#include "flow/work/limits.h"

#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "agent/registry.h"
#include "flow/work/binding.h"
#include "protocol/sw4rm/answer.h"

struct telling {
    const char *actor;
    int64_t now_ms;
    struct amp_buf payload, line;
    char token[160];
};

static int on_overdue(void *ctx, const struct amp_agent_overdue *o, struct amp_store_emit *emit,
                      struct amp_error *err)
{
    struct telling *t = ctx;
    struct amp_jw w;
    char at[AMP_TIME_MAX];

    amp_buf_reset(&t->payload);
    amp_buf_reset(&t->line);
    amp_time_format(o->limit_ms, at);
    amp_jw_init(&w, &t->payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "event", "agent_failed");
    amp_jw_member_text(&w, "severity", "warning");
    amp_jw_member_text(&w, "agent_id", o->name);
    amp_jw_member_text(&w, "state", o->state);
    amp_jw_member_text(&w, "error_code", o->code);
    amp_jw_member_text(&w, "limit_passed", at);
    amp_jw_member_text(&w, "suggested_action", "look whether the agent's process is alive");
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err))
        return -1;
    snprintf(t->token, sizeof t->token, "%.40s:%s:%.64s:%lld", t->actor, o->code, o->name,
             (long long)o->limit_ms);
    const struct amp_sw4rm_said said = {.from = t->actor,
                                        .type = "NOTIFICATION",
                                        .token = t->token,
                                        .sequence = amp_id_number(t->now_ms),
                                        .now_ms = t->now_ms};
    if (amp_binding_to_admin(&said, &t->payload, &t->line, err))
        return -1;
    *emit = (struct amp_store_emit){amp_span_str(t->token), {t->line.data, t->line.len - 1}, false};
    return 0;
}

int amp_limits_expire(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                      struct amp_error *err)
{
    struct telling t = {.actor = actor, .now_ms = now_ms};

    amp_buf_init(&t.payload, 1 << 16);
    amp_buf_init(&t.line, 1 << 17);
    int rc = amp_agent_expire(s, now_ms, actor, on_overdue, &t, done, err);
    amp_buf_release(&t.payload);
    amp_buf_release(&t.line);
    return rc;
}
