/*
 * AOF/1: the rules that a schema cannot express. Each rule reads only the tape. Rules also run on
 * lines that violate their schema, so any field may be missing.
 */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/aof/aof.h"
#include "message/protocol/spec.h"
#include "json/text.h"

enum { TASK_ID = 19 }; /* TASK-YYYY-MM-DD-NNN */

/* The payload; for a file without an envelope the file itself. */
static uint32_t content_of(const struct amp_view *v)
{
    return v->payload != AMP_TOK_NONE ? v->payload : 0;
}

static bool is_digits(const char *p, size_t n)
{
    while (n > 0 && *p >= '0' && *p <= '9') {
        p++;
        n--;
    }
    return n == 0;
}

/* Whether the part after the date is NNN, NNN-NN or eight characters. The schema checks the date
 * and other lengths. */
static bool is_good_tail(struct amp_span id)
{
    if (id.n < 17)
        return true;
    struct amp_span tail = {id.p + 16, id.n - 16};
    if (tail.n == 6)
        return is_digits(tail.p, 3) && tail.p[3] == '-' && is_digits(tail.p + 4, 2);
    return tail.n == 8 || (tail.n == 3 && is_digits(tail.p, 3)) || tail.n < 3 || tail.n > 8;
}

static void task_id_check(struct amp_check *c, const char *pointer, uint32_t tok)
{
    if (tok == AMP_TOK_NONE || is_good_tail(amp_tok_raw(c->v->tape, tok)))
        return;
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(invalid_envelope), "task_id", pointer,
                   "TASK-YYYY-MM-DD-NNN, such as TASK-2026-02-09-057", "is malformed");
}

static void task_ids_check(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    const struct amp_tape *t = v->tape;
    if (v->task.n != TASK_ID || !is_digits(v->task.p + TASK_ID - 3, 3))
        task_id_check(c, "/taskId", amp_object_get(t, 0, "taskId", AMP_JSON_STRING));
    if (v->correlation.n > 0)
        task_id_check(c, "/parentTaskId", amp_object_get(t, 0, "parentTaskId", AMP_JSON_STRING));
    if (v->payload == AMP_TOK_NONE)
        return;
    if (v->kind == AMP_KIND_HANDOFF)
        task_id_check(c, "/payload/parentTaskId",
                      amp_object_get(t, v->payload, "parentTaskId", AMP_JSON_STRING));
    uint32_t inner = amp_object_get(t, v->payload, "taskId", AMP_JSON_STRING);
    if (inner != AMP_TOK_NONE && v->task.n > 0 && !amp_tok_is(t, inner, v->task))
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(taskId_mismatch), "task_ids", "/payload/taskId",
                       "the envelope's taskId", "differs from the task of the envelope, %s",
                       amp_check_text(c, v->task, 60));
}

/* Checks that two spellings of one field agree. */
static void project_ids_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t alias = amp_object_get(t, 0, "project_id", AMP_JSON_STRING);
    if (alias == AMP_TOK_NONE)
        return;
    uint32_t id = amp_object_get(t, 0, "projectId", AMP_JSON_STRING);
    if (id != AMP_TOK_NONE && !amp_tape_equal(t, id, t, alias))
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(invalid_project_id), "project_ids", "/project_id",
                       "the same as projectId, or missing", "differs from projectId");
}

static bool count_read(const struct amp_tape *t, uint32_t tests, const char *key, int64_t *n)
{
    uint32_t tok = amp_object_get(t, tests, key, AMP_JSON_NUMBER);
    double real;
    if (tok == AMP_TOK_NONE)
        return false;
    if (amp_tok_int(t, tok, n))
        return *n >= 0;
    /* Above INT64_MAX, or a fraction, which the schema reports. */
    *n = INT64_MAX;
    return amp_tok_real(t, tok, &real) && real > 1e18;
}

/* passed + failed <= total */
static void tests_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t tests = amp_object_get(t, content_of(c->v), "tests", AMP_JSON_OBJECT);
    int64_t total, passed, failed;
    if (tests == AMP_TOK_NONE || !count_read(t, tests, "total", &total) ||
        !count_read(t, tests, "passed", &passed) || !count_read(t, tests, "failed", &failed) ||
        (passed <= total && failed <= total - passed))
        return;
    amp_check_token(c, AMP_SEV_ERROR, AMP_CODE(invalid_envelope), "test_counts", tests,
                    "passed and failed together at most total",
                    "has more passed and failed tests than tests");
}

static void status_check(struct amp_check *c)
{
    static const char *const keys[] = {"progress", "status", "notes", "blockers"};
    const struct amp_view *v = c->v;
    if (v->payload == AMP_TOK_NONE || v->tape->tok[v->payload].type != AMP_JSON_OBJECT)
        return;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(keys); i++)
        if (amp_object_has(v->tape, v->payload, keys[i]))
            return; /* also an empty list: the agent is no longer blocked */
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(invalid_envelope), "something_said", "/payload",
                   "at least one of status, progress, blockers and notes", "says nothing");
}

static void criteria_warn(struct amp_check *c, uint32_t tok, const char *why)
{
    amp_check_token(c, AMP_SEV_WARNING, AMP_CODE(invalid_acceptance_criteria), "criteria", tok,
                    "at most 50 texts of 1 to 256 characters", "%s", why);
}

/* Warnings: the protocol accepts a handoff with bad criteria and logs the fault. */
static void criteria_check(struct amp_check *c)
{
    enum { MOST = 50, LONGEST = 256 };
    const struct amp_tape *t = c->v->tape;
    uint32_t list = amp_tape_get(t, content_of(c->v), AMP_SPAN("acceptanceCriteria"));
    char why[32];
    if (list == AMP_TOK_NONE)
        return;
    if (t->tok[list].type != AMP_JSON_ARRAY) {
        criteria_warn(c, list, "is not a list of strings");
        return;
    }
    if (t->tok[list].count > MOST) {
        snprintf(why, sizeof why, "has %u criteria", t->tok[list].count);
        criteria_warn(c, list, why);
        return;
    }
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        const struct amp_tok *tok = &t->tok[i];
        if (tok->type != AMP_JSON_STRING)
            criteria_warn(c, i, "is not a string");
        else if (tok->len == 0)
            criteria_warn(c, i, "is empty");
        else if (tok->len > LONGEST && amp_json_length(t, i) > LONGEST)
            criteria_warn(c, i, "is too long");
    }
}

void amp_aof_rules(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    /* A line of the event log names the task of a message, valid or not. */
    bool may_be_event = v->kind == AMP_KIND_NACK || v->kind == AMP_KIND_OTHER;
    if (!may_be_event || amp_tape_get(v->tape, 0, AMP_SPAN("eventId")) == AMP_TOK_NONE)
        task_ids_check(c);
    project_ids_check(c);
    switch (v->kind) {
    case AMP_KIND_RESULT:
        tests_check(c);
        break;
    case AMP_KIND_PROGRESS:
        status_check(c);
        break;
    case AMP_KIND_HANDOFF:
        criteria_check(c);
        break;
    default:
        break;
    }
}
