/* The effective policy of a TASK: see aop_policy.h. */
#include <amp/protocol/aop_policy.h>

#include <stddef.h>

#include "base/codes.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/spec.h"

#define X(id, path) path,
static const char *const sources[] = {AMP_AOP_SOURCE_LIST(X)};
#undef X
#define X(id) #id,
static const char *const network_list[] = {AMP_AOP_NETWORK_LIST(X)};
static const char *const on_failure_list[] = {AMP_AOP_ON_FAILURE_LIST(X)};
static const char *const on_silence_list[] = {AMP_AOP_ON_SILENCE_LIST(X)};
#undef X
static const struct amp_word_list networks = {network_list, AMP_SPEC_COUNT(network_list)};
static const struct amp_word_list on_failures = {on_failure_list, AMP_SPEC_COUNT(on_failure_list)};
static const struct amp_word_list on_silences = {on_silence_list, AMP_SPEC_COUNT(on_silence_list)};

static const char *word_name(const struct amp_word_list *words, unsigned i)
{
    return i < words->n ? words->word[i] : "unknown";
}

const char *amp_aop_source_name(enum amp_aop_source s)
{
    return s < AMP_SPEC_COUNT(sources) ? sources[s] : "unknown";
}
const char *amp_aop_network_name(enum amp_aop_network n)
{
    return word_name(&networks, n);
}
const char *amp_aop_on_failure_name(enum amp_aop_on_failure f)
{
    return word_name(&on_failures, f);
}
const char *amp_aop_on_silence_name(enum amp_aop_on_silence s)
{
    return word_name(&on_silences, s);
}

/* The objects of a TASK that have parts of its policy. */
enum policy_object {
    EXECUTION,
    HEARTBEAT,
    GUARD,
    CAPABILITIES,
    ACCESS,
    CONSTRAINTS,
    BUDGETS,
    OBJECTS
};
static const struct {
    struct amp_span pointer;
    enum amp_aop_source source;
} objects[OBJECTS] = {
    [EXECUTION] = {AMP_AT("/execution_policy"), AMP_AOP_FROM_EXECUTION},
    [HEARTBEAT] = {AMP_AT("/execution_policy/heartbeat"), AMP_AOP_FROM_EXECUTION},
    [GUARD] = {AMP_AT("/guard_rails"), AMP_AOP_FROM_GUARD},
    [CAPABILITIES] = {AMP_AT("/target/capabilities"), AMP_AOP_FROM_CAPABILITIES},
    [ACCESS] = {AMP_AT("/task/access"), AMP_AOP_FROM_ACCESS},
    [CONSTRAINTS] = {AMP_AT("/task/constraints"), AMP_AOP_FROM_CONSTRAINTS},
    [BUDGETS] = {AMP_AT("/task/budgets"), AMP_AOP_FROM_BUDGETS},
};

/* The values of the policy. A later row replaces the value of an earlier one, except that the most
 * restrictive network and the lowest budget apply; of two equal ones the first. */
