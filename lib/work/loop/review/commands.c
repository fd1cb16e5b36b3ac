/*
 * Acceptance criteria that are commands: "$ make check". They run in the reviewer's worktree,
 * within the walls of its command, before the reviewer is started. Only what the record of the task
 * lists runs: the commands of a text that a person gave to `new`. A criterion of a message never
 * runs.
 */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "work/attempt/walls/confined.h"
#include "work/attempt/walls/kept.h"
#include "work/loop/review/verdict.h"
#include "work/task/record.h"

#define EVIDENCE_MAX 1500 /* bytes of the end of an output */
#define SCRIPT_MAX   ((size_t)1 << 20)

/* How it ended: "exit 2", "it exceeded its time limit of 60 s". */
static bool end_tell(const struct amp_walled_check *c, char *why, size_t size)
{
    return amp_attempt_read_end(&c->end, why, size) == AMP_END_DONE;
}

static int result_add(struct amp_judged *k, const char *criterion, const struct amp_walled_check *c,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf said = {.max = SCRIPT_MAX};
    char why[200];
    bool passed = end_tell(c, why, sizeof why);

    if (amp_buf_str(&said, why, err) < 0 || (c->out.bytes && amp_buf_str(&said, "\n", err) < 0) ||
        amp_kept_end(&c->out, EVIDENCE_MAX, &said, err) < 0)
        return -1;
    k->failed |= !passed;
    json_t *result = json_pack("{s:s, s:b, s:s%}", "criterion", criterion, "passed", passed,
                               "evidence", said.data, said.len);
    return json_array_append_new(k->checked, result) < 0 ? amp_fail_memory(err) : 0;
}

/* 1: the work is being stopped. NO no_verdict: the command could not be started. */
static int command_run(struct amp_worker *w, struct amp_judged *k, const char *criterion,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf script = {.max = SCRIPT_MAX};
    AMP_FREE struct amp_walled_check *c = calloc(1, sizeof *c);

    if (!c)
        return amp_fail_memory(err);
    if (amp_buf_fmt(&script, err, "exec 2>&1\n%s", criterion + strlen(AMP_TASK_COMMAND)) < 0)
        return -1;
    const char *const argv[] = {"sh", "-c", script.data, NULL};
    c->argv = argv;
    c->cwd = k->of.worktree;
    c->limit_ms = w->opt->timeout_ms > 0 ? w->opt->timeout_ms : -1;
    w->opt->progress("%s: %.200s", k->of.task, criterion);
    int rc = amp_confined_check(w, &k->of, c, err);
    if (rc != 0)
        return rc;
    return *c->trouble ? amp_fail(err, AMP_NO, no_verdict, "%.200s: %s", criterion, c->trouble)
                       : result_add(k, criterion, c, err);
}

bool amp_judged_has_commands(const struct amp_judged *k)
{
    const json_t *payload = json_object_get(k->dispatch, "payload"), *c;
    size_t i;

    json_array_foreach (json_object_get(payload, "acceptance_criteria"), i, c)
        if (json_is_string(c) &&
            amp_span_starts(amp_span_str(json_string_value(c)), AMP_TASK_COMMAND))
            return true;
    return false;
}

int amp_judged_check(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    const json_t *payload = json_object_get(k->dispatch, "payload"), *c;
    size_t i;
    int rc = 0;

    if (amp_task_load(w->store, k->of.v->task, &t, NULL, err) < 0)
        return -1;
    json_decref(k->checked);
    k->failed = false;
    if (!(k->checked = json_array()))
        return amp_fail_memory(err);
    json_array_foreach (json_object_get(payload, "acceptance_criteria"), i, c) {
        const char *criterion = json_string_value(c);
        if (rc == 0 && criterion && amp_task_lists(t.commands, criterion))
            rc = command_run(w, k, criterion, err);
    }
    return rc;
}
