/*
 * AOP 2.0.2-C: the rules that a schema cannot express: limits (§4), the minimal report (§5), and
 * the access to inputs and outputs (§11). Rules also run on lines that violate their schema, so any
 * field may be missing.
 */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/aop/policy/reach.h"
#include "message/protocol/spec.h"

enum {
    TASK_BYTES = 200 * 1024,
    RESPONSE_BYTES = 500 * 1024,
    OBJECTIVE_WARN = 40000,
    PHASES_MOST = 10,
    CHECKPOINTS_MOST = 20,
    ACTIONS_MOST = 200,
};

static void size_check(struct amp_check *c, size_t most, const char *type)
{
    char expected[48];
    if (c->v->text.n <= most)
        return;
    snprintf(expected, sizeof expected, "at most %zu bytes", most);
    amp_check_token(c, AMP_SEV_ERROR, AMP_CODE(E_CONTEXT_OVERFLOW), "size", AMP_TOK_NONE, expected,
                    "the %s has %zu bytes", type, c->v->text.n);
}

static void task_size_check(struct amp_check *c)
{
    size_check(c, TASK_BYTES, "TASK");
}

static void response_size_check(struct amp_check *c)
{
    size_check(c, RESPONSE_BYTES, "RESPONSE");
}

static void size_warn(struct amp_check *c, uint32_t tok, const char *rule, const char *expected,
                      uint32_t n, const char *what)
{
    struct amp_fault f = {.severity = AMP_SEV_WARNING,
                          .code = AMP_CODE(E_PAYLOAD_SIZE_WARNING),
                          .rule = rule,
                          .tok = tok,
                          .expected = expected};
    amp_check_add(c, &f, "has %u %s", n, what);
}

/* The number of code points of a string token; an escape is one. */
static uint32_t characters_count(const struct amp_tape *t, uint32_t tok)
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
        /* The first half of a pair; the scanner has checked that the second half follows. */
        bool half =
            code && (s.p[i + 2] == 'd' || s.p[i + 2] == 'D') && memchr("89abAB", s.p[i + 3], 6);
        i += half ? 12 : code ? 6 : 2;
    }
    return n;
}

static void objective_check(struct amp_check *c)
{
    uint32_t tok = amp_object_get(c->v->tape, c->v->payload, "objective", AMP_JSON_STRING);
    if (tok == AMP_TOK_NONE || c->v->tape->tok[tok].len < OBJECTIVE_WARN)
        return;
    uint32_t n = characters_count(c->v->tape, tok);
    if (n >= OBJECTIVE_WARN)
        size_warn(c, tok, "objective", "fewer than 40000 characters", n, "characters");
}

static void phases_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t list = amp_object_get(t, 0, "phases", AMP_JSON_ARRAY);
    if (list == AMP_TOK_NONE)
        return;
    if (t->tok[list].count > PHASES_MOST)
        size_warn(c, list, "phases", "at most 10 phases", t->tok[list].count, "phases");
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        uint32_t points = amp_object_get(t, i, "checkpoints", AMP_JSON_ARRAY);
        if (points != AMP_TOK_NONE && t->tok[points].count > CHECKPOINTS_MOST)
            size_warn(c, points, "checkpoints", "at most 20 checkpoints in a phase",
                      t->tok[points].count, "checkpoints");
    }
}

/* Whether a string has no visible character. Few strings have to be decoded. */
static bool is_blank(struct amp_check *c, uint32_t tok)
{
    struct amp_span text = amp_tok_raw(c->v->tape, tok);
    if (text.n == 0 || (text.p[0] > ' ' && text.p[0] != '\\'))
        return text.n == 0;
    return amp_check_string(c, tok, &text) && amp_check_blank(text);
}

/* The minimal report. The schema reports a missing or empty summary or list of actions. */
static void report_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t summary = amp_tape_get(t, 0, AMP_SPAN("execution_summary"));
    uint32_t text = amp_object_get(t, summary, "summary", AMP_JSON_STRING);
    uint32_t actions = amp_object_get(t, summary, "actions", AMP_JSON_ARRAY);
    if (text != AMP_TOK_NONE && t->tok[text].len > 0 && is_blank(c, text) &&
        !amp_check_waives(c, AMP_WAIVES_REPORT))
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(E_MALFORMED_RESPONSE), "minimal_report",
                       "/execution_summary/summary", "what was done", "says nothing");
    if (actions == AMP_TOK_NONE)
        return;
    uint32_t i = actions + 1;
    while (i < t->tok[actions].next && t->tok[i].type == AMP_JSON_STRING && is_blank(c, i))
        i = t->tok[i].next;
    if (i == t->tok[actions].next && t->tok[actions].count > 0 &&
        !amp_check_waives(c, AMP_WAIVES_REPORT))
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(E_MALFORMED_RESPONSE), "minimal_report",
                       "/execution_summary/actions", "at least one action", "says nothing");
    if (t->tok[actions].count > ACTIONS_MOST)
        size_warn(c, actions, "actions", "at most 200 actions", t->tok[actions].count, "actions");
}

