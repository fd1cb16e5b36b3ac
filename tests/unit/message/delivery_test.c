/* The delivery machine against the seed: which edges it draws, which are ours, what late means. */
#include "../tap.h"
#include "message/delivery/record/delivery.h"

struct want {
    const char *from, *event, *to; /* to NULL: no such edge */
    bool extra, late;
    const char *code;
};

/* The figure of SW4RM appendix C and §11.1; below it what is marked as our own. */
static const struct want wants[] = {
    {"SENT", "ack_received", "RECEIVED", false, false, NULL},
    {"RECEIVED", "ack_read", "READ", false, false, NULL},
    {"READ", "ack_fulfilled", "FULFILLED", false, false, NULL},
    {"SENT", "timeout", "TIMED_OUT", false, false, "ack_timeout"},
    {"TIMED_OUT", "retry", "RETRYING", false, false, NULL},
    {"RETRYING", "resend", "SENT", false, false, NULL},
    {"RECEIVED", "nack_rejected", "REJECTED", false, false, NULL},
    {"RECEIVED", "nack_failed", "FAILED", false, false, NULL},
    {"READ", "nack_failed", "FAILED", false, false, NULL},
    {"TIMED_OUT", "ack_received", "TIMED_OUT", false, true, NULL},
    {"TIMED_OUT", "ack_read", "TIMED_OUT", false, true, NULL},
    {"TIMED_OUT", "ack_fulfilled", "TIMED_OUT", false, true, NULL},
    {"FULFILLED", "ack_read", "FULFILLED", false, true, NULL},
    {"REJECTED", "ack_fulfilled", "REJECTED", false, true, NULL},
    {"FAILED", "ack_fulfilled", "FAILED", false, true, NULL},
    {"RETRYING", "ack_received", "RECEIVED", false, true, NULL},
    {"RETRYING", "ack_fulfilled", "FULFILLED", false, true, NULL},
    {"SENT", "nack_rejected", "REJECTED", true, false, NULL},
    {"SENT", "nack_failed", "FAILED", true, false, NULL},
    {"SENT", "expire", "FAILED", true, false, "ttl_expired"},
    {"SENT", "ack_read", "READ", true, false, NULL},
    {"REJECTED", "requeue", "SENT", true, false, NULL},
    {"REJECTED", "retry", "RETRYING", true, false, NULL},
    {"FAILED", "retry", "RETRYING", true, false, NULL},
    {"RETRYING", "depart", "RETRYING", true, false, NULL},
    {"RETRYING", "expire", "FAILED", true, false, "ttl_expired"},
    {"RETRYING", "settle", "RETRYING", true, false, NULL},
    {"READ", "timeout", "TIMED_OUT", true, false, "ack_timeout"},
    {"RETRYING", "requeue", "SENT", true, false, NULL},
    {"TIMED_OUT", "give_up", "TIMED_OUT", true, false, NULL},
    {"REJECTED", "give_up", "REJECTED", true, false, NULL},
    {"FAILED", "give_up", "FAILED", true, false, NULL},
    {"TIMED_OUT", "settle", "TIMED_OUT", true, false, NULL},
    {"SENT", "retry", NULL, false, false, NULL},
    {"READ", "retry", NULL, false, false, NULL},
    {"READ", "expire", NULL, false, false, NULL},
    {"FULFILLED", "retry", NULL, false, false, NULL},
    {"SENT", "depart", NULL, false, false, NULL},
    {"TIMED_OUT", "resend", NULL, false, false, NULL},
    {"FULFILLED", "requeue", NULL, false, false, NULL},
    {"SENT", "resend", NULL, false, false, NULL},
    {"FULFILLED", "timeout", NULL, false, false, NULL},
};

static void cell(const struct want *w)
{
    const struct amp_fsm *m = &amp_delivery_fsm;
    struct amp_fsm_result out;
    struct amp_error err = {0};
    int from = amp_fsm_state(m, amp_span_str(w->from));
    int event = amp_fsm_event(m, amp_span_str(w->event));
    int rc = amp_fsm_step(m, (uint8_t)from, (uint8_t)event, 0, &out, &err);
    if (!w->to) {
        TAP_OK(rc < 0 && strcmp(err.code, "illegal_transition") == 0, "%s + %s is illegal", w->from,
               w->event);
        return;
    }
    bool late = rc == 0 && (out.effects & AMP_DELIVERY_DO_LOG_LATE);
    bool code = rc == 0 && (w->code ? out.code && strcmp(out.code, w->code) == 0 : !out.code);
    TAP_OK(rc == 0 && strcmp(m->states[out.to].name, w->to) == 0 && out.row->extra == w->extra &&
               late == w->late && code,
           "%s + %s gives %s%s%s", w->from, w->event, w->to, w->extra ? " (extra)" : "",
           w->late ? " (late)" : "");
}

static void retry_is_out(void)
{
    struct amp_fsm_result out;
    int rc = amp_fsm_step(&amp_delivery_fsm, AMP_DELIVERY_RETRYING, AMP_DELIVERY_EV_ACK_READ,
                          AMP_DELIVERY_IF_RETRY_DELIVERED, &out, NULL);
    TAP_OK(rc == 0 && out.to == AMP_DELIVERY_RETRYING && (out.effects & AMP_DELIVERY_DO_TRACK_BOTH),
           "an ack of the first attempt when the retry is out: both are tracked");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
        cell(&wants[i]);
    retry_is_out();
    return tap_done();
}
