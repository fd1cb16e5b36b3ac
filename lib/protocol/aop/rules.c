/*
 * AOP 2.0.2-C: what the schemas cannot say: the limits (§4) as far as they are no mere counts that
 * refuse, the minimal report (§5), and that inputs and outputs lie where the task may reach (§11).
 * Rules also run on lines that their schema refused, so none may rely on a field being there.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/aop/aop.h"
#include "protocol/aop/reach.h"
#include "protocol/spec.h"

enum {
    TASK_BYTES = 200 * 1024,
    RESPONSE_BYTES = 500 * 1024,
    OBJECTIVE_WARN = 40000,
    PHASES_MOST = 10,
    CHECKPOINTS_MOST = 20,
    ACTIONS_MOST = 200,
};

static bool is(const struct amp_check *c, uint32_t tok, enum amp_json_type type)
{
    return tok != AMP_TOK_NONE && c->v->tape->tok[tok].type == type;
}

static void size_limit(struct amp_check *c, size_t most, const char *type)
{
    if (c->v->text.n <= most)
        return;
    char expected[48];
    snprintf(expected, sizeof expected, "at most %zu bytes", most);
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "E_CONTEXT_OVERFLOW",
                          .rule = "size",
                          .tok = AMP_TOK_NONE,
                          .expected = expected};
    amp_check_add(c, &f, "the %s has %zu bytes", type, c->v->text.n);
}

static void task_size(struct amp_check *c)
{
    size_limit(c, TASK_BYTES, "TASK");
}

static void response_size(struct amp_check *c)
{
    size_limit(c, RESPONSE_BYTES, "RESPONSE");
}

static void warn_size(struct amp_check *c, uint32_t tok, const char *rule, const char *expected,
                      uint32_t n, const char *what)
{
    struct amp_fault f = {.severity = AMP_SEV_WARNING,
                          .code = "E_PAYLOAD_SIZE_WARNING",
                          .rule = rule,
                          .tok = tok,
                          .expected = expected};
    amp_check_add(c, &f, "has %u %s", n, what);
}

/* Code points of a string token, each escape counted as the character that it stands for. */
static uint32_t characters(const struct amp_tape *t, uint32_t tok)
{
    struct amp_span s = amp_tok_raw(t, tok);
    uint32_t n = 0;
    for (size_t i = 0; i < s.n; n++) {
        if (s.p[i] != '\\') {
            for (i++; i < s.n && ((unsigned char)s.p[i] & 0xc0) == 0x80;)
                i++;
            continue;
        }
        bool code = s.p[i + 1] == 'u';
        /* The first half of a pair; the scanner saw to it that the second follows. */
        bool half =
            code && (s.p[i + 2] == 'd' || s.p[i + 2] == 'D') && memchr("89abAB", s.p[i + 3], 6);
        i += half ? 12 : code ? 6 : 2;
    }
    return n;
}

static void objective(struct amp_check *c)
{
    uint32_t tok = amp_aop_at(c->v, c->v->payload, AMP_SPAN("objective"));
    if (!is(c, tok, AMP_JSON_STRING) || c->v->tape->tok[tok].len < OBJECTIVE_WARN)
        return;
    uint32_t n = characters(c->v->tape, tok);
    if (n >= OBJECTIVE_WARN)
        warn_size(c, tok, "objective", "fewer than 40000 characters", n, "characters");
}

static void phases(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t list = amp_aop_at(c->v, 0, AMP_SPAN("phases"));
    if (!is(c, list, AMP_JSON_ARRAY))
        return;
    if (t->tok[list].count > PHASES_MOST)
        warn_size(c, list, "phases", "at most 10 phases", t->tok[list].count, "phases");
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        uint32_t points = amp_tape_get(t, i, AMP_SPAN("checkpoints"));
        if (is(c, points, AMP_JSON_ARRAY) && t->tok[points].count > CHECKPOINTS_MOST)
            warn_size(c, points, "checkpoints", "at most 20 checkpoints in a phase",
                      t->tok[points].count, "checkpoints");
    }
}

/* Whether a string, looked at only as far as needed, says nothing. */
static bool blank(struct amp_check *c, uint32_t tok)
{
    struct amp_span text = amp_tok_raw(c->v->tape, tok);
    if (text.n == 0 || (text.p[0] > ' ' && text.p[0] != '\\'))
        return text.n == 0;
    if (amp_fill_text(c->v->tape, tok, c->arena, &text, NULL) < 0)
        c->failed = true;
    return amp_check_blank(text);
}

