/*
 * Phases and checkpoints of a TASK (AOP §2.2, §5): the command runs once for each phase in the
 * order of phase_order, and then the checkpoints of the phase are checked here, whatever the agent
 * says about them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/aop/run/private.h"
#include "work/aop/session/check.h"
#include "work/attempt/walls/confined.h"

#define VALIDATION_SEC 60 /* the default of aop.validation_sec */

/* ---- the checks ---- */

static int check_run(void *ctx, struct amp_walled_check *c, struct amp_error *err)
{
    struct amp_tasking *t = ctx;

    return amp_confined_check(t->w, &t->of, c, err);
}

static int64_t validation_ms(const struct amp_tasking *t)
{
    const json_t *sec = json_object_get(
        json_object_get(t->opt->config, amp_protocol_name(t->v->protocol)), "validation_sec");
    json_int_t n = json_is_integer(sec) ? json_integer_value(sec) : VALIDATION_SEC;
    bool ends = t->limit_mono_ms && t->policy.auto_terminate_on_timeout.value;
    int64_t left = ends ? t->limit_mono_ms - amp_mono_ms() : INT64_MAX;

    /* A check takes no longer than the TASK may; one that begins later has a second. */
    left = left < 1000 ? 1000 : left;
    return n > 0 && (int64_t)n < left / 1000 ? (int64_t)n * 1000 : left;
}

/* 1: the workspace is gone, which fails the run: the agent may have removed it. */
static int checks_open(struct amp_tasking *t, struct amp_checks *x, struct amp_error *err)
{
    *x = (struct amp_checks){.root = t->root,
                             .dir = t->place,
                             .fd = open(t->place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                             .limit_ms = validation_ms(t),
                             .clip = amp_checks_clip(t->task),
                             .run = check_run,
                             .ctx = t};
    if (x->fd >= 0)
        return 0;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ELOOP)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", t->place);
    amp_tasking_fail(t, AMP_CODE(E_FILE_NOT_FOUND), false, "the workspace %.300s is gone", t->root);
    return 1;
}

static void checks_close(struct amp_checks *x)
{
    if (x->fd >= 0)
        close(x->fd);
}
#define CLOSED_CHECKS AMP_CLEANUP(checks_close) struct amp_checks

/* Finds what the agent's answer says about a checkpoint, the last time. */
static const json_t *claim_find(const struct amp_tasking *t, const char *id)
{
    const json_t *claim, *last = NULL;
    size_t i;

    json_array_foreach (json_object_get(t->answer, "checkpoint_results"), i, claim)
        if (strcmp(amp_json_str(claim, "checkpoint_id"), id) == 0)
            last = claim;
    return last;
}

static int result_keep(struct amp_tasking *t, const char *id, json_t *result, struct amp_error *err)
{
    if (!t->phases.results)
        t->phases.results = json_object();
    return !t->phases.results || json_object_set(t->phases.results, id, result) < 0
               ? amp_fail_memory(err)
               : 0;
}

/* 0: *result, a reference of the caller's, or NULL: the run has failed; 1: the work is being
 * stopped. */
