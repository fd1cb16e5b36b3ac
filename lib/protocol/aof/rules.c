/*
 * AOF/1: what the schemas cannot say. Each rule looks at the tape alone and tells what it found;
 * rules also run on lines that their schema refused, so none may rely on a field being there.
 */
#include <string.h>

#include "protocol/aof/aof.h"
#include "protocol/spec.h"
#include "json/text.h"

enum { TASK_ID = 19 }; /* TASK-YYYY-MM-DD-NNN */

static uint32_t member(const struct amp_tape *t, uint32_t object, struct amp_span key,
                       enum amp_json_type type)
{
    if (object == AMP_TOK_NONE || t->tok[object].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    uint32_t tok = amp_tape_get(t, object, key);
    return tok != AMP_TOK_NONE && t->tok[tok].type == type ? tok : AMP_TOK_NONE;
}

/* The payload, or the object itself where a file has no envelope. */
static uint32_t said(const struct amp_view *v)
{
    return v->payload != AMP_TOK_NONE ? v->payload : 0;
}

static bool digits(const char *p, size_t n)
{
    while (n > 0 && *p >= '0' && *p <= '9') {
        p++;
        n--;
    }
    return n == 0;
}

/* Behind the date (the schema has looked at it): NNN, NNN-NN or eight characters. */
static bool good_tail(struct amp_span id)
{
    if (id.n < 17)
        return true; /* the schema's */
    struct amp_span tail = {id.p + 16, id.n - 16};
    if (tail.n == 6)
        return digits(tail.p, 3) && tail.p[3] == '-' && digits(tail.p + 4, 2);
    return tail.n == 8 || (tail.n == 3 && digits(tail.p, 3)) || tail.n < 3 || tail.n > 8;
}

static void task_id(struct amp_check *c, const char *pointer, uint32_t tok)
{
    if (tok == AMP_TOK_NONE || good_tail(amp_tok_raw(c->v->tape, tok)))
        return;
    amp_check_rule(c, AMP_SEV_ERROR, "invalid_envelope", "task_id", pointer,
                   "TASK-YYYY-MM-DD-NNN, such as TASK-2026-02-09-057", "is malformed");
}

static void task_ids(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    const struct amp_tape *t = v->tape;
    if (v->task.n != TASK_ID || !digits(v->task.p + TASK_ID - 3, 3))
        task_id(c, "/taskId", member(t, 0, AMP_SPAN("taskId"), AMP_JSON_STRING));
    if (v->correlation.n > 0)
        task_id(c, "/parentTaskId", member(t, 0, AMP_SPAN("parentTaskId"), AMP_JSON_STRING));
    if (v->payload == AMP_TOK_NONE)
        return;
    if (v->kind == AMP_KIND_HANDOFF)
        task_id(c, "/payload/parentTaskId",
                member(t, v->payload, AMP_SPAN("parentTaskId"), AMP_JSON_STRING));
    uint32_t inner = member(t, v->payload, AMP_SPAN("taskId"), AMP_JSON_STRING);
    if (inner != AMP_TOK_NONE && v->task.n > 0 && !amp_tok_is(t, inner, v->task))
        amp_check_rule(c, AMP_SEV_ERROR, "taskId_mismatch", "task_ids", "/payload/taskId",
                       "the envelope's taskId", "differs from the task of the envelope, %s",
                       amp_check_text(c, v->task, 60));
}

/* Two spellings of one field. */
static void project_ids(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t alias = member(t, 0, AMP_SPAN("project_id"), AMP_JSON_STRING);
    if (alias == AMP_TOK_NONE)
        return;
    uint32_t id = member(t, 0, AMP_SPAN("projectId"), AMP_JSON_STRING);
    if (id != AMP_TOK_NONE && !amp_tape_equal(t, id, t, alias))
        amp_check_rule(c, AMP_SEV_ERROR, "invalid_project_id", "project_ids", "/project_id",
                       "the same as projectId, or missing", "differs from projectId");
}

static bool count_of(const struct amp_tape *t, uint32_t tests, struct amp_span key, int64_t *n)
{
    uint32_t tok = member(t, tests, key, AMP_JSON_NUMBER);
    double real;
    if (tok == AMP_TOK_NONE)
        return false;
    if (amp_tok_int(t, tok, n))
        return *n >= 0;
    /* Past every machine's integers, or broken: then the schema has complained. */
    *n = INT64_MAX;
    return amp_tok_real(t, tok, &real) && real > 1e18;
}

/* passed + failed <= total */
static void test_counts(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t tests = member(t, said(c->v), AMP_SPAN("tests"), AMP_JSON_OBJECT);
    int64_t total, passed, failed;
    if (tests == AMP_TOK_NONE || !count_of(t, tests, AMP_SPAN("total"), &total) ||
        !count_of(t, tests, AMP_SPAN("passed"), &passed) ||
        !count_of(t, tests, AMP_SPAN("failed"), &failed) ||
        (passed <= total && failed <= total - passed))
        return;
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "invalid_envelope",
                          .rule = "test_counts",
                          .tok = tests,
                          .expected = "passed and failed together at most total",
                          .show_found = true};
    amp_check_add(c, &f, "has more passed and failed tests than tests");
}

