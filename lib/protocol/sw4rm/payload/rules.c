/*
 * SW4RM 0.5.0: what the schemas cannot say about payloads. Only the shapes that need a rule run
 * one. Bytes in a shape that the protocol merely illustrates, and what it recommends, give
 * warnings.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/codes/meanings.h"
#include "protocol/sw4rm/sw4rm.h"

enum { WORDS_MOST = 200 };

static uint32_t member(const struct amp_check *c, const char *key)
{
    return amp_tape_get(c->v->tape, c->v->payload, amp_span_str(key));
}

/* The text under a key of the payload; false where there is none. */
static bool text_of(struct amp_check *c, const char *key, struct amp_span *out)
{
    uint32_t tok = member(c, key);
    if (tok == AMP_TOK_NONE || c->v->tape->tok[tok].type != AMP_JSON_STRING)
        return false;
    if (amp_fill_text(c->v->tape, tok, c->arena, out, NULL) == 0)
        return true;
    c->failed = true;
    return false;
}

static const char *pointer_to(const char *key, char *out, size_t size)
{
    snprintf(out, size, "/payload/%s", key);
    return out;
}

static void base64(struct amp_check *c, const char *key, enum amp_severity severity)
{
    struct amp_span text;
    uint64_t bytes;
    char at[80];
    if (text_of(c, key, &text) && !amp_sw4rm_base64(text, &bytes))
        amp_check_rule(c, severity, "validation_error", "base64", pointer_to(key, at, sizeof at),
                       "bytes in base64", "is not base64");
}

/* The correlation id of a room or a workflow is its own id (§11.3, §17). */
static void correlated(struct amp_check *c, const char *key)
{
    struct amp_span id;
    char expected[100];
    if (!text_of(c, key, &id) || c->v->correlation.n == 0 || amp_span_eq(id, c->v->correlation))
        return;
    snprintf(expected, sizeof expected, "the %s %s", key, amp_check_text(c, id, 60));
    amp_check_rule(c, AMP_SEV_WARNING, "validation_error", "correlation", "/correlation_id",
                   expected, "is not that of the payload");
}

static void missing_one(struct amp_check *c, const char *key, const char *expected)
{
    char at[80];
    amp_check_rule(c, AMP_SEV_ERROR, "validation_error", "required", pointer_to(key, at, sizeof at),
                   expected, "is missing");
}

/* A member that has two names in the protocol's own text. */
static void either(struct amp_check *c, const char *key, const char *other, const char *expected)
{
    if (member(c, key) == AMP_TOK_NONE && member(c, other) == AMP_TOK_NONE)
        missing_one(c, key, expected);
}

/* A code is read in either case; the schema knows those that are all in one. */
static void code(struct amp_check *c)
{
    uint32_t tok = member(c, "error_code");
    if (tok == AMP_TOK_NONE || c->v->tape->tok[tok].type != AMP_JSON_STRING)
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
    amp_check_rule(c, AMP_SEV_ERROR, "validation_error", "error_code", "/payload/error_code",
                   "a code of the protocol, such as BUFFER_FULL", "is not one of the codes");
}

static bool blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

/* A description has at most 200 words (§10, §14). */
static void words(struct amp_check *c, uint32_t object)
{
    struct amp_span text;
    const struct amp_tape *t = c->v->tape;
    uint32_t tok = amp_tape_get(t, object, AMP_SPAN("description"));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING ||
        t->tok[tok].len < 2 * WORDS_MOST)
        return;
    if (amp_fill_text(t, tok, c->arena, &text, NULL) < 0) {
        c->failed = true;
        return;
    }
    unsigned n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += !blank(text.p[i]) && (i == 0 || blank(text.p[i - 1]));
    if (n <= WORDS_MOST)
        return;
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "validation_error",
                          .rule = "words",
                          .tok = tok,
                          .expected = "at most 200 words",
                          .show_found = true};
    amp_check_add(c, &f, "has %u words", n);
}

static void all_words(struct amp_check *c, const char *list)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t tok = member(c, list);
    if (tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_ARRAY)
        for (uint32_t i = tok + 1; i < t->tok[tok].next; i = t->tok[i].next)
            words(c, i);
}

