/* Lanes: limits, shares, nobody left behind, and the order of what belongs together. */
#include "message/delivery/inbox/lane.h"

#include <stdlib.h>

#include "../tap.h"

static struct amp_lane_rules rules(void)
{
    return amp_lane_rules_default;
}

static void by_priority(void)
{
    struct amp_lane_rules r = rules();
    static const struct {
        int64_t priority;
        enum amp_lane lane;
    } want[] = {{-20, AMP_LANE_PRIVILEGED}, {-10, AMP_LANE_PRIVILEGED}, {-9, AMP_LANE_STANDARD},
                {0, AMP_LANE_STANDARD},     {9, AMP_LANE_STANDARD},     {10, AMP_LANE_BULK},
                {20, AMP_LANE_BULK}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct amp_view v = {.priority = want[i].priority};
        TAP_INT(amp_lane_of(&r, &v), want[i].lane, "the lane of a priority");
    }
    TAP_INT(amp_lane_find(AMP_SPAN("BULK")), AMP_LANE_BULK, "found by its name");
    TAP_INT(amp_lane_find(AMP_SPAN("bulk")), AMP_LANE_COUNT, "exactly");
    TAP_STR(amp_lane_name(AMP_LANE_PRIVILEGED), "PRIVILEGED", "named");
}

static void urgent_limit(void)
{
    struct amp_lane_rules r = rules();
    struct amp_lanes l;
    r.urgent_rate = 10;
    r.urgent_burst = 5;
    amp_lanes_init(&l, &r, 1000);
    int passed = 0;
    for (int i = 0; i < 20; i++)
        passed += amp_lanes_admit(&l, AMP_LANE_PRIVILEGED, 1000) == AMP_LANE_PRIVILEGED;
    TAP_INT(passed, 5, "the burst passes");
    TAP_INT((int64_t)l.overflowed, 15, "the rest joins the others");
    TAP_INT((int64_t)l.bursts, 1, "one burst is counted");
    passed = 0;
    for (int64_t t = 1000; t < 3000; t += 10)
        passed += amp_lanes_admit(&l, AMP_LANE_PRIVILEGED, t) == AMP_LANE_PRIVILEGED;
    TAP_INT(passed, 19, "then the rate");
    TAP_INT((int64_t)l.bursts, 1, "which is one burst still");
    TAP_INT(amp_lanes_admit(&l, AMP_LANE_PRIVILEGED, 900), AMP_LANE_STANDARD,
            "a clock that goes back gives nothing");
    passed = 0;
    for (int i = 0; i < 20; i++)
        passed += amp_lanes_admit(&l, AMP_LANE_PRIVILEGED, INT64_MAX / 2) == AMP_LANE_PRIVILEGED;
    TAP_INT(passed, 5, "never more than the burst is saved");
    TAP_INT((int64_t)l.bursts, 2, "the second burst");
    TAP_INT(amp_lanes_admit(&l, AMP_LANE_BULK, 0), AMP_LANE_BULK, "the others are not limited");
    r.urgent_rate = r.urgent_burst = 0;
    amp_lanes_init(&l, &r, 0);
    TAP_INT(amp_lanes_admit(&l, AMP_LANE_PRIVILEGED, 1 << 20), AMP_LANE_STANDARD,
            "a limit of none: no urgent lane");
}

/* All lanes wait without end: what each gets of `turns`. */
static void shares(const struct amp_lane_rules *r, const bool *any, const size_t *bytes, int turns,
                   uint64_t *count, uint64_t *sum)
{
    struct amp_lanes l;
    amp_lanes_init(&l, r, 0);
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        count[i] = sum[i] = 0;
    for (int t = 0; t < turns; t++) {
        struct amp_lane_head heads[AMP_LANE_COUNT];
        for (int i = 0; i < AMP_LANE_COUNT; i++)
            heads[i] = (struct amp_lane_head){.any = any[i], .bytes = bytes[i], .since_ms = t};
        struct amp_lane_turn turn = amp_lanes_next(&l, heads, t);
        if (turn.lane == AMP_LANE_COUNT)
            return;
        count[turn.lane]++;
        sum[turn.lane] += bytes[turn.lane];
    }
}

