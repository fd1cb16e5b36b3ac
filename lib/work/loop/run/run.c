/*
 * The Executor's work on one dispatch. A repeated attempt starts where the first one started:
 * changes that a killed agent left are kept under a ref, and its commits are removed from the
 * branch. A finished attempt is committed under the agent's name before the change is measured.
 */
#include "work/loop/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/work.h"
#include "message/record/subject.h"
#include "work/attempt/control.h"
#include "work/attempt/left/forgeries.h"
#include "work/attempt/walls/confined.h"
#include "work/git/paths/reserve.h"
#include "work/git/repository/patch.h"
#include "work/rtp/run/runtime.h"
#include "work/task/record.h"

/* The work on one subtask. */
struct work {
    struct amp_assignment of;
    const struct amp_subtask *sub; /* NULL if the dispatch has no subtask */
    struct amp_git_diff diff;
    json_t *answer;          /* the agent's, or NULL */
    char trouble[1024];      /* the error that makes the result "failed", or "" */
    char first[AMP_OID_MAX]; /* the branch's commit before the first attempt */
};

static const struct amp_run_options *run_options(struct amp_worker *w)
{
    return w->ctx;
}

static int branch_refuse(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    static const char *const suggested[] = {"Dispatch the task again with another branch",
                                            "Terminate the task", NULL};
    struct amp_span branch = v->body.dispatch.branch;
    char why[512];
    const struct amp_worker_trouble trouble = {"branch_violation", why, suggested};

    snprintf(why, sizeof why, "The dispatch names the protected branch %.*s", (int)branch.n,
             branch.p ? branch.p : "");
    return amp_worker_refuse(w, v, trouble.type, why, false, &trouble, err);
}

static int dispatch_admit(struct amp_worker *w, const struct amp_view *v, const char *bad,
                          struct amp_error *err)
{
    /* An invalid line of another protocol is in the error log. */
    if (!amp_work_of(v->protocol)->keeps_tasks)
        return bad != NULL;
    if (bad ? !strcmp(bad, "branch_violation")
            : amp_branch_is_protected(v->body.dispatch.branch, w->opt->protected_))
        return branch_refuse(w, v, err);
    if (bad ? amp_code_is(bad, empty_acceptance_criteria) : !v->body.dispatch.criteria.n)
        return amp_worker_refuse(w, v, AMP_CODE(empty_acceptance_criteria),
                                 "The acceptance criteria are missing", true, NULL, err);
    if (bad)
        return amp_worker_refuse(w, v, bad, "The dispatch is invalid", false, NULL, err);
    return amp_worker_refuse_suspended(w, v, err);
}

/* Without a coordinator that records the base, the first commit of the work on the branch is the
 * base. */
struct base {
    const char *commit;
};
static const struct amp_rec_field base_fields[] = {
    AMP_REC_EVER(CSTR, struct base, "commit", commit)};
AMP_REC_TABLE(base_rec, "the record of a branch's base", struct base, base_fields);

static const char *const base_states[] = {"KNOWN", NULL};
static const struct amp_subject bases = {.kind = "base", .table = &base_rec, .states = base_states};

static int base_keep(struct amp_worker *w, struct work *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_assignment *of = &k->of;
    struct base b = {of->start};
    struct amp_key key = AMP_KEY(bases.kind, amp_span_str(of->task), amp_span_str(of->branch));

    if (amp_subject_put(&bases, w->store, key, &b, true, "begin", NULL, err) < 0 ||
        amp_subject_find(&bases, w->store, key, &mem, &b, err) < 0)
        return -1;
    if (!amp_span_copy(amp_span_str(b.commit), of->base, sizeof of->base))
        return amp_fail(err, AMP_DATAERR, bad_record, "the base of %s is not a commit", of->branch);
    return 0;
}

