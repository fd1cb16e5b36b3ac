/* Jobs in the queue: their order, their limits and scopes, claims, steps and ends. */
#include <string.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/git/paths/glob.h"
#include "work/item/conflict/conflict.h"
#include "work/item/order.h"
#include "work/item/priority.h"
#include "work/item/scope.h"

static struct amp_store *s;
static struct amp_error err;
static struct amp_buf mem = {.max = 1 << 20};
static int64_t most_of_all;

static int64_t most(void *ctx, struct amp_span type)
{
    (void)ctx, (void)type;
    return most_of_all;
}

static bool held(void *ctx, struct amp_span task)
{
    (void)ctx;
    return amp_span_is(task, "T-2026-666");
}

static const struct amp_order_options options = {
    .ageing_ms = 1000, .most = most, .held = held, .patterns = amp_glob_overlap};
static const struct amp_span builder = {"builder", 7};
static const struct amp_order_want want = {
    .worker = "w1", .types = &builder, .n_types = 1, .now_ms = 5000};

static struct amp_span submit_type = {"builder", 7};

struct given {
    const char *name, *scope, *task;
    int64_t priority, at_ms, deadline_ms;
    bool again;
};

/* Submits a job whose id begins with its name. 0 or -1. */
static int submit(struct given g)
{
    char id[AMP_QUEUE_ID_MAX];
    uint8_t now = 0;
    int64_t seq;
    enum amp_store_outcome outcome;

    memset(id, '0', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    memcpy(id, g.name, strlen(g.name));
    const struct amp_queue_job job = {.id = amp_span_str(id),
                                      .type = submit_type,
                                      .protocol = AMP_SPAN("amp"),
                                      .task = amp_span_str(g.task),
                                      .priority = g.priority,
                                      .scope = amp_span_str(g.scope),
                                      .digest = AMP_SPAN("sha256:0"),
                                      .deadline_ms = g.deadline_ms};
    const struct amp_queue_submit q = {
        .job = &job, .line = AMP_SPAN("{\"a\":1}"), .again = g.again, .now_ms = g.at_ms};
    return amp_queue_submit(s, &q, &seq, &now, &outcome, &err);
}

static char claimed[AMP_QUEUE_ID_MAX];

/* The first letter of the job that is claimed; '-': none, '!': failure. */
static char claim_as(struct amp_order *o, const char *worker, int64_t now_ms)
{
    struct amp_queue_job job;
    struct amp_order_want w = want;
    int64_t wake = 0;

    w.worker = worker;
    w.now_ms = now_ms;
    int rc = amp_order_claim(o, &w, &mem, &job, &wake, &err);
    if (rc > 0)
        amp_span_copy(job.id, claimed, sizeof claimed);
    return rc < 0 ? '!' : rc ? job.id.p[0] : '-';
}

static int step(uint8_t event, const char *worker)
{
    const struct amp_queue_step st = {.id = amp_span_str(claimed),
                                      .event = event,
                                      .worker = worker,
                                      .by = "ann",
                                      .until_ms = 9000,
                                      .now_ms = 6000};
    return amp_queue_step(s, &st, &mem, NULL, &err);
}

static void finish(const char *worker)
{
    step(AMP_QUEUE_EV_START, worker);
    TAP_OK(step(AMP_QUEUE_EV_DONE, worker) == 0, "%.1s is done", claimed);
}

/* ---- order ---- */

static void test_order(struct amp_order *o)
{
    submit((struct given){"a", .priority = 5, .at_ms = 1000});
    submit((struct given){"b", .priority = -3, .at_ms = 1001});
    submit((struct given){"c", .priority = -3, .at_ms = 1002});
    submit((struct given){"d", .priority = 20, .at_ms = 1003});
    TAP_INT(claim_as(o, "w1", 2000), 'b', "the most urgent first");
    TAP_INT(step(AMP_QUEUE_EV_RELEASE, "w1"), 0, "given back");
    TAP_INT(claim_as(o, "w1", 2000), 'b', "it has kept its place");
    finish("w1");
    TAP_INT(claim_as(o, "w1", 2000), 'c', "equal priorities in the order of submission");
    finish("w1");
    /* 20 levels of 1 s each: d was submitted 30 s before e. */
    submit((struct given){"e", .priority = 0, .at_ms = 31003});
    TAP_INT(claim_as(o, "w1", 32000), 'a', "the older one of lower priority");
    finish("w1");
    struct amp_order_place place;
    TAP_INT(amp_order_look(o, &err), 0, "a look");
    TAP_INT(amp_order_place(o, AMP_SPAN("d0000000000000000000000000000000"), 32000, &place, &err),
            1, "the place of d");
    TAP_INT(place.effective, -10, "its priority with its age");
    TAP_INT((int)place.position, 1, "it is the next");
    TAP_INT(claim_as(o, "w1", 32000), 'd', "nothing waits for ever");
    finish("w1");
    TAP_INT(claim_as(o, "w1", 32000), 'e', "then the last");
    finish("w1");
    TAP_INT(claim_as(o, "w1", 32000), '-', "nothing is left");
}

/* ---- limits ---- */

static void test_limits(struct amp_order *o)
{
    static const char src[] = "{\"repositories\":[\"/r\"],\"paths\":[\"/src/**\"]}";
    static const char file[] = "{\"repositories\":[\"/r\"],\"paths\":[\"/src/a.c\"]}";
    static const char doc[] = "{\"repositories\":[\"/r\"],\"paths\":[\"/doc/**\"]}";
    struct amp_order_place place;
    struct amp_order *other;

    TAP_INT(amp_order_open(&other, s, &options, &err), 0, "another process");
    submit((struct given){"1", .scope = src, .at_ms = 1});
    submit((struct given){"2", .scope = file, .at_ms = 2});
    submit((struct given){"3", .scope = doc, .at_ms = 3});
    submit((struct given){"4", .scope = file, .at_ms = 4});
    const struct amp_conflict_step permit = {.x = AMP_SPAN("40000000000000000000000000000000"),
                                             .y = AMP_SPAN("10000000000000000000000000000000"),
                                             .event = AMP_CONFLICT_EV_ALLOW,
                                             .now_ms = 4};
    TAP_INT(amp_conflict_step(s, &permit, &mem, NULL, &err), 0, "a permission");
    TAP_INT(claim_as(o, "w1", 5), '1', "the first");
    TAP_INT(claim_as(other, "w2", 5), '3', "the second overlaps it, the third does not");
    TAP_INT(amp_order_place(other, AMP_SPAN("20000000000000000000000000000000"), 5, &place, &err),
            1, "the place of the second");
    TAP_OK(place.why == AMP_WAITS_SCOPE && place.behind.p[0] == '1', "it waits behind the first");
    TAP_INT(claim_as(other, "w2", 5), '4', "a person permitted the fourth beside the first");
    most_of_all = 3;
    submit((struct given){"5", .at_ms = 5});
    TAP_INT(claim_as(o, "w1", 6), '-', "the limit of the type");
    most_of_all = 4;
    TAP_INT(claim_as(o, "w1", 6), '5', "a higher limit");
    finish("w1");
    most_of_all = 0;
    submit((struct given){"6", .task = "T-2026-666", .at_ms = 6});
    TAP_INT(claim_as(o, "w1", 7), '-', "its task is suspended");
    struct amp_order_counts n;
    amp_order_counts(o, builder, &n, &err);
    TAP_OK(n.waiting == 2 && n.working == 3, "two wait, three are at work");
    amp_order_close(other);
}

/* ---- steps ---- */

static void test_steps(struct amp_order *o)
{
    struct amp_queue_job job;

    submit((struct given){"7", .priority = -5, .at_ms = 1});
    TAP_INT(claim_as(o, "w1", 2), '7', "claimed");
    TAP_OK(step(AMP_QUEUE_EV_START, "w2") < 0 && strcmp(err.code, "claim_lost") == 0,
           "not by another worker");
    TAP_INT(step(AMP_QUEUE_EV_PARK, "w1"), 0, "parked");
    TAP_INT(claim_as(o, "w1", 8999), '-', "it waits");
    TAP_INT(claim_as(o, "w1", 9000), '7', "until its time");
    TAP_INT(step(AMP_QUEUE_EV_LOSE, "w1"), 0, "its worker is lost");
    TAP_INT(claim_as(o, "w1", 9000), '7', "the next one gets it");
    TAP_OK(step(AMP_QUEUE_EV_LOSE, "w2") < 0 && strcmp(err.code, "claim_lost") == 0,
           "only its worker can be lost");
    TAP_INT(amp_queue_read(s, amp_span_str(claimed), &mem, &job, &err), 1, "its record");
    const struct amp_queue_step late = {.id = amp_span_str(claimed),
                                        .event = AMP_QUEUE_EV_RELEASE,
                                        .worker = "w1",
                                        .seq = job.seq,
                                        .attempt = job.attempts - 1};
    TAP_OK(amp_queue_step(s, &late, &mem, NULL, &err) < 0 && strcmp(err.code, "claim_lost") == 0,
           "an earlier claim of the same worker ends nothing");
    TAP_INT(step(AMP_QUEUE_EV_LOSE, "w1"), 0, "it is lost again");
    TAP_INT(amp_queue_read(s, amp_span_str(claimed), &mem, &job, &err), 1, "its record");
    TAP_OK(job.state == AMP_QUEUE_QUEUED && job.losses == 2 && job.attempts == 3,
           "it waits, and has both losses");
    TAP_INT(claim_as(o, "w1", 9000), '7', "claimed");
    TAP_INT(step(AMP_QUEUE_EV_FAIL, "w1"), 0, "it fails");
    TAP_INT(submit((struct given){"7", .at_ms = 3}), 0, "what failed may be submitted again");
    TAP_OK(submit((struct given){"7", .at_ms = 3}) < 0 && strcmp(err.code, "duplicate_job") == 0,
           "what waits may not");
    TAP_INT(claim_as(o, "w1", 9000), '7', "claimed");
    TAP_INT(step(AMP_QUEUE_EV_START, "w1"), 0, "at work");
    TAP_INT(step(AMP_QUEUE_EV_CANCEL, NULL), 0, "cancelled");
    TAP_INT(step(AMP_QUEUE_EV_YIELD, "w1"), 0, "the agent was ended");
    amp_queue_read(s, amp_span_str(claimed), &mem, &job, &err);
    TAP_OK(job.state == AMP_QUEUE_CANCELLED && amp_span_is(job.cancelled_by, "ann"), "by a person");
    amp_queue_forget(s, amp_span_str(claimed), "test", &err);
    TAP_INT(amp_queue_read(s, amp_span_str(claimed), &mem, &job, &err), 0, "it is removed");
    TAP_OK(step(AMP_QUEUE_EV_CLAIM, "w1") < 0 && strcmp(err.code, "unknown_job") == 0,
           "a step of a job that is not there");
}

static void test_rival(struct amp_order *o)
{
    struct amp_order_rival r;

    submit((struct given){"8", .priority = 0, .at_ms = 1});
    TAP_INT(claim_as(o, "w9", 2), '8', "at work");
    submit((struct given){"9", .priority = 0, .at_ms = 2});
    struct amp_order_want w = want;
    w.worker = "w9";
    TAP_INT(amp_order_rival(o, &w, true, &r, &err), 0, "an equal one does not preempt");
    submit((struct given){"x", .priority = -1, .at_ms = 3});
    TAP_INT(amp_order_rival(o, &w, false, &r, &err), 0, "there is a free place");
    TAP_INT(amp_order_rival(o, &w, true, &r, &err), 1, "a more urgent one preempts");
    TAP_OK(r.victim.p[0] == '8' && r.by.p[0] == 'x', "the job at work");
    const struct amp_queue_step st = {.id = r.victim,
                                      .event = AMP_QUEUE_EV_PREEMPT,
                                      .by = "x0000000000000000000000000000000",
                                      .now_ms = 5};
    TAP_INT(amp_queue_step(s, &st, &mem, NULL, &err), 0, "it is asked to end");
    TAP_INT(amp_order_rival(o, &w, true, &r, &err), 0, "once is enough");
}

static int64_t two_places(void *ctx, struct amp_span type)
{
    (void)ctx, (void)type;
    return 2;
}

/* Two places. A job whose scope a more urgent one has makes no other job yield. */
static void test_rival_scopes(void)
{
    struct amp_order_rival r;
    struct amp_queue_job job;
    struct amp_order *two = NULL;
    const struct amp_order_options opt = {.most = two_places};
    const struct amp_span type = AMP_SPAN("pair");
    struct amp_order_want w = {.worker = "w9", .types = &type, .n_types = 1, .now_ms = 10};
    const char *red = "{\"repositories\":[\"/red\"]}", *blue = "{\"repositories\":[\"/blue\"]}";

    submit_type = type;
    TAP_INT(amp_order_open(&two, s, &opt, &err), 0, "two places");
    submit((struct given){"A", .scope = red, .priority = -5, .at_ms = 1});
    submit((struct given){"B", .scope = blue, .priority = 5, .at_ms = 2});
    submit((struct given){"C", .scope = red, .at_ms = 3});
    amp_order_claim(two, &w, &mem, &job, NULL, &err);
    amp_order_claim(two, &w, &mem, &job, NULL, &err);
    TAP_INT(amp_order_rival(two, &w, true, &r, &err), 0, "it could not start in its place");
    submit((struct given){"D", .scope = blue, .priority = 1, .at_ms = 4});
    TAP_OK(amp_order_rival(two, &w, true, &r, &err) == 1 && r.victim.p[0] == 'B' &&
               r.by.p[0] == 'D',
           "a less urgent one that could, does");
    submit((struct given){"E", .scope = red, .priority = -6, .at_ms = 5});
    TAP_OK(amp_order_rival(two, &w, true, &r, &err) == 1 && r.victim.p[0] == 'A' &&
               r.by.p[0] == 'E',
           "the one that has its scope, although a less urgent one has a place");
    amp_order_close(two);
    submit_type = builder;
}

/* ---- scopes ---- */

static bool overlap(const char *a, const char *b)
{
    AMP_BUF struct amp_buf x = {.max = 65536};
    AMP_BUF struct amp_buf y = {.max = 65536};
    struct amp_scope p, q;

    if (amp_scope_parse(amp_span_str(a), &x, &p, &err) < 0 ||
        amp_scope_parse(amp_span_str(b), &y, &q, &err) < 0)
        return false;
    bool one = amp_scope_overlap(&p, &q, false, amp_glob_overlap);
    TAP_OK(one == amp_scope_overlap(&q, &p, false, amp_glob_overlap), "%s and %s, both ways", a, b);
    TAP_OK(amp_scope_overlap(&p, &q, true, amp_glob_overlap) == (one || p.exclusive || q.exclusive),
           "%s and %s, of one type", a, b);
    return one;
}

static const struct {
    const char *a, *b;
    bool overlap;
} scope_cases[] = {
    {"", "{\"repositories\":[\"/r\"]}", false},
    {"{\"repositories\":[\"/r\"]}", "{\"repositories\":[\"/r\"],\"paths\":[\"a\"]}", true},
    {"{\"repositories\":[\"/r\"]}", "{\"repositories\":[\"/r/sub\"]}", true},
    {"{\"repositories\":[\"/r\"]}", "{\"repositories\":[\"/rest\"]}", false},
    {"{\"repositories\":[\"/r*\"]}", "{\"repositories\":[\"/rest\"]}", true},
    {"{\"repositories\":[\"a*z\"]}", "{\"repositories\":[\"ab*yz\"]}", true},
    {"{\"repositories\":[\"a*z\"]}", "{\"repositories\":[\"ab*y\"]}", false},
    {"{\"branches\":[\"main\"]}", "{\"repositories\":[\"/r\"]}", true},
    {"{\"branches\":[\"main\"]}", "{\"branches\":[\"release/*\"]}", false},
    {"{\"paths\":[\"src/\"]}", "{\"paths\":[\"src/a.c\"]}", true},
    {"{\"paths\":[\"/src/**\"]}", "{\"paths\":[\"/doc/a.c\"]}", false},
    {"{\"repositories\":[\"/u\"],\"paths\":[\"/r/a\"]}",
     "{\"repositories\":[\"/u/r\"],\"paths\":[\"/a\"]}", true},
    {"{\"resources\":[\"gpu\"]}", "{\"repositories\":[\"/r\"]}", false},
    {"{\"resources\":[\"gpu\"]}", "{\"resources\":[\"gpu\",\"net\"]}", true},
    {"{\"exclusive\":true}", "{\"paths\":[\"/a\"]}", false},
    {"{\"exclusive\":true}", "", false},
    {"{\"paths\":[\"/w/r/src\"]}", "{\"repositories\":[\"/w/r\"],\"paths\":[\"/src/a.c\"]}", true},
    {"{\"paths\":[\"/w/r/src\"]}", "{\"repositories\":[\"/w/r/\"],\"paths\":[\"/doc\"]}", false},
    {"{\"paths\":[\"/w\"]}", "{\"repositories\":[\"/w/r\"],\"paths\":[\"/doc\"]}", true},
    {"{\"paths\":[\"/w/rest\"]}", "{\"repositories\":[\"/w/r\"],\"paths\":[\"/doc\"]}", false},
};

/* ---- places ---- */

enum { PLACES = 300 };
static char placed[PLACES][AMP_QUEUE_ID_MAX];
static uint64_t position[PLACES];
static size_t n_placed;

static int on_place(void *ctx, struct amp_span id, const struct amp_order_place *p,
                    struct amp_error *e)
{
    (void)ctx, (void)e;
    if (id.p[0] != 'p' || n_placed == PLACES)
        return 0;
    amp_span_copy(id, placed[n_placed], sizeof placed[0]);
    position[n_placed++] = p->position;
    return 0;
}

/* The position of a job is its place in the walk through all of them, also with ageing. */
static void test_places(struct amp_order *o)
{
    struct amp_order_place place;
    uint32_t seed = 7, wrong = 0;
    int64_t at = 0;

    submit_type = AMP_SPAN("painter");
    for (int i = 0; i < PLACES; i++) {
        char name[16];
        seed = seed * 1664525 + 1013904223;
        snprintf(name, sizeof name, "p%03d", i);
        submit((struct given){name, .priority = (int64_t)(seed >> 16) % 40 - 19,
                              .at_ms = at += seed >> 24 & 127});
    }
    amp_order_look(o, &err);
    amp_order_each(o, at, on_place, NULL, &err);
    for (size_t i = 0; i < n_placed; i++) {
        amp_order_place(o, amp_span_str(placed[i]), at, &place, &err);
        wrong += place.position != position[i] || position[i] != i + 1;
    }
    TAP_OK(n_placed == PLACES && wrong == 0, "%d places as in the list", PLACES);
}

static enum amp_waits try(struct amp_order *o, const char *scope, int64_t priority,
                          const char *task)
{
    struct amp_order_place place;
    const struct amp_queue_job job = {.type = submit_type,
                                      .scope = amp_span_str(scope),
                                      .priority = priority,
                                      .task = amp_span_str(task)};

    amp_order_look(o, &err);
    return amp_order_try(o, &job, 20, &place, &err) < 0 ? AMP_WAITS_COUNT : place.why;
}

static void test_try(struct amp_order *o)
{
    static const char x[] = "{\"resources\":[\"x\"]}", y[] = "{\"resources\":[\"y\"]}";

    submit_type = AMP_SPAN("trier");
    most_of_all = 2;
    TAP_INT(try(o, x, 0, NULL), AMP_WAITS_TURN, "an empty queue: at once");
    TAP_INT(try(o, x, 0, "T-2026-666"), AMP_WAITS_HELD, "not if its task is suspended");
    submit((struct given){"q1", .scope = x, .at_ms = 10});
    TAP_INT(try(o, x, 0, NULL), AMP_WAITS_SCOPE, "not beside a job that could start before it");
    TAP_INT(try(o, x, -5, NULL), AMP_WAITS_TURN, "but before it");
    TAP_INT(try(o, y, 0, NULL), AMP_WAITS_TURN, "or with another scope");
    submit((struct given){"q2", .scope = x, .at_ms = 10});
    submit((struct given){"q3", .scope = y, .at_ms = 11});
    TAP_INT(try(o, NULL, 0, NULL), AMP_WAITS_LIMIT, "those before it take all places");
    TAP_INT(try(o, NULL, -1, NULL), AMP_WAITS_TURN, "not of one that is before them");
    most_of_all = 0;
    TAP_INT(try(o, NULL, 0, NULL), AMP_WAITS_TURN, "no limit");
    submit_type = AMP_SPAN("other");
    TAP_INT(try(o, y, 0, NULL), AMP_WAITS_SCOPE, "the scopes of other types count");
    TAP_INT(try(o, "{\"exclusive\":true}", 0, NULL), AMP_WAITS_TURN, "exclusive: not other types");
    submit((struct given){"q4", .at_ms = 12});
    TAP_INT(try(o, "{\"exclusive\":true}", 0, NULL), AMP_WAITS_SCOPE, "but any of its type");
}

static void test_scopes(void)
{
    for (size_t i = 0; i < sizeof scope_cases / sizeof *scope_cases; i++)
        TAP_OK(overlap(scope_cases[i].a, scope_cases[i].b) == scope_cases[i].overlap,
               "%s and %s: %d", scope_cases[i].a, scope_cases[i].b, scope_cases[i].overlap);
    AMP_BUF struct amp_buf x = {.max = 65536};
    AMP_BUF struct amp_buf text = {.max = 65536};
    struct amp_scope p;
    TAP_OK(amp_scope_parse(AMP_SPAN("{\"path\":[\"a\"]}"), &x, &p, &err) < 0 &&
               strcmp(err.code, "bad_scope") == 0,
           "a misspelled member");
    TAP_OK(amp_scope_parse(AMP_SPAN("{\"paths\":\"a\"}"), &x, &p, &err) < 0 &&
               strcmp(err.code, "bad_scope") == 0,
           "not a list");
    TAP_INT(
        amp_scope_parse(AMP_SPAN("{\"paths\":[\"b\",\"a\",\"b\"],\"branches\":[]}"), &x, &p, &err),
        0, "a scope");
    amp_scope_write(&p, &text, &err);
    TAP_OK(amp_span_is(amp_buf_span(&text), "{\"paths\":[\"a\",\"b\"]}"), "its canonical text");
}

/* Patterns of two letters and stars: they overlap if one of all short texts matches both. */
static void test_globs(void)
{
    static const char letters[] = "ab*";
    unsigned wrong = 0, n = 0;
    char a[4], b[4], text[8], ja[64], jb[64];
    AMP_BUF struct amp_buf x = {.max = 65536};
    AMP_BUF struct amp_buf y = {.max = 65536};
    struct amp_scope p, q;

    for (unsigned i = 0; i < 27 * 27; i++) {
        for (unsigned k = 0, v = i; k < 6; k++, v /= 3)
            *(k < 3 ? &a[k] : &b[k - 3]) = letters[v % 3];
        a[3] = b[3] = '\0';
        bool meet = false;
        for (unsigned len = 1; len <= 6 && !meet; len++)
            for (unsigned bits = 0; bits < 1u << len && !meet; bits++) {
                for (unsigned k = 0; k < len; k++)
                    text[k] = bits >> k & 1 ? 'a' : 'b';
                meet = amp_span_glob((struct amp_span){text, len}, amp_span_str(a)) &&
                       amp_span_glob((struct amp_span){text, len}, amp_span_str(b));
            }
        snprintf(ja, sizeof ja, "{\"branches\":[\"%s\"]}", a);
        snprintf(jb, sizeof jb, "{\"branches\":[\"%s\"]}", b);
        amp_scope_parse(amp_span_str(ja), &x, &p, &err);
        amp_scope_parse(amp_span_str(jb), &y, &q, &err);
        wrong += amp_scope_overlap(&p, &q, false, amp_glob_overlap) != meet;
        n++;
    }
    TAP_OK(wrong == 0, "%u pairs of patterns as by trying", n);
}

static void test_priorities(void)
{
    int64_t p = 99;
    TAP_INT(amp_priority_of_word(AMP_SPAN("HIGH"), &p, &err), 0, "a word in capitals");
    TAP_INT(p, -5, "its priority");
    TAP_OK(amp_priority_of_word(AMP_SPAN("hig"), &p, &err) < 0 &&
               strcmp(err.code, "bad_priority") == 0,
           "a part of a word");
    TAP_INT(amp_priority_aged(0, 100000, 1000), AMP_QUEUE_HIGHEST, "age has a limit");
    char a[AMP_QUEUE_ID_MAX], b[AMP_QUEUE_ID_MAX];
    amp_queue_identity(builder, AMP_SPAN("x"), AMP_SPAN("y"), AMP_SPAN(""), a, &err);
    amp_queue_identity(builder, AMP_SPAN("xy"), AMP_SPAN(""), AMP_SPAN(""), b, &err);
    TAP_OK(strlen(a) == 32 && strcmp(a, b) != 0, "identities of different jobs differ");
}

int main(void)
{
    struct amp_order *o;

    if (amp_store_open(scratch(), NULL, &s, &err) < 0 ||
        amp_order_open(&o, s, &options, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    test_order(o);
    test_limits(o);
    test_steps(o);
    test_rival(o);
    test_rival_scopes();
    test_places(o);
    test_try(o);
    test_scopes();
    test_globs();
    test_priorities();
    amp_order_close(o);
    amp_store_close(s);
    amp_buf_release(&mem);
    return tap_done();
}
