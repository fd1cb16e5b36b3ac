/*
 * Runtime Protocol v1: the ten kinds of events with their bodies, and the records of the control
 * plane (capabilities, cursors, review items), which are recognised by their members because they
 * have no kind.
 */
#include "message/protocol/rtp/rtp.h"

#include <stddef.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/spec.h"

#define B(field) offsetof(struct amp_body, field)

/* A missing description is replaced by the title. */
static const struct amp_fill_row create_rows[] = {
    {AMP_AT("/title"), AMP_AS_TEXT, B(dispatch.description), 0, NULL},
    {AMP_AT("/description"), AMP_AS_TEXT, B(dispatch.description), 0, NULL},
    {AMP_AT("/requiredCapabilities"), AMP_AS_TEXTS, B(dispatch.wanted), 0, NULL},
};
static const struct amp_fill_table create = AMP_FILL_TABLE(struct amp_body, create_rows);

static const struct amp_fill_row ack_rows[] = {
    {AMP_AT("/refEventId"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/code"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(ack.note), 0, NULL},
    {AMP_AT("/etaAt"), AMP_AS_TIME, B(ack.eta_ms), 0, NULL},
    {AMP_AT("/retryable"), AMP_AS_BOOL, B(ack.retryable), 0, NULL},
};
static const struct amp_fill_table ack = AMP_FILL_TABLE(struct amp_body, ack_rows);

static const struct amp_fill_row accept_rows[] = {
    {AMP_AT("/acceptedByAgentId"), AMP_AS_TEXT, B(progress.agent), 0, NULL},
    {AMP_AT("/etaAt"), AMP_AS_TIME, B(progress.eta_ms), 0, NULL},
    {AMP_AT("/planSummary"), AMP_AS_TEXT, B(progress.note), 0, NULL},
};
static const struct amp_fill_table accept_table = AMP_FILL_TABLE(struct amp_body, accept_rows);

static const struct amp_fill_row update_rows[] = {
    {AMP_AT("/status"), AMP_AS_TEXT, B(progress.status), 0, NULL},
    {AMP_AT("/progress"), AMP_AS_REAL, B(progress.percent), B(progress.has_percent), NULL},
    {AMP_AT("/note"), AMP_AS_TEXT, B(progress.note), 0, NULL},
    {AMP_AT("/revisedEtaAt"), AMP_AS_TIME, B(progress.eta_ms), 0, NULL},
};
static const struct amp_fill_table update = AMP_FILL_TABLE(struct amp_body, update_rows);

static const struct amp_fill_row complete_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/completedByAgentId"), AMP_AS_TEXT, B(result.agent), 0, NULL},
    {AMP_AT("/resultSummary"), AMP_AS_NAMES, B(result.notes.v), B(result.notes.n), NULL},
    {AMP_AT("/resultRef"), AMP_AS_TEXT, B(result.ref), 0, NULL},
};
static const struct amp_fill_table complete = AMP_FILL_TABLE(struct amp_body, complete_rows);

static const struct amp_fill_row failed_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/failedByAgentId"), AMP_AS_TEXT, B(result.agent), 0, NULL},
    {AMP_AT("/failureClass"), AMP_AS_TEXT, B(result.failure), 0, NULL},
    {AMP_AT("/errorSummary"), AMP_AS_NAMES, B(result.blockers.v), B(result.blockers.n), NULL},
};
static const struct amp_fill_table failed = AMP_FILL_TABLE(struct amp_body, failed_rows);

#define TIME "RFC 3339 with an offset or Z, such as 2026-02-25T16:22:10.123Z"
/* The codes of events that need no corrId: messages, signals, dead letters. */
static const struct amp_code_row lone_codes[] = {
    {"payload.toAgents", "required", AMP_CODE(missing_route_fields), "at least one agent"},
    {"payload.toAgents", "minItems", AMP_CODE(missing_route_fields), "at least one agent"},
    {"payload.toAgents", "*", AMP_CODE(invalid_targets), "a list of agents"},
    {"payload.toAgents[]", "*", AMP_CODE(invalid_targets), "the id of an agent"},
    {"*", "enum", AMP_CODE(bad_enum), NULL},
    {"*", "format", AMP_CODE(bad_value), TIME},
    {"*", "*", AMP_CODE(bad_value), NULL},
    {NULL, NULL, NULL, NULL},
};

#define ROW_OF(word, kind, body, schema, codes)                                                    \
    {                                                                                              \
        word, AMP_KIND_##kind, body, true, "rtp/" schema ".json", false, 0, &amp_fill_nothing,     \
            codes                                                                                  \
    }