static const struct policy_row {
    enum policy_object object;
    struct amp_span key;
    enum { AS_INT, AS_FLAG, AS_WORD, AS_REAL, AS_LIST, AS_NETWORK, AS_BUDGET } as;
    uint16_t at; /* in struct amp_aop_policy */
    const struct amp_word_list *words;
} rows[] = {
#define P(member) offsetof(struct amp_aop_policy, member)
    {EXECUTION, AMP_AT("timeout_seconds"), AS_INT, P(timeout_seconds), NULL},
    {EXECUTION, AMP_AT("max_retries"), AS_INT, P(max_retries), NULL},
    {EXECUTION, AMP_AT("retry_backoff_seconds"), AS_LIST, P(backoff), NULL},
    {EXECUTION, AMP_AT("on_failure"), AS_WORD, P(on_failure), &on_failures},
    {EXECUTION, AMP_AT("abort_on_first_critical_error"), AS_FLAG, P(abort_on_first_critical_error),
     NULL},
    {EXECUTION, AMP_AT("auto_terminate_on_timeout"), AS_FLAG, P(auto_terminate_on_timeout), NULL},
    {HEARTBEAT, AMP_AT("enabled"), AS_FLAG, P(heartbeat), NULL},
    {HEARTBEAT, AMP_AT("interval_seconds"), AS_REAL, P(heartbeat_seconds), NULL},
    {HEARTBEAT, AMP_AT("max_missed_beats"), AS_INT, P(heartbeat_missed_most), NULL},
    {HEARTBEAT, AMP_AT("on_heartbeat_failure"), AS_WORD, P(on_heartbeat_failure), &on_silences},
    {GUARD, AMP_AT("timeout_seconds"), AS_INT, P(timeout_seconds), NULL},
    {GUARD, AMP_AT("abort_on_first_critical_error"), AS_FLAG, P(abort_on_first_critical_error),
     NULL},
    {GUARD, AMP_AT("auto_terminate_on_timeout"), AS_FLAG, P(auto_terminate_on_timeout), NULL},
    {GUARD, AMP_AT("require_minimal_report"), AS_FLAG, P(minimal_report), NULL},
    {GUARD, AMP_AT("require_final_signal"), AS_FLAG, P(final_signal), NULL},
    {CONSTRAINTS, AMP_AT("read_only_mode"), AS_FLAG, P(read_only), NULL},
    {CONSTRAINTS, AMP_AT("delegation_allowed"), AS_FLAG, P(delegation), NULL},
    {CAPABILITIES, AMP_AT("network_access"), AS_WORD, P(network), &networks},
    {ACCESS, AMP_AT("network"), AS_NETWORK, P(network), &networks},
    {CONSTRAINTS, AMP_AT("network_access"), AS_NETWORK, P(network), &networks},
    {CONSTRAINTS, AMP_AT("max_cost_usd"), AS_BUDGET, P(cost_usd), NULL},
    {BUDGETS, AMP_AT("max_cost_usd"), AS_BUDGET, P(cost_usd), NULL},
    {CONSTRAINTS, AMP_AT("max_tokens"), AS_BUDGET, P(tokens), NULL},
    {BUDGETS, AMP_AT("max_tokens"), AS_BUDGET, P(tokens), NULL},
#undef P
};

/* A number that no int64_t holds is as large as one can be. */
static bool number_huge(const struct amp_tape *t, uint32_t tok, int64_t *out)
{
    double real;
    *out = INT64_MAX;
    return amp_tok_real(t, tok, &real) && real >= 0x1p63;
}

/* Takes the value of a row, unless it has another type. */
static void row_take(const struct policy_row *row, const struct amp_tape *t, uint32_t tok,
                     struct amp_aop_policy *p)
{
    enum amp_aop_source source = objects[row->object].source;
    void *at = (char *)p + row->at;
    struct amp_aop_word *word = at;
    struct amp_aop_budget *budget = at;
    int64_t n;
    double real;
    switch (row->as) {
    case AS_INT:
        if (amp_tok_int(t, tok, &n) || number_huge(t, tok, &n))
            *(struct amp_aop_int *)at = (struct amp_aop_int){n, source};
        break;
    case AS_FLAG:
        if (t->tok[tok].type == AMP_JSON_TRUE || t->tok[tok].type == AMP_JSON_FALSE)
            *(struct amp_aop_flag *)at =
                (struct amp_aop_flag){t->tok[tok].type == AMP_JSON_TRUE, source};
        break;
    case AS_REAL:
        amp_tok_real(t, tok, at);
        break;
    case AS_LIST:
        if (t->tok[tok].type == AMP_JSON_ARRAY)
            *(uint32_t *)at = tok;
        break;
    case AS_WORD:
    case AS_NETWORK:
        for (unsigned i = 0; i < row->words->n; i++)
            if (amp_tok_is(t, tok, amp_span_str(row->words->word[i])) &&
                (row->as == AS_WORD || i < word->value)) {
                *word = (struct amp_aop_word){i, source};
                break;
            }
        break;
    case AS_BUDGET:
        if (amp_tok_real(t, tok, &real) && (!budget->limited || real < budget->value))
            *budget = (struct amp_aop_budget){true, real, tok, source};
        break;
    }
}

