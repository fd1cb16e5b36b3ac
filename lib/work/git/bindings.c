/* Deadlines of bindings, and the SW4RM messages about them. */
#include "work/git/bindings.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/sw4rm/answer.h"

#define LINE_MAX_BYTES (256u << 10)
#define GIT_LIMIT_MS   20000

static void subject_write(struct amp_jw *w, const struct amp_binding *b, const char *worktree)
{
    amp_jw_member_open(w, "subject", '{');
    if (*b->repo)
        amp_jw_member_text(w, "repo_id", b->repo);
    if (*worktree)
        amp_jw_member_text(w, "worktree_id", worktree);
    amp_jw_close(w, '}');
}

int amp_binding_ask(const struct amp_binding *b, const char *from, int64_t now_ms,
                    struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    char token[128];

    amp_buf_init(&payload, LINE_MAX_BYTES);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "invocation_id", b->invocation);
    amp_jw_member_text(&w, "reason_type", "WORKTREE_OVERRIDE");
    subject_write(&w, b, b->other);
    amp_jw_member_open(&w, "context", '{');
    amp_jw_member_text(&w, "agent_id", b->agent);
    amp_jw_member_text(&w, "home_worktree_id", b->worktree);
    amp_jw_member_text(&w, "target_worktree_id", b->other);
    amp_jw_close(&w, '}');
    amp_jw_member_open(&w, "proposed_actions", '[');
    amp_jw_str(&w, AMP_SPAN("approve"));
    amp_jw_str(&w, AMP_SPAN("deny"));
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    snprintf(token, sizeof token, "%.40s:switch:%.40s", from, b->invocation);
    const struct amp_sw4rm_said message = {.from = from,
                                           .type = "HITL_INVOCATION",
                                           .token = token,
                                           .correlation = amp_span_str(b->invocation),
                                           .now_ms = now_ms};
    return amp_sw4rm_line(AMP_SPAN("admin"), &message, amp_buf_span(&payload), out, err);
}

static int notice_write(const struct amp_binding *b, const char *from, int64_t now_ms, char *token,
                        size_t token_size, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    char since[AMP_TIME_MAX];

    amp_buf_init(&payload, LINE_MAX_BYTES);
    amp_time_format(b->since_ms, since);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "event", "bind_failed");
    amp_jw_member_text(&w, "severity", "warning");
    amp_jw_member_text(&w, "agent_id", b->agent);
    subject_write(&w, b, b->worktree);
    amp_jw_member_text(&w, "reason", amp_bind_reason_name(b->reason));
    amp_jw_member_text(&w, "why", b->why);
    amp_jw_member_int(&w, "tries", b->tries);
    amp_jw_member_text(&w, "since", since);
    amp_jw_member_text(&w, "suggested_action", "bind again, or unbind");
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    snprintf(token, token_size, "%.40s:bind-failed:%.64s:%lld", from, b->agent,
             (long long)b->since_ms);
    const struct amp_sw4rm_said message = {
        .from = from, .type = "NOTIFICATION", .token = token, .now_ms = now_ms};
    return amp_sw4rm_line(AMP_SPAN("admin"), &message, amp_buf_span(&payload), out, err);
}

struct due {
    struct amp_store *store;
    struct amp_git *git; /* opened when it is needed */
    int64_t now_ms;
    const char *actor, *from;
    const struct amp_prepare *prepare;
    uint32_t done;
};

static int switch_expire(struct due *d, const char *agent, struct amp_error *err)
{
    const struct amp_switch_spec spec = {.agent = agent, .now_ms = d->now_ms};
    struct amp_binding b;
    return amp_switch_end(d->store, d->git, &spec, AMP_BINDING_EV_TTL_EXPIRED, &b, err);
}

/* Repeats a failed bind. Its failure is recorded and is no error. */
static int bind_retry(struct due *d, const struct amp_binding *was, struct amp_error *err)
{
    const struct amp_bind_spec spec = {.agent = was->agent,
                                       .repo = was->repo,
                                       .path = *was->worktree ? was->worktree : NULL,
                                       .branch = *was->branch ? was->branch : NULL,
                                       .base = *was->base ? was->base : NULL,
                                       .retries = was->retries - 1,
                                       .prepare = d->prepare,
                                       .now_ms = d->now_ms};
    struct amp_binding now;
    struct amp_error failed;
    if (amp_bind(d->store, d->git, &spec, &now, &failed) == 0)
        return 0;
    if (amp_binding_get(d->store, was->agent, &now, err) < 0)
        return -1;
    if (now.state != AMP_BINDING_BIND_FAILED || now.tries != was->tries)
        return 0;
    *err = failed;
    return -1;
}

static int failure_notify(struct due *d, const struct amp_binding *was, struct amp_error *err)
{
    struct amp_binding b;
    AMP_BUF struct amp_buf line = {0};
    char token[160];
    amp_buf_init(&line, LINE_MAX_BYTES);
    if (notice_write(was, d->from, d->now_ms, token, sizeof token, &line, err) < 0)
        return -1;
    const struct amp_store_emit emit = {.id = amp_span_str(token),
                                        .line = {line.data, line.len - 1}}; /* without its LF */
    const struct amp_binding_step step = {.agent = was->agent,
                                          .event = AMP_BINDING_EV_RECOVERY_TIMEOUT,
                                          .now_ms = d->now_ms,
                                          .emit = &emit,
                                          .actor = d->actor};
    return amp_binding_step(d->store, &step, &b, err);
}

static int expire_one(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct due *d = ctx;
    struct amp_binding b;
    char agent[sizeof b.agent];
    /* A retry needs git to answer soon: other deadlines wait for it. */
    const struct amp_git_options options = {.time_limit_ms = GIT_LIMIT_MS};
    (void)rec;

    amp_span_copy(id, agent, sizeof agent);
    if (amp_binding_get(d->store, agent, &b, err) < 0)
        return -1;
    bool over = b.state == AMP_BINDING_BOUND_NON_HOME;
    bool failed = b.state == AMP_BINDING_BIND_FAILED && d->actor;
    bool retry = failed && b.retry_ms && b.retry_ms <= d->now_ms;
    if (!over && !failed)
        return 0;
    if ((over || retry) && !d->git && amp_git_open(&options, &d->git, err) < 0)
        return -1;
    int rc = over    ? switch_expire(d, agent, err)
             : retry ? bind_retry(d, &b, err)
                     : failure_notify(d, &b, err);
    if (rc < 0)
        return amp_code_is(err->code, illegal_transition) ? 0 : -1; /* 0: changed meanwhile */
    d->done++;
    return 0;
}

int amp_binding_expire(struct amp_store *s, int64_t now_ms, const char *actor, const char *from,
                       const struct amp_prepare *prepare, uint32_t *done, struct amp_error *err)
{
    struct due d = {.store = s, .now_ms = now_ms, .actor = actor, .from = from, .prepare = prepare};

    int rc = amp_store_due(s, AMP_BINDING_KIND, now_ms, expire_one, &d, err);
    amp_git_close(d.git);
    if (rc < 0)
        return -1;
    if (done)
        *done += d.done;
    return 0;
}
