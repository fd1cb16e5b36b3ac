/*
 * SW4RM 0.5.0: the rules about payloads that a schema cannot express. Recommendations are warnings,
 * and so are faults in bytes of a shape that the protocol only illustrates.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/codes.h"
#include "message/protocol/codes/meanings.h"
#include "message/protocol/sw4rm/sw4rm.h"

enum { WORDS_MOST = 200 };

/* A rule of a shape, about a member of the payload. */
struct payload_rule {
    void (*run)(struct amp_check *c, const struct payload_rule *r);
    const char *key, *other; /* other: a second name of the member */
    const char *expected;
    enum amp_severity severity;
};

static uint32_t member_get(const struct amp_check *c, const char *key)
{
    return amp_tape_get(c->v->tape, c->v->payload, amp_span_str(key));
}

static const char *pointer_to(const char *key, char *out, size_t size)
{
    snprintf(out, size, "/payload/%s", key);
    return out;
}

static void base64_check(struct amp_check *c, const struct payload_rule *r)
{
    struct amp_span text;
    uint64_t bytes;
    char at[80];
    if (amp_check_string(c, member_get(c, r->key), &text) && !amp_sw4rm_base64(text, &bytes))
        amp_check_rule(c, r->severity, AMP_CODE(validation_error), "base64",
                       pointer_to(r->key, at, sizeof at), "bytes in base64", "is not base64");
}

/* The correlation id of a room or a workflow is its own id (§11.3, §17). */
static void correlation_check(struct amp_check *c, const struct payload_rule *r)
{
    struct amp_span id;
    char expected[100];
    if (!amp_check_string(c, member_get(c, r->key), &id) || c->v->correlation.n == 0 ||
        amp_span_eq(id, c->v->correlation))
        return;
    snprintf(expected, sizeof expected, "the %s %s", r->key, amp_check_text(c, id, 60));
    amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(validation_error), "correlation", "/correlation_id",
                   expected, "is not that of the payload");
}

/* The protocol's text has two names for the member. */
static void either_check(struct amp_check *c, const struct payload_rule *r)
{
    char at[80];
    if (member_get(c, r->key) == AMP_TOK_NONE && member_get(c, r->other) == AMP_TOK_NONE)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "required",
                       pointer_to(r->key, at, sizeof at), r->expected, "is missing");
}

/* Codes are valid in either case; the schema checks those that are all in one. */
static void code_check(struct amp_check *c, const struct payload_rule *r)
{
    uint32_t tok = amp_object_get(c->v->tape, c->v->payload, "error_code", AMP_JSON_STRING);
    if (tok == AMP_TOK_NONE)
        return;
    struct amp_span word = amp_tok_raw(c->v->tape, tok);
    bool upper = false, lower = false, other = word.n == 0;
    for (size_t i = 0; i < word.n; i++) {
        char ch = word.p[i];
        if (ch >= 'A' && ch <= 'Z')
            upper = true;
        else if (ch >= 'a' && ch <= 'z')
            lower = true;
        else
            other |= ch != '_';
    }
    if (!other && upper != lower)
        return;
    for (const struct amp_meaning *m = amp_meanings_sw4rm; m->code; m++)
        if (strlen(m->code) == word.n && strncasecmp(m->code, word.p, word.n) == 0)
            return;
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "error_code",
                   "/payload/error_code", "a code of the protocol, such as BUFFER_FULL",
                   "is not one of the codes");
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

/* A description has at most 200 words (§10, §14). */
static void words_count(struct amp_check *c, uint32_t object)
{
    struct amp_span text;
    uint32_t tok = amp_object_get(c->v->tape, object, "description", AMP_JSON_STRING);
    if (tok == AMP_TOK_NONE || c->v->tape->tok[tok].len < 2 * WORDS_MOST ||
        !amp_check_string(c, tok, &text))
        return;
    unsigned n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += !is_blank(text.p[i]) && (i == 0 || is_blank(text.p[i - 1]));
    if (n > WORDS_MOST)
        amp_check_token(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "words", tok,
                        "at most 200 words", "has %u words", n);
}

/* The description of the payload, or of the object in it that the key names. */
static void words_check(struct amp_check *c, const struct payload_rule *r)
{
    words_count(c, r->key ? member_get(c, r->key) : c->v->payload);
}

