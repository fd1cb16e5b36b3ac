/* The ledger on a store: bytes kept as they came, acknowledgements, deadlines, dead letters. */
#include <stdlib.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/sweep.h"

static struct amp_error err;
static struct amp_store *store;
static struct amp_buf mem;
static struct amp_message_rec rec;

static struct amp_view view_of(const char *id, struct amp_span line)
{
    static struct amp_span to[] = {{"executor", 8}};
    return (struct amp_view){.protocol = AMP_PROTO_AMP,
                             .kind = AMP_KIND_DISPATCH,
                             .line = line,
                             .type = {"task_dispatch", 13},
                             .id = amp_span_str(id),
                             .from = {"coordinator", 11},
                             .task = {"T-2026-001", 10},
                             .to = to,
                             .n_to = 1,
                             .needs_ack = true,
                             .ack_timeout_ms = 300000};
}

static enum amp_store_outcome record(const char *id, struct amp_span line, int64_t now)
{
    enum amp_store_outcome how = AMP_STORE_UNCHANGED;
    struct amp_view v = view_of(id, line);
    if (amp_message_record(store, &v, now, &how, &err) < 0)
        printf("# record: %s: %s\n", err.code, err.what);
    return how;
}

static bool find(const char *id)
{
    if (amp_message_find(store, amp_span_str(id), &mem, &rec, &err) < 0)
        printf("# find: %s: %s\n", err.code, err.what);
    return rec.found;
}

static int ack(const char *id, enum amp_ack_stage stage, const char *by, bool *late)
{
    *late = false;
    return amp_settle_ack(store, amp_span_str(id), stage, by, (struct amp_span){"", 0}, 2000, late,
                          &err);
}

/* Whatever a line looks like, the same bytes come back. */
static void bytes(void)
{
    static char deep[2 * 125 + 8];
    size_t n = 0;
    deep[n++] = '{', deep[n++] = '"', deep[n++] = 'a', deep[n++] = '"', deep[n++] = ':';
    memset(deep + n, '[', 120), n += 120;
    memset(deep + n, ']', 120), n += 120;
    deep[n++] = '}';
    const struct {
        const char *what;
        struct amp_span line;
    } cases[] = {
        {"an object", AMP_SPAN("{\"a\": 1.10, \"b\":\"\\u0061\\/\\\"}{\"}")},
        {"blanks around it", AMP_SPAN("  {\"a\":1} ")},
        {"an envelope in a string", AMP_SPAN("\"{\\\"protocol\\\":\\\"aof\\\"}\"")},
        {"a prefix", AMP_SPAN("AOF/1 {\"a\":1}")},
        {"nesting near the limit", {deep, n}},
        {"text beyond ASCII", AMP_SPAN("{\"a\":\"\xc3\xa4\xe2\x82\xac\"}")},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char id[16];
        snprintf(id, sizeof(id), "bytes-%zu", i);
        record(id, cases[i].line, 1000);
        TAP_OK(find(id) && amp_span_eq(rec.line, cases[i].line), "%s comes back", cases[i].what);
    }
}

static void lifecycle(void)
{
    bool late;
    TAP_INT(record("one", AMP_SPAN("{\"x\":1}"), 1000), AMP_STORE_COMMITTED, "recorded");
    TAP_INT(record("one", AMP_SPAN("{\"x\":1}"), 5000), AMP_STORE_REDELIVERED, "a redelivery");
    struct amp_view other = view_of("one", AMP_SPAN("{\"x\":2}"));
    TAP_INT(amp_message_record(store, &other, 1, NULL, &err), -1, "other bytes");
    TAP_STR(err.code, "duplicate_msg_id", "their code");
    TAP_OK(find("one") && rec.sent_ms == 1000 && rec.due_ms == 301000, "the deadline stays");
    TAP_SPAN(rec.to, "executor", "its recipient");
    TAP_INT(ack("none", AMP_STAGE_READ, "x", &late), -1, "an unknown id");
    TAP_STR(err.code, "unknown_ref", "its code");
    TAP_INT(ack("one", AMP_STAGE_RECEIVED, "x", &late), 0, "admitted");
    TAP_OK(find("one") && rec.due_ms == 301000, "an AMP message waits until it is read");
    TAP_INT(ack("one", AMP_STAGE_READ, "x", &late), 0, "read");
    TAP_OK(find("one") && rec.state == AMP_DELIVERY_READ && rec.due_ms == 0, "nothing is due");
    TAP_INT(ack("one", AMP_STAGE_READ, "x", &late), 0, "the same again");
    TAP_OK(!late, "is not late");
    TAP_INT(ack("one", AMP_STAGE_FAILED, "x", &late), 0, "failed at work");
    TAP_INT(ack("one", AMP_STAGE_FULFILLED, "y", &late), 0, "then fulfilled after all");
    TAP_OK(late && find("one") && rec.state == AMP_DELIVERY_FAILED, "late: it changes nothing");
    TAP_INT(amp_message_requeue(store, AMP_SPAN("one"), 9000, &err), 0, "sent again");
    TAP_OK(find("one") && rec.state == AMP_DELIVERY_SENT && rec.due_ms == 309000 && rec.n_acks == 0,
           "a new deadline");
    TAP_INT(ack("one", AMP_STAGE_READ, "x", &late), 0, "read again");
    TAP_OK(!late && find("one") && rec.state == AMP_DELIVERY_READ, "counts again");
}

