/* The members that tell the shapes of SW4RM's free payloads. */
#ifndef AMP_PROTOCOL_SW4RM_KEYS_H
#define AMP_PROTOCOL_SW4RM_KEYS_H

#include <amp/json/tape.h>

enum amp_sw4rm_key {
    K_ACCEPTED,
    K_ACCEPTING_AGENT,
    K_ACTION,
    K_AGENT,
    K_AGENT_ID,
    K_AGGREGATED_SCORE,
    K_ARTIFACT,
    K_ARTIFACT_TYPE,
    K_BRANCH,
    K_CACHED_AT,
    K_CAPABILITIES,
    K_CAPABILITIES_REQUIRED,
    K_COMMUNICATION_CLASS,
    K_CONFIDENCE,
    K_CONFIDENCE_SCORE,
    K_CONTENT_TYPE,
    K_CONTEXT_SNAPSHOT,
    K_DATA,
    K_DECIDED_BY,
    K_DECISION,
    K_DESCRIPTION,
    K_DETAILS_JSON,
    K_EFFECTIVE,
    K_ENTRIES,
    K_EVENT_TYPE,
    K_FINAL,
    K_FINAL_SCORE,
    K_FRAME_NO,
    K_FROM_AGENT,
    K_INPUT_SCHEMA,
    K_INVOCATION_ID,
    K_KIND,
    K_LEVEL,
    K_MIN_CONFIDENCE_THRESHOLD,
    K_MIN_SCORE_THRESHOLD,
    K_MODALITIES_SUPPORTED,
    K_NEGOTIATION_ID,
    K_NODES,
    K_NODE_STATES,
    K_OPERATION,
    K_ORIGINAL_MESSAGE_ID,
    K_ORIGINAL_STATUS,
    K_OUTCOME,
    K_OUTPUT_SCHEMA,
    K_PARAMS,
    K_PARTICIPANTS,
    K_PASSED,
    K_PAYLOAD,
    K_POLICY,
    K_POLICY_VERSION,
    K_PROFILES,
    K_PROVIDER_ID,
    K_REASON,
    K_REASONING_CONNECTORS,
    K_REASON_TYPE,
    K_REJECTION_REASON,
    K_REPORT,
    K_REPO_ID,
    K_REQUESTED_CRITICS,
    K_REQUEST_ID,
    K_SCORE,
    K_STATE,
    K_STATUS,
    K_STD_DEV,
    K_STOP_REASON,
    K_SUMMARY,
    K_TASK_ID,
    K_TIMESTAMP,
    K_TOOLS,
    K_TOOL_NAME,
    K_TOPIC,
    K_TO_AGENT,
    K_TYPE,
    K_WEIGHTED_MEAN,
    K_WORKFLOW_ID,
    K_WORKTREE_ID,
    K_NONE, /* any other */
};

/* A set of them, as there are more than 64. */
typedef unsigned __int128 amp_sw4rm_keys;
#define K(key) ((amp_sw4rm_keys)1 << K_##key)

/* Those that an object has. */
amp_sw4rm_keys amp_sw4rm_keys_of(const struct amp_tape *t, uint32_t object);

#endif
