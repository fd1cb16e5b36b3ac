/* The order of a consumer's jobs: ranks, arrival, times, and what is held; it follows the log. */
#include "../scratch.h"
#include "../tap.h"
#include "work/item/own.h"

#define NOW  INT64_C(1700000000000)
#define MANY 200

static struct amp_store *store;
static struct amp_error err;

/* The record of a rank is {"rank":N} under rank.<task>. */
static int rank_of(void *ctx, const char *msg_id, const char *task, char key[AMP_KEY_MAX],
                   int64_t *rank, struct amp_error *e)
{
    const struct amp_key k = AMP_KEY("rank", amp_span_str(task));
    struct amp_store_rec rec;
    struct amp_span text;
    (void)ctx, (void)msg_id;
    if (amp_key_text(&k, key, &text, e) < 0 || amp_store_get(store, k, &rec, e) < 0)
        return -1;
    *rank = rec.found ? rec.json.p[8] - '0' : 5;
    return 0;
}

static int rank_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *e)
{
    (void)now, (void)e;
    *c = (struct amp_store_change){.event = "rank", .to = "X", .json = *(struct amp_span *)ctx};
    return 0;
}

static void rank_set(const char *task, char rank)
{
    char text[] = "{\"rank\":0}";
    struct amp_span json = {text, sizeof text - 1};
    text[8] = rank;
    TAP_OK(amp_store_update(store, AMP_KEY("rank", amp_span_str(task)), NULL, rank_fn, &json, NULL,
                            &err) == 0,
           "%s has the rank %c", task, rank);
}

static int take(const char *owner, const char *id, const char *task, int64_t at)
{
    enum amp_store_outcome outcome;
    const struct amp_own_take t = {.owner = owner,
                                   .type = "a",
                                   .protocol = "AMP",
                                   .msg_id = amp_span_str(id),
                                   .line = amp_span_str(id),
                                   .task = amp_span_str(task),
                                   .now_ms = at};
    return amp_own_take(store, &t, &outcome, &err);
}

static int own_step(const char *id, uint8_t event, int64_t until)
{
    const struct amp_queue_step st = {.owner = AMP_SPAN("c.1"),
                                      .id = amp_span_str(id),
                                      .worker = "c.1",
                                      .event = event,
                                      .until_ms = until};
    return amp_queue_step(store, &st, NULL, NULL, &err);
}

static void step(const char *id, uint8_t event, int64_t until)
{
    TAP_OK(own_step(id, event, until) == 0, "%s: %s", id, amp_queue_fsm.events[event].name);
}

static void next_is(struct amp_own_order *o, int64_t now, const char *want, int64_t wake,
                    const char *name)
{
    struct amp_item job = {0};
    bool found;
    int64_t at;
    if (amp_own_order_next(o, now, &found, &job, &at, &err) < 0)
        TAP_OK(false, "%s: %s", err.code, err.what);
    TAP_SPAN(amp_span_str(found ? job.msg_id : ""), want, name);
    TAP_INT(at, wake, "the next time");
}

static struct amp_own_order *order_open(void)
{
    static const char *const follows[] = {"rank", NULL};
    const struct amp_own_order_options opt = {
        .consumer = "c.1", .rank = rank_of, .follows = follows};
    struct amp_own_order *o = NULL;
    TAP_INT(amp_own_order_open(&o, store, &opt, &err), 0, "the order opens");
    return o;
}

