/* Writes the effective policy of a TASK: each value with the member that it comes from. */
#include <amp/json/writer.h>
#include <amp/protocol/aop_policy.h>

#include "message/protocol/aop/aop.h"
#include "message/protocol/view/object.h"

enum { PATH_MOST = 1024 * 1024 };

/* Opens {"value": …; `value_close` ends it with the source. */
static void value_open(struct amp_jw *w, const char *name)
{
    amp_jw_member_open(w, name, '{');
    amp_jw_key(w, "value");
}

static void value_close(struct amp_jw *w, enum amp_aop_source source)
{
    amp_jw_member_text(w, "source", amp_aop_source_name(source));
    amp_jw_close(w, '}');
}

static void int_write(struct amp_jw *w, const char *name, const struct amp_aop_int *n)
{
    value_open(w, name);
    amp_jw_int(w, n->value);
    value_close(w, n->source);
}

static void flag_write(struct amp_jw *w, const char *name, const struct amp_aop_flag *f)
{
    value_open(w, name);
    amp_jw_bool(w, f->value);
    value_close(w, f->source);
}

static void word_write(struct amp_jw *w, const char *name, const char *text,
                       enum amp_aop_source source)
{
    value_open(w, name);
    amp_jw_str(w, amp_span_str(text));
    value_close(w, source);
}

/* The number with the bytes of the message; null: no limit. */
static void budget_write(struct amp_jw *w, const struct amp_view *v, const char *name,
                         const struct amp_aop_budget *b)
{
    value_open(w, name);
    if (b->limited)
        amp_jw_raw(w, amp_tok_source(v->tape, b->tok));
    else
        amp_jw_null(w);
    value_close(w, b->source);
}

/* The canonical paths; null: everywhere. A path that cannot be resolved is left out. */
static int paths_write(struct amp_jw *w, const struct amp_view *v, const char *name,
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

static void backoff_write(struct amp_jw *w, const struct amp_view *v,
                          const struct amp_aop_policy *p)
{
    bool given = p->backoff != AMP_TOK_NONE;
    value_open(w, "retry_backoff_seconds");
    if (given)
        amp_jw_raw(w, amp_tok_source(v->tape, p->backoff));
    else
        amp_jw_raw(w, AMP_SPAN("[30,120,300]"));
    value_close(w, given ? AMP_AOP_FROM_EXECUTION : AMP_AOP_FROM_DEFAULT);
}

static void heartbeat_write(struct amp_jw *w, const struct amp_view *v,
                            const struct amp_aop_policy *p)
{
    uint32_t seconds =
        amp_tape_pointer(v->tape, 0, AMP_SPAN("/execution_policy/heartbeat/interval_seconds"));
    amp_jw_member_open(w, "heartbeat", '{');
    flag_write(w, "enabled", &p->heartbeat);
    value_open(w, "interval_seconds");
    if (seconds != AMP_TOK_NONE)
        amp_jw_raw(w, amp_tok_source(v->tape, seconds));
    else
        amp_jw_int(w, (int64_t)p->heartbeat_seconds);
    value_close(w, seconds != AMP_TOK_NONE ? AMP_AOP_FROM_EXECUTION : AMP_AOP_FROM_DEFAULT);
    int_write(w, "max_missed_beats", &p->heartbeat_missed_most);
    word_write(w, "on_heartbeat_failure",
               amp_aop_on_silence_name((enum amp_aop_on_silence)p->on_heartbeat_failure.value),
               p->on_heartbeat_failure.source);
    amp_jw_close(w, '}');
}

static void delegation_write(struct amp_jw *w, const struct amp_aop_policy *p)
{
    amp_jw_member_open(w, "delegation", '{');
    flag_write(w, "allowed", &p->delegation);
    amp_jw_member_int(w, "max_depth", AMP_AOP_DEPTH_MOST);
    amp_jw_close(w, '}');
}

/* The directory of the task's paths, if it has a canonical form. */
static int root_write(struct amp_jw *w, struct amp_span root, struct amp_error *err)
{
    AMP_BUF struct amp_buf path = {0};
    amp_buf_init(&path, PATH_MOST);
    if (root.n == 0)
        return 0;
    if (amp_aop_resolve((struct amp_span){"", 0}, root, &path, err) == 0)
        amp_jw_member_str(w, "workspace_root", amp_buf_span(&path));
    else if (err->status != AMP_NOPERM)
        return -1;
    return 0;
}

static int policy_write(struct amp_jw *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_aop_policy p;
    struct amp_span root = {"", 0};
    AMP_BUF struct amp_buf room = {0};
    uint32_t environment = amp_tape_pointer(v->tape, 0, AMP_SPAN("/task/environment"));
    uint32_t tok = amp_object_get(v->tape, environment, "workspace_root", AMP_JSON_STRING);
    amp_buf_init(&room, PATH_MOST);
    if (tok != AMP_TOK_NONE && amp_tok_text(v->tape, tok, &room, &root, err) < 0)
        return -1;
    if (root_write(w, root, err) < 0)
        return -1;
    amp_aop_policy(v, &p);
    int_write(w, "timeout_seconds", &p.timeout_seconds);
    int_write(w, "max_retries", &p.max_retries);
    backoff_write(w, v, &p);
    word_write(w, "on_failure",
               amp_aop_on_failure_name((enum amp_aop_on_failure)p.on_failure.value),
               p.on_failure.source);
    flag_write(w, "abort_on_first_critical_error", &p.abort_on_first_critical_error);
    flag_write(w, "auto_terminate_on_timeout", &p.auto_terminate_on_timeout);
    flag_write(w, "require_final_signal", &p.final_signal);
    flag_write(w, "require_minimal_report", &p.minimal_report);
    heartbeat_write(w, v, &p);
    if (paths_write(w, v, "read_paths", &p.read, root, err) < 0 ||
        paths_write(w, v, "write_paths", &p.write, root, err) < 0)
        return -1;
    flag_write(w, "read_only_mode", &p.read_only);
    word_write(w, "network_access", amp_aop_network_name((enum amp_aop_network)p.network.value),
               p.network.source);
    budget_write(w, v, "max_cost_usd", &p.cost_usd);
    budget_write(w, v, "max_tokens", &p.tokens);
    delegation_write(w, &p);
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
    return policy_write(w, v, err);
}
