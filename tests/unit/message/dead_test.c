/* Dead letters on a store: what is kept, requeued once, removed as it was seen, retained. */
#include <stdlib.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/ledger/ledger.h"

static struct amp_error err;
static struct amp_store *store;
static char seen[512];
static struct amp_dead_letter got;
static char line[256], excerpt[256];

static int note(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                struct amp_span json, struct amp_error *failed)
{
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof(seen) - n, "%s%.*s", n ? " " : "", (int)id.n, id.p);
    got = *d;
    amp_span_copy(d->line, line, sizeof(line));
    amp_span_copy(d->excerpt, excerpt, sizeof(excerpt));
    if (ctx)
        amp_buf_add(ctx, json.p, json.n, NULL);
    return 0;
}

static void letter(const char *id, const char *code, int64_t failed_ms)
{
    static const struct amp_message_try before[] = {
        {{"a", 1}, 10, "ack_timeout", "inbox:x", "silent"}, {{"b", 1}, 20, "ack_timeout", "", ""}};
    struct amp_dead_letter d = {.line = AMP_SPAN("{\"token\":\"t1\"}"),
                                .msg_id = amp_span_str(id),
                                .protocol = "amp",
                                .code = code,
                                .why = "w",
                                .route = "r",
                                .failed_ms = failed_ms};
    if (strcmp(code, "retries_exhausted") == 0) {
        d.before = before;
        d.n_before = 2;
    }
    if (amp_dead_add(store, &d, "router", (struct amp_span){"", 0}, NULL, &err) < 0)
        printf("# %s\n", err.what);
}

static const char *find(const char *id)
{
    seen[0] = '\0';
    if (amp_dead_find(store, amp_span_str(id), note, NULL, &err) < 0)
        return err.code;
    return seen;
}

static const char *all(void)
{
    seen[0] = '\0';
    amp_dead_each(store, true, note, NULL, &err);
    return seen;
}

static void contents(void)
{
    AMP_BUF struct amp_buf json = {0};
    amp_buf_init(&json, 1 << 16);
    letter("x", "retries_exhausted", 30);
    amp_dead_find(store, AMP_SPAN("x"), note, &json, &err);
    TAP_INT(got.attempts, 3, "the attempts before count");
    TAP_INT(got.first_failed_ms, 10, "the first of them is the first failure");
    TAP_INT(got.final, AMP_DEAD_EXHAUSTED, "the class follows from the code");
    TAP_STR(excerpt, "{\"token\":\"[redacted:token]\"}", "the excerpt is redacted");
    TAP_STR(line, "{\"token\":\"t1\"}", "the message is not");
    TAP_OK(memmem(json.data, json.len, "\"msg_id\":\"a\",\"at_ms\":10", 22), "history has them");
    letter("x", "no_route", 40);
    amp_buf_reset(&json);
    amp_dead_find(store, AMP_SPAN("x"), note, &json, &err);
    TAP_INT(got.attempts, 4, "one more");
    TAP_INT(got.first_failed_ms, 10, "first as it was");
    TAP_OK(memmem(json.data, json.len, "\"at_ms\":40", 10), "appended to the history");
    TAP_STR(find("nobody"), "unknown_ref", "one that is not there");
    static const struct {
        const char *code;
        bool retryable;
        enum amp_dead_class want;
    } rows[] = {{"ttl_expired", false, AMP_DEAD_EXPIRED},
                {"unsigned", false, AMP_DEAD_POLICY},
                {"no_route", false, AMP_DEAD_UNDELIVERABLE},
                {"x", true, AMP_DEAD_UNDELIVERABLE},
                {"x", false, AMP_DEAD_TERMINAL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct amp_dead_letter d = {.line = AMP_SPAN("{}"),
                                    .msg_id = AMP_SPAN("c"),
                                    .protocol = "amp",
                                    .code = rows[i].code,
                                    .why = "",
                                    .route = "",
                                    .retryable = rows[i].retryable};
        amp_dead_add(store, &d, "router", (struct amp_span){"", 0}, NULL, &err);
        find("c");
        TAP_INT(got.final, rows[i].want, amp_dead_class_name(rows[i].want));
    }
    amp_dead_remove(store, AMP_SPAN("c"), 0, "purge", "me", &err);
    amp_dead_remove(store, AMP_SPAN("x"), 0, "purge", "me", &err);
}

static void as_seen(void)
{
    letter("x", "no_route", 100);
    find("x");
    uint64_t rev = got.rev;
    letter("x", "no_route", 200);
    TAP_INT(amp_dead_remove(store, AMP_SPAN("x"), rev, "purge", "me", &err), -1,
            "what changed since is not removed");
    TAP_STR(err.code, "changed", "its code");
    TAP_INT(amp_dead_requeue(store, AMP_SPAN("x"), rev, "me", 300, &err), -1, "nor requeued");
    TAP_STR(err.code, "changed", "its code");
    find("x");
    TAP_INT(amp_dead_requeue(store, AMP_SPAN("x"), got.rev, "me", 300, &err), 0, "as it is now");
    TAP_INT(amp_dead_requeue(store, AMP_SPAN("x"), 0, "me", 300, &err), -1, "but once");
    TAP_STR(err.code, "already_requeued", "its code");
    TAP_INT(amp_dead_remove(store, AMP_SPAN("x"), 0, "purge", "me", &err), 0, "a closed one goes");
    TAP_STR(all(), "", "and nothing is left");
}

static int back_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *e)
{
    struct amp_buf *before = ctx;
    (void)now;
    (void)e;
    change->event = "back";
    change->to = "REJECTED";
    change->json = amp_buf_span(before);
    return 0;
}

