/* Retries: a budget and growing waits. With full jitter, attempts that failed together are not
 * repeated together. */
#include "message/delivery/operation/retry.h"

#include <string.h>
#include <strings.h>

#include <amp/base/num.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "message/protocol/delivery.h"

#define BUDGET_MAX 1000
#define WAIT_MAX   ((int64_t)7 * 24 * 3600 * 1000)

static const struct {
    const char *word, *doc;
} verdicts[] = {
#define X(id, word, doc) [AMP_RETRY_##id] = {word, doc},
    AMP_RETRY_VERDICTS(X)
#undef X
};

const char *amp_retry_word(enum amp_retry_verdict v)
{
    return v < AMP_RETRY_COUNT ? verdicts[v].word : "unknown";
}

const char *amp_retry_why(enum amp_retry_verdict v)
{
    return v < AMP_RETRY_COUNT ? verdicts[v].doc : "unknown";
}

void amp_retry_defaults(struct amp_retry_rules *out)
{
    *out = (struct amp_retry_rules){0};
    for (enum amp_protocol p = 0; p < AMP_PROTO_COUNT; p++)
        out->of[p] = amp_delivery_of(p)->retries;
}

/* The protocols of "PROTOCOL=…": one; without it, all. */
static int protocols_parse(struct amp_span *text, int *from, int *to, struct amp_error *err)
{
    const char *eq = memchr(text->p, '=', text->n);
    *from = AMP_PROTO_NONE;
    *to = AMP_PROTO_COUNT - 1;
    if (!eq)
        return 0;
    struct amp_span name = {text->p, (size_t)(eq - text->p)};
    *from = *to = (int)amp_protocol_find(name);
    if (*from == AMP_PROTO_NONE)
        return amp_fail(err, AMP_USAGE, bad_protocol,
                        "%.*s is not one of amp, sw4rm, aop, aof, rtp", (int)name.n, name.p);
    *text = (struct amp_span){eq + 1, text->n - name.n - 1};
    return 0;
}

int amp_retry_set_budget(struct amp_retry_rules *r, const char *text, struct amp_error *err)
{
    struct amp_span t = amp_span_str(text);
    int from, to;
    int64_t n;
    if (protocols_parse(&t, &from, &to, err) < 0 || amp_num_parse(t, 0, BUDGET_MAX, &n, err) < 0)
        return -1;
    for (int p = from; p <= to; p++)
        r->of[p].budget = (uint32_t)n;
    return 0;
}

static int waits_parse(struct amp_span t, struct amp_retry_policy *p, struct amp_error *err)
{
    const char *end = t.p + t.n;
    for (p->n_list = 0; t.p <= end; t.p++) {
        const char *comma = memchr(t.p, ',', (size_t)(end - t.p));
        t.n = (size_t)((comma ? comma : end) - t.p);
        if (p->n_list == AMP_RETRY_WAITS_MAX)
            return amp_fail(err, AMP_USAGE, bad_backoff, "more than %d waits", AMP_RETRY_WAITS_MAX);
        if (amp_num_duration(t, 0, WAIT_MAX, &p->list_ms[p->n_list++], err) < 0)
            return -1;
        t.p += t.n;
    }
    return 0;
}

static int range_parse(struct amp_span t, const char *dots, struct amp_retry_policy *p,
                       struct amp_error *err)
{
    struct amp_span least = {t.p, (size_t)(dots - t.p)};
    struct amp_span most = {dots + 2, t.n - least.n - 2};
    p->n_list = 0;
    return amp_num_duration(least, 1, WAIT_MAX, &p->base_ms, err) < 0
               ? -1
               : amp_num_duration(most, p->base_ms, WAIT_MAX, &p->cap_ms, err);
}

int amp_retry_set_backoff(struct amp_retry_rules *r, const char *text, struct amp_error *err)
{
    struct amp_span t = amp_span_str(text);
    struct amp_retry_policy p = {0};
    int from, to;
    if (protocols_parse(&t, &from, &to, err) < 0)
        return -1;
    const char *dots = strstr(t.p, "..");
    if ((dots ? range_parse(t, dots, &p, err) : waits_parse(t, &p, err)) < 0)
        return -1;
    for (int i = from; i <= to; i++) {
        p.budget = r->of[i].budget;
        p.steady = r->of[i].steady;
        r->of[i] = p;
    }
    return 0;
}