static void fairness(void)
{
    struct amp_lane_rules r = rules();
    uint64_t n[AMP_LANE_COUNT], sum[AMP_LANE_COUNT];
    const bool all[] = {true, true, true}, below[] = {false, true, true},
               none[] = {false, false, false}, alone[] = {true, false, false};
    const size_t same[] = {500, 500, 500}, unlike[] = {500, 100, 5000};
    shares(&r, all, same, 9000, n, sum);
    TAP_INT((int64_t)n[AMP_LANE_PRIVILEGED], 8000, "urgent first, eight in a row");
    TAP_OK(n[AMP_LANE_STANDARD] == 800 && n[AMP_LANE_BULK] == 200, "the others share the rest");
    shares(&r, below, same, 1000, n, sum);
    TAP_OK(n[AMP_LANE_STANDARD] == 800 && n[AMP_LANE_BULK] == 200, "four to one");
    shares(&r, below, unlike, 100000, n, sum);
    TAP_OK(sum[AMP_LANE_STANDARD] > sum[AMP_LANE_BULK] * 38 / 10 &&
               sum[AMP_LANE_STANDARD] < sum[AMP_LANE_BULK] * 42 / 10,
           "counted in bytes, not in messages");
    shares(&r, alone, same, 100, n, sum);
    TAP_INT((int64_t)n[AMP_LANE_PRIVILEGED], 100, "nobody else waits: no pause");
    shares(&r, none, same, 1, n, sum);
    TAP_INT((int64_t)(n[0] + n[1] + n[2]), 0, "nobody waits");
}

/* A lane that was empty does not save up a claim. */
static void no_saving(void)
{
    struct amp_lane_rules r = rules();
    struct amp_lanes l;
    amp_lanes_init(&l, &r, 0);
    struct amp_lane_head heads[AMP_LANE_COUNT] = {
        [AMP_LANE_STANDARD] = {.any = true, .bytes = 100}};
    for (int i = 0; i < 1000; i++)
        amp_lanes_next(&l, heads, i);
    heads[AMP_LANE_BULK] = (struct amp_lane_head){.any = true, .bytes = 100};
    int bulk = 0;
    for (int i = 0; i < 100; i++)
        bulk += amp_lanes_next(&l, heads, i).lane == AMP_LANE_BULK;
    TAP_OK(bulk >= 19 && bulk <= 21, "its share from now on, not for the past");
}

static void starvation(void)
{
    struct amp_lane_rules r = rules();
    struct amp_lanes l;
    r.starved_ms = 100;
    amp_lanes_init(&l, &r, 0);
    struct amp_lane_head heads[AMP_LANE_COUNT] = {
        [AMP_LANE_PRIVILEGED] = {.any = true, .bytes = 1, .since_ms = 0},
        [AMP_LANE_BULK] = {.any = true, .bytes = 1, .since_ms = 0}};
    struct amp_lane_turn t;
    int64_t now = 0;
    do {
        t = amp_lanes_next(&l, heads, now += 20);
        heads[AMP_LANE_PRIVILEGED].since_ms = now;
    } while (t.lane == AMP_LANE_PRIVILEGED && now < 10000);
    TAP_OK(t.lane == AMP_LANE_BULK && t.starved && t.waited_ms == 180, "told, with how long");
    TAP_OK(l.starved == 1 && l.longest_ms == 180, "and counted");
    amp_lanes_init(&l, &r, 0);
    heads[AMP_LANE_PRIVILEGED].any = false;
    t = amp_lanes_next(&l, heads, 10000);
    TAP_OK(!t.starved, "a reader that was slow starved nobody");
}