/* Whether the RESPONSE has only one of the two members with the task's end, and this finding is
 * about the other. */
static bool lacks_signal(struct amp_check *c, const struct amp_finding *f)
{
    const char *other = strcmp(f->field, "task_status.final_signal") == 0 ? "state"
                        : strcmp(f->field, "task_status.state") == 0      ? "final_signal"
                                                                          : NULL;
    uint32_t status = amp_tape_get(c->v->tape, 0, AMP_SPAN("task_status"));
    return other && strcmp(f->rule, "required") == 0 && amp_object_has(c->v->tape, status, other);
}

/* Whether a part of the report is missing or empty. */
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

static const char *expected_path(const struct amp_aop_paths *p, const char *listed)
{
    if (!p->limited)
        return "an absolute or workspace path";
    if (p->source == AMP_AOP_FROM_CAPABILITIES)
        return "no path: target.capabilities.file_system_access is false";
    if (p->source == AMP_AOP_FROM_CONSTRAINTS)
        return "no path: task.constraints.read_only_mode is true";
    return listed;
}

/* Checks the paths of one of the task's lists. */
static void paths_check(struct amp_check *c, uint32_t list, const struct amp_aop_paths *to,
                        struct amp_span root, const char *listed)
{
    const struct amp_tape *t = c->v->tape;
    struct amp_aop_reach r;
    if (list == AMP_TOK_NONE)
        return;
    amp_aop_reach_init(&r, c->v, to, root);
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        uint32_t tok = amp_tape_get(t, i, AMP_SPAN("path"));
        struct amp_span text;
        if (!amp_check_string(c, tok, &text) || t->tok[tok].len == 0)
            continue;
        const char *fault = amp_aop_reach_denies(&r, text);
        if (fault)
            amp_check_token(c, AMP_SEV_ERROR, AMP_CODE(E_PERMISSION_DENIED), "access", tok,
                            expected_path(to, listed), "%s", fault);
    }
    amp_aop_reach_release(&r);
}

static void access_check(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    uint32_t inputs = amp_object_get(v->tape, v->payload, "inputs", AMP_JSON_ARRAY);
    uint32_t outputs = amp_object_get(v->tape, v->payload, "expected_outputs", AMP_JSON_ARRAY);
    /* A line that is too long is refused anyway, and this check's time grows faster than the line.
     */
    if ((inputs == AMP_TOK_NONE && outputs == AMP_TOK_NONE) || v->text.n > TASK_BYTES)
        return;
    uint32_t environment = amp_tape_get(v->tape, v->payload, AMP_SPAN("environment"));
    struct amp_span root = {"", 0};
    amp_check_string(c, amp_tape_get(v->tape, environment, AMP_SPAN("workspace_root")), &root);
    struct amp_aop_paths read, write;
    amp_aop_files(v, &read, &write);
    paths_check(c, inputs, &read, root, "a path under one of task.access.filesystem.read_paths");
    paths_check(c, outputs, &write, root, "a path under one of task.access.filesystem.write_paths");
}

/* Whether the strings under this key should not be empty, though the contract allows it. */
static bool needs_text(const struct amp_tape *t, uint32_t key)
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

/* Few messages have one; the others need no look at their keys. */
static bool has_empty_string(const struct amp_tape *t)
{
    for (uint32_t i = 1; i < t->n; i++)
        if (t->tok[i].type == AMP_JSON_STRING && t->tok[i].len == 0)
            return true;
    return false;
}

static void empties_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    if (!has_empty_string(t))
        return;
    struct amp_fault f = {.severity = AMP_SEV_WARNING,
                          .code = c->v->kind == AMP_KIND_RESULT ? AMP_CODE(E_MALFORMED_RESPONSE)
                                                                : AMP_CODE(E_SCHEMA_VALIDATION),
                          .rule = "empty",
                          .expected = "a text that is not empty"};
    uint32_t key = AMP_TOK_NONE; /* of the value, or of its list */
    for (uint32_t i = 1; i < t->n; i++) {
        const struct amp_tok *k = &t->tok[i];
        if (k->flags & AMP_TOK_KEY) {
            key = i;
            if (amp_tok_is(t, i, AMP_SPAN("extensions"))) /* free contents */
                i = t->tok[i + 1].next - 1;
        } else if (k->type == AMP_JSON_STRING && k->len == 0 && key != AMP_TOK_NONE &&
                   needs_text(t, key)) {
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
    {task_size_check, KIND(DISPATCH)},
    {objective_check, KIND(DISPATCH)},
    {phases_check, KIND(DISPATCH)},
    {access_check, KIND(DISPATCH)},
    {response_size_check, KIND(RESULT)},
    {report_check, KIND(RESULT)},
    {empties_check, ~0u},
};

/* A hard limit is the first finding, because the first one decides the refusal: such a line must
 * not become a version 1 prompt. */
static void hard_limits_first(struct amp_check *c)
{
    for (unsigned i = 1; i < c->n; i++) {
        struct amp_finding f = c->found[i];
        if (!amp_code_is(f.code, E_CONTEXT_OVERFLOW))
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
