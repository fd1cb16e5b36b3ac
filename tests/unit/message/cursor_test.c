/* Cursors: whatever the order, repetition and loss, what is queued is queued once and in order. */
#include "message/delivery/cursor/cursor.h"

#include <stdlib.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/record/sequence.h"

static struct amp_error err;
static struct amp_store *store;
static int64_t now = 1000000;
static struct amp_cursor_options opt = {
    .consumer = "mbp", .outbox = "r", .answers = "r.answers", .holder = "one", .alone = true};

static struct amp_cursor *take_over(const char *source, int64_t start)
{
    struct amp_cursor *c = NULL;
    if (amp_cursor_open(store, amp_span_str(source), &opt, start, now, &c, &err) < 0)
        return NULL;
    return c;
}

static const char *word(enum amp_cursor_verdict v)
{
    static const char *const words[] = {"taken", "held", "seen", "other", "late", "full"};
    return words[v];
}

static const char *event(struct amp_cursor *c, int64_t seq, const char *text)
{
    char line[80], id[40];
    snprintf(line, sizeof line, "{\"seq\":%lld,\"x\":\"%s\"}", (long long)seq, text);
    snprintf(id, sizeof id, "evt_%lld", (long long)seq);
    struct amp_cursor_item e = {.seq = seq, .id = amp_span_str(id), .line = amp_span_str(line)};
    enum amp_cursor_verdict v;
    return amp_cursor_take(c, &e, now, &v, &err) < 0 ? err.code : word(v);
}

/* Takes the next event that may go: 1 there was one, 0 none, -1 failure. */
static int next(struct amp_cursor *c)
{
    struct amp_cursor_item e;
    int rc = amp_cursor_peek(c, &e, &err);
    return rc > 0 && amp_cursor_go(c, &e, now, &err) < 0 ? -1 : rc;
}

static int drain(struct amp_cursor *c)
{
    int n = 0, rc;
    while ((rc = next(c)) > 0)
        n++;
    return rc < 0 ? -1 : n;
}

/* The numbers in the outbox, as "1 2 3", of lines that have `with` in them. */
struct listing {
    char text[8192];
    const char *with;
};

static int list_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    struct listing *l = ctx;
    AMP_FREE char *line = amp_span_dup(e->line);
    const char *at = strstr(line, "\"seq\":");
    size_t n = strlen(l->text);
    if (at && strstr(line, l->with))
        snprintf(l->text + n, sizeof l->text - n, n ? " %lld" : "%lld", atoll(at + 6));
    return 0;
}

static const char *queued(const char *outbox, const char *with)
{
    static struct listing l;
    l.text[0] = '\0';
    l.with = with;
    amp_store_outbox(store, outbox, list_fn, &l, &err);
    return l.text;
}

static void gap(void)
{
    struct amp_cursor *c = take_over("vps", 0);
    TAP_STR(event(c, 1, "a"), "taken", "the first");
    TAP_STR(event(c, 1, "a"), "seen", "again");
    TAP_STR(event(c, 1, "b"), "other", "its number with other bytes");
    TAP_STR(event(c, 4, "a"), "held", "beyond a gap");
    TAP_STR(event(c, 3, "a"), "held", "nearer");
    TAP_STR(event(c, 3, "a"), "seen", "one that waits, again");
    TAP_STR(event(c, 3, "b"), "other", "its number with other bytes");
    TAP_INT(drain(c), 0, "nothing may go");
    TAP_STR(queued("r", "x"), "1", "only the first is queued");
    TAP_STR(event(c, 2, "a"), "taken", "what was missing");
    TAP_INT(drain(c), 2, "the others follow");
    TAP_STR(queued("r", "x"), "1 2 3 4", "in order");
    TAP_STR(event(c, 3, "a"), "seen", "one that waited, once more");
    TAP_INT(amp_cursor_position(c), 4, "the position");
    TAP_STR(queued("held\nmbp\nvps", "x"), "", "nothing waits any more");
    TAP_INT(amp_cursor_close(c, now, &err), 0, "let go");
}