void amp_aop_files(const struct amp_view *v, struct amp_aop_paths *read,
                   struct amp_aop_paths *write)
{
    const struct amp_tape *t = v->tape;
    uint32_t files = amp_tape_pointer(t, 0, AMP_SPAN("/task/access/filesystem"));
    uint32_t can = amp_tape_pointer(t, 0, objects[CAPABILITIES].pointer);
    uint32_t constraints = amp_tape_pointer(t, 0, objects[CONSTRAINTS].pointer);
    *read = *write = (struct amp_aop_paths){false, AMP_TOK_NONE, AMP_AOP_FROM_DEFAULT};
    if (files != AMP_TOK_NONE && t->tok[files].type == AMP_JSON_OBJECT) {
        *read = (struct amp_aop_paths){true, amp_tape_get(t, files, AMP_SPAN("read_paths")),
                                       AMP_AOP_FROM_ACCESS};
        *write = (struct amp_aop_paths){true, amp_tape_get(t, files, AMP_SPAN("write_paths")),
                                        AMP_AOP_FROM_ACCESS};
    }
    if (amp_object_get(t, can, "file_system_access", AMP_JSON_FALSE) != AMP_TOK_NONE)
        *read = *write = (struct amp_aop_paths){true, AMP_TOK_NONE, AMP_AOP_FROM_CAPABILITIES};
    else if (amp_object_get(t, constraints, "read_only_mode", AMP_JSON_TRUE) != AMP_TOK_NONE)
        *write = (struct amp_aop_paths){true, AMP_TOK_NONE, AMP_AOP_FROM_CONSTRAINTS};
}

void amp_aop_policy(const struct amp_view *v, struct amp_aop_policy *p)
{
    *p = (struct amp_aop_policy){
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
    uint32_t found[OBJECTS];
    for (unsigned i = 0; i < OBJECTS; i++)
        found[i] = amp_tape_pointer(v->tape, 0, objects[i].pointer);
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rows); i++) {
        uint32_t tok = amp_tape_get(v->tape, found[rows[i].object], rows[i].key);
        if (tok != AMP_TOK_NONE)
            row_take(&rows[i], v->tape, tok, p);
    }
    amp_aop_files(v, &p->read, &p->write);
}

bool amp_aop_within(const struct amp_aop_budget *b, double spent)
{
    return !b->limited || spent <= b->value;
}

static double number_at(const struct amp_view *v, const char *pointer, double otherwise)
{
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    double n;
    return tok != AMP_TOK_NONE && amp_tok_real(v->tape, tok, &n) ? n : otherwise;
}

const char *amp_aop_response_fault(const struct amp_aop_policy *p, const struct amp_view *r)
{
    double usd = number_at(r, "/cost_tracking/estimated_cost_usd", 0);
    usd = number_at(r, "/cost_tracking/actual_cost_usd", usd);
    double tokens = number_at(r, "/cost_tracking/tokens_input", 0) +
                    number_at(r, "/cost_tracking/tokens_output", 0);
    return amp_aop_within(&p->cost_usd, usd) && amp_aop_within(&p->tokens, tokens)
               ? NULL
               : AMP_CODE(E_COST_LIMIT_EXCEEDED);
}

bool amp_aop_lost(const struct amp_aop_policy *p, int64_t last_ms, int64_t now_ms)
{
    double silence = (double)(now_ms - last_ms) / 1000;
    return p->heartbeat.value &&
           silence >= p->heartbeat_seconds * (double)p->heartbeat_missed_most.value;
}
