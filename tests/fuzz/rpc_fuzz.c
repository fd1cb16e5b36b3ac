/*
 * Any line as JSON-RPC. What must hold: a request has an id that was written as a text or an
 * integer, and its answer is again a message that can be read; a notification gets none.
 */
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "json/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An answer is one line of JSON, with the id of the request. */
static void answer_check(const struct amp_rpc_message *m)
{
    AMP_BUF struct amp_buf out = {0};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_rpc_message back;
    struct amp_error err;
    bool batch;
    uint32_t n;

    amp_buf_init(&out, 1 << 20);
    amp_tape_init(&t, NULL);
    if (m->kind == AMP_RPC_BAD)
        MUST(amp_rpc_error(&out, m->id, m->code, m->why, (struct amp_span){0}, &err) == 0);
    else
        MUST(amp_rpc_result(&out, m->id, AMP_SPAN("{}"), &err) == 0);
    MUST(!memchr(out.data, '\n', out.len) || memchr(m->id.p, '\n', m->id.n));
    MUST(amp_rpc_scan(&t, amp_buf_span(&out), &batch, &n, &back, &err) == AMP_RPC_SCANNED);
    MUST(!batch && n == 1);
    amp_rpc_read(&t, false, 0, &back);
    if (amp_span_is(m->id, "null")) /* the answer to what could not be read */
        return;
    MUST(back.kind == AMP_RPC_RESPONSE && amp_span_eq(back.id, m->id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct amp_json_limits limits = {1 << 20, AMP_RPC_DEPTH_MAX, 100000};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_rpc_message m;
    struct amp_error err;
    bool batch;
    uint32_t n;

    if (size > 1 << 20)
        return 0;
    amp_tape_init(&t, &limits);
    int rc = amp_rpc_scan(&t, (struct amp_span){(const char *)data, size}, &batch, &n, &m, &err);
    MUST(rc == AMP_RPC_SCANNED || rc == AMP_RPC_REFUSED);
    if (rc == AMP_RPC_REFUSED) {
        MUST(m.kind == AMP_RPC_BAD && m.code && *m.why && n == 0);
        answer_check(&m);
        return 0;
    }
    MUST(n >= 1 && n <= AMP_RPC_BATCH_MAX && (batch || n == 1));
    for (uint32_t i = 0; i < n; i++) {
        amp_rpc_read(&t, batch, i, &m);
        switch (m.kind) {
        case AMP_RPC_REQUEST:
            MUST(m.id.n && m.id.n <= AMP_RPC_ID_MAX && t.tok[m.method].type == AMP_JSON_STRING);
            MUST(m.id.p[0] == '"' || m.id.p[0] == '-' || (m.id.p[0] >= '0' && m.id.p[0] <= '9'));
            MUST(m.params == AMP_TOK_NONE || t.tok[m.params].type == AMP_JSON_OBJECT);
            answer_check(&m);
            break;
        case AMP_RPC_NOTIFICATION:
            MUST(m.id.n == 0 && t.tok[m.method].type == AMP_JSON_STRING);
            break;
        case AMP_RPC_BAD:
            MUST(m.id.n && m.code && *m.why);
            answer_check(&m);
            break;
        case AMP_RPC_RESPONSE:
            break;
        }
    }
    return 0;
}
