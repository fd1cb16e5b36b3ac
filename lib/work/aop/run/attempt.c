/*
 * One attempt at a TASK: the models in turn, by the triggers of alternative_models (AOP §9). Each
 * model has the time limit of the TASK (§11.1); the budgets are those of all models together.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/aop/fallback.h"
#include "message/protocol/compose/json.h"
#include "work/agent/work.h"
#include "work/aop/run/private.h"
#include "work/aop/session/check.h"
#include "work/attempt/io.h"
#include "work/attempt/walls/confined.h"
#include "work/git/worktree.h"
#include "json/text.h"

#define LIMIT_SECONDS_MOST (INT64_C(100) * 365 * 86400) /* longer is no limit at all */

enum { EXTRA_MAX = 28, VARIABLES = 12, VALUE_MAX = 4200, RETRIES_ASKED = 20 };

struct amp_session_voice amp_tasking_voice(const struct amp_tasking *t)
{
    return (struct amp_session_voice){t->w->store, t->w->opt->consumer, amp_now_ms()};
}

void amp_tasking_fail(struct amp_tasking *t, const char *code, bool critical, const char *fmt, ...)
{
    struct amp_tasking_failure *f = &t->failure;
    va_list args;
    if (*f->code)
        return;
    snprintf(f->code, sizeof f->code, "%.47s", code);
    f->critical = critical || amp_aop_is_critical(code);
    va_start(args, fmt);
    vsnprintf(f->what, sizeof f->what, fmt, args);
    va_end(args);
    amp_utf8_clean(f->what);
    t->failing = true;
}

void amp_tasking_end(struct amp_tasking *t, const char *state, const char *code, const char *fmt,
                     ...)
{
    va_list args;
    t->outcome = (struct amp_tasking_outcome){
        .state = state, .signal = strcmp(state, "FAILED") == 0 ? "FAILURE" : "ABORTED"};
    snprintf(t->outcome.code, sizeof t->outcome.code, "%.47s", code);
    va_start(args, fmt);
    vsnprintf(t->outcome.what, sizeof t->outcome.what, fmt, args);
    va_end(args);
    amp_utf8_clean(t->outcome.what);
}

/* Adds a text to a list once. 1: it was there. */
static int text_add(json_t *list, char *text, struct amp_error *err)
{
    const json_t *one;
    size_t i;
    amp_utf8_clean(text);
    json_array_foreach (list, i, one)
        if (json_is_string(one) && strcmp(json_string_value(one), text) == 0)
            return 1;
    return json_array_append_new(list, json_string(text)) == 0 ? 0 : amp_fail_memory(err);
}

