/* completion.report and status.update (AOF/1, Protocols 2 and 3). */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "work/aof/board/private.h"

static int blockers_join(const struct amp_aof_said *said, const char *between, struct amp_buf *out,
                         struct amp_error *err)
{
    for (uint32_t i = 0; i < said->blockers.n; i++)
        if (amp_buf_str(out, i > 0 ? between : "", err) < 0 ||
            amp_aof_text_add(out, "", said->blockers.v[i], err) < 0)
            return -1;
    return 0;
}

int amp_aof_outcome_reason(const struct amp_aof_said *said, const char *prefix, struct amp_buf *out,
                           struct amp_error *err)
{
    bool lists = said->outcome == AMP_AOF_OUTCOME_BLOCKED && said->blockers.n > 0;
    if (*prefix || !lists) {
        if (amp_buf_fmt(out, err, "%s%s%s", prefix, amp_aof_outcome_name(said->outcome),
                        lists ? ": " : "") < 0)
            return -1;
    }
    return lists ? blockers_join(said, "; ", out, err) : 0;
}

static int warning_add(struct amp_aof_work *w, const struct amp_view *v, const char *reason,
                       const char *field, struct amp_error *err)
{
    const struct amp_aof_why why = {.reason = reason, .field = field, .v = v};
    return amp_aof_why_event(w, "protocol.message.warning", v->task, &why, err);
}

static int files_check(struct amp_aof_work *w, const struct amp_view *v,
                       const struct amp_aof_task *t, const struct amp_aof_said *said,
                       struct amp_error *err)
{
    if (!amp_aof_has_output(&w->r->data, t, said->summary) &&
        warning_add(w, v, "missing_summary", "payload.summaryRef", err) < 0)
        return -1;
    return said->handoff.n > 0 && !amp_aof_has_output(&w->r->data, t, said->handoff)
               ? warning_add(w, v, "missing_handoff", "payload.handoffRef", err)
               : 0;
}

static int has_result(struct amp_aof_work *w, const char *id, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char path[AMP_AOF_PATH_MAX];
    struct amp_error why;
    amp_buf_init(&text, AMP_AOF_RUN_BYTES + 1);
    amp_aof_run_path(path, id, "run_result.json");
    int rc = amp_aof_get(&w->r->data, path, AMP_AOF_RUN_BYTES, &text, &why);
    return amp_aof_if_usable(rc, &why, err);
}

/* "Router writes run_result.json and logs"; a task that is done, or in the status that the outcome
 * asks for, is left as it is. The reason of the transition are the blockers, else the outcome. */
int amp_aof_report(struct amp_aof_work *w, const struct amp_view *v,
                   const struct amp_aof_said *said, struct amp_error *err)
{
    AMP_AOF_TASK struct amp_aof_task t = {0};
    AMP_BUF struct amp_buf result = {0}, reason = {0};
    char id[AMP_AOF_ID_MAX], path[AMP_AOF_PATH_MAX];
    enum amp_aof_moved moved;
    uint8_t event = amp_aof_outcome_event(said->outcome);
    amp_aof_task_init(&t);
    amp_buf_init(&result, (size_t)32 << 20);
    amp_buf_init(&reason, 1 << 20);
    amp_span_copy(v->task, id, sizeof id);
    int rc = amp_aof_task_for(w, v, id, &t, err);
    if (rc > 0)
        rc = amp_aof_may_speak(w, v, &t, AMP_SPAN(""), err);
    if (rc <= 0)
        return rc;
    moved = amp_aof_transition_of(w->r, &t, event);
    if (moved == AMP_AOF_BARRED)
        return amp_aof_refuse_review(w, v, err);
    amp_aof_run_path(path, id, "run_result.json");
    rc = moved == AMP_AOF_MOVED ? 0 : has_result(w, id, err);
    if (rc < 0)
        return -1;
    if (rc == 0) {
        if (files_check(w, v, &t, said, err) < 0 || amp_aof_result_write(v, &result, err) < 0 ||
            amp_aof_put(&w->c, path, amp_buf_span(&result), err) < 0)
            return -1;
    }
    const char *outcome = amp_aof_outcome_name(said->outcome);
    return amp_aof_outcome_reason(said, "", &reason, err) < 0
               ? -1
               : amp_aof_transition(w, &t, event, amp_buf_span(&reason), outcome, &moved, err);
}

