/*
 * Permissions for the rest of a session of a coding agent: a person who is asked about a tool call
 * may allow the calls like it (AMP_HOOK_SESSION_ACTION), until a time. Like it are the calls of the
 * same agent, session, tool and worktree about which the same rule asks; if no rule asks, or it is
 * not about the whole call, only calls with the same input.
 *
 * Key "hook_grant.DIGEST": {"question","scope","until"}. The record only finds the question: its
 * decision is the permission, so it counts as long as the question's record has this decision.
 */
#ifndef AMP_PEOPLE_QUESTION_HOOK_GRANT_H
#define AMP_PEOPLE_QUESTION_HOOK_GRANT_H

#include "people/question/hook/rules.h"
#include "people/question/record.h"

#define AMP_HOOK_GRANT_KIND     "hook_grant"
#define AMP_HOOK_SESSION_ACTION "approve_session"

enum { AMP_HOOK_SCOPE_MAX = 1024 };

struct amp_hook_scope {
    char digest[AMP_KEY_NAME_MAX];
    char text[AMP_HOOK_SCOPE_MAX]; /* for people: what is permitted */
};
/* The calls like this one. false: a permission for the session is never given: the event has no
 * session, the risk of the rule or the task is high, or the rule only might apply. */
bool amp_hook_scope_of(struct amp_store *s, const struct amp_call_event *e,
                       const struct amp_hook_place *at, const struct amp_hook_result *r,
                       const char *agent, const char *task, struct amp_hook_scope *out);

struct amp_hook_grant {
    char who[AMP_QUESTION_KEY_MAX], question[AMP_QUESTION_KEY_MAX];
    int64_t until_ms;
};
/* Whether calls of the scope are permitted now. 1: *out; 0: they are not. */
int amp_hook_grant_find(struct amp_store *s, const struct amp_hook_scope *scope, int64_t now_ms,
                        struct amp_hook_grant *out, struct amp_error *err);
/* Records the permission of a question's decision; synced. */
int amp_hook_grant_add(struct amp_store *s, const struct amp_hook_scope *scope,
                       const char *question, int64_t until_ms, const char *actor,
                       struct amp_error *err);

struct amp_hook_grant_row {
    struct amp_span id, scope, question; /* id: the beginning of the digest names it */
    int64_t until_ms;
};
typedef int (*amp_hook_grant_fn)(void *ctx, const struct amp_hook_grant_row *g,
                                 struct amp_error *err);
int amp_hook_grants_each(struct amp_store *s, amp_hook_grant_fn fn, void *ctx,
                         struct amp_error *err);
/* Ends the permissions whose digest begins with id; "" ends all. Synced. */
int amp_hook_grants_revoke(struct amp_store *s, const char *id, const char *actor, uint32_t *n,
                           struct amp_error *err);

#endif