/* The base that the coordinator recorded, or the executor. */
static int base_find(struct amp_store *s, const struct amp_view *v, char base[AMP_OID_MAX],
                     struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct base b = {0};

    if (amp_task_load(s, v->task, &t, NULL, err) < 0)
        return -1;
    b.commit = t.base;
    if (!*t.base &&
        amp_subject_find(&bases, s, AMP_KEY(bases.kind, v->task, v->body.dispatch.branch), &mem, &b,
                         err) < 0)
        return -1;
    if (!*b.commit)
        return amp_fail(err, AMP_NO, missing_field,
                        "the answer needs diff_summary: no base of the branch is recorded; give it "
                        "with --data");
    return amp_span_copy(amp_span_str(b.commit), base, AMP_OID_MAX)
               ? 0
               : amp_fail(err, AMP_DATAERR, bad_record, "the base is not a commit");
}

int amp_run_measure(struct amp_store *s, struct amp_git *git, const struct amp_view *v,
                    char commit[AMP_OID_MAX], struct amp_git_diff *out, struct amp_error *err)
{
    char repo[PATH_MAX], branch[256], base[AMP_OID_MAX];

    if (!amp_span_copy(v->body.dispatch.repo, repo, sizeof repo) ||
        !amp_span_copy(v->body.dispatch.branch, branch, sizeof branch))
        return amp_fail(err, AMP_NO, bad_value, "the dispatch names no repository or branch");
    return base_find(s, v, base, err) < 0 || amp_git_resolve(git, repo, branch, commit, err) < 0 ||
                   amp_git_diff(git, repo, NULL, 0, base, commit, NULL, out, err) < 0
               ? -1
               : 0;
}

static int work_prepare(struct amp_worker *w, struct amp_item *job, struct work *k,
                        struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    char head[AMP_OID_MAX];
    bool again = job->start[0] != 0 && !job->keeps;
    const struct amp_worker_place place = {of->branch, *of->base ? of->base : NULL, again};

    if (amp_assignment_bind(w, of, &place, err) ||
        amp_git_resolve(w->git, of->worktree, "HEAD", head, err))
        return -1;
    if (again && strcmp(head, job->start)) {
        char email[256], ref[AMP_KEEP_REF_MAX];
        amp_agent_email(w->opt->agent, email, sizeof email);
        amp_git_keep_ref(w->opt->agent, amp_now_ms(), ref);
        const struct amp_git_rollback_spec back = {of->repo,      of->branch, job->start, head,
                                                   w->opt->agent, email,      ref};
        int rc = amp_git_rollback(w->git, &back, err);
        if (rc < 0)
            return -1;
        if (rc)
            w->opt->note("%s: reset to %.12s; the commits of the last attempt are kept as %s",
                         of->branch, job->start, ref);
        snprintf(head, sizeof head, "%s", job->start);
    }
    snprintf(k->of.start, sizeof k->of.start, "%s", head);
    snprintf(k->first, sizeof k->first, "%s", job->keeps && *job->start ? job->start : head);
    return *of->base ? 0 : base_keep(w, k, err);
}

static int work_commit(struct amp_worker *w, struct work *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf message = {0};
    char email[256];
    struct amp_span what = k->sub ? k->sub->description : k->of.v->body.dispatch.description;

    amp_buf_init(&message, 1 << 20);
    amp_agent_email(w->opt->agent, email, sizeof email);
    const char *own = json_string_value(json_object_get(k->answer, "commit_message"));
    if ((own ? amp_buf_str(&message, own, err)
             : amp_buf_fmt(&message, err, "%.*s\n\nSubtask %s, attempt %lld\n",
                           (int)(what.n > 4000 ? 4000 : what.n), what.p, k->of.subtask,
                           (long long)k->of.attempt)) < 0)
        return -1;
    const struct amp_git_commit_spec spec = {k->of.repo, k->of.worktree,           w->opt->agent,
                                             email,      amp_buf_span(&message).p, w->opt->agent,
                                             k->of.task, w->opt->take.object_bytes};
    return amp_git_commit(w->git, &spec, k->of.commit, err) < 0 ? -1 : 0;
}

/* 1: the directory is still a worktree of the repository, 0: it is not, -1: git failed. */
static int is_worktree(struct amp_worker *w, const struct work *k, struct amp_git_info *info,
                       struct amp_error *err)
{
    struct amp_git_info repo;