/* Jobs that come while it is open, and those that were there: the order is the same. */
static void many(struct amp_own_order *o)
{
    char id[32];
    int bad = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "m/%03d", (i * 77) % MANY);
        bad += take("c.1", id, "many", NOW + 100 + (i * 77) % MANY) < 0;
    }
    TAP_INT(bad, 0, "many jobs are taken");
    struct amp_own_order *again = order_open();
    for (int i = 0; i < MANY; i++) {
        struct amp_item a = {0}, b = {0};
        bool has_a, has_b;
        int64_t wake;
        snprintf(id, sizeof id, "m/%03d", i);
        if (amp_own_order_next(o, NOW, &has_a, &a, &wake, &err) < 0 ||
            amp_own_order_next(again, NOW, &has_b, &b, &wake, &err) < 0 || !has_a || !has_b ||
            strcmp(a.msg_id, id) != 0 || strcmp(b.msg_id, id) != 0)
            bad++;
        bad += own_step(id, AMP_QUEUE_EV_FAIL, 0) < 0;
    }
    TAP_INT(bad, 0, "and come in their order, in both");
    amp_own_order_close(again);
}

int main(void)
{
    const struct amp_store_options opt = {.actor = "unit"};
    bool any;
    if (amp_store_open(scratch(), &opt, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    TAP_INT(amp_own_any(store, "c.1", &any, &err), 0, "look for jobs");
    TAP_OK(!any, "there are none");
    TAP_INT(take("c.1", "b", "t-b", NOW), 0, "a job");
    TAP_INT(take("c.1", "a", "t-a", NOW), 0, "another one in the same millisecond");
    TAP_INT(take("c", "1.x", "t-x", NOW - 9), 0, "one of another consumer");
    TAP_INT(amp_own_any(store, "c.1", &any, &err), 0, "look for jobs");
    TAP_OK(any, "there are some");

    struct amp_own_order *o = order_open();
    next_is(o, NOW, "b", 0, "the one that was taken first");
    TAP_INT((int64_t)amp_own_order_count(o), 2, "of two");
    TAP_INT(take("c.1", "late", "t-late", NOW + 1), 0, "a third one");
    TAP_INT(take("c", "2", "t-x", NOW - 9), 0, "and one of the other consumer");
    rank_set("t-late", '1');
    next_is(o, NOW, "late", 0, "is more urgent");
    rank_set("t-a", '0');
    next_is(o, NOW, "a", 0, "a change of the rank of one that waits");
    rank_set("t-a", '7');
    next_is(o, NOW, "late", 0, "and back");

    step("late", AMP_QUEUE_EV_START, 0);
    step("late", AMP_QUEUE_EV_PARK, NOW + 50);
    next_is(o, NOW, "b", NOW + 50, "one that is parked comes later");
    next_is(o, NOW + 50, "late", 0, "at its time");
    step("late", AMP_QUEUE_EV_START, 0);
    TAP_INT(amp_own_order_hold(o, "late", "", &err), 0, "it is held");
    TAP_INT(amp_own_order_hold(o, "late", "", &err), 0, "twice");
    step("late", AMP_QUEUE_EV_START, 0);
    rank_set("t-late", '0');
    next_is(o, NOW, "b", 0, "whatever happens to it");
    TAP_INT(amp_own_order_hold(o, "b", "rank.t-w", &err), 0, "another one is held");
    TAP_INT((int64_t)amp_own_order_held(o, ""), 2, "two are held");
    step("late", AMP_QUEUE_EV_DONE, 0);
    next_is(o, NOW, "a", 0, "the last one");
    TAP_INT((int64_t)amp_own_order_held(o, "rank."), 1, "one ended while it was held");
    TAP_INT(amp_own_order_free_held(o, &err), 0, "what waits for no record is free");
    rank_set("t-x", '1');
    next_is(o, NOW, "a", 0, "the other one is held");
    rank_set("t-w", '1');
    next_is(o, NOW, "b", 0, "until its record changes");
    step("b", AMP_QUEUE_EV_FAIL, 0);
    step("a", AMP_QUEUE_EV_FAIL, 0);
    next_is(o, NOW, "", 0, "nothing is left");
    TAP_INT((int64_t)amp_own_order_count(o), 0, "no job");
    many(o);
    amp_own_order_close(o);
    amp_own_order_close(NULL);
    amp_store_close(store);
    return tap_done();
}