int amp_tasking_warn(struct amp_tasking *t, struct amp_error *err, const char *fmt, ...)
{
    char text[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    amp_utf8_clean(text);
    int rc = text_add(t->warnings, text, err);
    if (rc == 0)
        t->w->opt->note("%s: %s", t->of.task, text);
    return rc < 0 ? -1 : 0;
}

int amp_tasking_emit(struct amp_tasking *t, struct amp_span line, struct amp_error *err)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    while (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    if (amp_session_event(&v, t->v, line, NULL, err) < 0)
        return -1;
    t->w->io->dirty = true;
    return 0;
}

/* ---- the time limit ---- */

/* The TASK's; of a TASK without one the contract's default, or a shorter one of the worker. */
static int64_t limit_ms(const struct amp_tasking *t, const char **source)
{
    int64_t s = t->policy.timeout_seconds.value, own = t->opt->worker.timeout_ms;
    int64_t ms = (s < LIMIT_SECONDS_MOST ? s : LIMIT_SECONDS_MOST) * 1000;
    bool given = t->policy.timeout_seconds.source != AMP_AOP_FROM_DEFAULT;
    bool is_own = !given && own > 0 && own < ms;
    *source = is_own ? "--timeout" : amp_aop_source_name(t->policy.timeout_seconds.source);
    return is_own ? own : ms;
}

int amp_tasking_time(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err)
{
    int64_t left = t->limit_mono_ms - amp_mono_ms();
    const struct amp_session_voice v = amp_tasking_voice(t);
    const char *source;
    char text[160];
    if (t->limit_mono_ms == 0 || t->warned_of_time)
        return 0;
    if (left > 0) {
        if (*wait_ms < 0 || *wait_ms > left)
            *wait_ms = left;
        return 0;
    }
    t->warned_of_time = true;
    bool ends = t->policy.auto_terminate_on_timeout.value;
    double sec = (double)limit_ms(t, &source) / 1000;
    snprintf(text, sizeof text, "the time limit of %.10g s (%s) has passed", sec, source);
    if (amp_session_guard(&v, t->v, AMP_SESSION_CHECK_TIMEOUT,
                          ends ? AMP_SESSION_FAIL : AMP_SESSION_WARN, text, AMP_CODE(E_TIMEOUT),
                          err) < 0)
        return -1;
    if (!ends)
        return amp_tasking_warn(t, err,
                                "E_TIMEOUT: %s; auto_terminate_on_timeout is false, so the "
                                "work goes on",
                                text);
    amp_tasking_fail(t, AMP_CODE(E_TIMEOUT), false, "%s", text);
    return 0;
}

/* ---- a run of the command ---- */

static int run_turn(struct amp_worker *w, struct amp_assignment *k, int64_t *wait_ms,
                    struct amp_error *err)
{
    struct amp_tasking *t = (struct amp_tasking *)k;
    (void)w;
    if (amp_tasking_time(t, wait_ms, err) < 0 || amp_beats_turn(t, wait_ms, err) < 0)
        return -1;
    return t->failing;
}

/* The members of an assignment that belong to one run. */
static void run_reset(struct amp_tasking *t)
{
    struct amp_assignment *of = &t->of;
    amp_git_refs_release(&of->refs);
    amp_git_quarantine_release(&of->walls.quarantine);
    json_decref(of->words.log);
    json_decref(t->answer);
    t->answer = NULL;
    of->refs = (struct amp_git_refs){0};
    of->walls = (struct amp_walls){0};
    of->words = (struct amp_words){0};
    of->forgeries = (struct amp_forgeries){0};
    of->taking = (struct amp_taking){0};
    of->contract = (struct amp_contract){0};
    of->files = (struct amp_attempt){0};
}

/* Whether the agent reads version 2. */
static bool reads_v2(const json_t *target)
{
    const json_t *list = json_object_get(json_object_get(target, "capabilities"),
                                         "aop_versions_supported"),
                 *one;
    size_t i;
    json_array_foreach (list, i, one)
        if (json_is_string(one) && strncmp(json_string_value(one), "2.", 2) == 0)
            return true;
    return !json_is_array(list); /* the default is version 2 */
}

/* The input of the command: the TASK with the paths of this machine; a prompt of version 1 for an
 * agent that reads nothing else. */
static int message_make(struct amp_tasking *t, struct amp_error *err)
{
    amp_buf_reset(&t->message);
    json_auto_t *copy = json_deep_copy(t->task);
    if (!copy)
        return amp_fail_memory(err);
    if (amp_tasking_localize(t, copy, err) < 0 || amp_json_dump(copy, &t->message, err) < 0)
        return -1;
    if (!reads_v2(json_object_get(t->task, "target"))) {
        struct amp_view v;
        AMP_BUF struct amp_buf line = {.max = 64 << 20};
        const struct amp_check_options opt = {0};
        if (amp_buf_add(&line, t->message.data, t->message.len, err) < 0 ||
            amp_reader_line(t->w->own_reader, amp_buf_span(&line), &opt, &v, NULL, NULL, err) < 0)
            return -1;
        amp_buf_reset(&t->message);
        if (amp_aop_v1_prompt(&v, &t->message, err) < 0)
            return -1;
    }
    t->of.message = amp_buf_span(&t->message);
    return 0;
}

struct extra {
    const char *v[EXTRA_MAX];
    size_t n;
    struct amp_buf mem;
};

static int extra_add(struct extra *x, const char *name, const char *value, struct amp_error *err)
{
    size_t at = x->mem.len;
    if (amp_buf_fmt(&x->mem, err, "%s=%s", name, value ? value : "") < 0 ||
        amp_buf_add(&x->mem, "", 1, err) < 0)
        return -1;
    x->v[x->n++] = x->mem.data + at;
    return 0;
}

/* The tags, separated by commas. */
static int tags_put(const struct amp_tasking *t, struct amp_buf *out, struct amp_error *err)
{
    const json_t *tag;
    size_t i;
    json_array_foreach (json_object_get(json_object_get(t->task, "orchestration_metadata"), "tags"),
                        i, tag)
        if (json_is_string(tag) &&
            amp_buf_fmt(out, err, "%s%s", i > 0 ? "," : "", json_string_value(tag)) < 0)
            return -1;
    return amp_buf_add(out, "", 1, err);
}

/* Variables for the command; texts of the TASK are values, never names. */
static int extra_make(const struct amp_tasking *t, const char *phase, struct extra *x,
                      struct amp_error *err)
{
    const json_t *task = json_object_get(t->task, "task");
    const char *const *git = amp_agent_git_env();
    AMP_BUF struct amp_buf tags = {.max = 1 << 20};
    x->mem = (struct amp_buf){.max = VARIABLES * VALUE_MAX};
    /* It must not move. */
    if (amp_buf_reserve(&x->mem, VARIABLES * VALUE_MAX - 1, err) < 0 || tags_put(t, &tags, err) < 0)
        return -1;
    while (git && *git && x->n < EXTRA_MAX - VARIABLES)
        x->v[x->n++] = *git++;
    const struct {
        const char *name, *value;
    } vars[] = {{"AMP_PROVIDER", t->model.provider},
                {"AMP_MODEL", t->model.name},
                {"AMP_PROFILE", amp_tasking_profile(t)},
                {"AMP_PHASE", phase},
                {"AMP_WORKSPACE", t->place},
                {"AMP_TAGS", tags.data},
                {"AMP_CATEGORY", amp_json_str(task, "category")},
                {"AMP_COMPLEXITY", amp_json_str(task, "complexity")},
                {"AMP_SHELL", amp_json_str(json_object_get(task, "environment"), "shell")}};
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++) {
        if (vars[i].value && strlen(vars[i].value) >= VALUE_MAX - 40)
            return amp_fail(err, AMP_NO, E_CONTEXT_OVERFLOW, "%s: a text of more than %d bytes",
                            vars[i].name, VALUE_MAX - 41);
        if (extra_add(x, vars[i].name, vars[i].value, err) < 0)
            return -1;
    }
    return 0;
}