    if (amp_git_info(w->git, k->of.repo, &repo, err))
        return -1;
    if (!amp_git_info(w->git, k->of.worktree, info, err))
        return !strcmp(info->common, repo.common);
    return amp_code_is(err->code, repo_not_git) ? 0 : -1;
}

/* Takes the commit of an attempt that left its branch or worktree: the branch's, or the start. */
static int work_recover(struct amp_worker *w, struct work *k, bool has_worktree,
                        const struct amp_git_info *info, struct amp_error *err)
{
    struct amp_error e;

    if (has_worktree)
        snprintf(k->trouble, sizeof k->trouble,
                 "The agent left the branch %s: the worktree is at %s", k->of.branch,
                 *info->branch ? info->branch : "a detached commit");
    else
        snprintf(k->trouble, sizeof k->trouble, "The agent removed its worktree");
    if (amp_git_resolve(w->git, k->of.repo, k->of.branch, k->of.commit, &e) == 0)
        return 0;
    if (e.status == AMP_INTERRUPTED) {
        *err = e;
        return -1;
    }
    snprintf(k->of.commit, sizeof k->of.commit, "%s", k->of.start);
    return 0;
}

static int work_measure(struct amp_worker *w, struct work *k, struct amp_error *err)
{
    struct amp_git_info info;
    struct amp_error e;

    if (amp_answer_read(&k->of.files, "result.json", &k->answer, &e) < 0) {
        k->answer = NULL;
        if (*k->of.forgeries.answer)
            snprintf(k->trouble, sizeof k->trouble, "bad_sender: %s", k->of.forgeries.answer);
        else
            snprintf(k->trouble, sizeof k->trouble, "The agent's answer is invalid: %s", e.what);
    }
    if (*k->of.taking.error.code) {
        snprintf(k->trouble, sizeof k->trouble, "%s: %s", k->of.taking.error.code,
                 k->of.taking.error.what);
        snprintf(k->of.commit, sizeof k->of.commit, "%s", k->of.start);
        return amp_git_diff(w->git, k->of.repo, NULL, 0, k->of.base, k->of.commit, NULL, &k->diff,
                            err);
    }
    int ours = is_worktree(w, k, &info, err);
    if (ours < 0)
        return -1;
    /* A confined agent's HEAD is that of its private git directory. */
    if (ours && k->of.taking.done)
        snprintf(info.branch, sizeof info.branch, "%s", k->of.taking.taken.head);
    if (k->of.taking.done && k->of.taking.taken.unfinished) {
        snprintf(k->trouble, sizeof k->trouble,
                 "worktree_unfinished: the agent left a merge, rebase, cherry-pick or revert");
        snprintf(k->of.commit, sizeof k->of.commit, "%s", k->of.taking.taken.commit);
    } else if (!ours || strcmp(info.branch, k->of.branch) != 0) {
        if (work_recover(w, k, ours, &info, err) < 0)
            return -1;
    } else if (work_commit(w, k, &e) < 0) {
        if (e.status == AMP_INTERNAL || e.status == AMP_UNAVAILABLE ||
            e.status == AMP_INTERRUPTED) {
            *err = e;
            return -1;
        }
        snprintf(k->trouble, sizeof k->trouble, "The agent's changes cannot be committed: %s",
                 e.what);
        snprintf(k->of.commit, sizeof k->of.commit, "%s", info.head);
    }
    return amp_git_diff(w->git, k->of.repo, NULL, 0, k->of.base, k->of.commit, NULL, &k->diff,
                        err) < 0 ||
                   amp_forgeries_change(w, &k->of, k->diff.files, k->diff.n_files, err) < 0
               ? -1
               : 0;
}

static bool is_out_of_scope(const struct work *k, const char *const *patterns, char *what,
                            size_t size)
{
    char by[256];

    for (uint32_t i = 0; i < k->diff.n_files; i++) {
        if (amp_scope_forbids(amp_span_str(k->diff.files[i]), patterns,
                              &k->of.v->body.dispatch.forbidden, by, sizeof by)) {
            snprintf(what, size, "The change touches %s, out of scope: %s", k->diff.files[i], by);
            return true;
        }
    }
    return false;
}