/* The minimal report; the schema sees to it that summary and actions are there. */
static void report(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t summary = amp_aop_at(c->v, 0, AMP_SPAN("execution_summary"));
    uint32_t text = amp_aop_at(c->v, summary, AMP_SPAN("summary"));
    uint32_t actions = amp_aop_at(c->v, summary, AMP_SPAN("actions"));
    if (is(c, text, AMP_JSON_STRING) && t->tok[text].len > 0 && blank(c, text) &&
        !amp_check_waives(c, AMP_WAIVES_REPORT))
        amp_check_rule(c, AMP_SEV_ERROR, "E_MALFORMED_RESPONSE", "minimal_report",
                       "/execution_summary/summary", "what was done", "says nothing");
    if (!is(c, actions, AMP_JSON_ARRAY))
        return;
    uint32_t i = actions + 1;
    while (i < t->tok[actions].next && is(c, i, AMP_JSON_STRING) && blank(c, i))
        i = t->tok[i].next;
    if (i == t->tok[actions].next && t->tok[actions].count > 0 &&
        !amp_check_waives(c, AMP_WAIVES_REPORT))
        amp_check_rule(c, AMP_SEV_ERROR, "E_MALFORMED_RESPONSE", "minimal_report",
                       "/execution_summary/actions", "at least one action", "says nothing");
    if (t->tok[actions].count > ACTIONS_MOST)
        warn_size(c, actions, "actions", "at most 200 actions", t->tok[actions].count, "actions");
}

/* One of the two has to say how the task ended. */
static bool lacks_signal(struct amp_check *c, const struct amp_finding *f)
{
    uint32_t status = amp_aop_at(c->v, 0, AMP_SPAN("task_status"));
    bool missing = strcmp(f->rule, "required") == 0;
    if (missing && strcmp(f->field, "task_status.final_signal") == 0)
        return amp_aop_at(c->v, status, AMP_SPAN("state")) != AMP_TOK_NONE;
    if (missing && strcmp(f->field, "task_status.state") == 0)
        return amp_aop_at(c->v, status, AMP_SPAN("final_signal")) != AMP_TOK_NONE;
    return false;
}

/* Missing or empty, not of another type. */
static bool lacks_report(const struct amp_finding *f)
{
    static const char *const fields[] = {"execution_summary", "execution_summary.summary",
                                         "execution_summary.actions"};
    bool lacks = strcmp(f->rule, "required") == 0 || strcmp(f->rule, "minLength") == 0 ||
                 strcmp(f->rule, "minItems") == 0;
    for (unsigned i = 0; lacks && i < AMP_SPEC_COUNT(fields); i++)
        if (strcmp(f->field, fields[i]) == 0)
            return true;
    return false;
}

bool amp_aop_waives(struct amp_check *c, const struct amp_finding *f)
{
    if (c->v->kind != AMP_KIND_RESULT)
        return false;
    return (lacks_report(f) && amp_check_waives(c, AMP_WAIVES_REPORT)) ||
           (lacks_signal(c, f) && amp_check_waives(c, AMP_WAIVES_SIGNAL));
}

static const char *expected(const struct amp_aop_paths *p, const char *listed)
{
    if (!p->limited)
        return "an absolute or workspace path";
    if (p->source == AMP_AOP_FROM_CAPABILITIES)
        return "no path: target.capabilities.file_system_access is false";
    if (p->source == AMP_AOP_FROM_CONSTRAINTS)
        return "no path: task.constraints.read_only_mode is true";
    return listed;
}

static void path(struct amp_check *c, struct amp_aop_reach *r, uint32_t object, const char *listed)
{
    uint32_t tok = amp_aop_at(c->v, object, AMP_SPAN("path"));
    struct amp_span text;
    if (!is(c, tok, AMP_JSON_STRING) || c->v->tape->tok[tok].len == 0)
        return;
    if (amp_fill_text(c->v->tape, tok, c->arena, &text, NULL) < 0) {
        c->failed = true;
        return;
    }
    const char *fault = amp_aop_reach_denies(r, text);
    if (!fault)
        return;
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "E_PERMISSION_DENIED",
                          .rule = "access",
                          .tok = tok,
                          .expected = expected(r->to, listed),
                          .show_found = true};
    amp_check_add(c, &f, "%s", fault);
}

