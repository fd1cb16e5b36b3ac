/* How long each protocol waits for an acknowledgement, and for which. */
#include "../tap.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/protocol/delivery.h"

int main(void)
{
    static const struct {
        enum amp_protocol protocol;
        const char *type;
        bool needs;
        int64_t own, want;
    } cases[] = {
        {AMP_PROTO_AMP, "task_dispatch", true, 300000, 300000},
        {AMP_PROTO_AMP, "escalation", false, 0, 0},
        {AMP_PROTO_SW4RM, "DATA", false, 0, 10000},
        {AMP_PROTO_SW4RM, "TOOL_CALL", false, 0, 10000},
        {AMP_PROTO_SW4RM, "HEARTBEAT", false, 0, 0},
        {AMP_PROTO_SW4RM, "ACKNOWLEDGEMENT", false, 0, 0},
        {AMP_PROTO_RTP, "message", false, 0, 20000},
        {AMP_PROTO_RTP, "task_create", false, 0, 20000},
        {AMP_PROTO_RTP, "ack", false, 0, 0},
        {AMP_PROTO_RTP, "signal", false, 0, 0},
        {AMP_PROTO_RTP, "dead_letter", false, 0, 0},
        {AMP_PROTO_RTP, "", false, 0, 0},
        {AMP_PROTO_AOP, "TASK", false, 0, 0},
        {AMP_PROTO_AOF, "status.update", false, 0, 0},
        {AMP_PROTO_NONE, "", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct amp_view v = {.protocol = cases[i].protocol,
                             .type = amp_span_str(cases[i].type),
                             .needs_ack = cases[i].needs,
                             .ack_timeout_ms = cases[i].own};
        TAP_INT(amp_timeouts_ack(&v), cases[i].want, cases[i].type);
    }

    /* What a team sets holds for the whole process. */
    struct amp_error err = {0};
    struct amp_view m = {
        .protocol = AMP_PROTO_SW4RM, .type = AMP_SPAN("DATA"), .wants_outcome = true};
    TAP_OK(amp_timeouts_set_ack(NULL, "sw4rm=1m", &err) == 0 && amp_timeouts_ack(&m) == 60000,
           "the time that is set");
    TAP_OK(amp_timeouts_set_ack(NULL, "aof=1m", &err) < 0 && err.status == AMP_USAGE &&
               amp_timeouts_set_ack(NULL, "1m", &err) < 0 &&
               amp_timeouts_set_ack(NULL, "rtp=0", &err) < 0,
           "not of a protocol that acknowledges nothing, nor none at all");
    amp_timeouts_reset();
    TAP_INT(amp_timeouts_ack(&m), 10000, "and the protocol's own again");
    m.protocol = AMP_PROTO_RTP;
    m.type = AMP_SPAN("task_create");
    TAP_INT(amp_timeouts_sla(&m), 120000, "an outcome is waited for");
    TAP_OK(amp_timeouts_set_sla(NULL, "30s", &err) == 0 && amp_timeouts_sla(&m) == 30000, "as set");
    TAP_OK(amp_timeouts_set_sla(NULL, "0", &err) == 0 && amp_timeouts_sla(&m) == 0, "or not");
    TAP_INT(amp_delivery_of(AMP_PROTO_AMP)->waits_for, AMP_STAGE_READ,
            "AMP waits until it is read");
    TAP_INT(amp_delivery_of(AMP_PROTO_SW4RM)->waits_for, AMP_STAGE_RECEIVED, "SW4RM for admission");
    TAP_INT(amp_delivery_of(AMP_PROTO_RTP)->waits_for, AMP_STAGE_RECEIVED, "so does RTP");
    TAP_OK(!amp_delivery_of(AMP_PROTO_AOP)->acknowledges &&
               !amp_delivery_of(AMP_PROTO_AOF)->acknowledges,
           "others for nothing");
    return tap_done();
}