/* 1: the change touches a path that another holder reserved. */
static int is_reserved(struct amp_worker *w, const struct work *k, char *what, size_t size,
                       struct amp_error *err)
{
    char by[400];
    uint32_t at;
    int held = amp_reserve_holds(w->store, w->opt->agent, k->diff.files, k->diff.n_files, &at, by,
                                 sizeof by, err);

    if (held > 0)
        snprintf(what, size, "path_reserved: the change touches %s, reserved by %s",
                 k->diff.files[at], by);
    return held;
}

/* Returns the completion of the result and adds its blockers; for a complete result there are none.
 */
static enum amp_completion result_completion(struct work *k, enum amp_attempt_end end,
                                             const char *why, json_t *blockers)
{
    const char *word = amp_json_str(k->answer, "completion_status");
    json_t *own = json_object_get(k->answer, "blockers");
    enum amp_completion c = AMP_COMPLETION_COMPLETE;
    char text[1400];

    if (*k->trouble)
        json_array_append_new(blockers, json_string(k->trouble));
    json_array_extend(blockers, own);
    if (*k->trouble || end != AMP_END_DONE || !strcmp(word, "failed"))
        c = AMP_COMPLETION_FAILED;
    else if (!strcmp(word, "partial") || (!*word && json_array_size(own)))
        c = AMP_COMPLETION_PARTIAL;
    if (end != AMP_END_DONE && !(*k->trouble && end == AMP_END_MACHINERY && !*k->of.files.dir)) {
        snprintf(text, sizeof text, AMP_TASK_UNFINISHED "%s", why);
        json_array_append_new(blockers, json_string(text));
    }
    if (c == AMP_COMPLETION_COMPLETE && !strcmp(k->of.commit, k->first)) {
        c = AMP_COMPLETION_PARTIAL;
        json_array_append_new(blockers, json_string("The agent changed nothing"));
    }
    if (c == AMP_COMPLETION_COMPLETE)
        json_array_clear(blockers);
    else if (!json_array_size(blockers))
        json_array_append_new(blockers, json_string("The agent gave no reason"));
    return c;
}

/* One entry for each criterion: the agent's, or null if it did not judge. */
static json_t *result_assessment(const struct work *k)
{
    json_t *own = json_object_get(k->answer, "self_assessment");
    json_t *met = json_object_get(own, "criteria_met"), *notes = json_object_get(own, "notes");
    json_t *all = json_array();

    for (uint32_t i = 0; i < k->of.v->body.dispatch.criteria.n; i++) {
        json_t *one = json_array_get(met, i);
        json_array_append(all, one ? one : json_null());
    }
    return json_pack("{s:o, s:o}", "criteria_met", all, "notes",
                     json_is_array(notes) ? json_incref(notes) : json_array());
}

/* Adds an entry of the worker. */
static int log_add(json_t *log, const char *action, const char *detail, int64_t now_ms,
                   struct amp_error *err)
{
    json_auto_t *e = json_pack("{s:s, s:s}", "action", action, "detail", detail);
    return e ? amp_work_log_add(log, e, now_ms, err) : amp_fail_memory(err);
}

/* Logs what was enforced, and what was taken over. */
static int confinement_log(struct amp_worker *w, const struct work *k, json_t *log, int64_t now,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const struct amp_git_taken *t = &k->of.taking.taken;

    amp_buf_init(&text, 4096);
    if (amp_confined_text(w, &text, err) < 0 || amp_buf_add(&text, "", 1, err) < 0 ||
        log_add(log, "confinement", text.data, now, err) < 0)
        return -1;
    if (!k->of.taking.done)
        return 0;
    amp_buf_reset(&text);
    return amp_buf_fmt(&text, err, "%lld commits, %lld objects, %lld bytes", (long long)t->commits,
                       (long long)t->objects, (long long)t->bytes) < 0 ||
                   amp_buf_add(&text, "", 1, err) < 0
               ? -1
               : log_add(log, "taken_over", text.data, now, err);
}