static void timeout(void)
{
    struct amp_cursor_turn turn;
    struct amp_cursor *c = take_over("vps", 0);
    TAP_INT(amp_cursor_position(c), 4, "a cursor stays where it was");
    event(c, 7, "a");
    now += AMP_GAP_TIMEOUT_MS - 1;
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 0, "just within the time");
    TAP_INT(amp_cursor_due(c), now + 1, "is due then");
    now++;
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 1, "and then");
    TAP_OK(turn.incident.entry.n && turn.from == 5 && turn.to == 6, "an incident names the gap");
    TAP_STR(queued("r.answers", "\"fromSeq\":5,\"toSeq\":6,\"policy\":\"skip\""), "1",
            "and stands in the answers");
    amp_cursor_free(c);
    c = take_over("vps", 0);
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 1, "who comes after a crash");
    TAP_OK(turn.given_up && !turn.incident.entry.n, "gives it up without a second incident");
    TAP_INT(drain(c), 1, "what waited goes");
    TAP_INT(amp_cursor_position(c), 7, "and counts");
    TAP_STR(event(c, 6, "a"), "late", "what was given up comes late");
    opt.on_gap = AMP_ON_GAP_TOMBSTONE;
    event(c, 9, "a");
    now += AMP_GAP_TIMEOUT_MS;
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 1, "the incident");
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 1, "then the mark");
    TAP_OK(turn.mark.entry.n && turn.from == 8 && turn.to == 8, "in the place of the gap");
    drain(c);
    TAP_STR(queued("r", ""), "1 2 3 4 7 3 9", "before what waited, with a number of our own");
    opt.on_gap = AMP_ON_GAP_HOLD;
    event(c, 12, "a");
    event(c, 15, "a");
    now += AMP_GAP_TIMEOUT_MS;
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 1, "hold: the incident");
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 0, "and nothing more");
    TAP_INT(drain(c), 0, "it waits");
    TAP_STR(event(c, 10, "a"), "taken", "for ever, until it comes");
    TAP_STR(event(c, 11, "a"), "taken", "all of it");
    TAP_INT(drain(c), 1, "then it goes on");
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 0, "the next gap has its own time");
    now += AMP_GAP_TIMEOUT_MS;
    TAP_INT(amp_cursor_turn(c, now, &turn, &err), 1, "and its own incident");
    opt.max_held = 1;
    amp_cursor_close(c, now, &err);
    c = take_over("vps", 0);
    TAP_STR(event(c, 17, "a"), "full", "past the bound");
    opt.max_held = 0;
    opt.on_gap = AMP_ON_GAP_SKIP;
    amp_cursor_close(c, now, &err);
}

static void leases(void)
{
    struct amp_cursor_turn turn;
    opt.alone = false;
    struct amp_cursor *one = take_over("lease", 0);
    TAP_STR(event(one, 1, "a"), "taken", "the holder moves it");
    opt.holder = "two";
    TAP_OK(!take_over("lease", 0) && strcmp(err.code, "cursor_leased") == 0, "nobody else does");
    TAP_INT(err.status, AMP_TEMPFAIL, "for now");
    now += AMP_CURSOR_LEASE_MS / 3;
    TAP_INT(amp_cursor_turn(one, now, &turn, &err), 0, "a living holder renews it");
    now += AMP_CURSOR_LEASE_MS - 1;
    TAP_OK(!take_over("lease", 0), "so that it lasts");
    now++;
    struct amp_cursor *two = take_over("lease", 0);
    TAP_OK(two != NULL, "a dead one loses it");
    TAP_STR(event(one, 2, "a"), "cursor_fenced", "should it be alive, it cannot move it");
    TAP_STR(event(two, 2, "a"), "taken", "the new one can");
    TAP_STR(event(one, 3, "a"), "cursor_fenced", "still not");
    TAP_INT(amp_cursor_turn(one, now + AMP_CURSOR_LEASE_MS, &turn, &err), -1, "nor renew it");
    amp_cursor_free(one);
    TAP_INT(amp_cursor_close(two, now, &err), 0, "let go");
    opt.holder = "three";
    two = take_over("lease", 0);
    TAP_OK(two != NULL, "what was let go is free at once");
    TAP_STR(event(two, 2, "a"), "seen", "and knows what was read");
    amp_cursor_free(two);
    opt.alone = true;
    opt.holder = "one";
}

