/* Pairs of jobs whose scopes overlap: what is decided about them, and the order that follows from
 * it; what two scopes have in common; the breaker of the command. */
#include <string.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/git/paths/glob.h"
#include "work/item/conflict/breaker.h"
#include "work/item/conflict/conflict.h"
#include "work/item/order.h"
#include "work/item/scope.h"

static struct amp_store *s;
static struct amp_error err;
static struct amp_buf mem = {.max = 1 << 20};
static struct amp_order *o;
static const struct amp_span builder = {"builder", 7};

static const char *id_of(char name)
{
    static char ids[4][AMP_QUEUE_ID_MAX];
    static unsigned next;
    char *id = ids[next++ % 4];

    memset(id, '0', AMP_QUEUE_ID_MAX - 1);
    id[0] = name;
    id[AMP_QUEUE_ID_MAX - 1] = '\0';
    return id;
}

static void submit(char name, const char *scope, int64_t at_ms)
{
    int64_t seq;
    const struct amp_queue_job job = {.id = amp_span_str(id_of(name)),
                                      .type = builder,
                                      .by = AMP_SPAN("ann"),
                                      .scope = amp_span_str(scope),
                                      .digest = AMP_SPAN("sha256:0")};
    const struct amp_queue_submit q = {.job = &job, .line = AMP_SPAN("{}"), .now_ms = at_ms};

    TAP_OK(amp_queue_submit(s, &q, &seq, NULL, NULL, &err) == 0, "%c is submitted", name);
}

static char claim(int64_t now_ms)
{
    const struct amp_order_want want = {
        .worker = "w", .types = &builder, .n_types = 1, .now_ms = now_ms};
    struct amp_queue_job job;
    int rc = amp_order_claim(o, &want, &mem, &job, NULL, &err);

    return rc < 0 ? '!' : rc ? job.id.p[0] : '-';
}

static void job_step(char name, uint8_t event)
{
    const struct amp_queue_step st = {
        .id = amp_span_str(id_of(name)), .event = event, .worker = "w", .by = "ann", .now_ms = 100};

    TAP_OK(amp_queue_step(s, &st, &mem, NULL, &err) == 0, "a step of %c", name);
}

/* The state of the pair after the step, or -1. */
static int pair_step(char x, char y, uint8_t event, const char *worker, int64_t now_ms,
                     const struct amp_conflict *set)
{
    struct amp_conflict now;
    const struct amp_conflict_step st = {.x = amp_span_str(id_of(x)),
                                         .y = amp_span_str(id_of(y)),
                                         .event = event,
                                         .set = set,
                                         .worker = worker,
                                         .now_ms = now_ms};

    return amp_conflict_step(s, &st, &mem, &now, &err) < 0 ? -1 : now.state;
}

/* A person is asked, and answers with an order. */
static int order(char x, char y, const struct amp_conflict *set)
{
    pair_step(x, y, AMP_CONFLICT_EV_ASK, NULL, 503, NULL);
    return pair_step(x, y, AMP_CONFLICT_EV_ORDER, NULL, 503, set);
}

static char met[16];

static int on_meet(void *ctx, struct amp_span waiting, struct amp_span running, struct amp_error *e)
{
    size_t n = strlen(met);

    (void)ctx, (void)e;
    met[n] = waiting.p[0];
    met[n + 1] = running.p[0];
    return 0;
}

static const char *meets(int64_t now_ms)
{
    const struct amp_order_want want = {.types = &builder, .n_types = 1, .now_ms = now_ms};

    memset(met, 0, sizeof met);
    return amp_order_look(o, &err) < 0 || amp_order_meets(o, &want, 4, on_meet, NULL, &err) < 0
               ? "failed"
               : met;
}

static int on_pair(void *ctx, const struct amp_order_pair *p, struct amp_error *e)
{
    int *gone = ctx;

    (void)e;
    *gone += p->gone;
    return 0;
}

static enum amp_waits waits(char name)
{
    struct amp_order_place p = {.why = AMP_WAITS_COUNT};

    amp_order_place(o, amp_span_str(id_of(name)), 5, &p, &err);
    return p.why;
}

/* ---- a decision lives as long as both jobs ---- */

