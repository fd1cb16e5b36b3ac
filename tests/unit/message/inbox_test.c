/* What a crash leaves in an inbox, between any two commits, and what the next step makes of it. */
#include <stdlib.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/inbox/private.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/settle/answer.h"

static struct amp_error err;
static struct amp_store *store;
static struct amp_buf mem, wake_mem;
static struct amp_inbox_msg msg;
static enum amp_store_outcome how;
static const struct amp_span agent = {"executor", 8};

static struct amp_view view_of(const char *id, struct amp_span line)
{
    static struct amp_span to[] = {{"executor", 8}};
    return (struct amp_view){.protocol = AMP_PROTO_AMP,
                             .kind = AMP_KIND_DISPATCH,
                             .line = line,
                             .type = {"task_dispatch", 13},
                             .id = amp_span_str(id),
                             .from = {"coordinator", 11},
                             .to = to,
                             .n_to = 1};
}

/* An attempt of SW4RM. */
static struct amp_view attempt(const char *id, int number, const char *token)
{
    struct amp_view v = view_of(id, AMP_SPAN("{\"a\":1}"));
    v.protocol = AMP_PROTO_SW4RM;
    v.type = AMP_SPAN("DATA");
    v.token = amp_span_str(token);
    v.attempt = number;
    v.ack_timeout_ms = 100;
    v.needs_ack = true;
    return v;
}

static void put(const struct amp_view *v, struct amp_span who, struct amp_span line)
{
    struct amp_inbox_options opt = {.actor = "route", .line = line};
    enum amp_inbox_put did = AMP_INBOX_KNOWN;
    if (amp_inbox_put(store, who, v, &opt, 1000, NULL, NULL, &did, &err) < 0 ||
        did != AMP_INBOX_PLACED)
        printf("# put: %s: %s\n", err.code, err.what);
}

/* The id that is offered to who, "" for none. */
static const char *offer(struct amp_span who, int64_t now)
{
    static char id[64];
    int64_t wake;
    struct amp_inbox_turn turn = {.actor = "sweep"};
    int rc = amp_inbox_offer(store, who, &turn, now, &mem, &msg, &wake, &err);
    if (rc < 0)
        return err.code;
    amp_span_copy(rc > 0 ? msg.id : (struct amp_span){"", 0}, id, sizeof(id));
    return id;
}

static void read_it(struct amp_span who, const char *id)
{
    if (amp_inbox_read_and_say(store, who, amp_span_str(id), 2000, NULL, NULL, &err) < 0)
        printf("# read: %s: %s\n", err.code, err.what);
}

static uint8_t state_of(struct amp_span who, const char *id, struct amp_inbox_delivery *d)
{
    struct amp_inbox_key k;
    if (amp_inbox_key_of(who, amp_span_str(id), &k, &err) < 0 ||
        amp_inbox_delivery_get(store, k.key, &wake_mem, d, &err) < 0)
        printf("# %s: %s\n", err.code, err.what);
    return d->state;
}

static uint32_t waiting(struct amp_span who)
{
    struct amp_inbox_info info;
    amp_inbox_info(store, who, &wake_mem, &info, &err);
    return info.waiting;
}

/* ---- a place without a delivery ---- */

static int place_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *e)
{
    (void)e;
    b->bound = 10;
    b->waiting[b->n_waiting++] = *(struct amp_inbox_place *)ctx;
    return 0;
}

static void place(const char *id, bool own)
{
    struct amp_inbox_place p = {.id = amp_span_str(id), .at_ms = 1000, .own = own};
    amp_inbox_buffer_update(store, agent, "put", place_fn, &p, &err);
}

static int count_fn(void *ctx, const struct amp_inbox_msg *m)
{
    (void)m;
    ++*(int *)ctx;
    return 0;
}

static void places(void)
{
    struct amp_view v = view_of("m1", AMP_SPAN("{\"whole\":1}"));
    struct amp_inbox_delivery d;
    int n = 0;
    amp_message_record(store, &v, 1000, &how, &err);
    place("m1", true);
    amp_inbox_each(store, agent, count_fn, &n, &err);
    TAP_INT(n, 0, "what only its router knows is not listed");
    TAP_STR(offer(agent, 1500), "", "nor handed over as the ledger has it");
    TAP_INT(waiting(agent), 0, "its place is given back");
    put(&v, agent, AMP_SPAN("{\"part\":1}"));
    TAP_STR(offer(agent, 1500), "m1", "put again, it comes");
    TAP_SPAN(msg.line, "{\"part\":1}", "as the agent is to have it");
    read_it(agent, "m1");

    v = view_of("m2", AMP_SPAN("{\"whole\":2}"));
    amp_message_record(store, &v, 1000, &how, &err);
    place("m2", false);
    TAP_STR(offer(agent, 1500), "m2", "the ledger's line needs no router");
    TAP_SPAN(msg.line, "{\"whole\":2}", "and comes from there");
    TAP_STR(offer(agent, 1500), "m2", "again after a crash");
    TAP_INT(msg.attempt, 2, "marked");
    read_it(agent, "m2");
    TAP_INT(state_of(agent, "m2", &d), AMP_INBOX_READ, "read");
}

