/*
 * The answer of the agent: members of a RESPONSE, or a complete one, in $AMP_RESULT
 * (schemas/agent/aop_result.json). It is untrusted. It decides about the end, but not about what
 * the executor measures.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <amp/protocol/meaning.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/aop/run/private.h"
#include "json/text.h"

enum { STATUS_UNAVAILABLE = 69, SUMMARY_MAX = 4000 };

const char *amp_tasking_code(const struct amp_tasking *t, const char *code)
{
    for (const struct amp_meaning *m = amp_meanings(t->v->protocol); m->code; m++)
        if (strcmp(m->code, code) == 0 && strncmp(code, "E_", 2) == 0)
            return m->code;
    return NULL;
}

static bool is_own(const json_t *answer, const char *key, const char *expected)
{
    const json_t *has = json_object_get(answer, key);
    return !has || strcmp(json_string_value(has) ? json_string_value(has) : "", expected) == 0;
}

/* The actions of all runs are those of the TASK. */
static int actions_add(struct amp_tasking *t, struct amp_error *err)
{
    json_t *list = json_object_get(json_object_get(t->answer, "execution_summary"), "actions");
    return !json_is_array(list) || json_array_extend(t->actions, list) == 0 ? 0
                                                                            : amp_fail_memory(err);
}

/* Warnings and errors that the agent reports are passed on. */
static int remarks_add(struct amp_tasking *t, struct amp_error *err)
{
    const json_t *s = json_object_get(t->answer, "execution_summary");
    json_t *warnings = json_object_get(s, "warnings"), *errors = json_object_get(s, "errors");
    return (warnings && json_array_extend(t->warnings, warnings) < 0) ||
                   (errors && json_array_extend(t->errors, errors) < 0)
               ? amp_fail_memory(err)
               : 0;
}

/* The signal of the answer, "" if it has none. */
static const char *signal_of(const json_t *answer)
{
    static const char *const words[][2] = {
        {"complete", "SUCCESS"}, {"partial", "PARTIAL_SUCCESS"}, {"failed", "FAILURE"}};
    const char *own = amp_json_str(json_object_get(answer, "task_status"), "final_signal");
    const char *word = amp_json_str(answer, "completion_status");
    for (size_t i = 0; !*own && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i][0]) == 0)
            return words[i][1];
    return own;
}

static const char *state_of(const json_t *answer)
{
    return amp_json_str(json_object_get(answer, "task_status"), "state");
}

/* Whether the answer reports that the work failed. */
static bool is_failure(const json_t *answer)
{
    return strcmp(signal_of(answer), "FAILURE") == 0 || strcmp(state_of(answer), "FAILED") == 0;
}

static bool is_abort(const json_t *answer)
{
    return strcmp(signal_of(answer), "ABORTED") == 0 || strcmp(state_of(answer), "ABORTED") == 0;
}

static void failure_take(struct amp_tasking *t)
{
    const json_t *e = json_object_get(t->answer, "error_details");
    const char *code = amp_json_str(e, "error_code"), *known = amp_tasking_code(t, code);
    const char *text = amp_json_str(e, "message");
    bool critical = json_is_true(json_object_get(json_object_get(e, "extensions"), "x_critical"));
    if (!known)
        known = "E_UNKNOWN";
    if (!*text)
        text = amp_json_str(json_object_get(t->answer, "task_status"), "message");
    amp_tasking_fail(t, known, critical, "%s%s%.400s", strcmp(code, known) == 0 ? "" : code,
                     strcmp(code, known) == 0 || !*code ? "" : ": ",
                     *text ? text : "the agent reports a failure");
}

int amp_tasking_answer(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_assignment *of = &t->of;
    struct amp_error why;
    if (of->status == STATUS_UNAVAILABLE) {
        amp_tasking_fail(t, AMP_CODE(E_MODEL_UNAVAILABLE), false, "%s", of->why);
        return 0;
    }
    if (*of->forgeries.answer) {
        amp_tasking_fail(t, AMP_CODE(E_MALFORMED_RESPONSE), false, "%s", of->forgeries.answer);
        return 0;
    }
    if (amp_answer_read(&of->files, "aop_result.json", &t->answer, &why) < 0) {
        if (why.status != AMP_DATAERR) {
            *err = why;
            return -1;
        }
        t->answer = NULL;
        amp_tasking_fail(t, AMP_CODE(E_MALFORMED_RESPONSE), false, "%.500s", why.what);
        return 0;
    }
    if (!is_own(t->answer, "session_id", t->session) ||
        !is_own(t->answer, "task_id", amp_json_str(json_object_get(t->task, "task"), "task_id"))) {
        amp_tasking_fail(t, AMP_CODE(E_MALFORMED_RESPONSE), false,
                         "the answer is the RESPONSE to another TASK");
        return 0;
    }
    if (actions_add(t, err) < 0 || remarks_add(t, err) < 0)
        return -1;
    if (t->answer && is_failure(t->answer)) {
        failure_take(t);
    } else if (of->end == AMP_END_FAILED && !(t->answer && is_abort(t->answer))) {
        amp_tasking_fail(t, AMP_CODE(E_PROCESS_CRASH), false, "%s%s",
                         t->answer ? "its answer reports no failure, but " : "", of->why);
    }
    return 0;
}

