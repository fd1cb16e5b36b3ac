/*
 * The rule for protected branches. branch-guard calls it for git's ref updates, git-worker for its
 * own. Links only libc.
 *
 * It applies to agents, and to people if the policy says so. The policy of a repository is the file
 * <git-common-dir>/amp/guard, written by `worktree-bind hooks install`:
 *
 *     amp-guard 1
 *     humans allow|refuse
 *     server none|all
 *     pusher NAME
 *     branch PATTERN
 *
 * main and master are protected even without this file.
 */
#ifndef AMP_WORKTREE_RULE_H
#define AMP_WORKTREE_RULE_H

#include <stdbool.h>

#include <amp/base/buf.h>

#define AMP_RULE_PATTERNS_MAX 64
#define AMP_RULE_FILE_MAX     16384
#define AMP_RULE_FILE         "guard" /* below <git-common-dir>/amp */

struct amp_rule {
    bool humans_refuse; /* the rule also applies to people */
    bool server_all;    /* the server-side hooks refuse all pushes except those of the pushers */
    const char *patterns[AMP_RULE_PATTERNS_MAX + 1];
    const char *pushers[AMP_RULE_PATTERNS_MAX + 1];
    char text[AMP_RULE_FILE_MAX + 1];
};

void amp_rule_default(struct amp_rule *r);
/* CONFIG bad_guard_policy: an invalid line. The caller must not assume a weaker policy. */
int amp_rule_parse(struct amp_rule *r, struct amp_span text, struct amp_error *err);
int amp_rule_format(const struct amp_rule *r, struct amp_buf *out, struct amp_error *err);
/* Reads <common>/amp/guard; the default policy if it does not exist. */
int amp_rule_load(struct amp_rule *r, int common_fd, struct amp_error *err);

/* ref: "main" or "refs/heads/main"; false for refs that are not branches. */
bool amp_rule_protects(const struct amp_rule *r, struct amp_span ref);

/* One update of a ref. Values are hex digits; all zeros or empty: no value. */
struct amp_ref_update {
    struct amp_span ref;
    struct amp_span now;    /* its current value, loose or packed */
    struct amp_span packed; /* the value in packed-refs */
    struct amp_span new_value;
    bool packed_locked; /* packed-refs.lock exists: a real deletion, not a pruning */
};

enum amp_rule_verdict {
    AMP_RULE_ALLOW,
    AMP_RULE_NOOP,  /* the value does not change */
    AMP_RULE_PRUNE, /* a loose copy is removed, packed-refs keeps the value */
    AMP_RULE_REFUSE,
};
/* agent: its name, or NULL for a person. */
enum amp_rule_verdict amp_rule_decide(const struct amp_rule *r, const char *agent,
                                      const struct amp_ref_update *u);

/* The agent that works in a git directory: env_agent, the value of AMP_AGENT, if it is not NULL
 * (empty: the agent "unknown"), else the one that the file amp-agent names. false: a person. A
 * marker that cannot be read counts as the agent "unknown". */
#define AMP_AGENT_MARKER "amp-agent"
bool amp_rule_agent(const char *env_agent, int gitdir_fd, char *name, size_t size);

#endif