/* Random arrivals and turns: the model keeps every message, and the properties hold. */
static void random_runs(void)
{
    enum { MOST = 64, RUNS = 200, STEPS = 2000 };
    unsigned seed = 1;
    bool bounded = true, empty_only = true, limited = true, in_order = true;
    for (int run = 0; run < RUNS; run++) {
        struct amp_lane_rules r = rules();
        struct amp_lanes l;
        struct amp_lane_keys keys = {0};
        struct {
            int64_t since[MOST];
            uint64_t key[MOST];
            int id[MOST], n;
        } wait[AMP_LANE_COUNT] = {0};
        int last_of_key[8] = {0}, next_id = 1;
        r.urgent_rate = (uint32_t)(rand_r(&seed) % 50);
        r.urgent_burst = (uint32_t)(1 + rand_r(&seed) % 10);
        r.urgent_run = (uint32_t)(1 + rand_r(&seed) % 6);
        for (int i = 0; i < AMP_LANE_COUNT; i++)
            r.weight[i] = (uint32_t)(1 + rand_r(&seed) % 9);
        amp_lanes_init(&l, &r, 0);
        int64_t now = 0;
        uint64_t admitted = 0;
        uint32_t urgent_row = 0;
        for (int s = 0; s < STEPS; s++) {
            now += rand_r(&seed) % 5;
            enum amp_lane lane = (enum amp_lane)(rand_r(&seed) % AMP_LANE_COUNT);
            bool wanted = lane == AMP_LANE_PRIVILEGED;
            if (rand_r(&seed) % 2 && wait[lane].n < MOST && wait[AMP_LANE_STANDARD].n < MOST) {
                uint64_t key = (uint64_t)(rand_r(&seed) % 8);
                lane = amp_lanes_admit(&l, lane, now);
                admitted += wanted && lane == AMP_LANE_PRIVILEGED;
                struct amp_error err;
                if (amp_lane_keys_add(&keys, key, &lane, &err) < 0)
                    break;
                if (wait[lane].n == MOST) {
                    amp_lane_keys_drop(&keys, key);
                    continue;
                }
                int at = wait[lane].n++;
                wait[lane].since[at] = now;
                wait[lane].key[at] = key;
                wait[lane].id[at] = next_id++;
                continue;
            }
            struct amp_lane_head heads[AMP_LANE_COUNT];
            bool others = wait[AMP_LANE_STANDARD].n + wait[AMP_LANE_BULK].n > 0;
            int all = 0;
            for (int i = 0; i < AMP_LANE_COUNT; i++) {
                all += wait[i].n;
                heads[i] = (struct amp_lane_head){
                    .any = wait[i].n > 0, .bytes = 10, .since_ms = wait[i].since[0]};
            }
            struct amp_lane_turn t = amp_lanes_next(&l, heads, now);
            if ((t.lane == AMP_LANE_COUNT) != (all == 0))
                empty_only = false;
            if (t.lane == AMP_LANE_COUNT)
                continue;
            urgent_row = t.urgent && others ? urgent_row + 1 : 0;
            if (urgent_row > r.urgent_run || wait[t.lane].n == 0)
                bounded = false;
            uint64_t key = wait[t.lane].key[0];
            if (key && wait[t.lane].id[0] < last_of_key[key])
                in_order = false;
            last_of_key[key] = wait[t.lane].id[0];
            amp_lane_keys_drop(&keys, key);
            wait[t.lane].n--;
            for (int i = 0; i < wait[t.lane].n; i++) {
                wait[t.lane].since[i] = wait[t.lane].since[i + 1];
                wait[t.lane].key[i] = wait[t.lane].key[i + 1];
                wait[t.lane].id[i] = wait[t.lane].id[i + 1];
            }
        }
        if ((int64_t)admitted > r.urgent_burst + now * r.urgent_rate / 1000 + 1)
            limited = false;
        int left = 0;
        for (int i = 0; i < AMP_LANE_COUNT; i++)
            for (int m = 0; m < wait[i].n; m++) {
                left += wait[i].key[m] != 0;
                amp_lane_keys_drop(&keys, wait[i].key[m]);
            }
        if (keys.n != 0 || left < 0)
            in_order = false;
        amp_lane_keys_release(&keys);
    }
    TAP_OK(bounded, "never more urgent ones in a row than said while others wait");
    TAP_OK(empty_only, "somebody goes whenever somebody waits");
    TAP_OK(limited, "never more urgent ones than rate and burst allow");
    TAP_OK(in_order, "what has one key keeps its order, and no key is left over");
}

int main(void)
{
    by_priority();
    urgent_limit();
    fairness();
    no_saving();
    starvation();
    random_runs();
    return tap_done();
}
