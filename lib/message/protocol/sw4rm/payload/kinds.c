/* SW4RM: the tables that fill the body of each shape, and the row of a message. */
#include <stddef.h>
#include <string.h>

#include "message/protocol/sw4rm/sw4rm.h"

#define B(field) offsetof(struct amp_body, field)

static const struct amp_fill_row ack_rows[] = {
    {AMP_AT("/ack_for_message_id"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/ack_stage"), AMP_AS_WORD, B(ack.stage), 0, &amp_words_stage},
    {AMP_AT("/error_code"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/note"), AMP_AS_TEXT, B(ack.note), 0, NULL},
};
static const struct amp_fill_table ack = AMP_FILL_TABLE(struct amp_body, ack_rows);

static const struct amp_fill_row invocation_rows[] = {
    {AMP_AT("/invocation_id"), AMP_AS_TEXT, B(escalation.ref), 0, NULL},
    {AMP_AT("/reason_type"), AMP_AS_TEXT, B(escalation.type), 0, NULL},
    {AMP_AT("/subject/task_id"), AMP_AS_TEXT, B(escalation.task), 0, NULL},
    {AMP_AT("/context_uri"), AMP_AS_TEXT, B(escalation.context), 0, NULL},
    {AMP_AT("/suggested_action"), AMP_AS_TEXT, B(escalation.action), 0, NULL},
    {AMP_AT("/proposed_actions"), AMP_AS_TEXTS, B(escalation.suggested), 0, NULL},
    {AMP_AT("/deadline_ts"), AMP_AS_TIME, B(escalation.deadline_ms), 0, NULL},
};
static const struct amp_fill_table invocation = AMP_FILL_TABLE(struct amp_body, invocation_rows);

/* The action has two names in the protocol. */
static const struct amp_fill_row decision_rows[] = {
    {AMP_AT("/invocation_id"), AMP_AS_TEXT, B(decision.ref), 0, NULL},
    {AMP_AT("/action"), AMP_AS_TEXT, B(decision.action), 0, NULL},
    {AMP_AT("/decision"), AMP_AS_TEXT, B(decision.action), 0, NULL},
    {AMP_AT("/rationale"), AMP_AS_TEXT, B(decision.note), 0, NULL},
    {AMP_AT("/operator"), AMP_AS_TEXT, B(decision.op), 0, NULL},
    {AMP_AT("/decided_at"), AMP_AS_TIME, B(decision.decided_ms), 0, NULL},
};
static const struct amp_fill_table decision = AMP_FILL_TABLE(struct amp_body, decision_rows);

static const struct amp_fill_row worktree_rows[] = {
    {AMP_AT("/operation"), AMP_AS_TEXT, B(worktree.operation), 0, NULL},
    {AMP_AT("/agent_id"), AMP_AS_TEXT, B(worktree.agent), 0, NULL},
    {AMP_AT("/repo_id"), AMP_AS_TEXT, B(worktree.repo), 0, NULL},
    {AMP_AT("/worktree_id"), AMP_AS_TEXT, B(worktree.worktree), 0, NULL},
    {AMP_AT("/target_worktree_id"), AMP_AS_TEXT, B(worktree.target), 0, NULL},
    {AMP_AT("/requires_hitl"), AMP_AS_BOOL, B(worktree.needs_human), 0, NULL},
    {AMP_AT("/ttl_ms"), AMP_AS_INT, B(worktree.ttl_ms), 0, NULL},
    {AMP_AT("/state"), AMP_AS_TEXT, B(worktree.state), 0, NULL},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(worktree.note), 0, NULL},
};
static const struct amp_fill_table worktree = AMP_FILL_TABLE(struct amp_body, worktree_rows);

/* Several members have one name in events and another in the protobuf files. */
static const struct amp_fill_row negotiation_rows[] = {
    {AMP_AT("/kind"), AMP_AS_TEXT, B(negotiation.event), 0, NULL},
    {AMP_AT("/negotiation_room_id"), AMP_AS_TEXT, B(negotiation.negotiation), 0, NULL},
    {AMP_AT("/negotiation_id"), AMP_AS_TEXT, B(negotiation.negotiation), 0, NULL},
    {AMP_AT("/topic"), AMP_AS_TEXT, B(negotiation.topic), 0, NULL},
    {AMP_AT("/participants"), AMP_AS_TEXTS, B(negotiation.participants), 0, NULL},
    {AMP_AT("/intensity"), AMP_AS_TEXT, B(negotiation.intensity), 0, NULL},
    {AMP_AT("/debate_intensity_factor"), AMP_AS_TEXT, B(negotiation.intensity), 0, NULL},
    {AMP_AT("/from"), AMP_AS_TEXT, B(negotiation.from), 0, NULL},
    {AMP_AT("/from_agent"), AMP_AS_TEXT, B(negotiation.from), 0, NULL},
    {AMP_AT("/by"), AMP_AS_TEXT, B(negotiation.from), 0, NULL},
    {AMP_AT("/decided_by"), AMP_AS_TEXT, B(negotiation.from), 0, NULL},
    {AMP_AT("/score"), AMP_AS_REAL, B(negotiation.score), 0, NULL},
    {AMP_AT("/confidence_score"), AMP_AS_REAL, B(negotiation.score), 0, NULL},
    {AMP_AT("/outcome"), AMP_AS_TEXT, B(negotiation.outcome), 0, NULL},
    {AMP_AT("/notes"), AMP_AS_TEXT, B(negotiation.note), 0, NULL},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(negotiation.note), 0, NULL},
    {AMP_AT("/rationale"), AMP_AS_TEXT, B(negotiation.note), 0, NULL},
};
static const struct amp_fill_table negotiation = AMP_FILL_TABLE(struct amp_body, negotiation_rows);

static const struct amp_fill_row vote_rows[] = {
    {AMP_AT("/artifact_id"), AMP_AS_TEXT, B(vote.artifact), 0, NULL},
    {AMP_AT("/critic_id"), AMP_AS_TEXT, B(vote.voter), 0, NULL},
    {AMP_AT("/score"), AMP_AS_REAL, B(vote.score), 0, NULL},
    {AMP_AT("/confidence"), AMP_AS_REAL, B(vote.confidence), 0, NULL},
    {AMP_AT("/passed"), AMP_AS_BOOL, B(vote.passed), 0, NULL},
};
static const struct amp_fill_table vote = AMP_FILL_TABLE(struct amp_body, vote_rows);

static const struct amp_fill_row handoff_rows[] = {
    {AMP_AT("/request_id"), AMP_AS_TEXT, B(handoff.ref), 0, NULL},
    {AMP_AT("/from_agent"), AMP_AS_TEXT, B(handoff.from), 0, NULL},
    {AMP_AT("/to_agent"), AMP_AS_TEXT, B(handoff.to), 0, NULL},
    {AMP_AT("/accepting_agent"), AMP_AS_TEXT, B(handoff.to), 0, NULL},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(handoff.note), 0, NULL},
    {AMP_AT("/rejection_reason"), AMP_AS_TEXT, B(handoff.note), 0, NULL},
    {AMP_AT("/capabilities_required"), AMP_AS_TEXTS, B(handoff.wanted), 0, NULL},
    {AMP_AT("/timeout_ms"), AMP_AS_INT, B(handoff.timeout_ms), 0, NULL},
    {AMP_AT("/timeout"), AMP_AS_DURATION, B(handoff.timeout_ms), 0, NULL},
    {AMP_AT("/status"), AMP_AS_TEXT, B(handoff.status), 0, NULL},
    {AMP_AT("/accepted"), AMP_AS_BOOL, B(handoff.accepted), B(handoff.answered), NULL},
};
static const struct amp_fill_table handoff = AMP_FILL_TABLE(struct amp_body, handoff_rows);

static const struct amp_fill_row workflow_rows[] = {
    {AMP_AT("/workflow_id"), AMP_AS_TEXT, B(workflow.workflow), 0, NULL},
    {AMP_AT("/nodes"), AMP_AS_SOURCE, B(workflow.nodes), 0, NULL},
    {AMP_AT("/node_states"), AMP_AS_SOURCE, B(workflow.nodes), 0, NULL},
};
static const struct amp_fill_table workflow = AMP_FILL_TABLE(struct amp_body, workflow_rows);

#define CALL_POLICY(at)                                                                            \
    {AMP_AT(at "/timeout_ms"), AMP_AS_INT, B(tool_call.timeout_ms), 0, NULL},                      \
        {AMP_AT(at "/timeout"), AMP_AS_DURATION, B(tool_call.timeout_ms), 0, NULL},                \
        {AMP_AT(at "/retries"), AMP_AS_INT, B(tool_call.retries), 0, NULL},                        \
        {AMP_AT(at "/max_retries"), AMP_AS_INT, B(tool_call.retries), 0, NULL},                    \
        {AMP_AT(at "/isolation"), AMP_AS_TEXT, B(tool_call.isolation), 0, NULL},                   \
        {AMP_AT(at "/worktree_required"), AMP_AS_BOOL, B(tool_call.needs_worktree), 0, NULL},      \
        {AMP_AT(at "/network_policy"), AMP_AS_TEXT, B(tool_call.network), 0, NULL},                \
        {AMP_AT(at "/privilege_level"), AMP_AS_TEXT, B(tool_call.privilege), 0, NULL},             \
        {AMP_AT(at "/budget_cpu_ms"), AMP_AS_INT, B(tool_call.cpu_ms), 0, NULL},                   \
    {                                                                                              \
        AMP_AT(at "/budget_wall_ms"), AMP_AS_INT, B(tool_call.wall_ms), 0, NULL                    \
    }

static const struct amp_fill_row tool_call_rows[] = {
    {AMP_AT("/call_id"), AMP_AS_TEXT, B(tool_call.call), 0, NULL},
    {AMP_AT("/tool_name"), AMP_AS_TEXT, B(tool_call.tool), 0, NULL},
    {AMP_AT("/provider_id"), AMP_AS_TEXT, B(tool_call.provider), 0, NULL},
    {AMP_AT("/stream"), AMP_AS_BOOL, B(tool_call.stream), 0, NULL},
    CALL_POLICY("/policy"),
    CALL_POLICY("/execution_policy"),
};
static const struct amp_fill_table tool_call = AMP_FILL_TABLE(struct amp_body, tool_call_rows);

static const struct amp_fill_row tool_result_rows[] = {
    {AMP_AT("/call_id"), AMP_AS_TEXT, B(tool_result.call), 0, NULL},
    {AMP_AT("/status"), AMP_AS_TEXT, B(tool_result.status), 0, NULL},
    {AMP_AT("/error_code"), AMP_AS_TEXT, B(tool_result.code), 0, NULL},
    {AMP_AT("/message"), AMP_AS_TEXT, B(tool_result.note), 0, NULL},
    {AMP_AT("/note"), AMP_AS_TEXT, B(tool_result.note), 0, NULL},
    {AMP_AT("/frame_no"), AMP_AS_INT, B(tool_result.frame), B(tool_result.has_frame), NULL},
    {AMP_AT("/final"), AMP_AS_BOOL, B(tool_result.final), 0, NULL},
};
static const struct amp_fill_table tool_result = AMP_FILL_TABLE(struct amp_body, tool_result_rows);

/* An acknowledgement is expected within ten seconds (§11). The rules read the tape, so a bare view
 * needs no body. */
enum { ACK_SECONDS = 10 };
static const struct amp_fill_row chunk_rows[] = {
    {AMP_AT("/transfer"), AMP_AS_TEXT, B(chunk.transfer), 0, NULL},
    {AMP_AT("/message_id"), AMP_AS_TEXT, B(chunk.ref), 0, NULL},
    {AMP_AT("/producer_id"), AMP_AS_TEXT, B(chunk.from), 0, NULL},
    {AMP_AT("/protocol"), AMP_AS_TEXT, B(chunk.protocol), 0, NULL},
    {AMP_AT("/correlation_id"), AMP_AS_TEXT, B(chunk.correlation), 0, NULL},
    {AMP_AT("/task_id"), AMP_AS_TEXT, B(chunk.task), 0, NULL},
    {AMP_AT("/index"), AMP_AS_INT, B(chunk.index), 0, NULL},
    {AMP_AT("/count"), AMP_AS_INT, B(chunk.count), 0, NULL},
    {AMP_AT("/size"), AMP_AS_INT, B(chunk.size), 0, NULL},
    {AMP_AT("/chunk_size"), AMP_AS_INT, B(chunk.chunk_size), 0, NULL},
    {AMP_AT("/total_size"), AMP_AS_INT, B(chunk.whole_size), 0, NULL},
    {AMP_AT("/sha256"), AMP_AS_TEXT, B(chunk.digest), 0, NULL},
    {AMP_AT("/total_sha256"), AMP_AS_TEXT, B(chunk.whole_digest), 0, NULL},
    {AMP_AT("/data"), AMP_AS_TEXT, B(chunk.data), 0, NULL},
};
static const struct amp_fill_table chunk = AMP_FILL_TABLE(struct amp_body, chunk_rows);

static const struct amp_fill_row batch_rows[] = {
    {AMP_AT("/batch"), AMP_AS_TEXT, B(batch.batch), 0, NULL},
    {AMP_AT("/count"), AMP_AS_INT, B(batch.count), 0, NULL},
    {AMP_AT("/size"), AMP_AS_INT, B(batch.size), 0, NULL},
    {AMP_AT("/sha256"), AMP_AS_TEXT, B(batch.digest), 0, NULL},
    {AMP_AT("/messages"), AMP_AS_TEXTS, B(batch.messages), 0, NULL},
};
static const struct amp_fill_table batch = AMP_FILL_TABLE(struct amp_body, batch_rows);

/* Chunks, batches and acknowledgements are not acknowledged themselves. */
#define ACKED(k)                                                                                   \
    ((k) != AMP_KIND_ACK && (k) != AMP_KIND_NACK && (k) != AMP_KIND_CHUNK && (k) != AMP_KIND_BATCH)

const struct amp_kind_row amp_sw4rm_rows[] = {
#define X(id, k, fill, file)                                                                       \
    {#id,         AMP_KIND_##k,     fill, true, "sw4rm/" file ".json", ACKED(AMP_KIND_##k),        \
     ACK_SECONDS, &amp_fill_nothing},
    AMP_SW4RM_SHAPE_LIST(X)
#undef X
};

/* Messages without a shape: without a payload, or with a free one; and with a payload that is not
 * JSON. */
static const struct amp_kind_row free_rows[] = {
#define X(id, word, most, k, shape)                                                                \
    {word, AMP_KIND_##k, NULL, true, "sw4rm/envelope.json", ACKED(AMP_KIND_##k), ACK_SECONDS, NULL},
    AMP_SW4RM_TYPE_LIST(X)
#undef X
};
static const struct amp_kind_row opaque_rows[] = {
#define X(id, word, most, k, shape)                                                                \
    {word, AMP_KIND_##k, NULL, true, "sw4rm/opaque.json", ACKED(AMP_KIND_##k), ACK_SECONDS, NULL},
    AMP_SW4RM_TYPE_LIST(X)
#undef X
};

const struct amp_kind_row *amp_sw4rm_kind_of(const struct amp_view *v)
{
    enum amp_sw4rm_type type = amp_sw4rm_type(v->type);
    if (type == AMP_SW4RM_TYPE_COUNT)
        return NULL;
    if (v->payload != AMP_TOK_NONE && v->content_type.n > 0 &&
        amp_sw4rm_content(v->content_type) != AMP_SW4RM_JSON)
        return &opaque_rows[type];
    if (v->content_type.n == sizeof AMP_SW4RM_CHUNK_TYPE - 1 && type == AMP_SW4RM_DATA &&
        v->payload != AMP_TOK_NONE) {
        if (memcmp(v->content_type.p, AMP_SW4RM_CHUNK_TYPE, v->content_type.n) == 0)
            return &amp_sw4rm_rows[AMP_SHAPE_CHUNK];
        if (memcmp(v->content_type.p, AMP_SW4RM_BATCH_TYPE, v->content_type.n) == 0)
            return &amp_sw4rm_rows[AMP_SHAPE_BATCH];
    }
    enum amp_sw4rm_shape shape = amp_sw4rm_shape(v, type);
    return shape == AMP_SHAPE_NONE ? &free_rows[type] : &amp_sw4rm_rows[shape];
}

enum amp_sw4rm_shape amp_sw4rm_shape_of(const struct amp_kind_row *row)
{
    if (row >= amp_sw4rm_rows && row < amp_sw4rm_rows + AMP_SHAPE_NONE)
        return (enum amp_sw4rm_shape)(row - amp_sw4rm_rows);
    return AMP_SHAPE_NONE;
}