/* The run is not at its end. 1: the job was stepped, and is left; 0: no repeats are left, which is
 * a failure. */
static int run_leave(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    struct amp_session_usage used;
    bool spent = false;
    if (amp_assignment_again(t->w, t->job, &t->of, t->of.end, t->of.why, &spent, err) < 0)
        return -1;
    amp_expense_used(t, &used);
    if (!spent)
        return amp_session_released(&v, t->v, &used, err) < 0 ? -1 : 1;
    amp_tasking_fail(t, AMP_CODE(E_MODEL_UNAVAILABLE), false,
                     "it asked to be repeated later more than %lld times",
                     (long long)t->w->opt->retries + RETRIES_ASKED);
    return 0;
}

int amp_tasking_stopped(struct amp_tasking *t, struct amp_error *err)
{
    t->of.end = AMP_END_STOPPED;
    snprintf(t->of.why, sizeof t->of.why, "it was stopped during a check");
    return run_leave(t, err);
}

/* Judges how the run ended, unless it was ended for a failure. 1: the job was stepped. */
static int end_judge(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_assignment *of = &t->of;
    struct amp_error why;
    switch (of->end) {
    case AMP_END_DONE:
    case AMP_END_FAILED:
        return amp_tasking_answer(t, err);
    case AMP_END_MACHINERY:
        if (of->started)
            amp_tasking_fail(t, AMP_CODE(E_PROCESS_CRASH), false, "%s", of->why);
        else
            amp_tasking_fail(t, AMP_CODE(E_MODEL_UNAVAILABLE), false, "%s", of->why);
        return 0;
    case AMP_END_REPEAT: /* its answer may say what it used */
        if (amp_answer_read(&of->files, "aop_result.json", &t->answer, &why) < 0)
            t->answer = NULL;
        break;
    case AMP_END_STOPPED:
        break;
    }
    return amp_expense_end(t, err) < 0 ? -1 : run_leave(t, err);
}

