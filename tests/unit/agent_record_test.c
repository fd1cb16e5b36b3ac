/* The records that version 1 of the log had of an agent, joined into one. */
#include "agent/record.h"
#include "scratch.h"
#include "tap.h"
#include "json/record.h"

static struct amp_error err;
static struct amp_store *store;

struct old {
    const char *to, *json;
    int64_t due_ms;
};

static int old_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *e)
{
    const struct old *o = ctx;
    *c = (struct amp_store_change){.event = "old",
                                   .to = o->to,
                                   .json = amp_span_str(o->json),
                                   .due_ms = o->due_ms,
                                   .actor = "test"};
    return 0;
}

static void put(const char *kind, const char *name, struct old *o)
{
    TAP_INT(amp_store_update(store, AMP_KEY(kind, amp_span_str(name)), NULL, old_fn, o, NULL, &err),
            0, "an old record");
}

static bool is_there(const char *kind, const char *name)
{
    struct amp_store_rec rec;
    return amp_store_get(store, AMP_KEY(kind, amp_span_str(name)), &rec, &err) == 0 && rec.found;
}

static struct amp_buf mem;
static struct amp_agent_rec find(const char *name)
{
    struct amp_agent_rec rec = {0};
    TAP_INT(amp_agent_find(store, amp_span_str(name), &mem, &rec, &err), 0, "it is read");
    return rec;
}

static void check(void)
{
    TAP_OK(!is_there("directory", "ann") && !is_there("silence", "ann"), "the old ones are gone");
    struct amp_agent_rec r = find("ann");
    TAP_INT(r.reach.state, AMP_REACH_LATE, "its reachability");
    TAP_STR(r.reach.role, "reviewer", "the role that it registered");
    TAP_OK(amp_span_is(r.reach.descriptor, "{\"agent_id\":\"ann\",\"tools\":[]}"), "descriptor");
    TAP_OK(amp_span_is(r.reach.health, "{\"load\":\"1\"}"), "its health");
    TAP_STR(r.reach.asked.correlation, "c1", "the heartbeat that it did not answer");
    TAP_INT(r.reach.due_ms, 7000, "when a sign of life is due");
    TAP_INT(r.reach.missed, 1, "what it missed");
    TAP_INT(r.work.state, AMP_AGENT_RUNNING, "its work");
    TAP_STR(r.work.task, "T-2026-001", "its task");
    TAP_STR(r.work.last_task, "T-2026-001", "its last task");
    TAP_INT(r.work.pid, 17, "its process");
    TAP_INT(r.work.silent_since_ms, 5000, "the silence that was reported");
    TAP_OK(amp_span_is(r.work.suspended.ref, "e1") && r.work.suspended.since_ms == 6000,
           "what suspends it");
    r = find("bob");
    TAP_OK(r.reach.state == AMP_REACH_LEFT && !amp_agent_has_work(&r), "an agent that left");
    TAP_STR(r.reach.reason, "done", "and why");
    r = find("eve");
    TAP_OK(r.reach.state == AMP_REACH_ABSENT && r.work.state == AMP_AGENT_WAITING_RESOURCES &&
               r.work.limit_ms == 9000,
           "an agent that never registered");
}

int main(void)
{
    static struct old
        ann = {"LATE",
               "{\"agent\":{\"agent_id\":\"ann\",\"tools\":[]},\"role\":\"reviewer\",\"joined\":1,"
               "\"seen\":2,\"missed\":1,\"health\":{\"load\":\"1\"},"
               "\"asked\":{\"id\":\"h1\",\"correlation\":\"c1\",\"at\":3}}",
               7000},
        ann_work = {"RUNNING",
                    "{\"role\":\"executor\",\"task\":\"T-2026-001\",\"last_task\":\"T-2026-001\","
                    "\"suspended\":{\"ref\":\"e1\",\"task\":\"T-2026-001\",\"since\":6000},"
                    "\"pid\":17,\"last_seen\":5000,\"state\":\"RUNNING\"}",
                    1805000},
        ann_silent = {"SILENT", "{\"last_seen_ms\":5000,\"escalation\":\"x\"}", 0},
        bob = {"LEFT", "{\"agent\":{},\"joined\":1,\"seen\":2,\"missed\":0,\"reason\":\"done\"}",
               0},
        eve = {"WAITING_RESOURCES",
               "{\"role\":\"executor\",\"task\":\"t\",\"last_task\":\"t\",\"suspended\":null,"
               "\"last_seen\":4000,\"limit_ms\":9000,\"state\":\"WAITING_RESOURCES\"}",
               9000};
    if (amp_store_open(scratch(), NULL, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    amp_buf_init(&mem, AMP_REC_MAX);
    put("directory", "ann", &ann);
    put("agent", "ann", &ann_work);
    put("silence", "ann", &ann_silent);
    put("directory", "bob", &bob);
    put("agent", "eve", &eve);
    TAP_INT(amp_agent_records_upgrade(store, &err), 0, "they are joined");
    check();
    TAP_INT(amp_agent_records_upgrade(store, &err), 0, "again");
    check();
    amp_buf_release(&mem);
    amp_store_close(store);
    return tap_done();
}