static void ordered(void)
{
    opt.ordered = true;
    struct amp_cursor *c = take_over("producer", 99);
    TAP_STR(event(c, 100, "a"), "taken", "rising numbers");
    TAP_STR(event(c, 5000, "a"), "taken", "jump as they like");
    TAP_STR(event(c, 4000, "a"), "other", "but do not fall");
    TAP_STR(event(c, 5000, "a"), "seen", "a repetition is one");
    TAP_STR(event(c, 100, "a"), "seen", "an old one too");
    TAP_STR(event(c, INT64_MAX, "a"), "taken", "up to the last");
    TAP_STR(event(c, INT64_MIN, "a"), "other", "and never below");
    amp_cursor_close(c, now, &err);
    opt.ordered = false;
}

/* Random orders, repetitions, crashes: every time it is the numbers from 1 on, each once. */
static void any_order(unsigned seed)
{
    enum { N = 40 };
    char source[32], want[512] = "";
    int64_t order[N * 2];
    int n = 0;
    srand(seed);
    snprintf(source, sizeof source, "random-%u", seed);
    for (int i = 1; i <= N; i++) {
        order[n++] = i;
        if (rand() % 3 == 0)
            order[n++] = i;
        snprintf(want + strlen(want), sizeof want - strlen(want), i > 1 ? " %d" : "%d", i);
    }
    for (int i = n - 1; i > 0; i--) {
        int j = rand() % (i + 1);
        int64_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    struct amp_cursor *c = take_over(source, 0);
    for (int i = 0; c && i < n; i++) {
        const char *w = event(c, order[i], source);
        if (strcmp(w, "taken") != 0 && strcmp(w, "held") != 0 && strcmp(w, "seen") != 0)
            TAP_STR(w, "taken", "an event");
        if (rand() % 4) /* a crash may come between two that follow */
            next(c);
        if (rand() % 8 == 0) {
            amp_cursor_free(c);
            c = take_over(source, 0);
        }
    }
    drain(c);
    TAP_INT(amp_cursor_position(c), N, source);
    TAP_STR(queued("r", source), want, "each once and in order");
    amp_cursor_close(c, now, &err);
}

static int set_last(void *ctx, const struct amp_store_rec *was, struct amp_store_change *change,
                    struct amp_error *e)
{
    static char json[64];
    (void)was;
    (void)e;
    snprintf(json, sizeof json, "{\"last\":%lld}", (long long)*(int64_t *)ctx);
    change->event = "assign";
    change->to = "OPEN";
    change->json = amp_span_str(json);
    change->actor = "t";
    return 0;
}

static void numbers(void)
{
    int64_t a = 0, b = 0;
    TAP_INT(amp_sequence_next(store, AMP_SPAN("us"), 3, "t", &a, &err), 0, "three numbers");
    amp_sequence_next(store, AMP_SPAN("us"), 1, "t", &b, &err);
    TAP_OK(a == 1 && b == 4, "and the next");
    amp_sequence_next(store, AMP_SPAN("a\nb"), 1, "t", &b, &err);
    TAP_INT(b, 1, "each outbox has its own");
}

/* They rise with the clock, and without it. */
static void rising(void)
{
    int64_t a = 0, b = 0, c = 0;
    const int64_t later = INT64_C(4000000000000); /* past what this thread numbered before */
    TAP_INT(amp_sequence_rise(store, AMP_SPAN("bob"), 1, later, "t", &a, &err), 0, "a number");
    TAP_OK(a >= later * 1000, "of the clock");
    amp_sequence_rise(store, AMP_SPAN("bob"), 1, later, "t", &b, &err);
    TAP_OK(b > a, "the next one in the same millisecond is above it");
    enum amp_store_outcome how;
    b += 1000000;
    amp_store_update(store, AMP_KEY("sequence", AMP_SPAN("sw4rm"), AMP_SPAN("bob")), NULL, set_last,
                     &b, &how, &err);
    amp_sequence_rise(store, AMP_SPAN("bob"), 1, later, "t", &c, &err);
    TAP_INT(c, b + 1, "where the clock was put back, the one behind the last");
    amp_sequence_next(store, AMP_SPAN("bob"), 1, "t", &a, &err);
    TAP_INT(a, 1, "the outbox of that name is another one");

    struct amp_view of = {.protocol = AMP_PROTO_RTP, .id = AMP_SPAN("e"), .from = AMP_SPAN("x")};
    struct amp_answer say = {.by = "bob", .node = "bob", .now_ms = later};
    TAP_OK(amp_sequence_answer(store, &of, "t", &say, &err) == 0 && say.sequence == 2,
           "an answer of the Runtime Protocol stands in it");
    of.protocol = AMP_PROTO_SW4RM;
    TAP_OK(amp_sequence_answer(store, &of, "t", &say, &err) == 0 && say.sequence == c + 1,
           "one of SW4RM does not");
    say.sequence = 0;
    of.protocol = AMP_PROTO_AMP;
    TAP_OK(amp_sequence_answer(store, &of, "t", &say, &err) == 0 && say.sequence == 0,
           "AMP numbers nothing");
}

static void swept(void)
{
    uint32_t done = 0;
    struct amp_cursors_edit e = {
        .source = AMP_SPAN("log"), .now_ms = now, .lease_ms = AMP_CURSOR_LEASE_MS, .actor = "t"};
    e.consumer = AMP_SPAN("a");
    e.seq = 10;
    amp_cursors_move(store, &e, &err);
    e.consumer = AMP_SPAN("b");
    e.seq = 20;
    e.now_ms = now + 1000;
    amp_cursors_move(store, &e, &err);
    int64_t later = now + AMP_CURSOR_LEASE_MS;
    TAP_INT(amp_cursors_sweep(store, later, "sweep", NULL, &done, &err), 0, "swept");
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, 4096);
    struct amp_cursor_rec rec;
    uint8_t state;
    amp_cursors_find(store, AMP_SPAN("a"), e.source, &mem, &rec, &state, &err);
    TAP_INT(state, AMP_CURSOR_EXPIRED, "its lease is ended");
    amp_cursors_find(store, e.consumer, e.source, &mem, &rec, &state, &err);
    TAP_INT(state, AMP_CURSOR_ACTIVE, "the other's is not");
    TAP_INT(amp_cursors_retire(store, &e, &err), 0, "retired");
}