static void test_cache(void)
{
    const struct amp_conflict check = {.until_ms = 50,
                                       .running = AMP_SPAN("b"),
                                       .waiting = AMP_SPAN("a"),
                                       .overlap = AMP_SPAN("{\"resources\":[\"x\"]}")};
    const struct amp_conflict miss = {.until_ms = 90, .code = AMP_SPAN("command_timeout")};
    const struct amp_conflict good = {.confidence = 900000, .reason = AMP_SPAN("disjoint")};
    struct amp_conflict now;
    int gone = 0;

    submit('b', "{\"resources\":[\"x\"]}", 1);
    submit('a', "{\"resources\":[\"x\"]}", 2);
    TAP_OK(strcmp(meets(3), "") == 0, "nothing is at work");
    TAP_INT(claim(3), 'b', "the first is claimed");
    TAP_OK(strcmp(meets(3), "ab") == 0, "a could start but for b");
    TAP_INT(pair_step('a', 'b', AMP_CONFLICT_EV_CHECK, "w1", 10, &check), AMP_CONFLICT_CHECKING,
            "a worker starts the command");
    TAP_INT(pair_step('b', 'a', AMP_CONFLICT_EV_CHECK, "w2", 11, &check), -1,
            "a second worker does not");
    TAP_STR(err.code, "illegal_transition", "its code");
    TAP_OK(strcmp(meets(12), "") == 0 && waits('a') == AMP_WAITS_CONFLICT, "it is being judged");
    TAP_INT(pair_step('a', 'b', AMP_CONFLICT_EV_CONFIDENT, "w2", 12, &good), -1,
            "only the worker that has the check answers");
    TAP_INT(pair_step('a', 'b', AMP_CONFLICT_EV_UNAVAILABLE, NULL, 49, &miss), -1,
            "nobody ends a check in time");
    TAP_INT(pair_step('a', 'b', AMP_CONFLICT_EV_UNAVAILABLE, NULL, 50, &miss),
            AMP_CONFLICT_UNJUDGED, "its time is over");
    TAP_OK(strcmp(meets(89), "") == 0 && waits('a') == AMP_WAITS_SCOPE, "not before its next try");
    TAP_OK(strcmp(meets(90), "ab") == 0, "then it comes again");
    pair_step('a', 'b', AMP_CONFLICT_EV_CHECK, "w1", 91, &check);
    TAP_INT(pair_step('b', 'a', AMP_CONFLICT_EV_CONFIDENT, "w1", 92, &good), AMP_CONFLICT_PARALLEL,
            "the confidence is enough");
    TAP_INT(
        amp_conflict_read(s, amp_span_str(id_of('b')), amp_span_str(id_of('a')), &mem, &now, &err),
        1, "the pair is the same in any order");
    TAP_OK(now.confidence == 900000 && now.judged && amp_span_is(now.reason, "disjoint") &&
               amp_span_is(now.overlap, "{\"resources\":[\"x\"]}") && now.until_ms == 0,
           "it has the confidence, the reason and what overlaps");
    amp_order_close(o);
    static const struct amp_order_options options = {.patterns = amp_glob_overlap};
    TAP_INT(amp_order_open(&o, s, &options, &err), 0, "a restart");
    TAP_OK(strcmp(meets(93), "") == 0, "it is not judged again");
    TAP_INT(claim(94), 'a', "they run side by side");
    job_step('b', AMP_QUEUE_EV_START);
    job_step('b', AMP_QUEUE_EV_DONE);
    TAP_INT(amp_order_look(o, &err), 0, "a look");
    TAP_INT(amp_order_pairs(o, on_pair, &gone, &err), 0, "the pairs");
    TAP_INT(gone, 1, "one of the jobs has ended");
    TAP_INT(pair_step('a', 'b', AMP_CONFLICT_EV_END, NULL, 100, NULL), AMP_CONFLICT_ENDED,
            "the pair ends");
    TAP_INT(
        amp_conflict_read(s, amp_span_str(id_of('a')), amp_span_str(id_of('b')), &mem, &now, &err),
        0, "its record is removed");
    job_step('a', AMP_QUEUE_EV_RELEASE);
    TAP_INT(claim(101), 'a', "the other one goes on");
    job_step('a', AMP_QUEUE_EV_CANCEL);
    job_step('a', AMP_QUEUE_EV_RELEASE);
}

