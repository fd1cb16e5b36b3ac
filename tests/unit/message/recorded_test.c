/* The log read again: each message once, in order; what is gone is told; a pin keeps it. */
#include "message/delivery/history/recorded.h"
#include "message/store/history/history.h"

#include <stdlib.h>

#include <amp/base/clock.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/cursor/cursors.h"

static struct amp_error err;
static struct amp_store *store;

struct change {
    char json[512], line[256];
    const char *event, *id;
    size_t pad;
    bool ledger;
    char *big;
    struct amp_store_emit emit;
};

static int change_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *e)
{
    struct change *w = ctx;
    (void)now;
    (void)e;
    c->event = w->event;
    c->to = "SENT";
    c->actor = "t";
    c->json = amp_span_str(w->big && w->ledger ? w->big : w->json);
    c->emits = &w->emit;
    c->n_emits = w->emit.line.n > 0;
    return 0;
}

static void ledger(int n, size_t pad)
{
    struct change w = {.event = "send", .ledger = true};
    char id[32];
    enum amp_store_outcome how;
    snprintf(id, sizeof id, "m%d", n);
    if (pad > 0) {
        w.big = malloc(pad + 64);
        int at = sprintf(w.big, "{\"msg\":{\"n\":%d,\"x\":\"", n);
        memset(w.big + at, 'x', pad);
        strcpy(w.big + at + pad, "\"}}");
    } else {
        snprintf(w.json, sizeof w.json, "{\"msg\":{\"n\":%d}}", n);
    }
    amp_store_update(store, AMP_KEY("message", amp_span_str(id)), NULL, change_fn, &w, &how, &err);
    free(w.big);
}

static void emitted(const char *key, const char *event, const char *id, enum amp_role role, int n)
{
    struct change w = {.event = event, .json = "{}"};
    enum amp_store_outcome how;
    snprintf(w.line, sizeof w.line, "{\"n\":%d}", n);
    w.emit =
        (struct amp_store_emit){.id = amp_span_str(id), .line = amp_span_str(w.line), .role = role};
    amp_store_update(store, AMP_KEY_TEXT(amp_span_str(key)), NULL, change_fn, &w, &how, &err);
}

static void routed(const char *key, const char *event, const char *id, int n)
{
    emitted(key, event, id, AMP_ROLE_message, n);
}

/* The numbers of the messages of a range. */
static const char *numbers(uint64_t from, uint64_t to)
{
    static char text[4096];
    struct amp_recorded *r;
    struct amp_recorded_item item;
    int rc;
    text[0] = '\0';
    if (amp_recorded_open(store, from, to, &r, &err) < 0)
        return err.code;
    while ((rc = amp_recorded_next(r, &item, &err)) > 0) {
        size_t at = strlen(text);
        if (at + 16 < sizeof text)
            snprintf(text + at, sizeof text - at, at ? " %d" : "%d", atoi(item.line.p + 5));
    }
    amp_recorded_free(r);
    return rc < 0 ? err.code : text;
}

static void reading(void)
{
    ledger(1, 0);
    routed("route.r", "record", "m1", 1);
    routed("route.r", "record", "e2", 2);
    emitted("route.r", "record", "bob", AMP_ROLE_recipient, 99);
    routed("cursor.a.vps", "enqueue", "e3", 3);
    emitted("cursor.a.vps", "hold", "held.9.1.e9", AMP_ROLE_held, 9);
    routed("cursor.a.vps", "gap_timeout", "i", 98);
    routed("cursor.a.%40log", "enqueue", "e2", 2);
    routed("dead.m7", "add", "nack", 97);
    ledger(1, 0); /* a later state of the first */
    ledger(4, 2 << 20);
    routed("route.r", "record", "e2", 2);
    ledger(5, 0);
    TAP_STR(numbers(1, UINT64_MAX), "1 2 3 4 5", "each once, by its first frame");
    TAP_STR(numbers(3, 5), "2 3", "of a range");
    TAP_STR(numbers(12, UINT64_MAX), "2 5", "a later copy, where the first is not in it");
    TAP_STR(numbers(40, 50), "", "behind the end");
}

static void positions(void)
{
    uint64_t first, last, n;
    amp_store_range(store, &first, &last, &err);
    TAP_INT(amp_recorded_position(store, "start", &n, &err), 0, "start");
    TAP_OK(n == 1 && first == 1, "is the first frame");
    TAP_INT(amp_recorded_position(store, "end", &n, &err), 0, "end");
    TAP_OK(n == last + 1, "is behind the last");
    TAP_OK(amp_recorded_position(store, "ann", &n, &err) < 0 &&
               strcmp(err.code, "unknown_ref") == 0,
           "a consumer without a cursor");
    struct amp_cursors_edit e = {.consumer = AMP_SPAN("ann"),
                                 .source = AMP_SPAN(AMP_LOG_SOURCE),
                                 .seq = 3,
                                 .now_ms = amp_now_ms(),
                                 .lease_ms = AMP_CURSOR_LEASE_MS,
                                 .actor = "t"};
    amp_cursors_move(store, &e, &err);
    TAP_INT(amp_recorded_position(store, "ann", &n, &err), 0, "a consumer's");
    TAP_INT((int64_t)n, 4, "is behind its cursor");
}

static void retention(void)
{
    uint64_t first, last, n;
    TAP_INT(amp_store_pin(store, "ann", 4, amp_now_ms() + 600000, &err), 0, "a pin");
    for (int i = 100; i < 400; i++)
        ledger(i, 500);
    amp_store_range(store, &first, &last, &err);
    TAP_OK(first <= 4, "keeps what it needs, whatever comes");
    TAP_OK(strncmp(numbers(4, 40), "3 ", 2) == 0, "so that it can be read");
    TAP_INT(amp_store_pin(store, "ann", 4, amp_now_ms() - 1, &err), 0, "one that ran out");
    amp_store_close(store);
    struct amp_store_options so = {
        .lock_timeout_ms = 1000, .segment_bytes = 8192, .keep_segments = 2};
    if (amp_store_open(scratch_dir, &so, &store, &err) < 0)
        return;
    for (int i = 400; i < 900; i++)
        ledger(i, 500);
    amp_store_range(store, &first, &last, &err);
    TAP_OK(first > 4, "does not");
    TAP_OK(amp_recorded_position(store, "ann", &n, &err) < 0 &&
               strcmp(err.code, "cursor_expired") == 0,
           "then its cursor has expired");
    char number[24];
    snprintf(number, sizeof number, "begins at %llu", (unsigned long long)first);
    TAP_OK(strstr(err.what, number) && strstr(err.what, "--from start"), "and what to do is said");
    TAP_INT(amp_recorded_position(store, "2", &n, &err), -1, "a number that is gone too");
    TAP_INT(amp_recorded_position(store, "start", &n, &err), 0, "start is what there is");
    TAP_OK(n == first, "the oldest");
    TAP_OK(strlen(numbers(first, last)) > 0, "and can be read");
    TAP_INT(amp_store_pin(store, "ann", 0, 0, &err), 0, "a pin goes");
    TAP_INT(amp_store_pin(store, "a/b", 1, 1, &err), -1, "no name leads elsewhere");
}

int main(void)
{
    struct amp_store_options so = {
        .lock_timeout_ms = 1000, .segment_bytes = 8192, .keep_segments = 2};
    if (amp_store_open(scratch(), &so, &store, &err) < 0)
        return 1;
    reading();
    positions();
    retention();
    amp_store_close(store);
    return tap_done();
}
