/*
 * The rules of hitl.hook.rules in amp.json about tool calls of coding agents: allow, deny or ask,
 * by CLI, tool, kind, command pattern (work/git/call/plain.h) and path pattern
 * (work/git/paths/glob.h). amp-hook-rules(7) describes them.
 *
 * The order of the rules has no effect: a rule that denies wins over one that asks, that over one
 * that allows. A call is allowed only if every command and every path of it is allowed. Rules about
 * commands and paths read plain command lines only. While a rule asks or denies, a line that is not
 * plain, and a patch with a line that might be a header, is decided by `unread`.
 */
#ifndef AMP_PEOPLE_QUESTION_HOOK_RULES_H
#define AMP_PEOPLE_QUESTION_HOOK_RULES_H

#include <limits.h>

#include "work/git/call/event/event.h"

#define AMP_HOOK_RULES_MAX 1000

enum amp_hook_decision {
    AMP_HOOK_UNDECIDED, /* no rule decides */
    AMP_HOOK_ALLOW,
    AMP_HOOK_ASK,
    AMP_HOOK_DENY,
};

struct amp_hook_rules {
    struct amp_hook_rule *v;
    size_t n, cap;
    /* The action for calls that cannot be read while a rule refuses. UNDECIDED: ASK; ALLOW: the
     * rules decide, as if none refused. */
    enum amp_hook_decision unread;
};
/* The value of hitl.hook.unread: ask, deny or allow. */
int amp_hook_unread_set(struct amp_hook_rules *r, struct amp_span word, struct amp_error *err);
/* Adds a rule, a JSON object. CONFIG bad_config: malformed, an invalid pattern, a rule that allows
 * with both a command and a path, too many rules. */
int amp_hook_rules_add(struct amp_hook_rules *r, struct amp_span json, struct amp_error *err);
void amp_hook_rules_release(struct amp_hook_rules *r);
#define AMP_HOOK_RULES AMP_CLEANUP(amp_hook_rules_release) struct amp_hook_rules

/* The place of the call. */
struct amp_hook_place {
    char cwd[PATH_MAX]; /* canonical */
    char top[PATH_MAX]; /* of its worktree, or cwd */
};
/* cwd: of the event, or "" for the current directory. DATAERR call_malformed: it is not an absolute
 * path of a directory. */
int amp_hook_place_find(struct amp_span cwd, struct amp_hook_place *out, struct amp_error *err);

struct amp_hook_result {
    enum amp_hook_decision decision;
    size_t rule;          /* its number from 1; 0: none, or several */
    struct amp_span text; /* the rule that asks, as it was given; empty: none does */
    bool whole; /* the rule that asks is about the whole call, but for what other rules allow */
    bool grave; /* its risk is high, another rule of high risk asks, or the call is unread */
    char why[512];
};
int amp_hook_decide(const struct amp_hook_rules *r, const struct amp_call_event *e,
                    const struct amp_hook_place *at, struct amp_hook_result *out,
                    struct amp_error *err);

#endif
