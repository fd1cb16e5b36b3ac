/*
 * JSON-RPC 2.0 as the Model Context Protocol has it: one JSON text a line, an object or (in its
 * earlier revisions) an array of objects; ids are texts or integers, params are objects. Reading
 * allocates nothing but the tape; writing appends a JSON text without LF.
 */
#ifndef AMP_JSON_RPC_H
#define AMP_JSON_RPC_H

#include <amp/json/tape.h>

/* X(NAME, code, "meaning"): JSON-RPC 2.0 §5.1, and the codes of MCP. */
#define AMP_RPC_CODES(X)                                                                           \
    X(PARSE, -32700, "parse error")                                                                \
    X(INVALID, -32600, "invalid request")                                                          \
    X(METHOD, -32601, "method not found")                                                          \
    X(PARAMS, -32602, "invalid params")                                                            \
    X(INTERNAL, -32603, "internal error")                                                          \
    X(RESOURCE, -32002, "resource not found")                                                      \
    X(VERSION, -32022, "unsupported protocol version")
enum amp_rpc_code {
#define X(name, code, meaning) AMP_RPC_##name = (code),
    AMP_RPC_CODES(X)
#undef X
};

#define AMP_RPC_ID_MAX    256 /* bytes of an id as it is written */
#define AMP_RPC_DEPTH_MAX 64
#define AMP_RPC_BATCH_MAX 64 /* messages of a batch */

enum amp_rpc_kind {
    AMP_RPC_REQUEST,
    AMP_RPC_NOTIFICATION, /* also an invalid one, which gets no answer */
    AMP_RPC_RESPONSE,     /* of the other side */
    AMP_RPC_BAD,          /* code and why say what is wrong; id is "null" if it cannot be read */
};

struct amp_rpc_message {
    enum amp_rpc_kind kind;
    struct amp_span id; /* as written, with quotes; empty: a notification */
    uint32_t method;    /* the token of its name */
    uint32_t params;    /* the token of the object; AMP_TOK_NONE: absent */
    enum amp_rpc_code code;
    char why[200];
};

/* Scans a line. 0: the tape has it, *n messages (an array of them: *batch), else *bad has the
 * answer: parse error (also past a limit of the tape), or invalid request for an empty or too long
 * batch. -1: out of memory. */
enum amp_rpc_scanned { AMP_RPC_SCANNED, AMP_RPC_REFUSED };
int amp_rpc_scan(struct amp_tape *t, struct amp_span line, bool *batch, uint32_t *n,
                 struct amp_rpc_message *bad, struct amp_error *err);
/* The nth message of a scanned line. */
void amp_rpc_read(const struct amp_tape *t, bool batch, uint32_t nth, struct amp_rpc_message *out);

/* result, params, data: complete JSON values; data and params may be empty. An empty id is null. */
int amp_rpc_result(struct amp_buf *out, struct amp_span id, struct amp_span result,
                   struct amp_error *err);
int amp_rpc_error(struct amp_buf *out, struct amp_span id, enum amp_rpc_code code, const char *why,
                  struct amp_span data, struct amp_error *err);
int amp_rpc_notification(struct amp_buf *out, const char *method, struct amp_span params,
                         struct amp_error *err);

#endif