/* Codes after which another attempt may succeed, and codes that need none. All others are terminal.
 */
enum amp_failure amp_retry_class(struct amp_span code)
{
    static const struct {
        const char *code;
        enum amp_failure class;
    } codes[] = {
        {AMP_CODE(buffer_full), AMP_FAILURE_PASSING},
        {AMP_CODE(rate_limited), AMP_FAILURE_PASSING},
        {AMP_CODE(no_route), AMP_FAILURE_PASSING},
        {AMP_CODE(ack_timeout), AMP_FAILURE_PASSING},
        {AMP_CODE(agent_unavailable), AMP_FAILURE_PASSING},
        {AMP_CODE(agent_shutdown), AMP_FAILURE_PASSING},
        {AMP_CODE(capability_unavailable), AMP_FAILURE_PASSING},
        {"overloaded", AMP_FAILURE_PASSING},
        {AMP_CODE(tool_timeout), AMP_FAILURE_PASSING},
        {AMP_CODE(forced_preemption), AMP_FAILURE_PASSING},
        {AMP_CODE(internal_error), AMP_FAILURE_PASSING},
        {AMP_CODE(partial_delivery), AMP_FAILURE_PASSING},
        {"transport_error", AMP_FAILURE_PASSING},
        {AMP_CODE(timeout), AMP_FAILURE_PASSING},
        {AMP_CODE(E_TIMEOUT), AMP_FAILURE_PASSING},
        {AMP_CODE(E_HEARTBEAT_FAILURE), AMP_FAILURE_PASSING},
        {AMP_CODE(E_AGENT_NOT_FOUND), AMP_FAILURE_PASSING},
        {AMP_CODE(E_MODEL_UNAVAILABLE), AMP_FAILURE_PASSING},
        {AMP_CODE(E_PROCESS_CRASH), AMP_FAILURE_PASSING},
        {AMP_CODE(E_MALFORMED_RESPONSE), AMP_FAILURE_PASSING},
        {AMP_CODE(E_UNKNOWN), AMP_FAILURE_PASSING},
        {"redirect", AMP_FAILURE_NONE},
        {AMP_CODE(duplicate_detected), AMP_FAILURE_NONE},
        {AMP_CODE(already_in_progress), AMP_FAILURE_NONE},
        {AMP_CODE(already_completed), AMP_FAILURE_NONE},
        {AMP_CODE(cancelled), AMP_FAILURE_NONE},
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code.n == strlen(codes[i].code) && strncasecmp(code.p, codes[i].code, code.n) == 0)
            return codes[i].class;
    return AMP_FAILURE_TERMINAL;
}

static int64_t wait_of(const struct amp_retry_policy *p, uint32_t retries, uint64_t dice)
{
    if (p->n_list > 0)
        return p->list_ms[retries < p->n_list ? retries : p->n_list - 1];
    const struct amp_backoff waits = {.first_ms = p->base_ms, .most_ms = p->cap_ms};
    int64_t most = amp_backoff_nth(&waits, retries);
    return p->steady ? most : amp_backoff_jitter(most, dice);
}

enum amp_retry_verdict amp_retry_decide(const struct amp_retry_policy *p,
                                        const struct amp_retry_facts *f, int64_t *at_ms)
{
    if (f->terminal)
        return AMP_RETRY_TERMINAL;
    if (f->tool_call && !f->idempotent)
        return AMP_RETRY_UNSAFE;
    if (f->retries >= p->budget)
        return AMP_RETRY_EXHAUSTED;
    int64_t wait = wait_of(p, f->retries, f->dice);
    int64_t at = wait > INT64_MAX - f->now_ms ? INT64_MAX : f->now_ms + wait;
    if (f->expires_ms > 0 && at >= f->expires_ms)
        return AMP_RETRY_EXPIRED;
    *at_ms = at;
    return AMP_RETRY_AGAIN;
}