/* ---- permissions with an end; an order ---- */

static void test_decisions(void)
{
    const struct amp_conflict until = {.until_ms = 500, .person = AMP_SPAN("ann")};
    char c[AMP_QUEUE_ID_MAX], d[AMP_QUEUE_ID_MAX], e[AMP_QUEUE_ID_MAX];

    memcpy(c, id_of('c'), sizeof c);
    memcpy(d, id_of('d'), sizeof d);
    memcpy(e, id_of('e'), sizeof e);
    submit('c', "{\"resources\":[\"y\"]}", 200);
    submit('d', "{\"resources\":[\"y\"]}", 201);
    submit('e', "{\"resources\":[\"y\"]}", 202);
    TAP_INT(pair_step('c', 'd', AMP_CONFLICT_EV_ALLOW, NULL, 203, &until), AMP_CONFLICT_PARALLEL,
            "a person permits c and d until a time");
    TAP_INT(claim(204), 'c', "c");
    TAP_INT(claim(501), '-', "after that time the permission is gone");
    TAP_INT(claim(499), 'd', "before it both run");
    TAP_INT(pair_step('c', 'd', AMP_CONFLICT_EV_EXPIRE, NULL, 502, NULL), AMP_CONFLICT_UNJUDGED,
            "it expires");
    job_step('c', AMP_QUEUE_EV_RELEASE);
    job_step('d', AMP_QUEUE_EV_RELEASE);
    const struct amp_conflict e_first = {.first = amp_span_str(e)};
    const struct amp_conflict c_first = {.first = amp_span_str(c)};
    const struct amp_conflict d_first = {.first = amp_span_str(d)};
    TAP_INT(order('c', 'e', &e_first), AMP_CONFLICT_SERIAL, "a person puts e before c");
    TAP_INT(order('d', 'e', &e_first), AMP_CONFLICT_SERIAL, "and before d");
    TAP_INT(claim(504), 'e', "e, though it came last");
    job_step('e', AMP_QUEUE_EV_RELEASE);
    /* c after e, e after d, d after c. */
    pair_step('d', 'e', AMP_CONFLICT_EV_END, NULL, 505, NULL);
    order('d', 'e', &d_first);
    order('c', 'd', &c_first);
    TAP_INT(claim(506), 'c', "of decisions in a circle the oldest job goes first");
    TAP_INT(claim(506), '-', "and the others wait");
    job_step('c', AMP_QUEUE_EV_START);
    job_step('c', AMP_QUEUE_EV_DONE);
    TAP_INT(claim(507), 'd', "then the next in the order");
    job_step('d', AMP_QUEUE_EV_START);
    job_step('d', AMP_QUEUE_EV_DONE);
    TAP_INT(claim(508), 'e', "then the last");
    job_step('e', AMP_QUEUE_EV_START);
    job_step('e', AMP_QUEUE_EV_DONE);
}

/* ---- what two scopes have in common ---- */

static const char *common(const char *x, const char *y)
{
    static struct amp_buf out = {.max = 65536};
    AMP_BUF struct amp_buf mx = {.max = 65536}, my = {.max = 65536};
    struct amp_scope a, b;

    amp_buf_reset(&out);
    if (amp_scope_parse(amp_span_str(x), &mx, &a, &err) < 0 ||
        amp_scope_parse(amp_span_str(y), &my, &b, &err) < 0 ||
        amp_scope_common(&a, &b, true, amp_glob_overlap, &out, &err) < 0 ||
        amp_buf_add(&out, "", 1, &err) < 0)
        return "failed";
    return out.data;
}