/* A failure of the preparation with a code of the contract is one of the run. */
static int unless_refused(struct amp_tasking *t, int rc, struct amp_error *err)
{
    if (rc >= 0 || err->status != AMP_NO || strncmp(err->code, "E_", 2) != 0)
        return rc;
    amp_tasking_fail(t, err->code, false, "%s", err->what);
    return 1;
}

int amp_tasking_command(struct amp_tasking *t, const char *phase, struct amp_error *err)
{
    struct amp_assignment *of = &t->of;
    AMP_CLEANUP(amp_buf_release) struct amp_buf mem = {0};
    struct extra x = {0};
    int64_t wait = -1;
    if (amp_tasking_time(t, &wait, err) < 0 || amp_expense_begin(t, err) < 0)
        return -1;
    if (!t->failing && amp_expense_all(t))
        amp_tasking_fail(t, AMP_CODE(E_COST_LIMIT_EXCEEDED), false,
                         "a budget of the TASK is used up");
    if (t->failing)
        return 0;
    run_reset(t);
    int rc = extra_make(t, phase, &x, err);
    mem = x.mem;
    if ((rc = unless_refused(t, rc < 0 ? rc : message_make(t, err), err)) != 0)
        return rc < 0 ? -1 : 0;
    of->extra = x.v;
    of->argv = (const char *const *)t->model.argv;
    t->w->opt->progress("%s: %s works on it with %s %s%s%s", of->task, t->agent, t->model.provider,
                        t->model.name, phase ? ", phase " : "", phase ? phase : "");
    if (!t->has_begun)
        t->began_ms = amp_now_ms();
    t->has_begun = true;
    amp_beats_begin(t);
    /* The takeover of an earlier run may have moved the branch. */
    if (*of->repo && amp_git_resolve(t->w->git, of->worktree, "HEAD", of->start, err) < 0)
        return -1;
    rc = amp_assignment_files(t->w, of, err) < 0 || amp_assignment_run(t->w, NULL, of, err) < 0 ? -1
                                                                                                : 0;
    of->extra = NULL;
    if (rc < 0 || amp_tasking_unask_all(t, err) < 0)
        return -1;
    if (!t->failing)
        rc = end_judge(t, err);
    return rc != 0 ? rc : amp_beats_end(t, err) < 0 || amp_expense_end(t, err) < 0 ? -1 : 0;
}

/* ---- models ---- */

static json_t *alternatives_of(const struct amp_tasking *t)
{
    return json_object_get(json_object_get(t->task, "execution_policy"), "alternative_models");
}

static const json_t *model_of(const struct amp_tasking *t, unsigned at)
{
    return at == 0 ? json_object_get(t->task, "target")
                   : json_array_get(alternatives_of(t), at - 1);
}

/* A run of an alternative: the first one with this model that was not tried. */
static void alternative_resume(struct amp_tasking *t, const struct amp_session_try *run)
{
    const json_t *m;
    size_t i;
    json_array_foreach (alternatives_of(t), i, m) {
        if (t->tried & 1u << i || !amp_span_is(run->provider, amp_json_str(m, "provider")) ||
            !amp_span_is(run->model, amp_json_str(m, "model")))
            continue;
        t->tried |= 1u << i;
        t->model_at = (unsigned)i + 1;
        return;
    }
}

