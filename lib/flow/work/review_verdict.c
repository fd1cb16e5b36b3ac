/* A review_verdict out of a reviewer's answer. Nothing but the answer file (or, where the person
 * who started us said so, the exit status) is a verdict; least of all a clean exit. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "flow/work/review_verdict.h"
#include "protocol/amp/compose.h"

static const char *text(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static const json_t *result_for(const json_t *results, const char *criterion)
{
    size_t i;
    json_t *r;

    json_array_foreach(results, i, r) if (text(r, "criterion") &&
                                          !strcmp(text(r, "criterion"), criterion)) return r;
    return NULL;
}

/* One entry a criterion of the dispatch, in its order; those that nobody judged are null. */
static json_t *criteria_results(const struct amp_judged *k, const json_t *said)
{
    json_t *payload = json_object_get(k->dispatch, "payload"), *c, *all = json_array();
    const json_t *results = json_object_get(said, "criteria_results"), *r;
    size_t i;
    json_t *one;

    json_array_foreach(json_object_get(payload, "acceptance_criteria"), i, c)
    {
        r = result_for(results, json_string_value(c));
        json_t *passed = json_object_get(r, "passed");
        const char *evidence = text(r, "evidence");
        one = json_pack("{s:O, s:O, s:s}", "criterion", c, "passed", passed ? passed : json_null(),
                        "evidence",
                        evidence ? evidence
                        : r      ? ""
                                 : "not judged by the reviewer");
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *issues(const json_t *said)
{
    json_t *all = json_array(), *i;
    size_t n;

    json_array_foreach(json_object_get(said, "issues"), n, i)
    {
        const char *file = text(i, "file"), *fix = text(i, "suggested_fix");
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:I, s:s, s:s}", "severity", text(i, "severity"), "file",
                           file ? file : "", "line", json_integer_value(json_object_get(i, "line")),
                           "description", text(i, "description"), "suggested_fix", fix ? fix : ""));
    }
    return all;
}

/* The exit status of a plain command as an answer, for a person who asked for it. */
static json_t *by_exit(const struct amp_judged *k, const struct amp_judgement *j)
{
    json_t *payload = json_object_get(k->dispatch, "payload"), *c, *all = json_array();
    bool good = j->end == AMP_END_DONE;
    char line[300], what[400];
    size_t i;

    amp_attempt_last_line(k->files.err, line, sizeof line);
    if (!*line)
        amp_attempt_last_line(k->files.out, line, sizeof line);
    snprintf(what, sizeof what, "The review command: %s%s%s", j->how, *line ? ": " : "", line);
    json_array_foreach(json_object_get(payload, "acceptance_criteria"), i, c)
        json_array_append_new(all, json_pack("{s:O, s:o, s:s}", "criterion", c, "passed",
                                             good ? json_true() : json_null(), "evidence", what));
    json_t *said = json_pack("{s:s, s:o, s:f}", "decision", good ? "approved" : "rejected",
                             "criteria_results", all, "confidence", 1.0);
    if (!good)
        json_object_set_new(said, "issues",
                            json_pack("[{s:s, s:s, s:i, s:s}]", "severity", "major", "file", "",
                                      "line", 0, "description", what));
    return said;
}

static int read_said(const struct amp_judged *k, const struct amp_judgement *j, json_t **said,
                     struct amp_error *err)
{
    if (amp_answer_read(&k->files, "verdict.json", said, err)) {
        if (err->status == AMP_DATAERR)
            err->status = AMP_NO;
        return -1;
    }
    if (!*said && j->by_exit)
        *said = by_exit(k, j);
    else if (*said && j->end != AMP_END_DONE) {
        json_decref(*said);
        *said = NULL;
        return amp_fail(err, AMP_NO, "no_verdict", "It wrote a verdict, but %s", j->how);
    }
    if (*said)
        return 0;
    return amp_fail(err, AMP_NO, "no_verdict", "It gave no verdict: %s", j->how);
}

/* The first error: field, rule and what is wrong. */
struct broken {
    char text[300];
};

static void on_finding(void *ctx, const struct amp_finding *f)
{
    struct broken *b = ctx;
    if (f->severity == AMP_SEV_ERROR && !*b->text)
        snprintf(b->text, sizeof b->text, "%s: %s: %s", f->field, f->rule, f->message);
}

static int compose(struct amp_worker *w, struct amp_judged *k, json_t *said, struct amp_buf *line,
                   struct amp_error *err)
{
    const char *decision = text(said, "decision");
    char id[256];
    const char *refs[] = {id, k->result_ref, k->dispatch_ref, NULL};
    json_t *payload =
        json_pack("{s:s, s:o, s:O}", "decision", decision, "criteria_results",
                  criteria_results(k, said), "confidence", json_object_get(said, "confidence"));
    json_t *found = issues(said);

    if (!payload) {
        json_decref(found);
        return amp_fail(err, AMP_NO, "bad_answer", "The verdict cannot be composed");
    }
    if (json_array_size(found))
        json_object_set(payload, "issues", found);
    json_decref(found);
    if (k->fixes)
        json_object_set(payload, "direct_fixes", k->fixes);
    if (text(said, "architecture_notes"))
        json_object_set(payload, "architecture_notes", json_object_get(said, "architecture_notes"));
    amp_span_copy(k->v->id, id, sizeof id);
    const struct amp_envelope env = {
        .type = "review_verdict",
        .from = "reviewer",
        .to = "coordinator",
        .task_id = k->task,
        .now_ms = amp_now_ms(),
        .context_ref = refs,
    };
    if (amp_compose_message(&env, payload, line, NULL, err))
        return -1;
    /* The rules of the protocol beyond the shape of the answer: what does not keep them is no
     * verdict. */
    struct amp_view mine;
    struct broken broken = {""};
    const struct amp_check_options opt = {0};
    int ok = amp_reader_line(w->own_reader, (struct amp_span){line->data, line->len - 1}, &opt,
                             &mine, on_finding, &broken, err);
    if (ok == 0)
        return amp_fail(err, AMP_NO, "bad_answer", "%s (in %s)", broken.text, k->files.result);
    return ok < 0 ? -1 : 0;
}

int amp_judged_verdict(struct amp_worker *w, struct amp_judged *k, const struct amp_judgement *j,
                       struct amp_buf *line, bool *approved, struct amp_error *err)
{
    json_t *said = NULL;

    if (read_said(k, j, &said, err))
        return -1;
    const char *decision = text(said, "decision");
    int rc = 0;
    if (!strcmp(decision, "approved_with_fix"))
        rc = amp_judged_fixes(w, k, json_object_get(said, "direct_fixes"), err);
    if (!rc)
        rc = compose(w, k, said, line, err);
    if (!rc) {
        *approved = strcmp(decision, "rejected") != 0;
        w->opt->progress("%s: %s: %s", k->task, k->subtask, decision);
    }
    json_decref(said);
    return rc;
}