/* "- TIME Progress: … | Notes: … | Blockers: a, b" */
static int work_log(struct amp_aof_work *w, const struct amp_aof_task *t,
                    const struct amp_aof_said *said, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0}, blockers = {0};
    char time[AMP_TIME_MAX];
    const char *bar = " ";
    amp_buf_init(&line, 1 << 20);
    amp_buf_init(&blockers, 1 << 16);
    amp_time_format(w->c.now_ms, time);
    if (said->progress.n == 0 && said->notes.n == 0 && said->blockers.n == 0)
        return 0;
    if (blockers_join(said, ", ", &blockers, err) < 0 || amp_buf_fmt(&line, err, "- %s", time) < 0)
        return -1;
    const struct {
        const char *name;
        struct amp_span text;
    } parts[] = {{"Progress: ", said->progress},
                 {"Notes: ", said->notes},
                 {"Blockers: ", amp_buf_span(&blockers)}};
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].text.n == 0)
            continue;
        if (amp_buf_str(&line, bar, err) < 0 ||
            amp_aof_text_add(&line, parts[i].name, parts[i].text, err) < 0)
            return -1;
        bar = " | ";
    }
    const struct amp_aof_set set = {"updatedAt", amp_span_str(time)};
    return amp_aof_edit(&w->c, t->id, t->status, &set, 1, amp_buf_span(&line), err);
}

/* With a status it is a transition, which the task's agent or a person may ask for, and whose
 * reason are the blockers, else the notes, else the progress. Otherwise, or if the machine does not
 * allow the transition, a line of the task's work log. */
int amp_aof_status(struct amp_aof_work *w, const struct amp_view *v,
                   const struct amp_aof_said *said, struct amp_error *err)
{
    static const uint8_t wishes[AMP_AOF_TASK_STATE_COUNT] = {
        [AMP_AOF_BACKLOG] = AMP_AOF_TASK_EV_SHELVE,    [AMP_AOF_READY] = AMP_AOF_TASK_EV_READY,
        [AMP_AOF_IN_PROGRESS] = AMP_AOF_TASK_EV_START, [AMP_AOF_BLOCKED] = AMP_AOF_TASK_EV_BLOCK,
        [AMP_AOF_REVIEW] = AMP_AOF_TASK_EV_REVIEW,     [AMP_AOF_DONE] = AMP_AOF_TASK_EV_DONE,
        [AMP_AOF_CANCELLED] = AMP_AOF_TASK_EV_CANCEL,  [AMP_AOF_DEADLETTER] = AMP_AOF_TASK_EV_BURY,
    };
    AMP_AOF_TASK struct amp_aof_task t = {0};
    AMP_BUF struct amp_buf reason = {0};
    char id[AMP_AOF_ID_MAX];
    enum amp_aof_moved moved = AMP_AOF_ILLEGAL;
    amp_aof_task_init(&t);
    amp_buf_init(&reason, 1 << 20);
    amp_span_copy(v->task, id, sizeof id);
    int status = said->status.n > 0 ? amp_aof_status_find(said->status) : -1;
    int rc = amp_aof_task_for(w, v, id, &t, err);
    if (rc > 0 && status >= 0)
        moved = amp_aof_transition_of(w->r, &t, wishes[status]);
    if (rc > 0 && moved == AMP_AOF_BARRED)
        return amp_aof_refuse_review(w, v, err);
    if (rc > 0 && moved == AMP_AOF_MOVED && !w->r->person)
        rc = amp_aof_may_speak(w, v, &t, AMP_SPAN(""), err);
    if (rc <= 0)
        return rc;
    if (moved != AMP_AOF_MOVED)
        return work_log(w, &t, said, err);
    if (blockers_join(said, "; ", &reason, err) < 0 ||
        (reason.len == 0 && amp_aof_text_add(&reason, "", said->notes, err) < 0) ||
        (reason.len == 0 && amp_aof_text_add(&reason, "", said->progress, err) < 0))
        return -1;
    return amp_aof_transition(w, &t, wishes[status], amp_buf_span(&reason), "", &moved, err);
}