static void test_common(void)
{
    TAP_STR(common("{\"resources\":[\"db\",\"x\"]}", "{\"resources\":[\"db\"]}"),
            "{\"resources\":[\"db\"]}", "a resource");
    TAP_STR(common("{\"repositories\":[\"/r\"],\"paths\":[\"/src/**\",\"/doc\"]}",
                   "{\"repositories\":[\"/r\"],\"paths\":[\"/src/a.c\"]}"),
            "{\"repositories\":[\"/r\"],\"paths\":[[\"/src/**\",\"/src/a.c\"]]}",
            "patterns of paths");
    TAP_STR(common("{\"repositories\":[\"/r\"],\"branches\":[\"main\"]}", "{\"paths\":[\"a.c\"]}"),
            "{\"repositories\":[\"/r\"],\"branches\":[\"main\"],\"paths\":[\"a.c\"]}",
            "a list that is absent means all");
    TAP_STR(common("{\"repositories\":[\"/r/sub\"],\"paths\":[\"x\"]}",
                   "{\"repositories\":[\"/r\"],\"paths\":[\"y\"]}"),
            "{\"repositories\":[[\"/r/sub\",\"/r\"]]}", "one repository in another one");
    TAP_STR(
        common("{\"paths\":[\"/r/src\"]}", "{\"repositories\":[\"/r\"],\"paths\":[\"/src/a.c\"]}"),
        "{\"paths\":[[\"/r/src\",\"/r\"]]}", "a path of the file system in a repository");
    TAP_STR(common("{\"exclusive\":true}", ""), "{\"exclusive\":true}", "a type of agents");
}

/* ---- the breaker ---- */

static void test_breaker(void)
{
    const struct amp_breaker b = {
        .name = "x", .most = 2, .pause_ms = 1000, .limit_ms = 100, .actor = "test"};
    struct amp_breaker_now now;

    TAP_INT(amp_breaker_read(s, "x", &now, &err), 0, "without a record");
    TAP_OK(now.state == AMP_BREAKER_CLOSED && now.failures == 0, "it is closed");
    uint64_t frame = amp_store_last_frame(s);
    TAP_INT(amp_breaker_try(s, &b, 1, &now, &err), 1, "a start");
    TAP_INT(amp_breaker_end(s, &b, NULL, 2, &now, &err), 0, "it works");
    TAP_OK(amp_store_last_frame(s) == frame, "which writes nothing");
    amp_breaker_end(s, &b, "it crashed", 3, &now, &err);
    TAP_OK(now.state == AMP_BREAKER_CLOSED && now.failures == 1, "one failure");
    amp_breaker_end(s, &b, NULL, 4, &now, &err);
    TAP_INT((int)now.failures, 0, "a success resets it");
    amp_breaker_end(s, &b, "one", 5, &now, &err);
    amp_breaker_end(s, &b, "two", 6, &now, &err);
    TAP_OK(now.state == AMP_BREAKER_OPEN && now.until_ms == 1006 && strcmp(now.why, "two") == 0,
           "two in a row open it");
    TAP_INT(amp_breaker_try(s, &b, 1005, &now, &err), 0, "not before the pause is over");
    TAP_INT(amp_breaker_try(s, &b, 1006, &now, &err), 1, "then one trial");
    TAP_INT(amp_breaker_try(s, &b, 1007, &now, &err), 0, "and no second one");
    TAP_INT(amp_breaker_try(s, &b, 1106, &now, &err), 1, "unless its worker is gone");
    amp_breaker_end(s, &b, "three", 1107, &now, &err);
    TAP_OK(now.state == AMP_BREAKER_OPEN && now.until_ms == 2107, "a failed trial opens it again");
    TAP_INT(amp_breaker_try(s, &b, 10, &now, &err), 1,
            "a clock that was set back does not keep it");
    amp_breaker_end(s, &b, NULL, 11, &now, &err);
    TAP_OK(now.state == AMP_BREAKER_CLOSED && now.failures == 0 && !*now.why,
           "a success closes it");
    amp_breaker_end(s, &b, "one", 12, &now, &err);
    amp_breaker_end(s, &b, "two", 13, &now, &err);
    amp_breaker_end(s, &b, "three", 14, &now, &err);
    TAP_OK(now.until_ms == 1013 && now.failures == 3, "a late failure does not renew the pause");
    amp_breaker_end(s, &b, NULL, 15, &now, &err);
    TAP_INT(now.state, AMP_BREAKER_CLOSED, "a late success closes it");
}

int main(void)
{
    static const struct amp_order_options options = {.patterns = amp_glob_overlap};

    if (amp_store_open(scratch(), NULL, &s, &err) < 0 ||
        amp_order_open(&o, s, &options, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    test_cache();
    test_decisions();
    test_common();
    test_breaker();
    amp_order_close(o);
    amp_store_close(s);
    amp_buf_release(&mem);
    return tap_done();
}
