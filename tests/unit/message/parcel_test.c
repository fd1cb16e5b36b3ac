/* The summary of a message: a refusal made from it is the one that the message's document gives. */
#include "../tap.h"
#include "message/protocol/compose/answer.h"
#include "message/route/parcel.h"

static const char *const lines[] = {
    "{\"protocol_version\":\"1.0\",\"type\":\"task_dispatch\",\"msg_id\":\"m-1\",\"task_id\":"
    "\"T-2026-001\",\"from\":\"coordinator\",\"to\":\"executor\",\"subject\":\"s\",\"body\":\"b\"}",
#define TASK(target)                                                                               \
    "{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\","       \
    "\"message_type\":\"TASK\",\"session\":{\"session_id\":\"S-1\"},\"target\":" target            \
    ",\"task\":{\"task_id\":\"T-1\",\"objective\":\"Read it.\"}}"
    TASK("{\"agent_name\":\"Emma\",\"provider\":\"CLAUDE\",\"model\":\"opus \\u00e9\"}"),
    TASK("{\"agent_name\":\"Emma\",\"provider\":\"another\"}"),
    "{\"eventId\":\"e-1\",\"kind\":\"task.create\",\"sourceNodeId\":\"vps\",\"sourceAgentId\":"
    "\"a\","
    "\"seq\":4,\"corrId\":\"c\",\"ts\":\"2026-02-25T16:22:10Z\",\"payload\":{\"taskId\":\"t\"}}",
    "{\"message_id\":\"9b8ae55e-5b1c-4dfb-8d8d-3d6a5d2b9d11\",\"message_type\":\"CONTROL\","
    "\"producer_id\":\"p\",\"sequence_number\":7,\"payload\":{\"x\":1}}",
};

static void refuse(const struct amp_view *v, const struct amp_span *repeats, struct amp_buf *out)
{
    struct amp_error err;
    const struct amp_answer a = {.stage = AMP_STAGE_REJECTED,
                                 .by = "amp-route",
                                 .code = "no_route",
                                 .note = "no route takes it",
                                 .rule = "route",
                                 .node = "amp-route",
                                 .sequence = 3,
                                 .now_ms = 1700000000000,
                                 .repeats = repeats};
    amp_buf_reset(out);
    if (amp_answer_line(v, &a, out, &err) < 0)
        amp_buf_str(out, err.what, NULL);
}

/* Ids that are made by chance are left out. */
static void same(const char *line, struct amp_reader *reader, struct amp_parcels *parcels)
{
    struct amp_error err;
    struct amp_view v, short_view;
    struct amp_check_options any = {0};
    AMP_BUF struct amp_buf by_document = {0}, by_summary = {0};
    amp_buf_init(&by_document, 1 << 16);
    amp_buf_init(&by_summary, 1 << 16);
    if (amp_reader_line(reader, amp_span_str(line), &any, &v, NULL, NULL, &err) < 0) {
        TAP_OK(false, "%s", err.what);
        return;
    }
    struct parcel *j = amp_parcel_new(parcels, v.line, &v);
    TAP_OK(j && amp_parcel_view(j, &short_view), "%s: it has a summary",
           amp_protocol_name(v.protocol));
    if (!j)
        return;
    refuse(&v, NULL, &by_document);
    refuse(&short_view, j->summary.repeats, &by_summary);
    TAP_INT(short_view.tape->n, 0, "whose view has no document");
    bool equal = v.protocol == AMP_PROTO_AOP
                     ? amp_span_eq(amp_buf_span(&by_document), amp_buf_span(&by_summary))
                     : by_document.len == by_summary.len;
    TAP_OK(equal && by_summary.len > 0, "and the refusal is the same");
    amp_parcel_free(j);
}

int main(void)
{
    struct amp_error err;
    struct amp_parcels parcels = {0};
    struct amp_reader *reader = amp_reader_new(NULL, &err);
    for (size_t i = 0; reader && i < sizeof(lines) / sizeof(lines[0]); i++)
        same(lines[i], reader, &parcels);
    TAP_INT(parcels.n, 0, "none is left");
    amp_parcels_release(&parcels);
    amp_reader_free(reader);
    return tap_done();
}