/* Nobody holds it: the sweep tells of the gap, once, and ends the lease. */
static void orphan(void)
{
    uint32_t done = 0;
    struct amp_cursor *c = take_over("orphan", 0);
    event(c, 3, "a");
    amp_cursor_free(c); /* killed */
    int64_t later = now + AMP_GAP_TIMEOUT_MS;
    TAP_INT(amp_cursors_sweep(store, later, "sweep", NULL, &done, &err), 0, "its holder may live");
    TAP_INT(done, 0, "then it is its own affair");
    later = now + AMP_CURSOR_LEASE_MS;
    amp_cursors_sweep(store, later, "sweep", NULL, &done, &err);
    TAP_INT(done, 1, "when its lease ran out, the gap is told");
    amp_cursors_sweep(store, later, "sweep", NULL, &done, &err);
    TAP_INT(done, 1, "once");
    TAP_STR(queued("sweep", "\"sourceNodeId\":\"orphan\",\"fromSeq\":1,\"toSeq\":2"), "6",
            "in the sweeper's outbox, with the consumer's next number");
    c = take_over("orphan", 0);
    struct amp_cursor_turn turn;
    TAP_INT(amp_cursor_turn(c, later, &turn, &err), 1, "who takes it");
    TAP_OK(turn.given_up && !turn.incident.entry.n, "gives the gap up, told as it is");
    TAP_INT(drain(c), 1, "and goes on");
    amp_cursor_close(c, now, &err);
}

int main(void)
{
    struct amp_store_options so = {.lock_timeout_ms = 1000};
    if (amp_store_open(scratch(), &so, &store, &err) < 0)
        return 1;
    gap();
    timeout();
    leases();
    ordered();
    numbers();
    rising();
    swept();
    orphan();
    for (unsigned seed = 1; seed <= 12; seed++)
        any_order(seed);
    amp_store_close(store);
    return tap_done();
}