#define ROW(word, kind, body, schema) ROW_OF(word, kind, body, schema, NULL)
const struct amp_kind_row amp_rtp_rows[] = {
    [AMP_RTP_MESSAGE] = ROW_OF("message", OTHER, NULL, "message", lone_codes),
    [AMP_RTP_REPLY] = ROW("reply", OTHER, NULL, "reply"),
    [AMP_RTP_ACK] = ROW("ack", ACK, &ack, "ack"),
    [AMP_RTP_ACK_ACCEPT] = ROW("ack", PROGRESS, &accept_table, "ack_accept"),
    [AMP_RTP_CREATE] = ROW("task_create", DISPATCH, &create, "task_create"),
    [AMP_RTP_SKILL] = ROW("task_create", DISPATCH, &create, "skill_distribution"),
    [AMP_RTP_ACCEPT] = ROW("task_accept", PROGRESS, &accept_table, "task_accept"),
    [AMP_RTP_UPDATE] = ROW("task_update", PROGRESS, &update, "task_update"),
    [AMP_RTP_COMPLETE] = ROW("task_complete", RESULT, &complete, "task_complete"),
    [AMP_RTP_FAILED] = ROW("task_failed", RESULT, &failed, "task_failed"),
    [AMP_RTP_SIGNAL] = ROW_OF("signal", OTHER, NULL, "signal", lone_codes),
    [AMP_RTP_DEAD_LETTER] = ROW_OF("dead_letter", OTHER, NULL, "dead_letter", lone_codes),
    [AMP_RTP_CATALOG] = ROW("capabilities.catalog", OTHER, NULL, "capability_catalog"),
    [AMP_RTP_INDEX] = ROW("capabilities.index", OTHER, NULL, "capability_index"),
    [AMP_RTP_CURSOR] = ROW("delivery.cursors", OTHER, NULL, "cursor"),
    [AMP_RTP_REVIEW] = ROW("review_item", OTHER, NULL, "review_item"),
    [AMP_RTP_SKILL_ALONE] = ROW("skill_distribution", OTHER, NULL, "skill_distribution_payload"),
};

/* A record is recognised by members that no other record has, even if its id is missing. */
enum amp_rtp_kind amp_rtp_record(const struct amp_tape *t)
{
    bool consumer = amp_object_has(t, 0, "consumerNodeId"),
         source = amp_object_has(t, 0, "sourceNodeId");
    if ((consumer && source) || ((consumer || source) && amp_object_has(t, 0, "lastSeq")))
        return AMP_RTP_CURSOR;
    if (amp_object_has(t, 0, "reviewId") || amp_object_has(t, 0, "sampleCorrIds"))
        return AMP_RTP_REVIEW;
    if (amp_object_is(t, 0, "taskType", "skill_distribution"))
        return AMP_RTP_SKILL_ALONE;
    bool capability = amp_object_has(t, 0, "capabilityId");
    if (amp_object_has(t, 0, "eligibleAgentIds") &&
        (capability || amp_object_has(t, 0, "policyVersion")))
        return AMP_RTP_INDEX;
    bool owner = amp_object_has(t, 0, "ownerAgentId");
    return (owner && amp_object_has(t, 0, "executorSkillRef")) ||
                   (capability && (owner || amp_object_has(t, 0, "contractSchemaRef") ||
                                   amp_object_has(t, 0, "defaultEtaSeconds")))
               ? AMP_RTP_CATALOG
               : AMP_RTP_UNKNOWN;
}

/* The kind of a word: its length and one letter leave one candidate. */
static enum amp_rtp_kind word_kind(struct amp_span word)
{
    enum amp_rtp_kind k = AMP_RTP_UNKNOWN;
    switch (word.n) {
    case 3:
        k = AMP_RTP_ACK;
        break;
    case 5:
        k = AMP_RTP_REPLY;
        break;
    case 6:
        k = AMP_RTP_SIGNAL;
        break;
    case 7:
        k = AMP_RTP_MESSAGE;
        break;
    case 11:
        k = word.p[5] == 'c'   ? AMP_RTP_CREATE
            : word.p[5] == 'a' ? AMP_RTP_ACCEPT
            : word.p[5] == 'u' ? AMP_RTP_UPDATE
            : word.p[5] == 'f' ? AMP_RTP_FAILED
                               : AMP_RTP_DEAD_LETTER;
        break;
    case 13:
        k = AMP_RTP_COMPLETE;
        break;
    default:
        return k;
    }
    return memcmp(word.p, amp_rtp_rows[k].type, word.n) == 0 ? k : AMP_RTP_UNKNOWN;
}

enum amp_rtp_kind amp_rtp_kind_of(const struct amp_view *v)
{
    const struct amp_tape *t = v->tape;
    if (v->type.n == 0)
        return amp_object_has(t, 0, "eventId") || amp_object_has(t, 0, "kind") ? AMP_RTP_UNKNOWN
                                                                               : amp_rtp_record(t);
    enum amp_rtp_kind k = word_kind(v->type);
    if (k == AMP_RTP_CREATE && v->payload != AMP_TOK_NONE &&
        amp_object_is(t, v->payload, "taskType", "skill_distribution"))
        return AMP_RTP_SKILL;
    if (k == AMP_RTP_ACK && v->payload != AMP_TOK_NONE && amp_object_has(t, v->payload, "taskId") &&
        !amp_object_has(t, v->payload, "refEventId"))
        return AMP_RTP_ACK_ACCEPT;
    return k;
}

const struct amp_kind_row *amp_rtp_kind_row(const struct amp_view *v)
{
    enum amp_rtp_kind k = amp_rtp_kind_of(v);
    return k == AMP_RTP_UNKNOWN ? NULL : &amp_rtp_rows[k];
}

enum amp_rtp_kind amp_rtp_row_kind(const struct amp_kind_row *row)
{
    return row ? (enum amp_rtp_kind)(row - amp_rtp_rows) : AMP_RTP_UNKNOWN;
}