static void something_said(struct amp_check *c)
{
    static const struct amp_span keys[] = {
        {"progress", 8}, {"status", 6}, {"notes", 5}, {"blockers", 8}};
    const struct amp_view *v = c->v;
    if (v->payload == AMP_TOK_NONE || v->tape->tok[v->payload].type != AMP_JSON_OBJECT)
        return;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(keys); i++)
        if (amp_tape_get(v->tape, v->payload, keys[i]) != AMP_TOK_NONE)
            return; /* an empty list too: nothing stands in the way any more */
    amp_check_rule(c, AMP_SEV_ERROR, "invalid_envelope", "something_said", "/payload",
                   "at least one of status, progress, blockers and notes", "says nothing");
}

/* The protocol takes a hand-over with bad criteria all the same, and logs what is wrong. */
static void criteria(struct amp_check *c)
{
    enum { MOST = 50, LONGEST = 256 };
    const struct amp_tape *t = c->v->tape;
    uint32_t from = said(c->v), list;
    if (t->tok[from].type != AMP_JSON_OBJECT ||
        (list = amp_tape_get(t, from, AMP_SPAN("acceptanceCriteria"))) == AMP_TOK_NONE)
        return;
    struct amp_fault f = {.severity = AMP_SEV_WARNING,
                          .code = "invalid_acceptance_criteria",
                          .rule = "criteria",
                          .tok = list,
                          .expected = "at most 50 texts of 1 to 256 characters",
                          .show_found = true};
    if (t->tok[list].type != AMP_JSON_ARRAY) {
        amp_check_add(c, &f, "is not a list of strings");
        return;
    }
    if (t->tok[list].count > MOST) {
        amp_check_add(c, &f, "has %u criteria", t->tok[list].count);
        return;
    }
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        const struct amp_tok *tok = &t->tok[i];
        f.tok = i;
        if (tok->type != AMP_JSON_STRING)
            amp_check_add(c, &f, "is not a string");
        else if (tok->len == 0)
            amp_check_add(c, &f, "is empty");
        else if (tok->len > LONGEST && amp_json_length(t, i) > LONGEST)
            amp_check_add(c, &f, "is too long");
    }
}

void amp_aof_rules(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    /* A line of the event log names the task as it was given, right or wrong. */
    bool may_be_event = v->kind == AMP_KIND_NACK || v->kind == AMP_KIND_OTHER;
    if (!may_be_event || amp_tape_get(v->tape, 0, AMP_SPAN("eventId")) == AMP_TOK_NONE)
        task_ids(c);
    project_ids(c);
    switch (v->kind) {
    case AMP_KIND_RESULT:
        test_counts(c);
        break;
    case AMP_KIND_PROGRESS:
        something_said(c);
        break;
    case AMP_KIND_HANDOFF:
        criteria(c);
        break;
    default:
        break;
    }
}