static int checkpoint_check(struct amp_tasking *t, const json_t *point, json_t **result,
                            char why[AMP_CHECKS_WHY], struct amp_error *err)
{
    const char *id = amp_json_str(point, "checkpoint_id");
    CLOSED_CHECKS x = {.fd = -1};

    *result = NULL;
    why[0] = '\0';
    amp_beats_text(t->beats.checkpoint, sizeof t->beats.checkpoint, id);
    bool skips = strcmp(amp_json_str(point, "status"), "SKIP") == 0;
    int rc = skips ? 0 : checks_open(t, &x, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    if (skips)
        *result = json_pack("{s:s, s:s}", "checkpoint_id", id, "status", "SKIP");
    else
        rc = amp_checks_checkpoint(&x, point, claim_find(t, id), result, why, err);
    if (rc)
        return rc;
    if (!*result)
        return amp_fail_memory(err);
    t->w->opt->progress("%s: checkpoint %s: %s", t->of.task, id, amp_json_str(*result, "status"));
    return result_keep(t, id, *result, err);
}

/* ---- the order of phases ---- */

static int phase_compare(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    double m = json_number_value(json_object_get(x, "phase_order"));
    double n = json_number_value(json_object_get(y, "phase_order"));

    return m < n ? -1 : m > n ? 1 : 0;
}

static int phases_order(struct amp_tasking *t, struct amp_error *err)
{
    const json_t *phases = json_object_get(t->task, "phases");
    size_t n = json_array_size(phases);
    AMP_FREE json_t **sorted = NULL;

    if (t->phases.order)
        return 0;
    sorted = calloc(n + 1, sizeof *sorted);
    t->phases.order = json_array();
    if (!sorted || !t->phases.order)
        return amp_fail_memory(err);
    /* Insertion keeps the order of phases with the same number. */
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        json_t *phase = json_array_get(phases, i);
        for (; at > 0 && phase_compare(&sorted[at - 1], &phase) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = phase;
    }
    for (size_t i = 0; i < n; i++)
        if (json_array_append(t->phases.order, sorted[i]) < 0)
            return amp_fail_memory(err);
    return 0;
}

/* ---- a phase ---- */

enum verdict { GOES_ON, AGAIN, ABORTS };

/* Returns what a failed checkpoint asks for. */
static enum verdict verdict_of(const json_t *point)
{
    const char *strategy = amp_json_str(point, "recovery_strategy");

    return strcmp(strategy, "ABORT") == 0   ? ABORTS
           : strcmp(strategy, "RETRY") == 0 ? AGAIN
                                            : GOES_ON;
}

/* Checks all checkpoints of the phase; *worst is what their failures ask for, *at the first
 * checkpoint that asks for it, and why. 0, 1 (stopped), -1. */
static int phase_check(struct amp_tasking *t, const json_t *phase, enum verdict *worst,
                       const json_t **at, char why[AMP_CHECKS_WHY], struct amp_error *err)
{
    char what[AMP_CHECKS_WHY];
    const json_t *point;
    size_t i;

    *worst = GOES_ON;
    *at = NULL;
    json_array_foreach (json_object_get(phase, "checkpoints"), i, point) {
        json_auto_t *result = NULL;
        int64_t wait = -1;
        if (amp_tasking_time(t, &wait, err) < 0)
            return -1;
        if (t->failing)
            return 0;
        int rc = checkpoint_check(t, point, &result, what, err);
        if (rc || !result)
            return rc;
        if (strcmp(amp_json_str(result, "status"), "FAIL") != 0)
            continue;
        enum verdict v = verdict_of(point);
        if (v == GOES_ON && amp_tasking_warn(t, err, "checkpoint %.100s failed: %.300s",
                                             amp_json_str(point, "checkpoint_id"), what) < 0)
            return -1;
        if (v > *worst) {
            *worst = v;
            *at = point;
            snprintf(why, AMP_CHECKS_WHY, "%s", what);
        }
    }
    return 0;
}

/* One phase, with its repetitions. */
static int phase_run(struct amp_tasking *t, const json_t *phase, bool *abort, struct amp_error *err)
{
    const char *id = amp_json_str(phase, "phase_id");
    int64_t most = t->policy.max_retries.value > 1 ? t->policy.max_retries.value : 1;

    for (int64_t again = 0;; again++) {
        enum verdict worst;
        const json_t *at;
        char why[AMP_CHECKS_WHY];
        amp_beats_text(t->beats.phase, sizeof t->beats.phase, id);
        t->beats.checkpoint[0] = '\0';
        t->w->opt->progress("%s: phase %s", t->of.task, id);
        int rc = amp_tasking_command(t, id, err);
        if (rc || *t->failure.code)
            return rc;
        rc = phase_check(t, phase, &worst, &at, why, err);
        if (rc)
            return rc < 0 ? -1 : amp_tasking_stopped(t, err);
        if (worst == GOES_ON || t->failing)
            return 0;
        *abort = worst == ABORTS;
        if (*abort || again >= most) {
            amp_tasking_fail(t, AMP_CODE(E_UNKNOWN), false, "checkpoint %.100s failed: %.300s%s",
                             amp_json_str(at, "checkpoint_id"), why,
                             *abort ? "; its recovery_strategy is ABORT" : ", also in the retry");
            return 0;
        }
        t->w->opt->note("%s: checkpoint %s failed: phase %s runs again (%lld of %lld)", t->of.task,
                        amp_json_str(at, "checkpoint_id"), id, (long long)again + 1,
                        (long long)most);
    }
}

int amp_phases_run(struct amp_tasking *t, bool *abort, struct amp_error *err)
{
    const json_t *phase;
    size_t i;

    *abort = false;
    if (phases_order(t, err) < 0)
        return -1;
    /* Another model begins with the first phase. */
    json_decref(t->phases.results);
    t->phases.results = NULL;
    if (!json_array_size(t->phases.order))
        return amp_tasking_command(t, NULL, err);
    json_array_foreach (t->phases.order, i, phase) {
        t->phases.now = i;
        int rc = phase_run(t, phase, abort, err);
        if (rc || *t->failure.code)
            return rc;
    }
    return 0;
}

/* ---- the agent asks ---- */

static const json_t *point_find(const struct amp_tasking *t, const char *id)
{
    const json_t *phase, *point;
    size_t i, k;

    json_array_foreach (json_object_get(t->task, "phases"), i, phase)
        json_array_foreach (json_object_get(phase, "checkpoints"), k, point)
            if (strcmp(amp_json_str(point, "checkpoint_id"), id) == 0)
                return point;
    return NULL;
}

int amp_phases_line(struct amp_tasking *t, const struct amp_control_line *l, struct amp_error *err)
{
    struct amp_phases *p = &t->phases;
    struct amp_control *c = &t->of.words.control;

    if (l->kind != AMP_CONTROL_CHECKPOINT)
        return 0;
    const json_t *point = point_find(t, amp_json_str(l->in, "checkpoint"));
    if (!point)
        return amp_control_refuse(c, l->id, AMP_CODE(unknown_ref),
                                  "the TASK has no such checkpoint", err) < 0
                   ? -1
                   : 1;
    if (p->n_asked == AMP_PHASES_ASKED)
        return amp_control_refuse(c, l->id, AMP_CODE(control_limit),
                                  "8 checks wait already; ask again after an answer", err) < 0
                   ? -1
                   : 1;
    snprintf(p->asked[p->n_asked].id, sizeof p->asked[0].id, "%s", l->id);
    p->asked[p->n_asked++].checkpoint = point;
    return 1;
}

int amp_phases_turn(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_phases *p = &t->phases;
    json_auto_t *result = NULL;

    if (!p->n_asked || t->failing)
        return 0;
    int64_t began = amp_mono_ms();
    char id[sizeof p->asked[0].id], why[AMP_CHECKS_WHY];
    const json_t *point = p->asked[0].checkpoint;
    snprintf(id, sizeof id, "%s", p->asked[0].id);
    memmove(p->asked, p->asked + 1, --p->n_asked * sizeof *p->asked);
    int rc = checkpoint_check(t, point, &result, why, err);
    /* The agent's lines were not read meanwhile. */
    t->beats.last_ms += amp_mono_ms() - began;
    if (rc || !result)
        return rc < 0 ? -1 : 0;
    json_auto_t *more =
        json_pack("{s:s, s:s, s:O}", "checkpoint", amp_json_str(point, "checkpoint_id"), "status",
                  amp_json_str(result, "status"), "result", result);
    if (!more)
        return amp_fail_memory(err);
    return amp_control_answer(&t->of.words.control, id, more, err);
}

/* ---- the end ---- */

int amp_phases_outputs(struct amp_tasking *t, bool *some, struct amp_error *err)
{
    CLOSED_CHECKS x = {.fd = -1};
    struct amp_checks_tally tally;
    json_auto_t *errors = json_array();

    *some = false;
    if (!errors)
        return amp_fail_memory(err);
    int rc = checks_open(t, &x, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    rc = amp_checks_outputs(&x, t->task, errors, &tally, err);
    if (rc)
        return rc < 0 ? -1 : amp_tasking_stopped(t, err);
    int64_t wait = -1;
    if (amp_tasking_time(t, &wait, err) < 0)
        return -1;
    if (t->failing)
        return 0;
    *some = tally.passed > 0;
    if (tally.failed && json_array_extend(t->errors, errors) < 0)
        return amp_fail_memory(err);
    if (tally.failed)
        amp_tasking_fail(t, AMP_CODE(E_UNKNOWN), false,
                         "%u of %u validations of expected outputs failed: %.300s", tally.failed,
                         tally.passed + tally.failed, json_string_value(json_array_get(errors, 0)));
    return 0;
}

int amp_phases_report(struct amp_tasking *t, json_t **out, struct amp_error *err)
{
    const json_t *phase, *point;
    json_auto_t *seen = json_object();
    json_auto_t *list = json_array();
    size_t i, k;

    *out = NULL;
    if (!seen || !list || phases_order(t, err) < 0)
        return seen && list ? -1 : amp_fail_memory(err);
    json_array_foreach (t->phases.order, i, phase)
        json_array_foreach (json_object_get(phase, "checkpoints"), k, point) {
            const char *id = amp_json_str(point, "checkpoint_id");
            json_t *result = json_incref(json_object_get(t->phases.results, id));
            if (json_object_get(seen, id)) {
                json_decref(result);
                continue;
            }
            if (!result)
                result = json_pack("{s:s, s:s}", "checkpoint_id", id, "status", "PENDING");
            if (json_object_set_new(seen, id, json_true()) < 0 ||
                json_array_append_new(list, result) < 0)
                return amp_fail_memory(err);
        }
    if (json_array_size(list))
        *out = json_incref(list);
    return 0;
}

void amp_phases_release(struct amp_phases *p)
{
    json_decref(p->order);
    json_decref(p->results);
    *p = (struct amp_phases){0};
}
