/* Every kind of deadline: nothing to do before its moment, done once at it, then quiet. */
#include "flow/deadlines.h"
#include "message/operation/idempotency.h"
#include "message/settle/answer.h"
#include "scratch.h"
#include "tap.h"

static struct amp_error err;
static struct amp_store *store;
static const struct amp_deadline_ctx ctx = {.actor = "sweeper",
                                            .from = "system",
                                            .severity = AMP_LEVEL_WARNING,
                                            .silence_ms = 1800000,
                                            .window_ms = 3600000};
#define T0 INT64_C(1767225600000) /* 2026-01-01 */

static int row_of(const char *name)
{
    for (int i = 0; amp_deadlines[i].name; i++)
        if (strcmp(amp_deadlines[i].name, name) == 0)
            return i;
    return -1;
}

static int64_t due_of(const char *name)
{
    int64_t ms = -1;
    amp_deadlines[row_of(name)].next_due(store, &ctx, &ms, &err);
    return ms;
}

/* What one run at that time did to a row; no row may have anything left to do then. */
static int64_t run(int64_t now, const char *name)
{
    uint32_t done[16] = {0};
    if (amp_deadlines_run(store, now, &ctx, done, &err) < 0) {
        printf("# run: %s: %s\n", err.code, err.what);
        return -1;
    }
    for (int i = 0; amp_deadlines[i].name; i++) {
        int64_t due = due_of(amp_deadlines[i].name);
        TAP_OK(due == 0 || due > now, "%s has nothing left to do", amp_deadlines[i].name);
    }
    return done[row_of(name)];
}

static struct amp_view view_of(const char *id, const char *line)
{
    static struct amp_span to[] = {{"executor", 8}};
    return (struct amp_view){.protocol = AMP_PROTO_SW4RM,
                             .kind = AMP_KIND_OTHER,
                             .line = amp_span_str(line),
                             .type = {"DATA", 4},
                             .id = amp_span_str(id),
                             .from = {"producer", 8},
                             .token = {"producer:Make:0123456789abcdef", 30},
                             .to = to,
                             .n_to = 1,
                             .needs_ack = true,
                             .ack_timeout_ms = 10000};
}

static void messages(void)
{
    struct amp_view v = view_of("m1", "{\"a\":1}");
    TAP_INT(due_of("acknowledgement"), 0, "an empty store has no deadline");
    TAP_INT(amp_message_record(store, &v, T0, NULL, &err), 0, "a message");
    TAP_INT(due_of("acknowledgement"), T0 + 10000, "its deadline");
    TAP_INT(run(T0 + 9999, "acknowledgement"), 0, "nothing before");
    TAP_INT(run(T0 + 10000, "acknowledgement"), 1, "told at its moment");
    TAP_INT(run(T0 + 10000, "acknowledgement"), 0, "once");
}

static int agent_fn(void *arg, const struct amp_store_rec *now, struct amp_store_change *change,
                    struct amp_error *e)
{
    *change = (struct amp_store_change){
        .event = "step", .to = "RUNNING", .json = amp_span_str(arg), .due_ms = T0, .actor = "test"};
    return 0;
}

static void silence(void)
{
    static char seen[] = "{\"task\":\"T-2026-001\",\"last_seen\":1767225600000}",
                later[] = "{\"task\":\"T-2026-001\",\"last_seen\":1767229200000}";
    enum amp_store_outcome how;
    amp_store_update(store, "agent", AMP_SPAN("ann"), NULL, agent_fn, seen, &how, &err);
    TAP_INT(due_of("acknowledgement"), T0 + 1800000, "an agent at work that may fall silent");
    TAP_INT(run(T0 + 1800000, "acknowledgement"), 1, "its silence is told");
    TAP_INT(due_of("acknowledgement"), 0, "and is no deadline any more");
    amp_store_update(store, "agent", AMP_SPAN("ann"), NULL, agent_fn, later, &how, &err);
    TAP_INT(due_of("acknowledgement"), T0 + 3600000 + 1800000, "until it gave a sign of life");
}

static void windows(void)
{
    struct amp_view v = view_of("m2", "{\"b\":1}");
    struct amp_idem_options o = {.now_ms = T0, .window_ms = ctx.window_ms, .actor = "test"};
    struct amp_idem_answer a;
    amp_idem_answer_init(&a);
    TAP_INT(amp_idem_claim(store, &v, &o, &a, &err), 0, "an operation");
    amp_idem_answer_release(&a);
    TAP_INT(amp_message_record(store, &v, T0, NULL, &err), 0, "its attempt");
    TAP_INT(amp_settle_ack(store, AMP_SPAN("m2"), AMP_STAGE_FULFILLED, "executor",
                           (struct amp_span){"", 0}, T0 + 1000, NULL, &err),
            0, "its end");
    TAP_INT(due_of("window"), T0 + 3600000, "is looked at after the window");
    TAP_INT(run(T0 + 3600000, "window"), 0, "and kept for a window after its end");
    TAP_INT(run(T0 + 3601000, "window"), 1, "then forgotten");
    TAP_INT(due_of("window"), 0, "for good");
}

int main(void)
{
    if (amp_store_open(scratch(), NULL, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    messages();
    silence();
    windows();
    amp_store_close(store);
    return tap_done();
}
