/* The effective policy of a TASK: see aop_policy.h. */
#include <amp/protocol/aop_policy.h>

#include "protocol/aop/aop.h"
#include "protocol/view/fill.h"

#define COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

#define X(id, path) path,
static const char *const sources[] = {AMP_AOP_SOURCE_LIST(X)};
#undef X
#define X(id) #id,
static const char *const networks[] = {AMP_AOP_NETWORK_LIST(X)};
static const char *const on_failures[] = {AMP_AOP_ON_FAILURE_LIST(X)};
static const char *const on_silences[] = {AMP_AOP_ON_SILENCE_LIST(X)};
#undef X

const char *amp_aop_source_name(enum amp_aop_source s)
{
    return s < COUNT(sources) ? sources[s] : "unknown";
}
const char *amp_aop_network_name(enum amp_aop_network n)
{
    return n < COUNT(networks) ? networks[n] : "unknown";
}
const char *amp_aop_on_failure_name(enum amp_aop_on_failure f)
{
    return f < COUNT(on_failures) ? on_failures[f] : "unknown";
}
const char *amp_aop_on_silence_name(enum amp_aop_on_silence s)
{
    return s < COUNT(on_silences) ? on_silences[s] : "unknown";
}

uint32_t amp_aop_at(const struct amp_view *v, uint32_t object, struct amp_span key)
{
    return object == AMP_TOK_NONE ? AMP_TOK_NONE : amp_tape_get(v->tape, object, key);
}

static bool is(const struct amp_view *v, uint32_t tok, enum amp_json_type type)
{
    return tok != AMP_TOK_NONE && v->tape->tok[tok].type == type;
}

/* Each of these overwrites what stood there where the member is there and fits. */
static void take_int(const struct amp_view *v, uint32_t object, struct amp_span key,
                     enum amp_aop_source source, struct amp_aop_int *out)
{
    uint32_t tok = amp_aop_at(v, object, key);
    int64_t n;
    if (is(v, tok, AMP_JSON_NUMBER) && amp_tok_int(v->tape, tok, &n))
        *out = (struct amp_aop_int){n, source};
}

static void take_flag(const struct amp_view *v, uint32_t object, struct amp_span key,
                      enum amp_aop_source source, struct amp_aop_flag *out)
{
    uint32_t tok = amp_aop_at(v, object, key);
    if (is(v, tok, AMP_JSON_TRUE) || is(v, tok, AMP_JSON_FALSE))
        *out = (struct amp_aop_flag){v->tape->tok[tok].type == AMP_JSON_TRUE, source};
}

static bool find_word(const struct amp_view *v, uint32_t object, struct amp_span key,
                      const char *const *words, unsigned n, unsigned *out)
{
    uint32_t tok = amp_aop_at(v, object, key);
    for (unsigned i = 0; is(v, tok, AMP_JSON_STRING) && i < n; i++)
        if (amp_tok_is(v->tape, tok, amp_span_str(words[i]))) {
            *out = i;
            return true;
        }
    return false;
}

static void take_word(const struct amp_view *v, uint32_t object, struct amp_span key,
                      const char *const *words, unsigned n, enum amp_aop_source source,
                      struct amp_aop_word *out)
{
    if (find_word(v, object, key, words, n, &out->value))
        out->source = source;
}

/* The more restrictive one counts; of two equal ones the first. */
static void narrow(const struct amp_view *v, uint32_t object, struct amp_span key,
                   enum amp_aop_source source, struct amp_aop_word *out)
{
    unsigned n;
    if (find_word(v, object, key, networks, COUNT(networks), &n) && n < out->value)
        *out = (struct amp_aop_word){n, source};
}

static void lower(const struct amp_view *v, uint32_t object, struct amp_span key,
                  enum amp_aop_source source, struct amp_aop_budget *out)
{
    uint32_t tok = amp_aop_at(v, object, key);
    double n;
    if (is(v, tok, AMP_JSON_NUMBER) && amp_tok_real(v->tape, tok, &n) &&
        (!out->limited || n < out->value))
        *out = (struct amp_aop_budget){true, n, tok, source};
}