static int count_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    ++*(int *)ctx;
    return 0;
}

static int open_entries(const char *consumer)
{
    int n = 0;
    amp_store_outbox(store, consumer, count_fn, &n, &err);
    return n;
}

static int letters_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                      struct amp_span json, struct amp_error *failed)
{
    struct amp_dead_letter *out = ctx;
    if (amp_span_is(id, "lost")) {
        out->attempts = d->attempts;
        out->retryable = d->retryable;
        out->created_ms = amp_span_is(d->line, "{\"l\":1}") && strcmp(d->code, "no_route") == 0;
    }
    return 0;
}

static void letters(void)
{
    struct amp_view v = view_of("lost", AMP_SPAN("{\"l\":1}"));
    struct amp_dead_letter d = {.code = "no_route",
                                .why = "no route",
                                .route = "",
                                .failed_ms = 3000},
                           seen = {0};
    struct amp_store_entry_id entry;
    record("lost", v.line, 1000);
    amp_dead_from_view(&d, &v);
    for (int i = 0; i < 2; i++)
        TAP_INT(amp_dead_add(store, &d, "router", AMP_SPAN("{\"n\":1}"), &entry, &err), 0, "kept");
    TAP_INT(open_entries("router"), 2, "its answers are in the outbox");
    TAP_OK(find("lost") && rec.state == AMP_DELIVERY_REJECTED && rec.due_ms == 0,
           "the ledger says rejected");
    amp_dead_each(store, false, letters_fn, &seen, &err);
    TAP_OK(seen.attempts == 2 && !seen.retryable && seen.created_ms == 1,
           "one letter, two attempts, the bytes");
    TAP_INT(amp_dead_requeue(store, AMP_SPAN("lost"), 0, "again", 7000, &err), 0, "sent again");
    TAP_INT(open_entries("again"), 1, "its line stands in the outbox");
    TAP_OK(find("lost") && rec.state == AMP_DELIVERY_SENT && rec.due_ms == 307000,
           "the ledger waits again");
    TAP_INT(amp_dead_requeue(store, AMP_SPAN("lost"), 0, "again", 7000, &err), -1, "but once");
    TAP_STR(err.code, "already_requeued", "its code");
}

static void sweep(void)
{
    struct amp_sweep_options opt = {.actor = "sweeper", .from = "system", .severity = 1};
    uint32_t raised = 9;
    bool late;
    int64_t due = 0;
    record("slow", AMP_SPAN("{\"s\":1}"), 1000);
    TAP_INT(amp_message_next_due(store, 0, &due, &err), 0, "asks when");
    TAP_OK(due > 0 && due <= 301000, "the earliest deadline");
    amp_message_sweep(store, due - 1, &opt, &raised, &err);
    TAP_INT(raised, 0, "a moment before: nothing");
    amp_message_sweep(store, 1000000, &opt, &raised, &err);
    TAP_OK(raised > 0 && open_entries("sweeper") == (int)raised, "overdue: told, in the outbox");
    TAP_OK(find("slow") && rec.state == AMP_DELIVERY_TIMED_OUT && rec.timed_out_ms == 1000000,
           "timed out");
    amp_message_sweep(store, 2000000, &opt, &raised, &err);
    TAP_INT(raised, 0, "and not again");
    TAP_INT(ack("slow", AMP_STAGE_READ, "x", &late), 0, "then it is read");
    TAP_OK(late && find("slow") && rec.state == AMP_DELIVERY_TIMED_OUT, "late");
}

static void silence(void)
{
    struct amp_sweep_options opt = {
        .actor = "watch", .from = "system", .severity = 1, .silence_ms = 1800000};
    const int64_t seen = 1767225600000; /* 2026-01-01 */
    uint32_t raised;
    amp_message_sweep(store, seen, &opt, &raised, &err);
    TAP_INT(raised, 2, "who read \"one\" and \"slow\" is silent");
    TAP_OK(find("slow") && rec.state == AMP_DELIVERY_TIMED_OUT && rec.lost, "which is all");
    TAP_INT(open_entries("watch"), 2, "all are in the outbox");
}

int main(void)
{
    struct amp_store_options opt = {.lock_timeout_ms = 5000};
    amp_buf_init(&mem, (size_t)256 << 20);
    if (amp_store_open(scratch(), &opt, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    bytes();
    lifecycle();
    letters();
    sweep();
    silence();
    amp_store_close(store);
    amp_buf_release(&mem);
    return tap_done();
}
