/* Applies the access rules to messages. */
#include "message/delivery/admit/access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"

enum { SCOPES_MAX = 8, NAME_MAX_ = 16 };

static struct amp_access *rules;
static bool denies, logs_all;

static void rules_free(void)
{
    amp_access_free(rules);
}

static int rules_make(struct amp_error *err)
{
    if (rules)
        return 0;
    rules = amp_access_new(err);
    return rules && atexit(rules_free) == 0 ? 0 : amp_fail_memory(err);
}

int amp_access_rule_set(void *arg, const char *text, struct amp_error *err)
{
    return rules_make(err) < 0 ? -1 : amp_access_add(rules, amp_span_str(text), err);
}

int amp_access_default_set(void *arg, const char *text, struct amp_error *err)
{
    if (rules_make(err) < 0)
        return -1;
    denies = strcmp(text, "deny") == 0;
    amp_access_set_default(rules, denies ? AMP_ACCESS_DENY : AMP_ACCESS_ALLOW);
    return 0;
}

int amp_access_log_set(void *arg, const char *text, struct amp_error *err)
{
    logs_all = strcmp(text, "all") == 0;
    return 0;
}

bool amp_access_is_set(void)
{
    return rules && (denies || amp_access_count(rules) > 0);
}

/* The scopes of a message, as texts. */
struct scopes {
    struct amp_buf text; /* has room for all of them */
    struct amp_span v[SCOPES_MAX];
    uint32_t n;
};

static void scope_add(struct scopes *s, const char *name, struct amp_span value)
{
    size_t start = s->text.len;
    if (value.n == 0 || s->n == SCOPES_MAX || amp_buf_str(&s->text, name, NULL) < 0 ||
        amp_buf_add(&s->text, value.p, value.n, NULL) < 0)
        return;
    s->v[s->n++] = (struct amp_span){s->text.data + start, s->text.len - start};
}

static int scopes_of(const struct amp_view *v, struct scopes *s, struct amp_span *tool,
                     struct amp_error *err)
{
    /* The values are parts of the line, or decoded, which makes them shorter. */
    if (amp_buf_reserve(&s->text, 2 * v->line.n + SCOPES_MAX * NAME_MAX_, err) < 0)
        return -1;
    scope_add(s, "task:", v->task);
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
        scope_add(s, "repo:", v->body.dispatch.repo);
        scope_add(s, "branch:", v->body.dispatch.branch);
        break;
    case AMP_KIND_TOOL_CALL:
        *tool = v->body.tool_call.tool;
        scope_add(s, "provider:", v->body.tool_call.provider);
        scope_add(s, "network:", v->body.tool_call.network);
        scope_add(s, "privilege:", v->body.tool_call.privilege);
        break;
    case AMP_KIND_WORKTREE:
        scope_add(s, "repo:", v->body.worktree.repo);
        scope_add(s, "worktree:", v->body.worktree.worktree);
        scope_add(s, "worktree:", v->body.worktree.target);
        break;
    default:
        break;
    }
    return 0;
}

static void scopes_release(struct scopes *s)
{
    amp_buf_release(&s->text);
}

static int shown_width(struct amp_span s)
{
    return (int)(s.n < 100 ? s.n : 100);
}

int amp_access_check(const struct amp_view *v, char text[AMP_ACCESS_TEXT_MAX],
                     struct amp_error *err)
{
    AMP_CLEANUP(scopes_release) struct scopes scopes = {0};
    struct amp_access_facts f = {.type = v->type,
                                 .sender = v->from,
                                 .recipients = v->to,
                                 .n_recipients = v->n_to,
                                 .scopes = scopes.v};
    char by[40] = "the default";
    if (!amp_access_is_set())
        return 1;
    amp_buf_init(&scopes.text, SIZE_MAX / 2);
    if (scopes_of(v, &scopes, &f.tool, err) < 0)
        return -1;
    f.n_scopes = scopes.n;
    struct amp_access_decision d = amp_access_decide(rules, &f);
    if (d.effect == AMP_ACCESS_ALLOW && !logs_all)
        return 1;
    if (d.rule)
        snprintf(by, sizeof by, "access rule %u", d.rule);
    snprintf(text, AMP_ACCESS_TEXT_MAX, "%.*s %s send %.*s to %.*s%s%.*s (%s)",
             shown_width(f.sender), f.sender.n ? f.sender.p : "",
             d.effect == AMP_ACCESS_DENY ? "must not" : "may", shown_width(v->type), v->type.p,
             d.recipient.n ? shown_width(d.recipient) : 7,
             d.recipient.n ? d.recipient.p : "anybody", f.tool.n ? ", tool " : "",
             shown_width(f.tool), f.tool.n ? f.tool.p : "", by);
    if (d.effect == AMP_ACCESS_DENY)
        return amp_fail(err, AMP_NO, access_denied, "%s", text);
    return 0;
}