/* A string that holds a JSON text. */
static void json_text(struct amp_check *c, const char *key)
{
    struct amp_span text;
    struct amp_json_fault fault;
    struct amp_tape t;
    char at[80];
    if (!text_of(c, key, &text))
        return;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, text.p, text.n, &fault) < 0)
        amp_check_rule(c, AMP_SEV_ERROR, "validation_error", "json_text",
                       pointer_to(key, at, sizeof at), "a JSON text", "is no JSON: %s", fault.what);
    amp_tape_release(&t);
}

/* A home worktree is named by repository and worktree (§16), here or in the envelope. */
static void home(struct amp_check *c)
{
    static const char *const keys[] = {"repo_id", "worktree_id"};
    for (unsigned i = 0; i < AMP_SPEC_COUNT(keys); i++) {
        char at[80];
        if (member(c, keys[i]) == AMP_TOK_NONE &&
            amp_tape_get(c->v->tape, 0, amp_span_str(keys[i])) == AMP_TOK_NONE)
            amp_check_rule(c, AMP_SEV_WARNING, "validation_error", "home_worktree",
                           pointer_to(keys[i], at, sizeof at),
                           "the repository and the worktree of the binding", "is not named");
    }
}

/* An offer to nobody by name is routed by capabilities (§17.6), so it has to name one. */
static void addressed(struct amp_check *c)
{
    struct amp_span to;
    uint32_t wanted = member(c, "capabilities_required");
    if ((text_of(c, "to_agent", &to) && to.n > 0) || wanted == AMP_TOK_NONE ||
        c->v->tape->tok[wanted].type != AMP_JSON_ARRAY || c->v->tape->tok[wanted].count > 0)
        return;
    amp_check_rule(c, AMP_SEV_ERROR, "validation_error", "handoff_target",
                   "/payload/capabilities_required", "a capability, where to_agent is empty",
                   "is empty, and to_agent is missing");
}

struct sums {
    double n, sum, squares, least, most, weight, weighted, least_confidence;
};

static bool number(const struct amp_tape *t, uint32_t object, const char *key, double *out)
{
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_NUMBER && amp_tok_real(t, tok, out);
}

static bool add_votes(const struct amp_tape *t, uint32_t votes, struct sums *s)
{
    *s = (struct sums){.least = 10, .least_confidence = 1};
    if (votes == AMP_TOK_NONE || t->tok[votes].type != AMP_JSON_ARRAY)
        return false;
    for (uint32_t i = votes + 1; i < t->tok[votes].next; i = t->tok[i].next) {
        double score, confidence;
        if (!number(t, i, "score", &score) || !number(t, i, "confidence", &confidence))
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

/* The square root by Newton's steps; the mathematical library would cost more to load. */
static double root(double x)
{
    double r = x > 1 ? x : 1;
    for (int i = 0; x > 0 && i < 40; i++)
        r = (r + x / r) / 2;
    return x > 0 ? r : 0;
}

static double apart(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* The summary agrees with the votes beside it, as far as rounding lets it. */
static void summary(struct amp_check *c, const struct sums *s)
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
        {"std_dev", root(variance), 0.1},
        {"weighted_mean", s->weight > 0 ? s->weighted / s->weight : mean, 0.1},
    };
    uint32_t score = member(c, "aggregated_score");
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rows); i++) {
        double said;
        if (!number(c->v->tape, score, rows[i].key, &said) ||
            apart(said, rows[i].is) <= rows[i].off + 1e-9)
            continue;
        char at[100], expected[40];
        snprintf(at, sizeof at, "/payload/aggregated_score/%s", rows[i].key);
        snprintf(expected, sizeof expected, "%.6g", rows[i].is);
        amp_check_rule(c, AMP_SEV_WARNING, "validation_error", "score_summary", at, expected,
                       "does not match the votes");
    }
}

