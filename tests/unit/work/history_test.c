/* The log as rows: a conversation, its operation, its end; reading on across rotations. */
#include <stdlib.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/history/history.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/sweep.h"
#include "message/store/history/history.h"
#include "work/agent/work.h"

static struct amp_error err;
static struct amp_store *store;

static struct amp_view view_of(const char *id, const char *correlation, const char *line)
{
    static struct amp_span to[] = {{"executor", 8}};
    return (struct amp_view){.protocol = AMP_PROTO_SW4RM,
                             .kind = AMP_KIND_OTHER,
                             .line = amp_span_str(line),
                             .type = {"DATA", 4},
                             .id = amp_span_str(id),
                             .from = {"producer", 8},
                             .token = {"producer:Make:0123456789abcdef", 30},
                             .correlation = amp_span_str(correlation),
                             .to = to,
                             .n_to = 1,
                             .needs_ack = true,
                             .ack_timeout_ms = 10000};
}

static void message(const char *id, const char *correlation, const char *line, bool claim)
{
    struct amp_view v = view_of(id, correlation, line);
    struct amp_idem_options o = {.now_ms = 1000, .window_ms = 3600000, .actor = "track"};
    struct amp_idem_answer a;
    amp_idem_answer_init(&a);
    if (claim)
        amp_idem_claim(store, &v, &o, &a, &err);
    amp_idem_answer_release(&a);
    if (amp_message_record(store, &v, 1000, NULL, &err) < 0)
        printf("# record: %s: %s\n", err.code, err.what);
}

/* ---- what a filter lets through ---- */

struct seen {
    struct amp_history *h;
    char text[8192];
    size_t n;
};

static int row_fn(void *ctx, const struct amp_history_row *r, struct amp_error *failed)
{
    struct seen *s = ctx;
    /* Of an answer: what it answers; its own id is a new one each time. */
    struct amp_span id = r->what == AMP_HISTORY_EMIT ? r->original : r->id;
    s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, "%s %.*s %.*s %.*s by %.*s;",
                             amp_history_word(r->what), (int)r->kind.n, r->kind.p, (int)r->event.n,
                             r->event.p, (int)id.n, id.p, (int)r->actor.n, r->actor.p);
    return s->n > sizeof(s->text) / 2;
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *failed)
{
    struct seen *s = ctx;
    return amp_history_frame(s->h, n, frame, row_fn, s, &err);
}

static const char *rows(const struct amp_history_filter *f)
{
    static struct seen s;
    s = (struct seen){.h = amp_history_new(f, &err)};
    if (!s.h || amp_store_frames(store, 0, frame_fn, &s, &err) < 0)
        printf("# rows: %s: %s\n", err.code, err.what);
    amp_history_free(s.h);
    return s.text;
}

static void conversations(void)
{
    struct amp_history_filter none = {.since_ms = 0}, one = {.correlation = AMP_SPAN("flow-1")},
                              executor = {.agent = AMP_SPAN("executor"), .id = AMP_SPAN("m1")},
                              future = {.since_ms = INT64_C(4000000000000)},
                              m2 = {.id = AMP_SPAN("m2")};
    struct amp_dead_letter d = {.line = AMP_SPAN("{\"a\":1}"),
                                .msg_id = AMP_SPAN("m1"),
                                .protocol = "sw4rm",
                                .code = "no_route",
                                .why = "nowhere",
                                .route = ""};
    struct amp_sweep_options sweep = {.actor = "sweeper", .from = "system"};
    uint32_t raised;
    message("m1", "flow-1", "{\"a\":1}", true);
    message("m2", "flow-2", "{\"b\":1}", false);
    message("m3", "flow-1", "{\"c\":1}", true);
    amp_settle_ack(store, AMP_SPAN("m1"), AMP_STAGE_RECEIVED, "executor", (struct amp_span){"", 0},
                   2000, NULL, &err);
    amp_dead_add(store, &d, "router", (struct amp_span){"", 0}, NULL, &err);
    amp_message_sweep(store, 20000, &sweep, &raised, &err);
    TAP_STR(rows(&one),
            "step token claim m1 by track;step message record m1 by producer;"
            "step token already_in_progress m3 by track;step message record m3 by producer;"
            "step message ack_received m1 by executor;step dead no_route m1 by router;"
            "step message nack_rejected m1 by router;"
            "step message timeout m3 by sweeper;emit message emit m3 by sweeper;"
            "step message give_up m3 by sweeper;step dead retries_exhausted m3 by sweeper;"
            "step message settle m3 by sweeper;",
            "a conversation: its messages, decisions, letters, timeouts and lines");
    TAP_STR(rows(&m2),
            "step message record m2 by producer;step message timeout m2 by sweeper;"
            "emit message emit m2 by sweeper;step message give_up m2 by sweeper;"
            "step dead retries_exhausted m2 by sweeper;step message settle m2 by sweeper;",
            "one message");
    TAP_STR(rows(&executor),
            "step message record m1 by producer;"
            "step message ack_received m1 by executor;"
            "step message nack_rejected m1 by router;",
            "what concerns an agent");
    TAP_STR(rows(&future), "", "nothing happened later than now");
    TAP_OK(strlen(rows(&none)) > strlen(rows(&one)), "without a filter there is more");
}