static void list_words_check(struct amp_check *c, const struct payload_rule *r)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t list = amp_object_get(t, c->v->payload, r->key, AMP_JSON_ARRAY);
    if (list != AMP_TOK_NONE)
        for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next)
            words_count(c, i);
}

/* A string that contains a JSON text. */
static void json_text_check(struct amp_check *c, const struct payload_rule *r)
{
    struct amp_span text;
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    char at[80];
    if (!amp_check_string(c, member_get(c, r->key), &text))
        return;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, text.p, text.n, &fault) < 0)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "json_text",
                       pointer_to(r->key, at, sizeof at), "a JSON text", "is not JSON: %s",
                       fault.what);
}

/* The payload or the envelope names the home worktree by its repository and worktree (§16). */
static void home_check(struct amp_check *c, const struct payload_rule *r)
{
    static const char *const keys[] = {"repo_id", "worktree_id"};
    for (unsigned i = 0; i < AMP_SPEC_COUNT(keys); i++) {
        char at[80];
        if (member_get(c, keys[i]) == AMP_TOK_NONE &&
            amp_tape_get(c->v->tape, 0, amp_span_str(keys[i])) == AMP_TOK_NONE)
            amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(validation_error), "home_worktree",
                           pointer_to(keys[i], at, sizeof at),
                           "the repository and the worktree of the binding", "is not named");
    }
}

/* A handoff without to_agent is routed by its capabilities (§17.6), so it needs one. */
static void target_check(struct amp_check *c, const struct payload_rule *r)
{
    struct amp_span to;
    uint32_t wanted =
        amp_object_get(c->v->tape, c->v->payload, "capabilities_required", AMP_JSON_ARRAY);
    if (wanted == AMP_TOK_NONE || c->v->tape->tok[wanted].count > 0 ||
        (amp_check_string(c, member_get(c, "to_agent"), &to) && to.n > 0))
        return;
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "handoff_target",
                   "/payload/capabilities_required", "a capability, where to_agent is empty",
                   "is empty, and to_agent is missing");
}

struct sums {
    double n, sum, squares, least, most, weight, weighted, least_confidence;
};

static bool number_read(const struct amp_tape *t, uint32_t object, const char *key, double *out)
{
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && amp_tok_real(t, tok, out);
}

static bool votes_add(const struct amp_tape *t, uint32_t votes, struct sums *s)
{
    *s = (struct sums){.least = 10, .least_confidence = 1};
    if (votes == AMP_TOK_NONE || t->tok[votes].type != AMP_JSON_ARRAY)
        return false;
    for (uint32_t i = votes + 1; i < t->tok[votes].next; i = t->tok[i].next) {
        double score, confidence;
        if (!number_read(t, i, "score", &score) || !number_read(t, i, "confidence", &confidence))
            return false;
        s->n++;
        s->sum += score;
        s->squares += score * score;
        s->least = score < s->least ? score : s->least;
        s->most = score > s->most ? score : s->most;
        s->weight += confidence;
        s->weighted += confidence * score;
        s->least_confidence = confidence < s->least_confidence ? confidence : s->least_confidence;
    }
    return s->n > 0;
}

/* The square root by Newton's method; loading libm would take longer. */
static double square_root(double x)
{
    double r = x > 1 ? x : 1;
    for (int i = 0; x > 0 && i < 40; i++)
        r = (r + x / r) / 2;
    return x > 0 ? r : 0;
}

/* The summary agrees with the votes, except for rounding. */
static void summary_check(struct amp_check *c, const struct sums *s)
{
    double mean = s->sum / s->n, variance = s->squares / s->n - mean * mean;
    const struct {
        const char *key;
        double is, off;
    } rows[] = {
        {"vote_count", s->n, 0},
        {"mean", mean, 0.1},
        {"min_score", s->least, 0.1},
        {"max_score", s->most, 0.1},
        {"std_dev", square_root(variance), 0.1},
        {"weighted_mean", s->weight > 0 ? s->weighted / s->weight : mean, 0.1},
    };
    uint32_t score = member_get(c, "aggregated_score");
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rows); i++) {
        double said;
        if (!number_read(c->v->tape, score, rows[i].key, &said))
            continue;
        double off = said > rows[i].is ? said - rows[i].is : rows[i].is - said;
        if (off <= rows[i].off + 1e-9)
            continue;
        char at[100], expected[40];
        snprintf(at, sizeof at, "/payload/aggregated_score/%s", rows[i].key);
        snprintf(expected, sizeof expected, "%.6g", rows[i].is);
        amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(validation_error), "score_summary", at,
                       expected, "does not match the votes");
    }
}

