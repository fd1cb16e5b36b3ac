/* The values of a message by its kind: the union inside a view. Texts are decoded. Lists are in the
 * reader's arena and live as long as the view. A time of 0 means that none is given. */
#ifndef AMP_PROTOCOL_BODY_H
#define AMP_PROTOCOL_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>
#include <amp/protocol/items.h>
#include <amp/protocol/words.h>

AMP_API_BEGIN

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
    X(TOOL_RESULT, "tool_result")                                                                  \
    X(WORKTREE, "worktree")                                                                        \
    X(NEGOTIATION, "negotiation")                                                                  \
    X(WORKFLOW, "workflow")                                                                        \
    X(CHUNK, "chunk")                                                                              \
    X(BATCH, "batch")

enum amp_kind {
#define X(id, name) AMP_KIND_##id,
    AMP_KIND_LIST(X)
#undef X
        AMP_KIND_COUNT
};
const char *amp_kind_name(enum amp_kind k);

struct amp_body {
    union {
        struct {
            struct amp_span description, repo, branch;
            const struct amp_subtask *subtasks;
            uint32_t n_subtasks;
            struct amp_spans criteria, forbidden;
            struct amp_spans wanted;     /* capabilities, if it has no recipient */
            struct amp_span constraints; /* a JSON object, or empty */
            enum amp_risk risk;
        } dispatch;
        struct {
            struct amp_span subtask, commit;
            struct amp_span agent;   /* that did the work; empty: the sender */
            struct amp_span ref;     /* the location of the result or its summary */
            struct amp_span failure; /* why it failed, as the protocol spells it */
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
            struct amp_span ref, action, task, context; /* ref: the question; action: a proposal */
            int64_t deadline_ms;
        } escalation;
        struct {
            struct amp_span ref, note, commit, op; /* op: the operator */
            enum amp_operator_word word;
            struct amp_span action;    /* the word of a protocol that has other words */
            struct amp_spans criteria; /* that replace the former ones; or none */
            int64_t decided_ms;
        } decision;
        struct {
            struct amp_span ref, code, note;
            enum amp_ack_stage stage;
            bool retryable;
            int64_t eta_ms;
        } ack; /* acks and nacks */
        struct {
            struct amp_span branch, commit, first_failed;
            struct amp_span checks; /* a JSON object */
            bool failed, pending;
        } ci;
        struct {
            struct amp_span parent, from, to, note; /* parent: the task that hands over */
            struct amp_spans criteria, outputs, context, constraints;
            int64_t due_ms;
            struct amp_span ref, status; /* of the offer that is answered */
            struct amp_spans wanted;     /* capabilities of the receiver */
            bool answered, accepted;
            int64_t timeout_ms;
        } handoff;
        struct {
            struct amp_span status, note, agent, phase, checkpoint;
            struct amp_spans blockers;
            double percent;
            bool has_percent;
            int64_t eta_ms;
        } progress; /* also heartbeats */
        struct {
            struct amp_span artifact, voter;
            double score, confidence; /* 0 to 10, 0 to 1 */
            bool passed;
        } vote;
        struct {
            struct amp_span call, tool, provider, isolation, network, privilege;
            int64_t timeout_ms, retries, cpu_ms, wall_ms; /* 0: no limit */
            bool stream, needs_worktree;
        } tool_call;
        struct {
            struct amp_span call, status, code, note; /* code: of a failure */
            int64_t frame;
            bool has_frame, final;
        } tool_result;
        struct {
            struct amp_span operation, agent, repo, worktree, target, state, note;
            int64_t ttl_ms;
            bool needs_human;
        } worktree;
        struct {
            struct amp_span event, negotiation, from, topic, outcome, intensity, note;
            struct amp_spans participants;
            double score;
        } negotiation;
        struct {
            struct amp_span workflow;
            struct amp_span nodes; /* a JSON object */
        } workflow;
        struct {
            struct amp_span transfer, ref, from, protocol, correlation, task; /* of the message */
            struct amp_span data, digest, whole_digest; /* base64; SHA-256 in hex */
            int64_t index, count, size, chunk_size, whole_size;
        } chunk;
        struct {
            struct amp_span batch, digest;
            struct amp_spans messages; /* lines without LF */
            int64_t count, size;
        } batch;
    };
};

AMP_API_END

#endif