/* READ of the delivery, and nothing behind it. */
static void half_read(void)
{
    struct amp_view v = view_of("h1", AMP_SPAN("{\"h\":1}"));
    struct amp_inbox_key k;
    struct amp_inbox_step step = {.event = AMP_INBOX_EV_READ, .now_ms = 2000};
    struct amp_message_rec rec;
    put(&v, agent, (struct amp_span){"", 0});
    offer(agent, 1500);
    amp_inbox_key_of(agent, AMP_SPAN("h1"), &k, &err);
    TAP_INT(amp_inbox_step(store, k.key, &step, &err), 0, "the delivery's commit");
    TAP_INT(waiting(agent), 1, "its place stands");
    TAP_STR(offer(agent, 1600), "", "it is not handed over again");
    TAP_INT(waiting(agent), 0, "the place is given back");
    amp_message_find(store, AMP_SPAN("h1"), &mem, &rec, &err);
    TAP_INT(rec.state, AMP_DELIVERY_READ, "and the ledger is told");
}

/* ---- several attempts at one operation ---- */

static void claim(struct amp_view *v, int64_t now, int want)
{
    struct amp_idem_answer a;
    struct amp_idem_options opt = {.now_ms = now, .window_ms = AMP_IDEM_WINDOW_MS, .actor = "t"};
    amp_idem_answer_init(&a);
    if (amp_idem_claim(store, v, &opt, &a, &err) < 0)
        printf("# claim: %s: %s\n", err.code, err.what);
    TAP_INT(a.verdict, want, "the attempt passes");
    amp_idem_answer_release(&a);
    if (amp_message_record(store, v, now, &how, &err) < 0)
        printf("# record: %s: %s\n", err.code, err.what);
}

static void both(const char *first, const char *second, const char *token, struct amp_view *one,
                 struct amp_view *two)
{
    *one = attempt(first, 0, token);
    *two = attempt(second, 1, token);
    claim(one, 1000, AMP_IDEM_NEW);
    claim(two, 5000, AMP_IDEM_RETRY);
}

/* Both are on their way; each test has an operation and an agent of its own. */
static void attempts(void)
{
    static const struct amp_span a = {"a", 1}, b = {"b", 1}, c = {"c", 1};
    struct amp_view one, two;
    struct amp_inbox_delivery d;
    both("op-1", "op-2", "t1", &one, &two);

    put(&one, a, (struct amp_span){"", 0});
    put(&two, a, (struct amp_span){"", 0});
    TAP_STR(offer(a, 6000), "op-2", "of two that wait the newer one comes");
    read_it(a, "op-2");
    TAP_STR(offer(a, 6000), "", "and only that");
    TAP_INT(state_of(a, "op-1", &d), AMP_INBOX_FAILED, "the other one is over");
    TAP_SPAN(d.code, "superseded", "for that reason");

    both("op-3", "op-4", "t2", &one, &two);
    put(&one, b, (struct amp_span){"", 0});
    TAP_STR(offer(b, 6000), "op-3", "who comes first is offered");
    put(&two, b, (struct amp_span){"", 0});
    TAP_STR(offer(b, 6000), "op-3", "it may have arrived: it comes again");
    read_it(b, "op-3");
    TAP_STR(offer(b, 6000), "", "the newer one does not come after it");

    both("op-5", "op-6", "t3", &one, &two);
    put(&one, c, (struct amp_span){"", 0});
    offer(c, 6000);
    read_it(c, "op-5");
    amp_settle_ack(store, AMP_SPAN("op-5"), AMP_STAGE_FAILED, "c", AMP_SPAN("x"), 6000, NULL, &err);
    put(&two, c, (struct amp_span){"", 0});
    TAP_STR(offer(c, 6000), "op-6", "what failed is tried again");
}

/* ---- letters ---- */

static int letter_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                     struct amp_span json, struct amp_error *failed)
{
    snprintf(ctx, 64, "%s %s", d->code, d->route);
    return 0;
}

/* The only one. */
static const char *letter(void)
{
    static char text[64];
    return amp_dead_each(store, false, letter_fn, text, &err) < 0 ? err.code : text;
}

/* Died after the delivery's READ: the ledger does not know of it, and the other attempt does. */
static void half_read_elsewhere(void)
{
    static const struct amp_span e = {"e", 1}, g = {"g", 1};
    struct amp_view one, two;
    struct amp_inbox_delivery d;
    struct amp_inbox_key k;
    struct amp_inbox_step step = {.event = AMP_INBOX_EV_READ, .now_ms = 6000};
    both("op-e1", "op-e2", "te", &one, &two);
    put(&one, e, (struct amp_span){"", 0});
    put(&two, g, (struct amp_span){"", 0});
    TAP_STR(offer(e, 6000), "op-e1", "one agent is offered the first attempt");
    amp_inbox_key_of(e, AMP_SPAN("op-e1"), &k, &err);
    TAP_INT(amp_inbox_step(store, k.key, &step, &err), 0, "and has it");
    TAP_STR(offer(g, 6000), "", "the other agent is not given the second");
    TAP_INT(state_of(g, "op-e2", &d), AMP_INBOX_FAILED, "which is over");
}

