/* Permissions for the rest of a session. */
#include "people/question/hook/grant.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "message/record/subject.h"
#include "people/answer/due.h"

struct grant {
    struct amp_span question, scope;
    int64_t until_ms;
    const struct amp_key *key;
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(TEXT, struct grant, "question", question),
    AMP_REC_EVER(TEXT, struct grant, "scope", scope),
    AMP_REC_EVER(INT, struct grant, "until", until_ms),
};
AMP_REC_TABLE(grant_rec, "a permission for a session", struct grant, fields);

static const char *const states[] = {"OPEN", NULL};
static const struct amp_subject grants = {.kind = AMP_HOOK_GRANT_KIND,
                                          .table = &grant_rec,
                                          .states = states,
                                          .key = AMP_SUBJECT_AT(struct grant, key),
                                          .due = AMP_SUBJECT_AT(struct grant, until_ms)};

bool amp_hook_scope_of(struct amp_store *s, const struct amp_call_event *e,
                       const struct amp_hook_place *at, const struct amp_hook_result *r,
                       const char *agent, const char *task, struct amp_hook_scope *out)
{
    char risk[16] = "", why[AMP_WHY_MAX];
    struct amp_error err;

    if (!e->session.n || !e->tool.n || r->grave)
        return false;
    if (task && *task &&
        (amp_decision_task_facts(s, amp_span_str(task), AMP_SPAN(""), risk, why, &err) < 0 ||
         strcmp(risk, "high") == 0))
        return false;
    /* Only the same call again, if no rule asks or it says nothing about a part of the call: the
     * rule for `make` does not permit what follows behind a semicolon. */
    struct amp_span rule = r->whole ? r->text : AMP_SPAN("");
    const struct amp_span parts[] = {amp_span_str(amp_call_cli_name(e->cli)),
                                     amp_span_str(agent ? agent : ""),
                                     e->session,
                                     e->tool,
                                     amp_span_str(at->top),
                                     rule,
                                     rule.n ? rule : e->input};
    if (amp_key_digest(parts, sizeof parts / sizeof *parts, out->digest, &err) < 0)
        return false;
    snprintf(out->text, sizeof out->text, "%s%s%.100s, session %.*s, tool %.*s in %.400s: %s",
             amp_call_cli_name(e->cli), agent && *agent ? ", agent " : "", agent ? agent : "",
             AMP_CLIP(e->session, 100), AMP_CLIP(e->tool, 100), at->top,
             rule.n ? r->why : "this call only");
    return true;
}

int amp_hook_grant_find(struct amp_store *s, const struct amp_hook_scope *scope, int64_t now_ms,
                        struct amp_hook_grant *out, struct amp_error *err)
{
    struct amp_question_rec q;
    struct grant g;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, qmem = {.max = AMP_REC_MAX};

    int found = amp_subject_find(&grants, s, AMP_KEY(grants.kind, amp_span_str(scope->digest)),
                                 &mem, &g, err);
    if (found > 0)
        found = g.until_ms > now_ms ? amp_question_find(s, g.question, &qmem, &q, err) : 0;
    if (found <= 0)
        return found;
    if (q.policy.n || q.decision.n != strlen(AMP_HOOK_SESSION_ACTION) ||
        strncasecmp(q.decision.p, AMP_HOOK_SESSION_ACTION, q.decision.n) != 0)
        return 0;
    *out = (struct amp_hook_grant){.until_ms = g.until_ms};
    amp_span_copy(q.operator, out->who, sizeof out->who);
    amp_span_copy(g.question, out->question, sizeof out->question);
    return 1;
}

int amp_hook_grant_add(struct amp_store *s, const struct amp_hook_scope *scope,
                       const char *question, int64_t until_ms, const char *actor,
                       struct amp_error *err)
{
    const struct grant g = {.question = amp_span_str(question),
                            .scope = amp_span_str(scope->text),
                            .until_ms = until_ms};

    return amp_subject_put(&grants, s, AMP_KEY(grants.kind, amp_span_str(scope->digest)), &g, false,
                           "GRANT", actor, err) < 0
               ? -1
               : amp_store_sync(s, err);
}

struct walk {
    amp_hook_grant_fn fn;
    void *ctx;
};

static int on_grant(void *ctx, const void *rec, struct amp_error *err)
{
    const struct walk *w = ctx;
    const struct grant *g = rec;
    const struct amp_hook_grant_row row = {g->key->part[0], g->scope, g->question, g->until_ms};

    return w->fn(w->ctx, &row, err);
}

int amp_hook_grants_each(struct amp_store *s, amp_hook_grant_fn fn, void *ctx,
                         struct amp_error *err)
{
    struct walk w = {fn, ctx};

    return amp_subject_each(&grants, s, NULL, on_grant, &w, err);
}

struct revoking {
    struct amp_store *s;
    const char *id, *actor;
    uint32_t n;
};

static int on_revoke(void *ctx, const struct amp_hook_grant_row *g, struct amp_error *err)
{
    struct revoking *r = ctx;

    if (!amp_span_starts(g->id, r->id))
        return 0;
    r->n++;
    return amp_subject_remove(&grants, r->s, AMP_KEY(grants.kind, g->id), 0, "REVOKE", r->actor,
                              err) < 0
               ? -1
               : 0;
}

int amp_hook_grants_revoke(struct amp_store *s, const char *id, const char *actor, uint32_t *n,
                           struct amp_error *err)
{
    struct revoking r = {s, id, actor, 0};

    if (amp_hook_grants_each(s, on_revoke, &r, err) < 0 || amp_store_sync(s, err) < 0)
        return -1;
    *n = r.n;
    return 0;
}
