/* What counts in a TASK after precedence, defaults and the narrowing of access: each value with the
 * member that it comes from. */
#include <amp/json/writer.h>
#include <amp/protocol/aop_policy.h>

#include "protocol/aop/aop.h"

enum { PATH_MOST = 1024 * 1024 };

/* Opens {"value": …; `value_close` ends it with the source. */
static void value_open(struct amp_jw *w, const char *name)
{
    amp_jw_key(w, name);
    amp_jw_open(w, '{');
    amp_jw_key(w, "value");
}

static void value_close(struct amp_jw *w, enum amp_aop_source source)
{
    amp_jw_member_text(w, "source", amp_aop_source_name(source));
    amp_jw_close(w, '}');
}

static void integer(struct amp_jw *w, const char *name, const struct amp_aop_int *n)
{
    value_open(w, name);
    amp_jw_int(w, n->value);
    value_close(w, n->source);
}

static void flag(struct amp_jw *w, const char *name, const struct amp_aop_flag *f)
{
    value_open(w, name);
    amp_jw_bool(w, f->value);
    value_close(w, f->source);
}

static void word(struct amp_jw *w, const char *name, const char *text, enum amp_aop_source source)
{
    value_open(w, name);
    amp_jw_str(w, amp_span_str(text));
    value_close(w, source);
}

/* Numbers stand as they stood in the message; null is no limit. */
static void budget(struct amp_jw *w, const struct amp_view *v, const char *name,
                   const struct amp_aop_budget *b)
{
    value_open(w, name);
    if (b->limited)
        amp_jw_raw(w, amp_tok_source(v->tape, b->tok));
    else
        amp_jw_null(w);
    value_close(w, b->source);
}

static int texts(const struct amp_view *v, const char *pointer, struct amp_buf *room,
                 struct amp_span *out, struct amp_error *err)
{
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    *out = (struct amp_span){"", 0};
    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type != AMP_JSON_STRING)
        return 0;
    return amp_tok_text(v->tape, tok, room, out, err);
}

/* The canonical paths; null is everywhere. What lies nowhere grants nothing. */
static int paths(struct amp_jw *w, const struct amp_view *v, const char *name,
                 const struct amp_aop_paths *p, struct amp_span root, struct amp_error *err)
{
    const struct amp_tape *t = v->tape;
    AMP_BUF struct amp_buf room = {0}, path = {0};
    amp_buf_init(&room, PATH_MOST);
    amp_buf_init(&path, PATH_MOST);
    value_open(w, name);
    if (!p->limited) {
        amp_jw_null(w);
        value_close(w, p->source);
        return 0;
    }
    amp_jw_open(w, '[');
    uint32_t end = p->list == AMP_TOK_NONE ? 0 : t->tok[p->list].next;
    for (uint32_t i = p->list + 1; i < end; i = t->tok[i].next) {
        struct amp_span text;
        amp_buf_reset(&room);
        amp_buf_reset(&path);
        if (amp_tok_text(t, i, &room, &text, err) < 0)
            return -1;
        if (amp_aop_resolve(root, text, &path, err) == 0)
            amp_jw_str(w, amp_buf_span(&path));
        else if (err->status != AMP_NOPERM)
            return -1;
    }
    amp_jw_close(w, ']');
    value_close(w, p->source);
    return 0;
}

static void backoff(struct amp_jw *w, const struct amp_view *v, const struct amp_aop_policy *p)
{
    bool given = p->backoff != AMP_TOK_NONE;
    value_open(w, "retry_backoff_seconds");
    if (given)
        amp_jw_raw(w, amp_tok_source(v->tape, p->backoff));
    else
        amp_jw_raw(w, AMP_SPAN("[30,120,300]"));
    value_close(w, given ? AMP_AOP_FROM_EXECUTION : AMP_AOP_FROM_DEFAULT);
}

static void heartbeat(struct amp_jw *w, const struct amp_view *v, const struct amp_aop_policy *p)
{
    uint32_t seconds =
        amp_tape_pointer(v->tape, 0, AMP_SPAN("/execution_policy/heartbeat/interval_seconds"));
    amp_jw_key(w, "heartbeat");
    amp_jw_open(w, '{');
    flag(w, "enabled", &p->heartbeat);
    value_open(w, "interval_seconds");
    if (seconds != AMP_TOK_NONE)
        amp_jw_raw(w, amp_tok_source(v->tape, seconds));
    else
        amp_jw_int(w, (int64_t)p->heartbeat_seconds);
    value_close(w, seconds != AMP_TOK_NONE ? AMP_AOP_FROM_EXECUTION : AMP_AOP_FROM_DEFAULT);
    integer(w, "max_missed_beats", &p->heartbeat_missed_most);
    word(w, "on_heartbeat_failure",
         amp_aop_on_silence_name((enum amp_aop_on_silence)p->on_heartbeat_failure.value),
         p->on_heartbeat_failure.source);
    amp_jw_close(w, '}');
}

static void delegation(struct amp_jw *w, const struct amp_aop_policy *p)
{
    amp_jw_key(w, "delegation");
    amp_jw_open(w, '{');
    flag(w, "allowed", &p->delegation);
    amp_jw_member_int(w, "max_depth", AMP_AOP_DEPTH_MOST);
    amp_jw_close(w, '}');
}

static int policy(struct amp_jw *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_aop_policy p;
    struct amp_span root;
    AMP_BUF struct amp_buf room = {0};
    amp_buf_init(&room, PATH_MOST);
    if (texts(v, "/task/environment/workspace_root", &room, &root, err) < 0)
        return -1;
    amp_aop_policy(v, &p);
    integer(w, "timeout_seconds", &p.timeout_seconds);
    integer(w, "max_retries", &p.max_retries);
    backoff(w, v, &p);
    word(w, "on_failure", amp_aop_on_failure_name((enum amp_aop_on_failure)p.on_failure.value),
         p.on_failure.source);
    flag(w, "abort_on_first_critical_error", &p.abort_on_first_critical_error);
    flag(w, "auto_terminate_on_timeout", &p.auto_terminate_on_timeout);
    flag(w, "require_final_signal", &p.final_signal);
    flag(w, "require_minimal_report", &p.minimal_report);
    heartbeat(w, v, &p);
    if (paths(w, v, "read_paths", &p.read, root, err) < 0 ||
        paths(w, v, "write_paths", &p.write, root, err) < 0)
        return -1;
    flag(w, "read_only_mode", &p.read_only);
    word(w, "network_access", amp_aop_network_name((enum amp_aop_network)p.network.value),
         p.network.source);
    budget(w, v, "max_cost_usd", &p.cost_usd);
    budget(w, v, "max_tokens", &p.tokens);
    delegation(w, &p);
    return 0;
}

int amp_aop_effective(const struct amp_view *v, struct amp_jw *w, struct amp_error *err)
{
    if (!amp_span_is(v->type, "TASK"))
        return 1;
    amp_jw_member_text(w, "protocol", amp_protocol_name(v->protocol));
    amp_jw_member_str(w, "type", v->type);
    amp_jw_member_str(w, "session_id", v->correlation);
    amp_jw_member_str(w, "task_id", v->task);
    return policy(w, v, err);
}
