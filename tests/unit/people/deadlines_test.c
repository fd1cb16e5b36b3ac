/* Every kind of deadline: nothing to do before its moment, done once at it, then quiet. */
#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/outbox.h"
#include "message/delivery/settle/answer.h"
#include "people/deadlines.h"
#include "work/agent/work.h"

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
    amp_deadline_next(&amp_deadlines[row_of(name)], store, &ctx, &ms, &err);
    return ms;
}

/* What one run at that time did to a row; no row may have anything left to do then. */
static int64_t run(int64_t now, const char *name)
{
    uint32_t done[32] = {0};
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

static void silence(void)
{
    int lock; /* the agent has a process: this one */
    TAP_INT(amp_outbox_lock(store, "ann", 0, &lock, &err), 0, "the lock of a name");
    TAP_INT(amp_agent_register(store, "ann", "executor", T0, &err), 0, "an agent");
    TAP_INT(amp_agent_step(store, "ann", AMP_AGENT_EV_READY, NULL, T0, &err), 0, "is ready");
    TAP_INT(due_of("silence"), 0, "its silence means nothing while it does not work");
    TAP_INT(amp_agent_step(store, "ann", AMP_AGENT_EV_ASSIGN, "T-2026-001", T0, &err), 0, "works");
    TAP_INT(due_of("silence"), T0 + 1800000, "an agent at work that may fall silent");
    TAP_INT(run(T0 + 1799999, "silence"), 0, "nothing before");
    TAP_INT(run(T0 + 1800000, "silence"), 1, "its silence is reported");
    TAP_INT(due_of("silence"), 0, "and is no deadline any more");
    TAP_INT(run(T0 + 9900000, "silence"), 0, "it is reported once");
    TAP_INT(amp_agent_seen(store, "ann", T0 + 3600000, &err), 0, "a sign of life");
    TAP_INT(due_of("silence"), T0 + 3600000 + 1800000, "after which it may fall silent again");
    TAP_INT(amp_agent_step(store, "ann", AMP_AGENT_EV_FAIL, NULL, T0 + 3600000, &err), 0, "fails");
    TAP_INT(due_of("silence"), 0, "an agent that is not at work may be silent");
    close(lock);
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

/* Each state that has a time limit, and how an agent comes to it (SW4RM §8.3). */
static const struct {
    const char *name;
    uint8_t state;
    uint8_t events[6];
    int n;
    const char *code;
} limits[] = {
    {"ini", AMP_AGENT_INITIALIZING, {0}, 0, "init_timeout"},
    {"res",
     AMP_AGENT_WAITING_RESOURCES,
     {AMP_AGENT_EV_READY, AMP_AGENT_EV_ASSIGN, AMP_AGENT_EV_START, AMP_AGENT_EV_LACK},
     4,
     "resource_timeout"},
    {"sus",
     AMP_AGENT_SUSPENDED,
     {AMP_AGENT_EV_READY, AMP_AGENT_EV_ASSIGN, AMP_AGENT_EV_START, AMP_AGENT_EV_SUSPEND},
     4,
     "suspend_timeout"},
    {"rec",
     AMP_AGENT_RECOVERING,
     {AMP_AGENT_EV_READY, AMP_AGENT_EV_ASSIGN, AMP_AGENT_EV_START, AMP_AGENT_EV_FAIL,
      AMP_AGENT_EV_RECOVER},
     5,
     "recovery_timeout"},
    {"end",
     AMP_AGENT_SHUTTING_DOWN,
     {AMP_AGENT_EV_READY, AMP_AGENT_EV_SHUTDOWN},
     2,
     "agent_shutdown_timeout"},
};

static bool has_code(const char *name, const char *code)
{
    struct amp_store_rec rec;
    return amp_store_get(store, AMP_KEY("agent", amp_span_str(name)), &rec, &err) == 0 &&
           rec.found && memmem(rec.json.p, rec.json.n, code, strlen(code));
}

static void agents(void)
{
    struct amp_agent_status st;
    int64_t at = T0 + INT64_C(86400000) * 30;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++, at += 7200000) {
        int64_t limit = at + amp_agent_limit_ms(limits[i].state);
        int rc = amp_agent_register(store, limits[i].name, "executor", at, &err);
        for (int e = 0; e < limits[i].n && rc == 0; e++)
            rc = amp_agent_step(store, limits[i].name, limits[i].events[e], "T-2026-001", at, &err);
        TAP_INT(rc, 0, limits[i].name);
        TAP_INT(due_of("agent"), limit, "the limit of its state");
        TAP_INT(run(limit - 1, "agent"), 0, "nothing before");
        TAP_INT(run(limit, "agent"), 1, "it passes");
        TAP_INT(amp_agent_status(store, limits[i].name, &st, &err), 0, "its record");
        TAP_INT(st.state, AMP_AGENT_FAILED, "the agent failed");
        TAP_OK(has_code(limits[i].name, limits[i].code), "with %s", limits[i].code);
    }
    amp_agent_register(store, "fin", "executor", at, &err);
    amp_agent_step(store, "fin", AMP_AGENT_EV_SHUTDOWN, NULL, at, &err);
    amp_agent_step(store, "fin", AMP_AGENT_EV_EXIT, NULL, at, &err);
    TAP_INT(due_of("agent"), 0, "an agent that has ended has no limit");
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
    agents();
    amp_store_close(store);
    return tap_done();
}