/* The paths of one of the task's lists against what may be reached. */
static void paths_of(struct amp_check *c, uint32_t list, const struct amp_aop_paths *to,
                     struct amp_span root, const char *listed)
{
    const struct amp_tape *t = c->v->tape;
    struct amp_aop_reach r;
    if (!is(c, list, AMP_JSON_ARRAY))
        return;
    amp_aop_reach_init(&r, c->v, to, root);
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next)
        if (is(c, i, AMP_JSON_OBJECT))
            path(c, &r, i, listed);
    amp_aop_reach_release(&r);
}

static void access_check(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    uint32_t inputs = amp_aop_at(v, v->payload, AMP_SPAN("inputs"));
    uint32_t outputs = amp_aop_at(v, v->payload, AMP_SPAN("expected_outputs"));
    /* A line that is too long is refused anyway, and this work grows faster than the line. */
    if ((inputs == AMP_TOK_NONE && outputs == AMP_TOK_NONE) || v->text.n > TASK_BYTES)
        return;
    uint32_t environment = amp_aop_at(v, v->payload, AMP_SPAN("environment"));
    uint32_t tok = amp_aop_at(v, environment, AMP_SPAN("workspace_root"));
    struct amp_span root = {"", 0};
    if (is(c, tok, AMP_JSON_STRING) && amp_fill_text(v->tape, tok, c->arena, &root, NULL) < 0) {
        c->failed = true;
        return;
    }
    struct amp_aop_paths read, write;
    amp_aop_files(v, &read, &write);
    paths_of(c, inputs, &read, root, "a path under one of task.access.filesystem.read_paths");
    paths_of(c, outputs, &write, root, "a path under one of task.access.filesystem.write_paths");
}

/* The strings that have to be there and say something; the contract lets them be empty. */
static bool has_to_say(const struct amp_tape *t, uint32_t key)
{
    static const char *const names[] = {
        "objective",  "session_id",    "task_id",      "agent_name", "model",
        "path",       "command",       "type",         "reason",     "escalated_by",
        "trigger",    "status",        "orchestrator", "origin",     "workspace_root",
        "phase_id",   "checkpoint_id", "error_code",   "agent",      "schema_version",
        "read_paths", "write_paths",   "storage_path", "name",       "classification",
    };
    for (unsigned i = 0; i < AMP_SPEC_COUNT(names); i++)
        if (amp_tok_is(t, key, amp_span_str(names[i])))
            return true;
    return false;
}

static void empties(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    struct amp_fault f = {.severity = AMP_SEV_WARNING,
                          .code = c->v->kind == AMP_KIND_RESULT ? "E_MALFORMED_RESPONSE"
                                                                : "E_SCHEMA_VALIDATION",
                          .rule = "empty",
                          .expected = "a text that is not empty"};
    uint32_t key = AMP_TOK_NONE; /* of the value, or of the list that it is in */
    for (uint32_t i = 1; i < t->n; i++) {
        const struct amp_tok *k = &t->tok[i];
        if (k->flags & AMP_TOK_KEY) {
            key = i;
            if (amp_tok_is(t, i, AMP_SPAN("extensions"))) /* anybody's */
                i = t->tok[i + 1].next - 1;
        } else if (k->type == AMP_JSON_STRING && k->len == 0 && key != AMP_TOK_NONE &&
                   has_to_say(t, key)) {
            f.tok = i;
            amp_check_add(c, &f, "is empty");
        }
    }
}

#define KIND(k) (1u << AMP_KIND_##k)

static const struct {
    void (*run)(struct amp_check *c);
    unsigned kinds;
} rules[] = {
    {task_size, KIND(DISPATCH)},
    {objective, KIND(DISPATCH)},
    {phases, KIND(DISPATCH)},
    {access_check, KIND(DISPATCH)},
    {response_size, KIND(RESULT)},
    {report, KIND(RESULT)},
    {empties, ~0u},
};

/* What passes a hard limit is refused for that, whatever else is wrong: it is not to go on as a
 * version 1 prompt. */
static void hard_limits_first(struct amp_check *c)
{
    for (unsigned i = 1; i < c->n; i++) {
        struct amp_finding f = c->found[i];
        if (strcmp(f.code, "E_CONTEXT_OVERFLOW") != 0)
            continue;
        memmove(c->found + 1, c->found, i * sizeof *c->found);
        c->found[0] = f;
    }
}

void amp_aop_rules(struct amp_check *c)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rules); i++)
        if (rules[i].kinds & (1u << c->v->kind))
            rules[i].run(c);
    if (c->n > 1)
        hard_limits_first(c);
}
