/* What the machines decide on, by kind: the union inside a view. Spans are decoded. Lists point
 * into the reader's arena and live as long as the view. */
#ifndef AMP_PROTOCOL_BODY_H
#define AMP_PROTOCOL_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>
#include <amp/protocol/words.h>

#define AMP_KIND_LIST(X)                                                                           \
    X(OTHER, "other")                                                                              \
    X(DISPATCH, "dispatch")                                                                        \
    X(RESULT, "result")                                                                            \
    X(REVIEW, "review")                                                                            \
    X(VERDICT, "verdict")                                                                          \
    X(ESCALATION, "escalation")                                                                    \
    X(DECISION, "decision")                                                                        \
    X(ACK, "ack")                                                                                  \
    X(NACK, "nack")                                                                                \
    X(CI_STATUS, "ci_status")                                                                      \
    X(HEARTBEAT, "heartbeat")                                                                      \
    X(PROGRESS, "progress")                                                                        \
    X(HANDOFF, "handoff")                                                                          \
    X(VOTE, "vote")                                                                                \
    X(TOOL_CALL, "tool_call")                                                                      \
    X(TOOL_RESULT, "tool_result")

enum amp_kind {
#define X(id, name) AMP_KIND_##id,
    AMP_KIND_LIST(X)
#undef X
        AMP_KIND_COUNT
};
const char *amp_kind_name(enum amp_kind k);

struct amp_spans {
    const struct amp_span *v;
    uint32_t n;
};

enum amp_tri { AMP_TRI_NULL, AMP_TRI_FALSE, AMP_TRI_TRUE }; /* criteria: null is not judged */

struct amp_subtask {
    struct amp_span id, description;
    int64_t estimated_lines;
};
struct amp_issue {
    bool blocking; /* critical or major */
    struct amp_span severity, file, description, suggested_fix;
    int64_t line;
};
struct amp_criterion {
    struct amp_span criterion, evidence;
    enum amp_tri passed;
};
struct amp_fix {
    struct amp_span file, change_type;
    int64_t diff_lines;
};

struct amp_body {
    union {
        struct {
            struct amp_span description, repo, branch;
            const struct amp_subtask *subtasks;
            uint32_t n_subtasks;
            struct amp_spans criteria, forbidden;
            struct amp_span constraints; /* a JSON object as it stands, or empty */
            enum amp_risk risk;
        } dispatch;
        struct {
            struct amp_span subtask, commit;
            struct amp_span ref;     /* where the result or its summary stands */
            struct amp_span failure; /* why it failed, in the protocol's own word */
            enum amp_completion completion;
            struct amp_spans files_changed, blockers, notes;
            const enum amp_tri *criteria_met;
            uint32_t n_criteria_met;
            int64_t lines_added, lines_removed;
        } result;
        struct {
            struct amp_span dispatch_ref, result_ref, diff_url, notes;
            bool incremental, ci_failed;
            int64_t reject_count;
        } review;
        struct {
            enum amp_decision_word decision;
            const struct amp_criterion *criteria;
            const struct amp_issue *issues;
            const struct amp_fix *fixes;
            uint32_t n_criteria, n_issues, n_fixes, n_blocking;
            double confidence;
        } verdict;
        struct {
            struct amp_span type, triggered_by, description, task_status;
            enum amp_level severity;
            struct amp_spans affected, suggested;
            bool auto_suspended;
            int64_t reject_count;
        } escalation;
        struct {
            struct amp_span ref, note, commit, op; /* op: the operator */
            enum amp_operator_word word;
        } decision;
        struct {
            struct amp_span ref, code, note;
            enum amp_ack_stage stage;
            bool retryable;
        } ack; /* acks and nacks */
        struct {
            struct amp_span branch, commit, first_failed;
            struct amp_span checks; /* the JSON object as it stands */
            bool failed, pending;
        } ci;
        struct {
            struct amp_span parent, from, to, note; /* parent: the task that hands over */
            struct amp_spans criteria, outputs, context, constraints;
            int64_t due_ms; /* 0: not said */
        } handoff;
        struct {
            struct amp_span status, note, agent, phase, checkpoint;
            struct amp_spans blockers;
            double percent;
            bool has_percent;
            int64_t eta_ms; /* 0: not said */
        } progress;         /* heartbeats too */
    };
};

#endif