static void letters(void)
{
    static const struct amp_span p = {"p", 1}, q = {"q", 1};
    struct amp_view v = view_of("l1", AMP_SPAN("{\"l\":1}"));
    v.expires_ms = 9000;
    put(&v, p, (struct amp_span){"", 0});
    put(&v, q, (struct amp_span){"", 0});
    offer(p, 1500);
    read_it(p, "l1");
    if (amp_settle_ack(store, v.id, AMP_STAGE_FAILED, "p", AMP_SPAN("x"), 2500, NULL, &err) < 0)
        printf("# %s\n", err.what);
    uint32_t expired = 0;
    amp_inbox_sweep(store, 10000, "sweep", &expired, &err);
    TAP_INT(expired, 1, "it expires for the other one");
    TAP_STR(letter(), "ttl_expired inbox:q", "that is a letter, whoever else failed");
}

/* A letter of a refusal whose end was lost, as in a log of an earlier build. */
static void letter_without_end(void)
{
    static const struct amp_span h = {"h", 1}, i = {"i", 1};
    static const char line[] =
        "{\"msg_id\":\"task_dispatch-T-2026-044-9\",\"protocol_version\":\"AMP/1.0\","
        "\"type\":\"task_dispatch\",\"from\":\"coordinator\",\"to\":\"executor\","
        "\"task_id\":\"T-2026-044\",\"timestamp\":\"2026-02-26T14:32:07+00:00\","
        "\"requires_ack\":true,\"payload\":{}}";
    struct amp_view v = view_of("task_dispatch-T-2026-044-9", amp_span_str(line));
    struct amp_inbox_delivery d;
    struct amp_dead_letter l = {
        .code = "command_refused", .why = "w", .route = "inbox:h", .failed_ms = 6000};
    struct amp_dead_kept kept = {0};
    AMP_BUF struct amp_buf text = {.max = 1 << 20};
    struct amp_store_rec rec;
    put(&v, h, v.line);
    put(&v, i, v.line);
    offer(h, 5000);
    offer(i, 5000);
    amp_dead_from_view(&l, &v);
    amp_dead_add(store, &l, "sweep", AMP_SPAN("{}"), NULL, &err);
    for (int n = 0; n < 2; n++) {
        const struct amp_span who = n ? i : h;
        TAP_INT(amp_inbox_give_up(store, who, v.id, "command_refused", "w", "inbox", 7000, &err), 0,
                "the delivery ends");
        TAP_INT(state_of(who, "task_dispatch-T-2026-044-9", &d), AMP_INBOX_FAILED, "FAILED");
        amp_store_get(store, AMP_KEY_NAMED(AMP_DEAD_KIND, v.id), &rec, &err);
        amp_dead_read(rec.json, &text, &kept, &err);
        TAP_INT(kept.d.attempts, n + 1,
                n ? "the refusal of another agent counts" : "no second one");
    }
}

static int requeue_put(const struct amp_view *v, struct amp_span who)
{
    struct amp_inbox_options opt = {.actor = "route"};
    enum amp_inbox_put did = AMP_INBOX_KNOWN;
    if (amp_dead_requeue(store, v->id, 0, "person", 9500, &err) < 0 ||
        amp_inbox_put(store, who, v, &opt, 9600, NULL, NULL, &did, &err) < 0)
        printf("# %s: %s\n", err.code, err.what);
    return (int)did;
}

/* A sweep and a reader look at the clock before they have the log: the log has the order. */
static void failure_before_read(void)
{
    static const struct amp_span j = {"j", 1};
    struct amp_view v = view_of("task_dispatch-T-2026-044-10", AMP_SPAN("{\"j\":1}"));
    struct amp_dead_letter l = {.code = "timeout", .why = "w", .route = "", .failed_ms = 9000};
    put(&v, j, (struct amp_span){"", 0});
    offer(j, 1500);
    amp_dead_from_view(&l, &v);
    amp_dead_add(store, &l, "sweep", (struct amp_span){"", 0}, NULL, &err);
    read_it(j, "task_dispatch-T-2026-044-10");
    TAP_INT(requeue_put(&v, j), AMP_INBOX_KNOWN, "what failed before it was read stays read");
    TAP_STR(offer(j, 9700), "", "and is not offered again");
    amp_dead_add(store, &l, "sweep", (struct amp_span){"", 0}, NULL, &err);
    TAP_INT(requeue_put(&v, j), AMP_INBOX_PLACED, "what failed after it is put again");
}

int main(void)
{
    char dir[96];
    snprintf(dir, sizeof(dir), "%s/state", scratch());
    amp_buf_init(&mem, 1 << 20);
    amp_buf_init(&wake_mem, 1 << 20);
    if (amp_store_open(dir, &(struct amp_store_options){0}, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    places();
    half_read();
    attempts();
    half_read_elsewhere();
    letters();
    letter_without_end();
    failure_before_read();
    amp_store_close(store);
    amp_buf_release(&mem);
    amp_buf_release(&wake_mem);
    return tap_done();
}