static void outcome_check(struct amp_check *c, const struct payload_rule *r)
{
    struct sums s;
    struct amp_span outcome;
    double spread = 0;
    if (!votes_add(c->v->tape, member_get(c, "votes"), &s))
        return;
    summary_check(c, &s);
    number_read(c->v->tape, member_get(c, "aggregated_score"), "std_dev", &spread);
    if (!amp_check_string(c, member_get(c, "outcome"), &outcome) ||
        amp_span_is(outcome, "ESCALATED_TO_HITL"))
        return;
    /* A warning only: it may be the outcome of an escalation. */
    if (s.least_confidence < 0.3 || spread > 3.0)
        amp_check_rule(
            c, AMP_SEV_WARNING, AMP_CODE(validation_error), "must_escalate", "/payload/outcome",
            "ESCALATED_TO_HITL, unless a human decided", "is given although %s",
            s.least_confidence < 0.3 ? "a vote's confidence is below 0.3" : "std_dev is above 3.0");
}

static void nodes_check(struct amp_check *c, const struct payload_rule *r)
{
    amp_sw4rm_workflow_rules(c);
}

enum { RULES_MOST = 2 };
static const struct payload_rule rules[AMP_SHAPE_NONE][RULES_MOST] = {
    [AMP_SHAPE_NACK] = {{code_check}},
    [AMP_SHAPE_DUPLICATE] = {{code_check}},
    [AMP_SHAPE_HITL_DECISION] = {{base64_check, "patch_b64", .severity = AMP_SEV_WARNING}},
    [AMP_SHAPE_WORKTREE_BIND] = {{home_check}},
    [AMP_SHAPE_NEGOTIATION_OPEN] = {{correlation_check, "corr"}},
    [AMP_SHAPE_NEGOTIATION_PROPOSE] = {{base64_check, "payload_b64"},
                                       {correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_COUNTER] = {{base64_check, "payload_b64"},
                                       {correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_DECIDE] = {{base64_check, "result_b64"},
                                      {correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_START] = {{either_check, "intensity", "debate_intensity_factor",
                                      "one of LOWEST, LOW, MEDIUM, HIGH, HIGHEST"},
                                     {correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_POLICY] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_EFFECTIVE] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_EVALUATE] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_ABORT] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_PROPOSAL] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_EVALUATION] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_DECISION] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_NEGOTIATION_ABORT_REQUEST] = {{correlation_check, "negotiation_id"}},
    [AMP_SHAPE_ROOM_DECISION] = {{either_check, "rationale", "reason",
                                  "the reason of the decision"},
                                 {outcome_check}},
    [AMP_SHAPE_HANDOFF_REQUEST] = {{target_check}},
    [AMP_SHAPE_WORKFLOW_DEFINITION] = {{nodes_check}, {correlation_check, "workflow_id"}},
    [AMP_SHAPE_WORKFLOW_STATE] = {{json_text_check, "workflow_data"},
                                  {correlation_check, "workflow_id"}},
    [AMP_SHAPE_TOOL_CALL] = {{either_check, "execution_policy", "policy",
                              "the limits under which the tool runs"}},
    [AMP_SHAPE_TOOL_RESULT] = {{base64_check, "result_b64", .severity = AMP_SEV_WARNING}},
    [AMP_SHAPE_AGENT_REGISTRATION] = {{words_check, "agent"}},
    [AMP_SHAPE_AGENT_DESCRIPTOR] = {{words_check}},
    [AMP_SHAPE_ACTIVITY_ENTRY] = {{words_check}},
    [AMP_SHAPE_ACTIVITY_ENTRIES] = {{list_words_check, "entries"}},
    [AMP_SHAPE_LOG_EVENT] = {{json_text_check, "details_json"}},
};

void amp_sw4rm_payload_rules(struct amp_check *c)
{
    enum amp_sw4rm_shape shape = amp_sw4rm_shape_of(c->row);
    for (unsigned i = 0; shape != AMP_SHAPE_NONE && i < RULES_MOST && rules[shape][i].run; i++)
        rules[shape][i].run(c, &rules[shape][i]);
}