/* ---- the end ---- */

/* The summary of the answer, or the command's output; NULL: none. */
json_t *amp_tasking_objective(const struct amp_tasking *t)
{
    enum { OBJECTIVE_MAX = 2000 };
    char text[OBJECTIVE_MAX + 1];
    snprintf(text, sizeof text, "%s", amp_json_str(json_object_get(t->task, "task"), "objective"));
    return amp_json_text(text);
}

json_t *amp_tasking_summary(const struct amp_tasking *t)
{
    size_t most = (size_t)t->w->opt->output_bytes;
    AMP_BUF struct amp_buf text = {.max = most + 65537};
    const char *own = amp_json_str(json_object_get(t->answer, "execution_summary"), "summary");
    if (own[strspn(own, " \t\r\n")])
        return json_string(own);
    if (!*t->of.files.dir || amp_attempt_output(t->of.files.out, most, &text) < 0)
        return NULL;
    while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
        text.len--;
    size_t from = 0;
    while (from < text.len && strchr(" \t\r\n", text.data[from]))
        from++;
    if (from == text.len)
        return NULL;
    char *at = text.data + from;
    at[text.len - from < SUMMARY_MAX ? text.len - from : SUMMARY_MAX] = '\0';
    amp_utf8_clean(at);
    return json_string(at);
}

static int guard_note(struct amp_tasking *t, enum amp_session_check check, bool passed,
                      const char *what, struct amp_error *err)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    return amp_session_guard(&v, t->v, check, passed ? AMP_SESSION_PASS : AMP_SESSION_FAIL, what,
                             passed ? "" : AMP_CODE(E_MALFORMED_RESPONSE), err);
}

int amp_tasking_conclude(struct amp_tasking *t, struct amp_error *err)
{
    const char *signal = signal_of(t->answer), *state = state_of(t->answer);
    if (t->policy.final_signal.value) {
        if (guard_note(t, AMP_SESSION_CHECK_FINAL_SIGNAL, *signal != '\0',
                       *signal ? signal : "the answer has no final_signal", err) < 0)
            return -1;
        if (!*signal) {
            amp_tasking_fail(
                t, AMP_CODE(E_MALFORMED_RESPONSE), false,
                "require_final_signal: the answer has neither task_status.final_signal "
                "nor completion_status");
            return 0;
        }
    }
    if (t->policy.minimal_report.value) {
        json_auto_t *summary = amp_tasking_summary(t);
        bool enough = summary && json_array_size(t->actions) > 0;
        if (guard_note(t, AMP_SESSION_CHECK_MINIMAL_REPORT, enough,
                       enough     ? "summary and actions are there"
                       : !summary ? "the answer has no summary"
                                  : "the answer has no actions",
                       err) < 0)
            return -1;
        if (!enough) {
            amp_tasking_fail(t, AMP_CODE(E_MALFORMED_RESPONSE), false,
                             "require_minimal_report: the answer has no %s",
                             !summary ? "summary, and the command printed nothing"
                                      : "actions, and no progress was reported");
            return 0;
        }
    }
    t->outcome = (struct amp_tasking_outcome){
        .state = "COMPLETED",
        .signal = strcmp(signal, "PARTIAL_SUCCESS") == 0 ? "PARTIAL_SUCCESS" : "SUCCESS"};
    if (t->answer && is_abort(t->answer)) {
        t->outcome.state = t->outcome.signal = "ABORTED";
    } else if (strcmp(state, "SKIPPED") == 0) {
        t->outcome.state = "SKIPPED";
        t->outcome.signal = strcmp(signal, "SUCCESS") == 0           ? "SUCCESS"
                            : strcmp(signal, "PARTIAL_SUCCESS") == 0 ? "PARTIAL_SUCCESS"
                                                                     : "ABORTED";
    }
    const char *said = amp_json_str(json_object_get(t->answer, "task_status"), "message");
    snprintf(t->outcome.what, sizeof t->outcome.what, "%.790s", said);
    amp_utf8_clean(t->outcome.what);
    return 0;
}