/* The agent's log, the log and the usage in its answer, and the duration of the attempt. */
static int result_log(struct amp_worker *w, struct work *k, const char *why, json_t *log,
                      struct amp_error *err)
{
    json_t *own, *used = json_object_get(k->answer, "usage");
    int64_t now = amp_now_ms();
    char detail[512];
    size_t i;
    struct amp_error e;

    if (*k->of.files.dir && amp_work_log_read(&k->of.files, now, log, &e) < 0 &&
        log_add(log, "bad_work_log", e.what, now, err) < 0)
        return -1;
    json_array_foreach (json_object_get(k->answer, "work_log"), i, own) {
        if (amp_work_log_add(log, own, now, err) < 0)
            return -1;
    }
    if (json_is_object(used)) {
        AMP_FREE char *spent = json_dumps(used, JSON_COMPACT | JSON_REAL_PRECISION(15));
        if (log_add(log, "usage", spent ? spent : "", now, err) < 0)
            return -1;
    }
    json_array_foreach (k->of.words.log, i, own) {
        if (amp_work_log_add(log, own, now, err) < 0)
            return -1;
    }
    if (k->of.began_ms && confinement_log(w, k, log, now, err) < 0)
        return -1;
    snprintf(detail, sizeof detail, "attempt %lld took %lld ms: %s", (long long)k->of.attempt,
             (long long)k->of.wall_ms, why);
    return log_add(log, "run_agent", detail, now, err);
}

static int result_compose(struct amp_worker *w, struct work *k, enum amp_attempt_end end,
                          const char *why, struct amp_buf *line, struct amp_error *err)
{
    json_auto_t *log = json_array(), *files = json_array(), *blockers = json_array();
    char id[256];
    const char *refs[] = {id, NULL};

    if (result_log(w, k, why, log, err) < 0)
        return -1;
    amp_span_copy(k->of.v->id, id, sizeof id);
    for (uint32_t i = 0; i < k->diff.n_files; i++)
        json_array_append_new(files, json_string(k->diff.files[i]));
    enum amp_completion c = result_completion(k, end, why, blockers);
    json_t *payload = json_pack(
        "{s:s, s:s, s:{s:O, s:I, s:I}, s:o, s:O}", "subtask_id", k->of.subtask, "completion_status",
        amp_completion_name(c), "diff_summary", "files_changed", files, "lines_added",
        (json_int_t)k->diff.lines_added, "lines_removed", (json_int_t)k->diff.lines_removed,
        "self_assessment", result_assessment(k), "work_log", log);
    if (*k->of.commit)
        json_object_set_new(payload, "commit_hash", json_string(k->of.commit));
    const char *blocker = json_string_value(json_array_get(blockers, 0));
    w->opt->progress("%s: %s: %s, %u file%s, +%lld -%lld%s%s", k->of.task, k->of.subtask,
                     amp_completion_name(c), k->diff.n_files, k->diff.n_files == 1 ? "" : "s",
                     (long long)k->diff.lines_added, (long long)k->diff.lines_removed,
                     blocker ? ": " : "", blocker ? blocker : "");
    if (c != AMP_COMPLETION_COMPLETE)
        json_object_set(payload, "blockers", blockers);
    const struct amp_envelope env = {
        .type = "task_result",
        .from = "executor",
        .to = "coordinator",
        .task_id = k->of.task,
        .now_ms = amp_now_ms(),
        .context_ref = refs,
    };
    return amp_compose_message(&env, payload, line, NULL, err);
}

/* Ends the job, or goes on with its next subtask. */
static int work_finish(struct amp_worker *w, struct amp_item *job, const struct work *k,
                       const char *why, const struct amp_worker_lines *lines, uint8_t agent_event,
                       struct amp_error *err)
{
    bool more = (uint32_t)job->next + 1 < k->of.v->body.dispatch.n_subtasks;
    struct amp_queue_step step = {.event = more ? AMP_QUEUE_EV_NEXT : AMP_QUEUE_EV_DONE,
                                  .why = why};

