/* Reading and writing the messages of JSON-RPC 2.0. */
#include "json/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <amp/json/writer.h>

static void message_spoil(struct amp_rpc_message *m, enum amp_rpc_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void message_spoil(struct amp_rpc_message *m, enum amp_rpc_code code, const char *fmt, ...)
{
    va_list ap;

    m->kind = AMP_RPC_BAD;
    m->code = code;
    va_start(ap, fmt);
    vsnprintf(m->why, sizeof m->why, fmt, ap);
    va_end(ap);
}

int amp_rpc_scan(struct amp_tape *t, struct amp_span line, bool *batch, uint32_t *n,
                 struct amp_rpc_message *bad, struct amp_error *err)
{
    struct amp_json_fault fault;

    *batch = false;
    *n = 0;
    *bad = (struct amp_rpc_message){.id = AMP_SPAN("null"), .params = AMP_TOK_NONE};
    if (amp_tape_scan(t, line.p, line.n, &fault) < 0) {
        if (amp_json_fault_is_memory(&fault))
            return amp_fail_memory(err);
        message_spoil(bad, AMP_RPC_PARSE, "%s at byte %u: %s", fault.code, fault.offset,
                      fault.what);
        return AMP_RPC_REFUSED;
    }
    *n = 1;
    if (t->tok[0].type != AMP_JSON_ARRAY)
        return AMP_RPC_SCANNED;
    *batch = true;
    *n = t->tok[0].count;
    if (*n == 0)
        message_spoil(bad, AMP_RPC_INVALID, "the batch is empty");
    else if (*n > AMP_RPC_BATCH_MAX)
        message_spoil(bad, AMP_RPC_INVALID, "the batch has %u messages (limit: %d)", *n,
                      AMP_RPC_BATCH_MAX);
    else
        return AMP_RPC_SCANNED;
    *n = 0;
    return AMP_RPC_REFUSED;
}

/* The id of a request: a text or an integer. */
static void id_read(const struct amp_tape *t, uint32_t tok, struct amp_rpc_message *m)
{
    struct amp_span text = amp_tok_source(t, tok);
    bool good = t->tok[tok].type == AMP_JSON_STRING ||
                (t->tok[tok].type == AMP_JSON_NUMBER && !(t->tok[tok].flags & AMP_TOK_FRACTION));

    if (!good)
        message_spoil(m, AMP_RPC_INVALID, "id is neither a text nor an integer");
    else if (text.n > AMP_RPC_ID_MAX)
        message_spoil(m, AMP_RPC_INVALID, "id is longer than %d bytes", AMP_RPC_ID_MAX);
    else
        m->id = text;
}

void amp_rpc_read(const struct amp_tape *t, bool batch, uint32_t nth, struct amp_rpc_message *m)
{
    uint32_t at = batch ? amp_tape_at(t, 0, nth) : 0;

    *m = (struct amp_rpc_message){
        .kind = AMP_RPC_REQUEST, .method = AMP_TOK_NONE, .params = AMP_TOK_NONE};
    if (t->tok[at].type != AMP_JSON_OBJECT) {
        m->id = AMP_SPAN("null");
        message_spoil(m, AMP_RPC_INVALID, "a message is an object, not %s",
                      amp_json_type_name((enum amp_json_type)t->tok[at].type));
        return;
    }
    uint32_t version = amp_tape_get(t, at, AMP_SPAN("jsonrpc")),
             id = amp_tape_get(t, at, AMP_SPAN("id"));
    m->method = amp_tape_get(t, at, AMP_SPAN("method"));
    m->params = amp_tape_get(t, at, AMP_SPAN("params"));
    if (id == AMP_TOK_NONE)
        m->kind = AMP_RPC_NOTIFICATION;
    else
        id_read(t, id, m);
    if (m->kind == AMP_RPC_BAD) {
        m->id = AMP_SPAN("null");
        return;
    }
    if (m->method == AMP_TOK_NONE && (amp_tape_get(t, at, AMP_SPAN("result")) != AMP_TOK_NONE ||
                                      amp_tape_get(t, at, AMP_SPAN("error")) != AMP_TOK_NONE)) {
        m->kind = AMP_RPC_RESPONSE;
        return;
    }
    bool versioned = version != AMP_TOK_NONE && t->tok[version].type == AMP_JSON_STRING &&
                     amp_tok_is(t, version, AMP_SPAN("2.0"));
    bool named = m->method != AMP_TOK_NONE && t->tok[m->method].type == AMP_JSON_STRING;
    bool packed = m->params == AMP_TOK_NONE || t->tok[m->params].type == AMP_JSON_OBJECT;
    /* An object without id and method is no notification: its sender waits for an answer. */
    if (m->kind == AMP_RPC_NOTIFICATION && named)
        m->id = (struct amp_span){0};
    else if (m->kind == AMP_RPC_NOTIFICATION)
        m->id = AMP_SPAN("null");
    if (!versioned && !(m->kind == AMP_RPC_NOTIFICATION && named))
        message_spoil(m, AMP_RPC_INVALID, "jsonrpc is not \"2.0\"");
    else if (!named)
        message_spoil(m, AMP_RPC_INVALID, "method is missing, or is not a text");
    else if (!packed && m->kind == AMP_RPC_REQUEST)
        message_spoil(m, AMP_RPC_PARAMS, "params is not an object");
    if (!packed)
        m->params = AMP_TOK_NONE;
}

/* ---- writing ---- */

static void head_write(struct amp_jw *w, struct amp_buf *out)
{
    amp_jw_init(w, out);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "jsonrpc", "2.0");
}

int amp_rpc_result(struct amp_buf *out, struct amp_span id, struct amp_span result,
                   struct amp_error *err)
{
    struct amp_jw w;

    head_write(&w, out);
    amp_jw_member_raw(&w, "id", id.n ? id : AMP_SPAN("null"));
    amp_jw_member_raw(&w, "result", result);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_rpc_error(struct amp_buf *out, struct amp_span id, enum amp_rpc_code code, const char *why,
                  struct amp_span data, struct amp_error *err)
{
    struct amp_jw w;

    head_write(&w, out);
    amp_jw_member_raw(&w, "id", id.n ? id : AMP_SPAN("null"));
    amp_jw_member_open(&w, "error", '{');
    amp_jw_member_int(&w, "code", code);
    amp_jw_member_text(&w, "message", why);
    if (data.n)
        amp_jw_member_raw(&w, "data", data);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_rpc_notification(struct amp_buf *out, const char *method, struct amp_span params,
                         struct amp_error *err)
{
    struct amp_jw w;

    head_write(&w, out);
    amp_jw_member_text(&w, "method", method);
    if (params.n)
        amp_jw_member_raw(&w, "params", params);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}
