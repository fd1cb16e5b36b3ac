/* The engine itself: which row counts, what an unsound table is told, how a machine is printed. */
#include <amp/fsm/fsm.h>

#include "../tap.h"

enum { IDLE, BUSY, DONE };
enum { START, FINISH };
static const struct amp_fsm_name states[] = {{"idle", "d"}, {"busy", "d"}, {"done", "d"}};
static const struct amp_fsm_name events[] = {{"start", "d"}, {"finish", "d"}};
static const struct amp_fsm_name facts[] = {{"ready", "d"}, {"paused", "d"}};
static const struct amp_fsm_name effects[] = {{"run", "d"}, {"tell", "d"}};
static const struct amp_fsm_row rows[] = {
    {.from = IDLE, .event = START, .to = BUSY, .if_all = 1, .if_none = 2, .effects = 3},
    {.from = IDLE, .event = START, .to = IDLE, .code = "not_ready"},
    {.from = BUSY, .event = FINISH, .to = DONE, .effects = 2},
    {.from = BUSY, .event = START, .to = BUSY, .extra = true},
};
static const struct amp_fsm sound = {
    .name = "demo",
    .source = "test",
    .doc = "a \"demo\"",
    .states = states,
    .events = events,
    .facts = facts,
    .effects = effects,
    .n_states = 3,
    .n_events = 2,
    .n_facts = 2,
    .n_effects = 2,
    .initial = IDLE,
    .terminal = 1u << DONE,
    .rows = rows,
    .n_rows = 4,
};

static void steps(void)
{
    struct amp_fsm_result r = {.to = 99};
    struct amp_error err;
    TAP_OK(amp_fsm_step(&sound, IDLE, START, 1, &r, &err) == 0 && r.to == BUSY && r.effects == 3,
           "facts that hold choose the guarded row");
    TAP_OK(amp_fsm_step(&sound, IDLE, START, 3, &r, &err) == 0 && r.to == IDLE,
           "a fact that must not hold leaves it to the next row");
    TAP_STR(r.code, "not_ready", "the row's code comes out");
    r.to = 99;
    TAP_OK(amp_fsm_step(&sound, DONE, START, 3, &r, &err) == -1 && r.to == 99,
           "no row: refused, the result untouched");
    TAP_STR(err.code, "illegal_transition", "the refusal's code");
    TAP_STR(err.what, "demo: no transition from done on start", "it names state and event");
    TAP_INT(amp_fsm_state(&sound, AMP_SPAN("busy")), BUSY, "a state by name");
    TAP_INT(amp_fsm_event(&sound, AMP_SPAN("begin")), -1, "an unknown event");
}

static bool lints(struct amp_fsm m, const struct amp_fsm_row *table, unsigned n)
{
    m.rows = table;
    m.n_rows = (uint16_t)n;
    return amp_fsm_lint(&m, NULL) == 0;
}

static void lint(void)
{
    struct amp_fsm m = sound;
    struct amp_fsm_row t[5];
    TAP_OK(amp_fsm_lint(&sound, NULL) == 0, "a sound table passes");
    TAP_OK(!lints(sound, rows, 2), "a state that is never reached");
    memcpy(t, rows, sizeof rows);
    t[4] = (struct amp_fsm_row){.from = IDLE, .event = START, .to = DONE, .if_all = 1};
    TAP_OK(!lints(sound, t, 5), "a row behind one that takes all");
    t[4] = (struct amp_fsm_row){.from = DONE, .event = START, .to = IDLE};
    TAP_OK(!lints(sound, t, 5), "a terminal state that is left");
    t[4].extra = true;
    TAP_OK(lints(sound, t, 5), "but an extra row may leave it");
    t[4] = (struct amp_fsm_row){.from = BUSY, .event = 7, .to = IDLE};
    TAP_OK(!lints(sound, t, 5), "an event out of range");
    t[4] =
        (struct amp_fsm_row){.from = DONE, .event = FINISH, .to = DONE, .if_all = 1, .if_none = 1};
    TAP_OK(!lints(sound, t, 5), "a guard that nothing satisfies");
    t[4] = (struct amp_fsm_row){.from = DONE, .event = FINISH, .to = DONE, .effects = 8};
    TAP_OK(!lints(sound, t, 5), "an effect without a name");
    m.n_events = 1;
    TAP_OK(amp_fsm_lint(&m, NULL) != 0, "fewer events than rows use");
    TAP_OK(!lints(sound, rows, 0), "a machine without rows");
}

static void print(void)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_error err;
    amp_buf_init(&out, 4096);
    TAP_OK(amp_fsm_print(&sound, "ndjson", &out, &err) == 0, "ndjson");
    const char *lf = memchr(out.data, '\n', out.len);
    struct amp_span first = {out.data, lf ? (size_t)(lf - out.data) : out.len};
    TAP_SPAN(first,
             "{\"machine\":\"demo\",\"from\":\"idle\",\"event\":\"start\",\"to\":\"busy\","
             "\"code\":null,\"effects\":[\"run\",\"tell\"],\"guard\":[\"ready\",\"!paused\"],"
             "\"extra\":false}",
             "a row as NDJSON");
    amp_buf_reset(&out);
    TAP_OK(amp_fsm_print(&sound, "table", &out, &err) == 0, "table");
    TAP_SPAN(amp_buf_span(&out),
             "demo (test): a \"demo\"\n"
             "starts in idle, ends in done; + marks rows that the source's table lacks\n"
             "  FROM  EVENT   IF             TO    EFFECTS   CODE\n"
             "  idle  start   ready,!paused  busy  run,tell\n"
             "  idle  start                  idle            not_ready\n"
             "  busy  finish                 done  tell\n"
             "+ busy  start                  busy\n",
             "the whole table");
    size_t before = out.len;
    TAP_OK(amp_fsm_print(&sound, "xml", &out, &err) == -1 && out.len == before, "no such format");
    out.max = 100;
    TAP_OK(amp_fsm_print(&sound, "dot", &out, &err) == -1, "a full buffer is an error");
}

int main(void)
{
    steps();
    lint();
    print();
    return tap_done();
}