    return amp_worker_conclude(w, job, &step, lines, agent_event, err);
}

/* After the attempt: commits and measures the change, checks its scope, answers. */
static int work_answer(struct amp_worker *w, struct amp_item *job, struct work *k,
                       enum amp_attempt_end end, struct amp_error *err)
{
    static const char *const suggested[] = {"Check the branch", "Roll back to the base commit",
                                            "Dispatch the task again", "Terminate the task", NULL};
    AMP_BUF struct amp_buf line = {0}, esc_line = {0};
    char what[512];
    struct amp_worker_trouble trouble = {NULL, what, suggested};
    struct amp_worker_lines lines = {.n = 1};

    amp_buf_init(&line, 16 << 20);
    amp_buf_init(&esc_line, 1 << 18);
    int tripped = amp_assignment_tripped(w, &k->of, what, sizeof what, err);
    if (tripped < 0 || work_measure(w, k, err) < 0)
        return -1;
    int reserved = tripped ? 0 : is_reserved(w, k, what, sizeof what, err);
    if (reserved < 0)
        return -1;
    if (tripped)
        trouble.type = "branch_violation";
    else if (reserved)
        trouble.type = "conflict";
    else if (is_out_of_scope(k, run_options(w)->forbid[k->of.v->body.dispatch.risk], what,
                             sizeof what))
        trouble.type = "permission_denied";
    if (trouble.type)
        snprintf(k->trouble, sizeof k->trouble, "%s", what);
    if (result_compose(w, k, end, k->of.why, &line, err) < 0)
        return -1;
    lines.v[0] = amp_buf_span(&line);
    if (trouble.type) {
        if (amp_worker_escalate(w, k->of.v, &trouble, &esc_line, err) < 0)
            return -1;
        lines.v[lines.n++] = amp_buf_span(&esc_line);
    }
    return work_finish(w, job, k, k->of.why, &lines,
                       end == AMP_END_DONE ? AMP_AGENT_EV_COMPLETE : AMP_AGENT_EV_FAIL, err);
}

static int files_make(struct amp_worker *w, struct work *k, struct amp_error *err)
{
    const struct amp_spans *c = &k->of.v->body.dispatch.criteria;
    struct amp_jw jw;

    amp_buf_reset(&k->of.criteria);
    amp_jw_init(&jw, &k->of.criteria);
    amp_jw_open(&jw, '[');
    for (uint32_t i = 0; i < c->n; i++)
        amp_jw_str(&jw, c->v[i]);
    amp_jw_close(&jw, ']');
    return amp_jw_end(&jw, err) < 0 ? -1 : amp_assignment_files(w, &k->of, err);
}

static int work_attempt(struct amp_worker *w, struct amp_item *job, struct work *k,
                        struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    bool spent;
    AMP_BUF struct amp_buf walls = {0};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_START, .start = k->first};

    amp_buf_init(&walls, 4096);
    if (amp_confined_note(w, &walls, err) < 0)
        return -1;
    step.why = walls.data;

    if (amp_worker_step(w, job, &step, NULL, err) < 0)
        return -1;
    w->opt->progress("%s: %s works on %s, attempt %lld", of->task, w->opt->agent, of->subtask,
                     (long long)of->attempt);
    if (files_make(w, k, err) < 0 || amp_assignment_run(w, job, of, err) < 0)
        return -1;
    enum amp_attempt_end end = of->end;
    if (end == AMP_END_REPEAT || end == AMP_END_MACHINERY || end == AMP_END_STOPPED) {
        /* A moved ref is reported even if the attempt did not finish. */
        char what[512];
        int tripped = amp_assignment_tripped(w, of, what, sizeof what, err);
        if (tripped)
            return tripped < 0 ? -1 : work_answer(w, job, k, AMP_END_FAILED, err);
        if (amp_assignment_again(w, job, of, end, of->why, &spent, err) < 0)
            return -1;
        if (!spent)
            return amp_assignment_cost(w, of, err);
        end = AMP_END_MACHINERY;
    }
    return work_answer(w, job, k, end, err);
}

