/*
 * The effective policy of an AOP TASK (AOP §11), after precedence and defaults. Pure functions of a
 * valid line's view; a policy lives as long as the view.
 */
#ifndef AMP_PROTOCOL_AOP_POLICY_H
#define AMP_PROTOCOL_AOP_POLICY_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

/* The member of the message that a value comes from: X(id, path). */
#define AMP_AOP_SOURCE_LIST(X)                                                                     \
    X(DEFAULT, "default")                                                                          \
    X(EXECUTION, "execution_policy")                                                               \
    X(GUARD, "guard_rails")                                                                        \
    X(CAPABILITIES, "target.capabilities")                                                         \
    X(ACCESS, "task.access")                                                                       \
    X(CONSTRAINTS, "task.constraints")                                                             \
    X(BUDGETS, "task.budgets")
#define AMP_AOP_NETWORK_LIST(X)    X(NONE) X(RESTRICTED) X(FULL) /* the most restrictive first */
#define AMP_AOP_ON_FAILURE_LIST(X) X(REPORT_AND_CONTINUE) X(ABORT_SESSION) X(RETRY)
#define AMP_AOP_ON_SILENCE_LIST(X) X(ABORT) X(WARN) X(CONTINUE)

#define X(id, path) AMP_AOP_FROM_##id,
enum amp_aop_source { AMP_AOP_SOURCE_LIST(X) };
#undef X
#define X(id) AMP_AOP_NETWORK_##id,
enum amp_aop_network { AMP_AOP_NETWORK_LIST(X) };
#undef X
#define X(id) AMP_AOP_##id,
enum amp_aop_on_failure { AMP_AOP_ON_FAILURE_LIST(X) };
#undef X
#define X(id) AMP_AOP_SILENCE_##id,
enum amp_aop_on_silence { AMP_AOP_ON_SILENCE_LIST(X) };
#undef X
const char *amp_aop_source_name(enum amp_aop_source s);
const char *amp_aop_network_name(enum amp_aop_network n);
const char *amp_aop_on_failure_name(enum amp_aop_on_failure f);
const char *amp_aop_on_silence_name(enum amp_aop_on_silence s);

struct amp_aop_int {
    int64_t value;
    enum amp_aop_source source;
};
struct amp_aop_flag {
    bool value;
    enum amp_aop_source source;
};
struct amp_aop_word {
    unsigned value; /* of the enum for the member */
    enum amp_aop_source source;
};
/* A limit, which may be 0. */
struct amp_aop_budget {
    bool limited;
    double value;
    uint32_t tok; /* the number; AMP_TOK_NONE if not limited */
    enum amp_aop_source source;
};
/* The files that may be accessed. Not limited: all; limited: those under the paths of the array
 * `list`, none if that is AMP_TOK_NONE. */
struct amp_aop_paths {
    bool limited;
    uint32_t list;
    enum amp_aop_source source;
};

#define AMP_AOP_DEPTH_MOST        3     /* levels of delegation; beyond: E_MAX_DEPTH_EXCEEDED */
#define AMP_AOP_PROGRESS_LEAST_MS 30000 /* between two progress events */

struct amp_aop_policy {
    struct amp_aop_int timeout_seconds, max_retries;
    uint32_t backoff; /* array of seconds, or AMP_TOK_NONE: 30, 120, 300 */
    struct amp_aop_word on_failure;
    struct amp_aop_flag abort_on_first_critical_error, auto_terminate_on_timeout;
    struct amp_aop_flag minimal_report, final_signal, read_only, delegation;
    struct amp_aop_flag heartbeat;
    double heartbeat_seconds;
    struct amp_aop_int heartbeat_missed_most;
    struct amp_aop_word on_heartbeat_failure;
    struct amp_aop_paths read, write;
    struct amp_aop_word network;
    struct amp_aop_budget cost_usd, tokens;
};

/* The policy of a TASK: timeouts by precedence, the access that is both granted and a capability of
 * the agent, the most restrictive network, the lower budget. */
void amp_aop_policy(const struct amp_view *task, struct amp_aop_policy *out);

/* The reason why the policy denies access to a path, as the end of a sentence about the path;
 * NULL: it allows it. `root` and `path` are decoded. */
const char *amp_aop_denies(const struct amp_view *task, const struct amp_aop_paths *to,
                           struct amp_span root, struct amp_span path);

/* Appends the canonical form of a path of the task, without a look at the file system. 0, or -1
 * with E_PERMISSION_DENIED if it has none. */
int amp_aop_resolve(struct amp_span root, struct amp_span path, struct amp_buf *out,
                    struct amp_error *err);

/* Whether an amount is within the budget; the limit itself is. */
bool amp_aop_within(const struct amp_aop_budget *b, double spent);

/* The code of the rule of its task's policy that a valid RESPONSE breaks (E_COST_LIMIT_EXCEEDED),
 * or NULL. */
const char *amp_aop_response_fault(const struct amp_aop_policy *p, const struct amp_view *response);

/* Whether the agent is lost after this silence (E_HEARTBEAT_FAILURE). */
bool amp_aop_lost(const struct amp_aop_policy *p, int64_t last_ms, int64_t now_ms);

AMP_API_END

#endif
