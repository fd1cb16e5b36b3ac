/* Another attempt's line: what is replaced, what stays to the byte. */
#include "../tap.h"
#include "message/protocol/compose/answer.h"

static struct amp_error err;

static void again(const char *what, const char *line, const char *want)
{
    struct amp_reader *r = amp_reader_new(NULL, &err);
    struct amp_check_options opt = {0};
    struct amp_view v;
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 1 << 20);
    if (!r || amp_reader_line(r, amp_span_str(line), &opt, &v, NULL, NULL, &err) < 0) {
        TAP_OK(false, "%s is read", what);
        return;
    }
    struct amp_again a = {
        .id = "new", .node = "sweeper", .sequence = 99, .first = {"old \"1\"", 7}};
    int rc = amp_again_line(&v, &a, &out, &err);
    if (want)
        TAP_SPAN(amp_buf_span(&out), want, what);
    else
        TAP_OK(rc < 0 && out.len == 0, "%s", what);
    amp_reader_free(r);
}

int main(void)
{
    again("AMP", "{ \"msg_id\" : \"a\\u0062\",\"protocol_version\":\"AMP/1.0\",\"x\":1.10}",
          "{ \"msg_id\" : \"new\",\"protocol_version\":\"AMP/1.0\",\"x\":1.10}");
    again(
        "SW4RM, wrapped, the count before the id",
        "{\"to\":\"bob\",\"msg\":{\"retry_count\":9,\"message_type\":\"DATA\",\"message_id\":\"m\","
        "\"producer_id\":\"p\"}} ",
        "{\"to\":\"bob\",\"msg\":{\"retry_count\":10,\"message_type\":\"DATA\",\"message_id\":"
        "\"new\",\"producer_id\":\"p\"}} ");
    again("SW4RM without a count", "{\"message_id\":\"m\",\"message_type\":\"DATA\"}",
          "{\"retry_count\":1,\"message_id\":\"new\",\"message_type\":\"DATA\"}");
    again("an event", "{\"eventId\":\"e\",\"seq\":1,\"kind\":\"signal\",\"trace\":{\"attempt\":1}}",
          "{\"sourceNodeId\":\"sweeper\",\"eventId\":\"new\",\"seq\":99,\"kind\":\"signal\","
          "\"trace\":{\"idempotencyKey\":\"old \\\"1\\\"\",\"attempt\":2}}");
    again("an event with a key",
          "{\"eventId\":\"e\",\"seq\":1,\"kind\":\"signal\",\"sourceNodeId\":\"n\","
          "\"trace\":{\"attempt\":4,\"idempotencyKey\":\"k\"}}",
          "{\"eventId\":\"new\",\"seq\":99,\"kind\":\"signal\",\"sourceNodeId\":\"sweeper\","
          "\"trace\":{\"attempt\":5,\"idempotencyKey\":\"k\"}}");
    again("an event without a trace", "{\"eventId\":\"e\",\"seq\":1,\"kind\":\"signal\"}", NULL);
    again("AOF has no ids", "{\"protocol\":\"aof\",\"version\":1,\"type\":\"status.update\"}",
          NULL);
    struct amp_view v = {.protocol = AMP_PROTO_AMP, .type = {"task_dispatch", 13}};
    static char longest[400];
    memset(longest, 'x', sizeof(longest) - 1);
    char id[AMP_MSG_ID_MAX];
    TAP_OK(amp_again_id(&v, 1772116327001, id, &err) == 0 &&
               strncmp(id, "task_dispatch--", 15) == 0,
           "an id in AMP's form");
    v.task = amp_span_str(longest);
    TAP_OK(amp_again_id(&v, 0, id, &err) < 0, "none that is too long");
    v.protocol = AMP_PROTO_SW4RM;
    TAP_OK(amp_again_id(&v, 0, id, &err) == 0 && strlen(id) == 36, "a UUID of SW4RM");
    return tap_done();
}
