/* Whose order is kept, and in which stream a message is numbered. */
#include "message/delivery/sequences.h"

#include <stdio.h>

#include "../tap.h"

static struct amp_reader *reader;

static struct amp_view read_line(const char *line)
{
    struct amp_view v = {0};
    struct amp_error err;
    struct amp_check_options opt = {0};
    if (amp_reader_line(reader, amp_span_str(line), &opt, &v, NULL, NULL, &err) < 0)
        tap_ok(false, __FILE__, __LINE__, "%s", err.what);
    return v;
}

static void keys(const char *line, const char *key, const char *source, const char *name)
{
    struct amp_view v = read_line(line);
    TAP_SPAN(amp_sequence_key(&v), key, name);
    TAP_SPAN(amp_sequence_source(&v), source, name);
}

#define SW4RM(type, payload)                                                                       \
    "{\"message_id\":\"m1\",\"producer_id\":\"ann\",\"correlation_id\":\"neg-1\","                 \
    "\"sequence_number\":3,\"retry_count\":0,\"message_type\":\"" type "\",\"payload\":" payload   \
    "}"
#define RTP(kind, more)                                                                            \
    "{\"eventId\":\"e1\",\"seq\":4,\"kind\":\"" kind "\",\"sourceNodeId\":\"vps\","                \
    "\"sourceAgentId\":\"arch\"," more "\"createdAt\":\"2026-02-25T16:22:10Z\",\"payload\":{}}"

/* The stream of a source, in one name for all protocols. */
static void stream(enum amp_protocol protocol, const char *source, const char *name)
{
    struct amp_error err;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span got = {0};
    struct amp_view v = {.protocol = protocol, .has_sequence = true};
    amp_buf_init(&mem, 1 << 10);
    v.from = v.node = amp_span_str(source);
    TAP_INT(amp_sequence_stream(&v, &mem, &got, &err), 0, "a stream");
    TAP_SPAN(got, name, source);
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    keys(SW4RM("NEGOTIATION", "{\"kind\":\"open\",\"topic\":\"x\",\"corr\":\"neg-1\"}"), "neg-1",
         "ann", "a negotiation's opening");
    keys(SW4RM("NEGOTIATION", "{\"kind\":\"propose\",\"from\":\"b\",\"ct\":\"text/plain\"}"),
         "neg-1", "ann", "its proposal, which does not name it in the payload");
    keys(SW4RM("NEGOTIATION", "{\"negotiation_room_id\":\"neg-1\",\"critic_id\":\"c\","
                              "\"score\":1,\"passed\":true}"),
         "neg-1", "ann", "a vote in its room");
    keys(SW4RM("DATA", "{\"x\":1}"), "", "ann", "data of a workflow may be overtaken");
    keys("{\"to\":\"bob\",\"msg\":" SW4RM("NEGOTIATION", "{\"kind\":\"open\"}") "}", "neg-1", "ann",
         "a wrapped one");
    keys(RTP("task_update", "\"corrId\":\"c1\","), "c1", "vps", "an event of a conversation");
    keys(RTP("message", ""), "", "vps", "an event of none");
    struct amp_view amp = {.protocol = AMP_PROTO_AMP,
                           .kind = AMP_KIND_DISPATCH,
                           .from = AMP_SPAN("coordinator"),
                           .correlation = AMP_SPAN("x")};
    TAP_SPAN(amp_sequence_key(&amp), "", "AMP has no such order");
    TAP_SPAN(amp_sequence_source(&amp), "", "and no numbers");
    stream(AMP_PROTO_RTP, "vps", "vps");
    stream(AMP_PROTO_SW4RM, "vps", "sw4rm:vps");
    stream(AMP_PROTO_RTP, "sw4rm:vps", "rtp:sw4rm:vps");
    stream(AMP_PROTO_RTP, "rtp:vps", "rtp:rtp:vps");
    stream(AMP_PROTO_SW4RM, "rtp:vps", "sw4rm:rtp:vps");
    stream(AMP_PROTO_SW4RM, "", "");
    amp_reader_free(reader);
    return tap_done();
}