/* After a crash, loads the models that were tried, and the one that was at work. */
static int models_resume(struct amp_tasking *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = 64 << 20};
    struct amp_session_task rec;
    int found =
        amp_session_task_find(t->w->store, amp_span_str(t->session), t->v->task, &mem, &rec, err);
    if (found <= 0)
        return found;
    const struct amp_session_try *last = NULL;
    for (uint32_t i = 0; i < rec.n_tries; i++) {
        const struct amp_session_try *now = &rec.tries[i];
        if (now->attempt != rec.attempt)
            continue;
        /* After a run that was interrupted, not by an error, the same model began again. */
        if (last && last->code.n > 0)
            alternative_resume(t, now);
        last = now;
    }
    return 0;
}

/* Notes the failure of a model. */
static int failure_note(struct amp_tasking *t, struct amp_error *err)
{
    char text[900];
    snprintf(text, sizeof text, "%s: %s (%s %.100s)", t->failure.code, t->failure.what,
             t->model.provider, t->model.name);
    amp_utf8_clean(text);
    t->w->opt->note("%s: %s", t->of.task, text);
    return text_add(t->errors, text, err) < 0 ? -1 : 0;
}

/* The failure ends the TASK. */
static void models_end(struct amp_tasking *t, bool abort)
{
    const char *code = t->failure.code;
    bool exhausted = t->tried != 0 && !amp_code_is(code, E_ROLLBACK_FAILED) &&
                     !amp_code_is(code, E_COST_LIMIT_EXCEEDED) && !abort;
    if (exhausted)
        amp_tasking_end(t, "FAILED", amp_aop_exhausted(alternatives_of(t), code),
                        "no model is left; the last one failed with %s: %.500s", code,
                        t->failure.what);
    else
        amp_tasking_end(t, abort ? "ABORTED" : "FAILED", code, "%s", t->failure.what);
}

/* After the failure of a model. 1: another one is to be tried; 0: the TASK has ended; -1. */
static int fallback(struct amp_tasking *t, bool abort, struct amp_error *err)
{
    const struct amp_aop_run_error e = {
        .code = t->failure.code, .is_critical = t->failure.critical, .is_first = t->model_at == 0};
    if (failure_note(t, err) < 0)
        return -1;
    abort = abort || (t->policy.abort_on_first_critical_error.value && t->failure.critical);
    int next =
        abort || amp_expense_all(t) ? -1 : amp_aop_fallback_next(alternatives_of(t), t->tried, &e);
    if (next < 0) {
        models_end(t, abort);
        return 0;
    }
    int rc = amp_tasking_restore(t, "FALLBACK", err);
    if (rc != 0) {
        if (rc > 0)
            models_end(t, false);
        return rc < 0 ? -1 : 0;
    }
    t->tried |= 1u << next;
    t->model_at = (unsigned)next + 1;
    return 1;
}

/* Commits what was left on the branch of the TASK. */
static int branch_commit(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_assignment *of = &t->of;
    char what[512], email[256], message[400];
    const char *own = json_string_value(json_object_get(t->answer, "commit_message"));
    if (!*of->repo)
        return 0;
    if (*of->taking.error.code) {
        amp_tasking_fail(t, AMP_CODE(E_PERMISSION_DENIED), false, "%s: %.400s",
                         of->taking.error.code, of->taking.error.what);
        return 0;
    }
    int tripped = amp_assignment_tripped(t->w, of, what, sizeof what, err);
    if (tripped != 0) {
        amp_tasking_fail(t, AMP_CODE(E_PERMISSION_DENIED), false, "branch_violation: %s", what);
        return tripped < 0 ? -1 : 0;
    }
    amp_agent_email(t->w->opt->agent, email, sizeof email);
    snprintf(message, sizeof message, "Work on %s\n", of->task);
    const struct amp_git_commit_spec spec = {of->repo,
                                             of->worktree,
                                             t->w->opt->agent,
                                             email,
                                             own ? own : message,
                                             t->w->opt->agent,
                                             of->task,
                                             t->w->opt->take.object_bytes};
    if (amp_git_commit(t->w->git, &spec, of->commit, err) >= 0)
        return 0;
    if (!amp_worker_is_cause(err))
        return -1;
    amp_tasking_fail(t, AMP_CODE(E_UNKNOWN), false, "the changes cannot be committed: %.300s",
                     err->what);
    return 0;
}