static void room_decision(struct amp_check *c)
{
    struct sums s;
    struct amp_span outcome;
    double spread = 0;
    either(c, "rationale", "reason", "the reason of the decision");
    if (!add_votes(c->v->tape, member(c, "votes"), &s))
        return;
    summary(c, &s);
    number(c->v->tape, member(c, "aggregated_score"), "std_dev", &spread);
    if (!text_of(c, "outcome", &outcome) || amp_span_is(outcome, "ESCALATED_TO_HITL"))
        return;
    /* It may be the outcome of an escalation; then it is right. */
    if (s.least_confidence < 0.3 || spread > 3.0)
        amp_check_rule(c, AMP_SEV_WARNING, "validation_error", "must_escalate", "/payload/outcome",
                       "ESCALATED_TO_HITL, unless a human decided", "is given although %s",
                       s.least_confidence < 0.3 ? "a vote's confidence is below 0.3"
                                                : "std_dev is above 3.0");
}

void amp_sw4rm_payload_rules(struct amp_check *c)
{
    switch (amp_sw4rm_shape_of(c->row)) {
    case AMP_SHAPE_NACK:
    case AMP_SHAPE_DUPLICATE:
        code(c);
        break;
    case AMP_SHAPE_HITL_DECISION:
        base64(c, "patch_b64", AMP_SEV_WARNING);
        break;
    case AMP_SHAPE_WORKTREE_BIND:
        home(c);
        break;
    case AMP_SHAPE_NEGOTIATION_OPEN:
        correlated(c, "corr");
        break;
    case AMP_SHAPE_NEGOTIATION_PROPOSE:
    case AMP_SHAPE_NEGOTIATION_COUNTER:
        base64(c, "payload_b64", AMP_SEV_ERROR);
        correlated(c, "negotiation_id");
        break;
    case AMP_SHAPE_NEGOTIATION_DECIDE:
        base64(c, "result_b64", AMP_SEV_ERROR);
        correlated(c, "negotiation_id");
        break;
    case AMP_SHAPE_NEGOTIATION_START:
        either(c, "intensity", "debate_intensity_factor",
               "one of LOWEST, LOW, MEDIUM, HIGH, HIGHEST");
        correlated(c, "negotiation_id");
        break;
    case AMP_SHAPE_NEGOTIATION_POLICY:
    case AMP_SHAPE_NEGOTIATION_EFFECTIVE:
    case AMP_SHAPE_NEGOTIATION_EVALUATE:
    case AMP_SHAPE_NEGOTIATION_ABORT:
    case AMP_SHAPE_NEGOTIATION_PROPOSAL:
    case AMP_SHAPE_NEGOTIATION_EVALUATION:
    case AMP_SHAPE_NEGOTIATION_DECISION:
    case AMP_SHAPE_NEGOTIATION_ABORT_REQUEST:
        correlated(c, "negotiation_id");
        break;
    case AMP_SHAPE_ROOM_DECISION:
        room_decision(c);
        break;
    case AMP_SHAPE_HANDOFF_REQUEST:
        addressed(c);
        break;
    case AMP_SHAPE_WORKFLOW_DEFINITION:
        amp_sw4rm_workflow_rules(c);
        correlated(c, "workflow_id");
        break;
    case AMP_SHAPE_WORKFLOW_STATE:
        json_text(c, "workflow_data");
        correlated(c, "workflow_id");
        break;
    case AMP_SHAPE_TOOL_CALL:
        either(c, "execution_policy", "policy", "the limits under which the tool runs");
        break;
    case AMP_SHAPE_TOOL_RESULT:
        base64(c, "result_b64", AMP_SEV_WARNING);
        break;
    case AMP_SHAPE_AGENT_REGISTRATION:
        words(c, member(c, "agent"));
        break;
    case AMP_SHAPE_AGENT_DESCRIPTOR:
    case AMP_SHAPE_ACTIVITY_ENTRY:
        words(c, c->v->payload);
        break;
    case AMP_SHAPE_ACTIVITY_ENTRIES:
        all_words(c, "entries");
        break;
    case AMP_SHAPE_LOG_EVENT:
        json_text(c, "details_json");
        break;
    default:
        break;
    }
}