/* Reports work that could not start as a failed result. */
static int work_fail(struct amp_worker *w, struct amp_item *job, struct work *k,
                     const struct amp_error *cause, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_queue_step start = {.event = AMP_QUEUE_EV_START};

    amp_buf_init(&line, 16 << 20);
    snprintf(k->trouble, sizeof k->trouble, "%s: %s", cause->code, cause->what);
    if (result_compose(w, k, AMP_END_MACHINERY, cause->what, &line, err) < 0 ||
        amp_worker_step(w, job, &start, NULL, err) < 0)
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    return work_finish(w, job, k, cause->code, &lines, AMP_AGENT_EV_FAIL, err);
}

static void work_init(struct work *k, const struct amp_view *v, const char *base, int64_t index)
{
    struct amp_assignment *of = &k->of;

    of->v = v;
    of->about = v->body.dispatch.description;
    amp_buf_init(&of->criteria, 4 << 20);
    amp_span_copy(v->task, of->task, sizeof of->task);
    amp_span_copy(v->body.dispatch.repo, of->repo, sizeof of->repo);
    amp_span_copy(v->body.dispatch.branch, of->branch, sizeof of->branch);
    snprintf(of->base, sizeof of->base, "%s", base ? base : "");
    if (index < (int64_t)v->body.dispatch.n_subtasks) {
        k->sub = &v->body.dispatch.subtasks[index];
        amp_span_copy(k->sub->id, of->subtask, sizeof of->subtask);
        of->about = k->sub->description;
    } else {
        snprintf(of->subtask, sizeof of->subtask, "%.200s-S1", of->task);
    }
}

static int dispatch_work(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                         struct amp_error *err)
{
    if (!amp_work_of(v->protocol)->keeps_tasks)
        return amp_runtime_work(w, job, v, &run_options(w)->runtime, err);
    struct work *k = calloc(1, sizeof *k);
    int rc = -1;

    if (!k)
        return amp_fail_memory(err);
    work_init(k, v, run_options(w)->base, job->next);
    enum amp_claim claim = amp_worker_claim(w, job, v, v->id, err);
    if (claim != AMP_CLAIM_TAKEN) {
        rc = claim == AMP_CLAIM_DROPPED ? 0 : (int)claim;
    } else if (amp_assignment_look_up(w, &k->of, true, err) == 0) {
        if (amp_worker_may_attempt(w, err) == 0 && work_prepare(w, job, k, err) == 0) {
            rc = work_attempt(w, job, k, err);
        } else if (amp_worker_is_cause(err)) {
            struct amp_error cause = *err;
            /* A pool has other work meanwhile. */
            bool locked = w->opt->wait && amp_code_is(cause.code, worktree_locked);
            rc = locked ? amp_worker_lack(w, job, &cause, err) : work_fail(w, job, k, &cause, err);
        }
    }
    amp_assignment_release(&k->of);
    amp_git_diff_release(&k->diff);
    json_decref(k->answer);
    free(k);
    return rc;
}

static int run_ours(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    int runtime = amp_runtime_is_ours(w, v, err);
    if (runtime != 0)
        return runtime;
    return v->kind == AMP_KIND_DISPATCH && amp_work_of(v->protocol)->keeps_tasks && v->id.n &&
           v->task.n && amp_intake_is_to(v, w->opt->role);
}

const struct amp_worker_role amp_run_role = {.ours = run_ours,
                                             .taken = amp_runtime_taken,
                                             .takes = AMP_KIND_DISPATCH,
                                             .asked_by = AMP_WORK_ASKED_BY,
                                             .admit = dispatch_admit,
                                             .work = dispatch_work};

int amp_run_loop(struct amp_store *s, const struct amp_run_options *opt, enum amp_status *status,
                 struct amp_error *err)
{
    struct amp_run_options mine = *opt;

    return amp_worker_run(s, &mine.worker, &amp_run_role, &mine, status, err);
}