static void take_execution(const struct amp_view *v, struct amp_aop_policy *p)
{
    uint32_t e = amp_aop_at(v, 0, AMP_SPAN("execution_policy"));
    take_int(v, e, AMP_SPAN("timeout_seconds"), AMP_AOP_FROM_EXECUTION, &p->timeout_seconds);
    take_int(v, e, AMP_SPAN("max_retries"), AMP_AOP_FROM_EXECUTION, &p->max_retries);
    take_word(v, e, AMP_SPAN("on_failure"), on_failures, COUNT(on_failures), AMP_AOP_FROM_EXECUTION,
              &p->on_failure);
    take_flag(v, e, AMP_SPAN("abort_on_first_critical_error"), AMP_AOP_FROM_EXECUTION,
              &p->abort_on_first_critical_error);
    take_flag(v, e, AMP_SPAN("auto_terminate_on_timeout"), AMP_AOP_FROM_EXECUTION,
              &p->auto_terminate_on_timeout);
    uint32_t tok = amp_aop_at(v, e, AMP_SPAN("retry_backoff_seconds"));
    if (is(v, tok, AMP_JSON_ARRAY))
        p->backoff = tok;
    uint32_t h = amp_aop_at(v, e, AMP_SPAN("heartbeat"));
    take_flag(v, h, AMP_SPAN("enabled"), AMP_AOP_FROM_EXECUTION, &p->heartbeat);
    take_int(v, h, AMP_SPAN("max_missed_beats"), AMP_AOP_FROM_EXECUTION, &p->heartbeat_missed_most);
    tok = amp_aop_at(v, h, AMP_SPAN("interval_seconds"));
    if (is(v, tok, AMP_JSON_NUMBER))
        amp_tok_real(v->tape, tok, &p->heartbeat_seconds);
    take_word(v, h, AMP_SPAN("on_heartbeat_failure"), on_silences, COUNT(on_silences),
              AMP_AOP_FROM_EXECUTION, &p->on_heartbeat_failure);
}

/* What guard rails say overrides the execution policy. */
static void take_guard(const struct amp_view *v, struct amp_aop_policy *p)
{
    uint32_t g = amp_aop_at(v, 0, AMP_SPAN("guard_rails"));
    take_int(v, g, AMP_SPAN("timeout_seconds"), AMP_AOP_FROM_GUARD, &p->timeout_seconds);
    take_flag(v, g, AMP_SPAN("abort_on_first_critical_error"), AMP_AOP_FROM_GUARD,
              &p->abort_on_first_critical_error);
    take_flag(v, g, AMP_SPAN("auto_terminate_on_timeout"), AMP_AOP_FROM_GUARD,
              &p->auto_terminate_on_timeout);
    take_flag(v, g, AMP_SPAN("require_minimal_report"), AMP_AOP_FROM_GUARD, &p->minimal_report);
    take_flag(v, g, AMP_SPAN("require_final_signal"), AMP_AOP_FROM_GUARD, &p->final_signal);
}

void amp_aop_files(const struct amp_view *v, struct amp_aop_paths *read,
                   struct amp_aop_paths *write)
{
    uint32_t task = amp_aop_at(v, 0, AMP_SPAN("task"));
    uint32_t target = amp_aop_at(v, 0, AMP_SPAN("target"));
    uint32_t can = amp_aop_at(v, target, AMP_SPAN("capabilities"));
    uint32_t may = amp_aop_at(v, task, AMP_SPAN("access"));
    uint32_t files = amp_aop_at(v, may, AMP_SPAN("filesystem"));
    uint32_t constraints = amp_aop_at(v, task, AMP_SPAN("constraints"));
    struct amp_aop_flag reaches = {true, AMP_AOP_FROM_DEFAULT};
    struct amp_aop_flag read_only = {false, AMP_AOP_FROM_DEFAULT};
    *read = *write = (struct amp_aop_paths){false, AMP_TOK_NONE, AMP_AOP_FROM_DEFAULT};
    if (is(v, files, AMP_JSON_OBJECT)) {
        *read = (struct amp_aop_paths){true, amp_aop_at(v, files, AMP_SPAN("read_paths")),
                                       AMP_AOP_FROM_ACCESS};
        *write = (struct amp_aop_paths){true, amp_aop_at(v, files, AMP_SPAN("write_paths")),
                                        AMP_AOP_FROM_ACCESS};
    }
    take_flag(v, can, AMP_SPAN("file_system_access"), AMP_AOP_FROM_CAPABILITIES, &reaches);
    take_flag(v, constraints, AMP_SPAN("read_only_mode"), AMP_AOP_FROM_CONSTRAINTS, &read_only);
    if (!reaches.value)
        *read = *write = (struct amp_aop_paths){true, AMP_TOK_NONE, AMP_AOP_FROM_CAPABILITIES};
    else if (read_only.value)
        *write = (struct amp_aop_paths){true, AMP_TOK_NONE, AMP_AOP_FROM_CONSTRAINTS};
}

