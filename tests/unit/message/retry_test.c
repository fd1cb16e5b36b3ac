/* The policy of retries: budget, waits, what is never sent again. */
#include "../tap.h"
#include "message/delivery/operation/retry.h"

static const struct amp_retry_policy grows = {.budget = 40, .base_ms = 1000, .cap_ms = 10000};

static int64_t at(const struct amp_retry_policy *p, uint32_t retries, uint64_t dice)
{
    struct amp_retry_facts f = {.retries = retries, .now_ms = 5, .dice = dice};
    int64_t ms = -1;
    return amp_retry_decide(p, &f, &ms) == AMP_RETRY_AGAIN ? ms : -1;
}

static void texts(void)
{
    struct amp_retry_rules r;
    struct amp_error err;
    amp_retry_defaults(&r);
    TAP_OK(r.of[AMP_PROTO_AOP].n_list == 3 && r.of[AMP_PROTO_AOP].list_ms[1] == 120000 &&
               r.of[AMP_PROTO_AOF].steady && r.of[AMP_PROTO_SW4RM].budget == 0,
           "each protocol's waits, and nothing is sent again");
    TAP_INT(amp_retry_set_budget(&r, "3", &err), 0, "a budget of all");
    TAP_INT(amp_retry_set_budget(&r, "rtp=5", &err), 0, "and of one");
    TAP_OK(r.of[AMP_PROTO_AMP].budget == 3 && r.of[AMP_PROTO_RTP].budget == 5, "are kept");
    TAP_INT(amp_retry_set_backoff(&r, "amp=2s..1m", &err), 0, "a range");
    TAP_OK(r.of[AMP_PROTO_AMP].base_ms == 2000 && r.of[AMP_PROTO_AMP].cap_ms == 60000 &&
               r.of[AMP_PROTO_AMP].budget == 3 && r.of[AMP_PROTO_RTP].base_ms == 1000,
           "of one protocol");
    TAP_INT(amp_retry_set_backoff(&r, "1,2m,500ms", &err), 0, "a list");
    TAP_OK(r.of[AMP_PROTO_AMP].n_list == 3 && r.of[AMP_PROTO_AMP].list_ms[2] == 500, "of all");
    static const char *const bad[] = {"", "x", "-1", "1001", "smtp=3", "amp="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        TAP_OK(amp_retry_set_budget(&r, bad[i], &err) < 0, "no budget: \"%s\"", bad[i]);
    static const char *const odd[] = {
        "",     "..",    "5s..",    "5s..1s",
        "1,,2", "rtp=,", "smtp=1s", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        TAP_OK(amp_retry_set_backoff(&r, odd[i], &err) < 0, "no waits: \"%s\"", odd[i]);
}

static void classes(void)
{
    TAP_INT(amp_retry_class(AMP_SPAN("BUFFER_FULL")), AMP_FAILURE_PASSING, "a full buffer");
    TAP_INT(amp_retry_class(AMP_SPAN("no_route")), AMP_FAILURE_PASSING, "no route");
    TAP_INT(amp_retry_class(AMP_SPAN("permission_denied")), AMP_FAILURE_TERMINAL, "no permission");
    TAP_INT(amp_retry_class(AMP_SPAN("ttl_expired")), AMP_FAILURE_TERMINAL, "too late");
    TAP_INT(amp_retry_class(AMP_SPAN("")), AMP_FAILURE_TERMINAL, "nothing said");
    TAP_INT(amp_retry_class(AMP_SPAN("ALREADY_IN_PROGRESS")), AMP_FAILURE_NONE, "at work");
}

int main(void)
{
    texts();
    classes();
    static const int64_t waits[] = {30000, 120000, 300000};
    static const int64_t most[] = {1000, 2000, 4000, 8000, 10000, 10000};
    const struct amp_retry_policy listed = {
        .budget = 5, .list_ms = {30000, 120000, 300000}, .n_list = 3};
    const struct amp_retry_policy steady = {
        .budget = 9, .base_ms = 1000, .cap_ms = 5000, .steady = true};
    for (uint32_t i = 0; i < 6; i++) {
        TAP_INT(at(&grows, i, 0), 5, "at once at the least");
        TAP_INT(at(&grows, i, (uint64_t)most[i]), 5 + most[i], "twice as long each time");
        TAP_INT(at(&grows, i, (uint64_t)most[i] + 1), 5, "and no longer");
    }
    TAP_OK(at(&grows, 39, UINT64_MAX) <= 10005, "up to the cap");
    for (uint32_t i = 0; i < 6; i++)
        TAP_INT(at(&steady, i, 77 * i), 5 + (most[i] < 5000 ? most[i] : 5000), "without dice");
    for (uint32_t i = 0; i < 5; i++)
        TAP_INT(at(&listed, i, 12345), 5 + waits[i < 3 ? i : 2], "a list of waits, as it stands");

    static const struct {
        const char *what;
        struct amp_retry_facts f;
        enum amp_retry_verdict want;
    } cases[] = {
        {"the budget is used up", {.retries = 5}, AMP_RETRY_EXHAUSTED},
        {"one is left", {.retries = 4}, AMP_RETRY_AGAIN},
        {"a terminal error", {.terminal = true}, AMP_RETRY_TERMINAL},
        {"a tool call of which nothing is said", {.tool_call = true}, AMP_RETRY_UNSAFE},
        {"an idempotent one", {.tool_call = true, .idempotent = true}, AMP_RETRY_AGAIN},
        {"expires before", {.now_ms = 100, .expires_ms = 30100}, AMP_RETRY_EXPIRED},
        {"expires just after", {.now_ms = 100, .expires_ms = 30101}, AMP_RETRY_AGAIN},
        {"the end of time", {.now_ms = INT64_MAX - 1}, AMP_RETRY_AGAIN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ms = -7;
        enum amp_retry_verdict got = amp_retry_decide(&listed, &cases[i].f, &ms);
        TAP_STR(amp_retry_word(got), amp_retry_word(cases[i].want), cases[i].what);
        TAP_OK((got == AMP_RETRY_AGAIN) == (ms != -7), "a time only with another attempt");
    }
    return tap_done();
}