/* ---- reading on ---- */

static int count_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *failed)
{
    uint64_t *last = ctx;
    if (last[0] && n != last[0] + 1)
        last[1]++; /* a gap */
    last[0] = n;
    return 0;
}

static void reading_on(const char *dir)
{
    struct amp_store_options small = {.segment_bytes = 4096, .keep_segments = 2};
    struct amp_store *writer = NULL, *keep = store, *reader = NULL;
    struct amp_store_place at = {{0}};
    uint64_t last[2] = {0, 0}, before = 0;
    bool grows = true;
    char id[32], path[128];
    snprintf(path, sizeof(path), "%s/other", dir);
    if (amp_store_open(path, &small, &writer, &err) < 0 ||
        amp_store_open(path, NULL, &reader, &err) < 0)
        printf("# %s\n", err.what);
    store = writer;
    for (int i = 0; i < 400; i++) {
        snprintf(id, sizeof(id), "m%d", i);
        message(id, "c", "{}", false);
        if (i % 7)
            continue;
        if (amp_store_frames_on(reader, &at, count_fn, last, &err) < 0)
            printf("# %s: %s\n", err.code, err.what);
        grows = grows && last[0] > before;
        before = last[0];
    }
    amp_store_frames_on(reader, &at, count_fn, last, &err);
    TAP_OK(grows && last[1] == 0, "every frame once, across rotations, also where old ones went");
    before = last[0];
    amp_store_frames_on(reader, &at, count_fn, last, &err);
    TAP_INT((int64_t)last[0], (int64_t)before, "nothing twice");
    amp_store_close(writer);
    amp_store_close(reader);
    store = keep;
}

/* ---- the end ---- */

struct ending {
    uint64_t after, first, last, n, older; /* older: frames that were read before those wanted */
    bool gap;
};

static int end_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *failed)
{
    struct ending *e = ctx;
    if (n <= e->after) {
        e->older++;
        return 0;
    }
    e->gap |= e->n > 0 && n != e->last + 1;
    e->first = e->n == 0 ? n : e->first;
    e->last = n;
    e->n++;
    return 0;
}

/* In segments of 1 MiB: the latest frames, and not a complete segment before them. */
static void near_end(const char *dir)
{
    struct amp_store_options big = {.segment_bytes = 1 << 20, .keep_segments = 8};
    static const uint64_t most[] = {1, 3, 100, 700, 1900, 2500, 5000, 1000000};
    struct amp_store *writer = NULL, *keep = store;
    uint64_t first, last;
    char id[32], path[128], text[1024];
    snprintf(path, sizeof(path), "%s/end", dir);
    memset(text, 'x', sizeof(text));
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + sizeof(text) - 3, "\"}", 3);
    if (amp_store_open(path, &big, &writer, &err) < 0)
        printf("# %s\n", err.what);
    store = writer;
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof(id), "e%d", i);
        message(id, "c", i % 3 ? text : "{}", false);
    }
    amp_store_range(writer, &first, &last, &err);
    for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
        struct amp_store_place at = {{0}};
        struct ending e = {0};
        uint64_t want = most[i] < last ? most[i] : last;
        int rc = amp_store_place_near_end(writer, most[i], &at, &e.after, &err);
        if (rc == 0)
            rc = amp_store_frames_on(writer, &at, end_fn, &e, &err);
        TAP_OK(rc == 0 && e.n == want && e.last == last && !e.gap && e.older < 400,
               "the latest %llu frames, after %llu older ones", (unsigned long long)want,
               (unsigned long long)e.older);
    }
    amp_store_close(writer);
    store = keep;
}

static void json(void)
{
    struct amp_history_row r = {.n = 7,
                                .at = AMP_SPAN("t"),
                                .id = AMP_SPAN("a\"b\n"),
                                .late = true,
                                .cost_micros = 31000,
                                .message = AMP_SPAN("{\"a\":1}")};
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 4096);
    amp_history_json(&r, &out, &err);
    TAP_SPAN(amp_buf_span(&out),
             "{\"n\":7,\"at\":\"t\",\"what\":\"step\",\"id\":\"a\\\"b\\n\",\"details\":{\"late\":"
             "true,\"cost_micros\":31000},\"message\":{\"a\":1}}\n",
             "a row as a record");
}

static void agents(void)
{
    const struct amp_history_filter task = {.correlation = AMP_SPAN("T-2026-009")};
    amp_agent_register(store, "bob", "executor", 1000, &err);
    amp_agent_step(store, "bob", AMP_AGENT_EV_READY, NULL, 1000, &err);
    TAP_INT(amp_agent_step(store, "bob", AMP_AGENT_EV_ASSIGN, "T-2026-009", 1000, &err), 0,
            "an agent gets a task");
    const char *seen = rows(&task);
    TAP_OK(strstr(seen, "step agent assign bob by "), "its task's conversation has it: %s", seen);
    TAP_OK(!strstr(seen, "step agent ready"), "and not what came before: %s", seen);
}

int main(void)
{
    const char *dir = scratch();
    if (amp_store_open(dir, NULL, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    conversations();
    reading_on(dir);
    near_end(dir);
    json();
    agents();
    amp_store_close(store);
    return tap_done();
}
