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
 *     role ROLE PATTERN
 *     bound on|off
 *     trailer NAME
 *     path PATTERN
 *     max-file BYTES
 *     max-commit BYTES
 *
 * main and master are protected even without this file. The rules after `branch` restrict agents
 * only; on a server, trailer, path, max-file and max-commit restrict everybody but the pushers.
 */
#ifndef AMP_WORK_GIT_RULE_H
#define AMP_WORK_GIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

#define AMP_RULE_PATTERNS_MAX 64
#define AMP_RULE_FILE_MAX     16384
#define AMP_RULE_FILE         "guard" /* below <git-common-dir>/amp */

struct amp_rule {
    bool humans_refuse; /* the rule also applies to people */
    bool server_all;    /* the server-side hooks refuse all pushes except those of the pushers */
    bool bound;         /* an agent moves only the branch of its marker, in its own worktree */
    int64_t max_file, max_commit; /* bytes of a file; of all files that a commit changes; 0: any */
    const char *patterns[AMP_RULE_PATTERNS_MAX + 1];
    const char *pushers[AMP_RULE_PATTERNS_MAX + 1];
    /* "ROLE PATTERN". If there is one, an agent moves only branches that match a pattern of its
     * role, or of the role "*". An agent without a role has the patterns of "*" only. */
    const char *roles[AMP_RULE_PATTERNS_MAX + 1];
    const char *trailers[AMP_RULE_PATTERNS_MAX + 1]; /* required in each commit, any case */
    const char *paths[AMP_RULE_PATTERNS_MAX + 1];    /* files that a commit may not change */
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

/* The process that updates a ref. */
struct amp_rule_caller {
    bool agent;       /* else a person, and the other members are empty */
    bool marked;      /* in a worktree with the marker of this agent */
    char name[128];   /* the agent */
    char role[64];    /* "" if unknown */
    char branch[256]; /* that the marker names; "": none */
};

enum amp_rule_verdict {
    AMP_RULE_ALLOW,
    AMP_RULE_NOOP,   /* the value does not change */
    AMP_RULE_PRUNE,  /* a loose copy is removed, packed-refs keeps the value */
    AMP_RULE_REFUSE, /* a protected branch */
    AMP_RULE_REFUSE_ROLE,
    AMP_RULE_REFUSE_BOUND,
};
enum amp_rule_verdict amp_rule_decide(const struct amp_rule *r, const struct amp_rule_caller *c,
                                      const struct amp_ref_update *u);
/* Decides without values: whether the caller may move the branch at all. */
enum amp_rule_verdict amp_rule_allows(const struct amp_rule *r, const struct amp_rule_caller *c,
                                      struct amp_span ref);
static inline bool amp_rule_refused(enum amp_rule_verdict v)
{
    return v >= AMP_RULE_REFUSE;
}
/* "branch_violation", "branch_not_of_role", "branch_not_bound"; "" if allowed. */
const char *amp_rule_code(enum amp_rule_verdict v);

/* The file amp-agent in the git directory of an agent's worktree:
 *
 *     AGENT
 *     branch NAME
 *     role ROLE
 *
 * The first line always exists. A worktree without the line branch is detached. */
#define AMP_AGENT_MARKER "amp-agent"
int amp_marker_format(const char *agent, const char *branch, const char *role, struct amp_buf *out,
                      struct amp_error *err); /* branch and role: NULL or "": none */

/* The caller that works in a git directory: the agent env_agent, the value of AMP_AGENT, if it is
 * not NULL, else the one that the marker names. An empty env_agent counts as the marker's agent, or
 * as the agent "unknown", as does a marker that cannot be read. The role is the marker's, else
 * env_role, the value of AMP_ROLE. */
void amp_rule_caller(const char *env_agent, const char *env_role, int gitdir_fd,
                     struct amp_rule_caller *out);
/* The name only. false: a person. */
bool amp_rule_agent(const char *env_agent, int gitdir_fd, char *name, size_t size);

#endif