/* The work of one model, from its command to what it is worth. Returns as amp_tasking_command. */
static int model_work(struct amp_tasking *t, bool *abort, struct amp_error *err)
{
    bool some = false;
    const char *source;
    int64_t limit = limit_ms(t, &source);
    t->limit_mono_ms = limit > 0 ? amp_mono_ms() + limit : 0;
    t->warned_of_time = false;
    int rc = amp_phases_run(t, abort, err);
    if (rc != 0 || *t->failure.code)
        return rc;
    if ((rc = amp_tasking_conclude(t, err)) != 0 || *t->failure.code)
        return rc;
    if (strcmp(t->outcome.state, "COMPLETED") != 0)
        return 0;
    if ((rc = branch_commit(t, err)) != 0 || *t->failure.code)
        return rc;
    rc = amp_phases_outputs(t, &some, err);
    t->partial = some && *t->failure.code;
    return rc;
}

static int model_run(struct amp_tasking *t, bool *abort, struct amp_error *err)
{
    const json_t *m = model_of(t, t->model_at);
    const char *provider = amp_json_str(m, "provider"), *name = amp_json_str(m, "model");
    const struct amp_session_voice v = amp_tasking_voice(t);
    struct amp_session_usage used;
    char after[48];
    amp_expense_used(t, &used);
    snprintf(after, sizeof after, "%s", t->failure.code);
    t->failure = (struct amp_tasking_failure){0};
    t->failing = t->partial = false;
    t->outcome.state = NULL;
    amp_tasking_model_release(&t->model);
    run_reset(t);
    if (amp_session_begun(&v, t->v, amp_span_str(provider), amp_span_str(name), after,
                          *after ? &used : NULL, err) < 0)
        return -1;
    t->w->io->dirty = true;
    int rc = unless_refused(t, amp_tasking_model_find(t, provider, name, &t->model, err), err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    return model_work(t, abort, err);
}

static int models_run(struct amp_tasking *t, struct amp_error *err)
{
    for (;;) {
        bool abort = false;
        int rc = model_run(t, &abort, err);
        if (rc != 0)
            return rc;
        if (!*t->failure.code)
            return 0;
        if ((rc = fallback(t, abort, err)) <= 0)
            return rc;
    }
}

/* ---- the attempt ---- */

/* Checks what the TASK needs before a model may begin. */
static int attempt_check(struct amp_tasking *t, struct amp_error *err)
{
    const json_t *target = json_object_get(t->task, "target");
    const json_t *headless =
        json_object_get(json_object_get(target, "capabilities"), "headless_mode");
    struct amp_error why;
    if (json_is_false(headless))
        return amp_fail(err, AMP_NO, E_AGENT_NOT_FOUND,
                        "%.200s has no headless_mode: it cannot be reached without a terminal",
                        t->agent);
    if (json_array_size(alternatives_of(t)) > AMP_AOP_MODELS_MOST)
        return amp_fail(err, AMP_NO, E_CONTEXT_OVERFLOW, "more than %d alternative_models",
                        AMP_AOP_MODELS_MOST);
    if (amp_checks_ready(t->task, &why) < 0)
        return why.status == AMP_DATAERR
                   ? amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION, "%s", why.what)
                   : (*err = why, -1);
    return amp_tasking_place(t, err);
}

static int os_look(struct amp_tasking *t, struct amp_error *err)
{
    const char *os =
        amp_json_str(json_object_get(json_object_get(t->task, "task"), "environment"), "os");
    return !*os || strncmp(os, "linux", 5) == 0
               ? 0
               : amp_tasking_warn(t, err, "the TASK is for the system \"%.60s\"; this is linux",
                                  os);
}

/* An expected output that the work did not leave. */
static void missing_judge(struct amp_tasking *t)
{
    size_t n = json_array_size(t->artifacts.missing);
    if (n > 0 && strcmp(t->outcome.state, "COMPLETED") == 0)
        amp_tasking_end(t, "FAILED", AMP_CODE(E_UNKNOWN),
                        "%zu expected outputs are missing or no files: %.300s%s", n,
                        json_string_value(json_array_get(t->artifacts.missing, 0)),
                        n > 1 ? " …" : "");
}