/* A letter that was closed while the ledger had not heard of it. */
static void recovery(void)
{
    struct amp_view v = {.protocol = AMP_PROTO_AMP,
                         .line = AMP_SPAN("{\"m\":1}"),
                         .id = AMP_SPAN("m"),
                         .needs_ack = true,
                         .ack_timeout_ms = 1000};
    enum amp_store_outcome how;
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, 1 << 20);
    amp_message_record(store, &v, 10, &how, &err);
    letter("m", "no_route", 20);
    amp_message_find(store, AMP_SPAN("m"), &mem, &rec, &err);
    TAP_INT(rec.state, AMP_DELIVERY_REJECTED, "dead: rejected in the ledger");
    struct amp_store_rec kept;
    AMP_BUF struct amp_buf before = {0};
    amp_buf_init(&before, 1 << 16);
    amp_store_get(store, AMP_KEY("message", AMP_SPAN("m")), &kept, &err);
    amp_buf_add(&before, kept.json.p, kept.json.n, &err);
    amp_dead_requeue(store, AMP_SPAN("m"), 0, "me", 30, &err);
    /* As a crash before the second commit would have left it. */
    amp_store_update(store, AMP_KEY("message", AMP_SPAN("m")), NULL, back_fn, &before, &how, &err);
    TAP_INT(amp_dead_recover(store, "me", 5000, &err), 0, "made up for");
    amp_message_find(store, AMP_SPAN("m"), &mem, &rec, &err);
    TAP_INT(rec.state, AMP_DELIVERY_SENT, "it is on its way");
    TAP_INT(rec.due_ms, 6000, "with a new deadline");
    TAP_INT(amp_dead_recover(store, "me", 9000, &err), 0, "and once only");
    amp_message_find(store, AMP_SPAN("m"), &mem, &rec, &err);
    TAP_INT(rec.due_ms, 6000, "the deadline stays");
    amp_dead_remove(store, AMP_SPAN("m"), 0, "purge", "me", &err);
}

static uint32_t retain(int64_t age, int64_t count, int64_t now, bool dry)
{
    struct amp_dead_limits l = {.max_age_ms = age, .max_count = count};
    uint32_t n = 0;
    seen[0] = '\0';
    if (amp_dead_retain(store, &l, now, "me", dry, note, NULL, &n, &err) < 0)
        printf("# %s\n", err.what);
    return n;
}

static int64_t due(int64_t age, int64_t count)
{
    struct amp_dead_limits l = {.max_age_ms = age, .max_count = count};
    int64_t ms = -1;
    amp_dead_next_due(store, &l, &ms, &err);
    return ms;
}

static void retention(void)
{
    /* The ids' order is not that of their failures. */
    letter("e", "no_route", 100);
    letter("d", "no_route", 200);
    letter("c", "no_route", 300);
    letter("b", "no_route", 400);
    letter("a", "no_route", 500);
    amp_dead_requeue(store, AMP_SPAN("d"), 0, "me", 600, &err);
    TAP_INT(retain(0, 0, 10000, false), 0, "without limits all stays");
    TAP_INT(due(0, 0), 0, "and nothing is due");
    TAP_INT(due(1000, 0), 1100, "the oldest is due at its age");
    TAP_INT(due(0, 5), 0, "as many as may be");
    TAP_OK(due(0, 4) > 0 && due(0, 4) <= 500, "one too many is due now");
    TAP_INT(retain(800, 0, 1000, true), 2, "dry: two are too old");
    TAP_STR(seen, "e d", "the oldest first, closed ones too");
    TAP_STR(all(), "a b c d e", "and all are there");
    TAP_INT(retain(0, 3, 1000, true), 2, "two are too many");
    TAP_STR(seen, "e d", "the oldest");
    TAP_INT(retain(700, 4, 1000, true), 3, "age reaches further than count");
    TAP_INT(retain(900, 3, 1000, true), 2, "or count further than age");
    TAP_INT(retain(800, 4, 1000, false), 2, "removed");
    TAP_STR(all(), "a b c", "the rest stays");
    letter("c", "no_route", 900);
    TAP_INT(retain(800, 0, 1200, true), 1, "who failed again is young again");
    TAP_STR(seen, "b", "so another is the oldest");
    TAP_INT(retain(0, 1, 1200, false), 2, "down to one");
    TAP_STR(all(), "c", "the newest");
}

int main(void)
{
    struct amp_store_options opt = {.lock_timeout_ms = 1000};
    char dir[128];
    snprintf(dir, sizeof(dir), "%s/state", scratch());
    if (amp_store_open(dir, &opt, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    contents();
    as_seen();
    recovery();
    retention();
    amp_store_close(store);
    return tap_done();
}
