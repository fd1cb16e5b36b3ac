/* What the files of SW4RM 0.5.0 share. */
#ifndef AMP_PROTOCOL_SW4RM_H
#define AMP_PROTOCOL_SW4RM_H

#include "protocol/check.h"
#include "protocol/spec.h"

/* X(id, word, recommended most bytes of the payload): the eleven types of §11 and HITL_DECISION,
 * which §15 demands as a message. Where no size is recommended, DATA's stands. */
#define AMP_SW4RM_TYPE_LIST(X)                                                                     \
    X(CONTROL, "CONTROL", 64 * 1024)                                                               \
    X(DATA, "DATA", 16 * 1024 * 1024)                                                              \
    X(HEARTBEAT, "HEARTBEAT", 16 * 1024 * 1024)                                                    \
    X(NOTIFICATION, "NOTIFICATION", 32 * 1024)                                                     \
    X(ACKNOWLEDGEMENT, "ACKNOWLEDGEMENT", 4 * 1024)                                                \
    X(HITL_INVOCATION, "HITL_INVOCATION", 256 * 1024)                                              \
    X(HITL_DECISION, "HITL_DECISION", 256 * 1024)                                                  \
    X(WORKTREE_CONTROL, "WORKTREE_CONTROL", 16 * 1024 * 1024)                                      \
    X(NEGOTIATION, "NEGOTIATION", 16 * 1024 * 1024)                                                \
    X(TOOL_CALL, "TOOL_CALL", 1024 * 1024)                                                         \
    X(TOOL_RESULT, "TOOL_RESULT", 16 * 1024 * 1024)                                                \
    X(TOOL_ERROR, "TOOL_ERROR", 16 * 1024 * 1024)

enum amp_sw4rm_type {
#define X(id, word, most) AMP_SW4RM_##id,
    AMP_SW4RM_TYPE_LIST(X)
#undef X
        AMP_SW4RM_TYPE_COUNT
};
/* AMP_SW4RM_TYPE_COUNT when the word is none of them. */
enum amp_sw4rm_type amp_sw4rm_type(struct amp_span word);

/* What a content type says about how the payload stands in the line. */
enum amp_sw4rm_content {
    AMP_SW4RM_JSON,  /* the value itself */
    AMP_SW4RM_TEXT,  /* a string */
    AMP_SW4RM_BYTES, /* a string of base64 */
    AMP_SW4RM_OTHER, /* a string: text or base64, nobody knows */
};
enum amp_sw4rm_content amp_sw4rm_content(struct amp_span content_type);

/* Whether the text is base64, in the alphabet of RFC 4648 §4 or §5, padded or not; *bytes is the
 * length of what it stands for. */
bool amp_sw4rm_base64(struct amp_span text, uint64_t *bytes);

/* The rules about content_type, content_length and the payload's size. */
void amp_sw4rm_content_rules(struct amp_check *c);

void amp_sw4rm_rules(struct amp_check *c);

#endif
