/* Which of the telling members an object has: one look at the length of each key, then one
 * comparison or a few. */
#include "protocol/sw4rm/keys.h"

#include <string.h>

#define IS(name, key)                                                                              \
    if (memcmp(p, name, sizeof(name) - 1) == 0)                                                    \
    return K_##key

static enum amp_sw4rm_key key_of(const char *p, size_t n)
{
    switch (n) {
    case 2:
        IS("ts", TS);
        break;
    case 4:
        IS("corr", CORR);
        IS("data", DATA);
        IS("kind", KIND);
        break;
    case 5:
        IS("@type", TYPE);
        IS("agent", AGENT);
        IS("final", FINAL);
        IS("level", LEVEL);
        IS("nodes", NODES);
        IS("scope", SCOPE);
        IS("score", SCORE);
        IS("state", STATE);
        IS("tools", TOOLS);
        IS("topic", TOPIC);
        break;
    case 6:
        IS("action", ACTION);
        IS("branch", BRANCH);
        IS("params", PARAMS);
        IS("passed", PASSED);
        IS("policy", POLICY);
        IS("reason", REASON);
        IS("report", REPORT);
        IS("status", STATUS);
        break;
    case 7:
        IS("command", COMMAND);
        IS("entries", ENTRIES);
        IS("outcome", OUTCOME);
        IS("payload", PAYLOAD);
        IS("repo_id", REPO_ID);
        IS("std_dev", STD_DEV);
        IS("summary", SUMMARY);
        IS("task_id", TASK_ID);
        break;
    case 8:
        IS("accepted", ACCEPTED);
        IS("agent_id", AGENT_ID);
        IS("artifact", ARTIFACT);
        IS("decision", DECISION);
        IS("frame_no", FRAME_NO);
        IS("profiles", PROFILES);
        IS("to_agent", TO_AGENT);
        break;
    case 9:
        IS("cached_at", CACHED_AT);
        IS("effective", EFFECTIVE);
        IS("operation", OPERATION);
        IS("timestamp", TIMESTAMP);
        IS("tool_name", TOOL_NAME);
        break;
    case 10:
        IS("confidence", CONFIDENCE);
        IS("decided_by", DECIDED_BY);
        IS("event_type", EVENT_TYPE);
        IS("from_agent", FROM_AGENT);
        IS("request_id", REQUEST_ID);
        break;
    case 11:
        IS("description", DESCRIPTION);
        IS("final_score", FINAL_SCORE);
        IS("node_states", NODE_STATES);
        IS("provider_id", PROVIDER_ID);
        IS("reason_type", REASON_TYPE);
        IS("stop_reason", STOP_REASON);
        IS("workflow_id", WORKFLOW_ID);
        IS("worktree_id", WORKTREE_ID);
        break;
    case 12:
        IS("capabilities", CAPABILITIES);
        IS("content_type", CONTENT_TYPE);
        IS("details_json", DETAILS_JSON);
        IS("input_schema", INPUT_SCHEMA);
        IS("participants", PARTICIPANTS);
        break;
    case 13:
        IS("artifact_type", ARTIFACT_TYPE);
        IS("invocation_id", INVOCATION_ID);
        IS("output_schema", OUTPUT_SCHEMA);
        IS("weighted_mean", WEIGHTED_MEAN);
        break;
    case 14:
        IS("negotiation_id", NEGOTIATION_ID);
        IS("policy_version", POLICY_VERSION);
        break;
    case 15:
        IS("accepting_agent", ACCEPTING_AGENT);
        IS("original_status", ORIGINAL_STATUS);
        break;
    case 16:
        IS("aggregated_score", AGGREGATED_SCORE);
        IS("confidence_score", CONFIDENCE_SCORE);
        IS("context_snapshot", CONTEXT_SNAPSHOT);
        IS("rejection_reason", REJECTION_REASON);
        break;
    case 17:
        IS("requested_critics", REQUESTED_CRITICS);
        break;
    case 19:
        IS("communication_class", COMMUNICATION_CLASS);
        IS("min_score_threshold", MIN_SCORE_THRESHOLD);
        IS("original_message_id", ORIGINAL_MESSAGE_ID);
        break;
    case 20:
        IS("modalities_supported", MODALITIES_SUPPORTED);
        IS("reasoning_connectors", REASONING_CONNECTORS);
        break;
    case 21:
        IS("capabilities_required", CAPABILITIES_REQUIRED);
        break;
    case 24:
        IS("min_confidence_threshold", MIN_CONFIDENCE_THRESHOLD);
        break;
    default:
        break;
    }
    return K_NONE;
}
#undef IS

amp_sw4rm_keys amp_sw4rm_keys_of(const struct amp_tape *t, uint32_t object)
{
    amp_sw4rm_keys found = 0;
    uint32_t k = object + 1;
    for (uint32_t i = 0; i < t->tok[object].count; i++, k = t->tok[k + 1].next) {
        const struct amp_tok *tok = &t->tok[k];
        enum amp_sw4rm_key key = key_of(t->text + tok->off, tok->len);
        if (tok->flags & AMP_TOK_ESCAPED) {
            /* Decoding never makes a name longer; longer ones than ours tell nothing. */
            char room[256];
            struct amp_buf over = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
            struct amp_span name;
            if (tok->len > 200 || amp_tok_text(t, k, &over, &name, NULL) < 0)
                continue;
            key = key_of(name.p, name.n);
        }
        found |= (amp_sw4rm_keys)1 << key;
    }
    return found;
}