static int job_start(struct amp_tasking *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf walls = {.max = 4096};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_START};
    if (amp_confined_note(t->w, &walls, err) < 0)
        return -1;
    step.why = walls.data;
    return amp_worker_step(t->w, t->job, &step, NULL, err);
}

/* Restores the snapshot after FAILED or ABORTED, not after partial success; then measures the
 * artifacts again. */
static int attempt_undo(struct amp_tasking *t, struct amp_error *err)
{
    bool failed = strcmp(t->outcome.state, "FAILED") == 0 && !t->partial;
    bool aborted = strcmp(t->outcome.state, "ABORTED") == 0;
    if (!t->has_snapshot || (!failed && !aborted))
        return 0;
    int rc = amp_tasking_restore(t, aborted ? "TASK_ABORTED" : "TASK_FAILED", err);
    if (rc > 0)
        amp_tasking_end(t, "FAILED", AMP_CODE(E_ROLLBACK_FAILED), "%.500s", t->failure.what);
    if (rc < 0)
        return -1;
    amp_artifacts_release(&t->artifacts);
    t->artifacts = (struct amp_artifacts){0};
    return amp_tasking_measure(t, err);
}

/* Undoes first what a killed or repeated attempt left half done, if there is a snapshot. 1: that
 * failed, and the TASK has ended. */
static int leftovers_undo(struct amp_tasking *t, bool repeated, struct amp_error *err)
{
    if (repeated && amp_tasking_snapshot(t, err) < 0)
        return -1;
    int rc = repeated ? amp_tasking_restore(t, NULL, err) : 0;
    if (rc > 0)
        amp_tasking_end(t, "FAILED", AMP_CODE(E_ROLLBACK_FAILED), "%.500s", t->failure.what);
    return rc;
}

/* Without a worktree of its own the TASK works in the repository of its place, if there is one. */
static void repository_note(struct amp_tasking *t)
{
    struct amp_repository repo = {0};
    struct amp_git_info info = {0};
    struct amp_error no;
    if (amp_repository_find(t->place, &repo, &no) < 0 || !repo.found)
        return;
    snprintf(t->of.in_repo, sizeof t->of.in_repo, "%s", repo.top);
    if (amp_git_info(t->w->git, t->place, &info, &no) == 0)
        snprintf(t->of.in_branch, sizeof t->of.in_branch, "%s", info.branch);
}

int amp_tasking_attempt(struct amp_tasking *t, struct amp_error *err)
{
    bool repeated = t->job->attempts > 0 && !t->job->keeps;
    if (attempt_check(t, err) < 0 || amp_tasking_branch(t, err) < 0)
        return -1;
    if (!*t->of.repo) {
        snprintf(t->of.worktree, sizeof t->of.worktree, "%s", t->place);
        repository_note(t);
    }
    int rc = leftovers_undo(t, repeated, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (amp_tasking_inputs(t, err) < 0 || job_start(t, err) < 0)
        return -1;
    t->of.attempt = t->job->attempts;
    t->of.turn = run_turn;
    t->of.line = amp_tasking_line;
    t->of.ask = amp_tasking_ask;
    t->of.unask = amp_tasking_unask;
    t->of.own_limit = t->of.responds = true;
    if (os_look(t, err) < 0 || amp_tasking_snapshot(t, err) < 0 ||
        amp_tasking_measure_before(t, err) < 0 || models_resume(t, err) < 0)
        return -1;
    if ((rc = models_run(t, err)) != 0)
        return rc;
    if (t->partial && strcmp(t->outcome.state, "FAILED") == 0)
        t->outcome.signal = "PARTIAL_SUCCESS";
    if (amp_tasking_measure(t, err) < 0)
        return -1;
    missing_judge(t);
    /* The fault of the RESPONSE decides whether the work stays. */
    return amp_tasking_respond(t, err) < 0 ? -1 : attempt_undo(t, err);
}