/* The capability has a default, the others limit only where they are given. */
static void take_network(const struct amp_view *v, uint32_t task, uint32_t constraints,
                         struct amp_aop_policy *p)
{
    uint32_t target = amp_aop_at(v, 0, AMP_SPAN("target"));
    take_word(v, amp_aop_at(v, target, AMP_SPAN("capabilities")), AMP_SPAN("network_access"),
              networks, COUNT(networks), AMP_AOP_FROM_CAPABILITIES, &p->network);
    narrow(v, amp_aop_at(v, task, AMP_SPAN("access")), AMP_SPAN("network"), AMP_AOP_FROM_ACCESS,
           &p->network);
    narrow(v, constraints, AMP_SPAN("network_access"), AMP_AOP_FROM_CONSTRAINTS, &p->network);
}

void amp_aop_policy(const struct amp_view *v, struct amp_aop_policy *p)
{
    static const struct amp_aop_policy defaults = {
        .timeout_seconds = {1800, AMP_AOP_FROM_DEFAULT},
        .backoff = AMP_TOK_NONE,
        .auto_terminate_on_timeout = {true, AMP_AOP_FROM_DEFAULT},
        .minimal_report = {true, AMP_AOP_FROM_DEFAULT},
        .final_signal = {true, AMP_AOP_FROM_DEFAULT},
        .heartbeat_seconds = 120,
        .heartbeat_missed_most = {3, AMP_AOP_FROM_DEFAULT},
        .network = {AMP_AOP_NETWORK_RESTRICTED, AMP_AOP_FROM_DEFAULT},
        .cost_usd = {.tok = AMP_TOK_NONE},
        .tokens = {.tok = AMP_TOK_NONE},
    };
    *p = defaults;
    uint32_t task = amp_aop_at(v, 0, AMP_SPAN("task"));
    uint32_t constraints = amp_aop_at(v, task, AMP_SPAN("constraints"));
    uint32_t budgets = amp_aop_at(v, task, AMP_SPAN("budgets"));
    take_execution(v, p);
    take_guard(v, p);
    take_flag(v, constraints, AMP_SPAN("read_only_mode"), AMP_AOP_FROM_CONSTRAINTS, &p->read_only);
    take_flag(v, constraints, AMP_SPAN("delegation_allowed"), AMP_AOP_FROM_CONSTRAINTS,
              &p->delegation);
    amp_aop_files(v, &p->read, &p->write);
    take_network(v, task, constraints, p);
    lower(v, constraints, AMP_SPAN("max_cost_usd"), AMP_AOP_FROM_CONSTRAINTS, &p->cost_usd);
    lower(v, budgets, AMP_SPAN("max_cost_usd"), AMP_AOP_FROM_BUDGETS, &p->cost_usd);
    lower(v, constraints, AMP_SPAN("max_tokens"), AMP_AOP_FROM_CONSTRAINTS, &p->tokens);
    lower(v, budgets, AMP_SPAN("max_tokens"), AMP_AOP_FROM_BUDGETS, &p->tokens);
}

bool amp_aop_within(const struct amp_aop_budget *b, double spent)
{
    return !b->limited || spent <= b->value;
}

static double number_at(const struct amp_view *v, uint32_t object, struct amp_span key, double none)
{
    uint32_t tok = amp_aop_at(v, object, key);
    double n;
    return is(v, tok, AMP_JSON_NUMBER) && amp_tok_real(v->tape, tok, &n) ? n : none;
}

const char *amp_aop_response_fault(const struct amp_aop_policy *p, const struct amp_view *r)
{
    uint32_t cost = amp_aop_at(r, 0, AMP_SPAN("cost_tracking"));
    double usd = number_at(r, cost, AMP_SPAN("estimated_cost_usd"), 0);
    usd = number_at(r, cost, AMP_SPAN("actual_cost_usd"), usd);
    double tokens = number_at(r, cost, AMP_SPAN("tokens_input"), 0) +
                    number_at(r, cost, AMP_SPAN("tokens_output"), 0);
    return amp_aop_within(&p->cost_usd, usd) && amp_aop_within(&p->tokens, tokens)
               ? NULL
               : "E_COST_LIMIT_EXCEEDED";
}

bool amp_aop_lost(const struct amp_aop_policy *p, int64_t last_ms, int64_t now_ms)
{
    double silence = (double)(now_ms - last_ms) / 1000;
    return p->heartbeat.value &&
           silence >= p->heartbeat_seconds * (double)p->heartbeat_missed_most.value;
}
