/* Composing a task_result: measured facts from git, the agent's own word beside them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "flow/work/run.h"
#include "flow/work/run_result.h"
#include "protocol/amp/compose.h"
#include "worktree/patch.h"
#include "worktree/worktree.h"

void amp_work_names(struct amp_work *k, int64_t index)
{
    const struct amp_view *v = k->v;

    amp_buf_init(&k->criteria, 4 << 20);
    amp_span_copy(v->task, k->task, sizeof k->task);
    amp_span_copy(v->body.dispatch.repo, k->repo, sizeof k->repo);
    amp_span_copy(v->body.dispatch.branch, k->branch, sizeof k->branch);
    if (index < (int64_t)v->body.dispatch.n_subtasks) {
        k->sub = &v->body.dispatch.subtasks[index];
        amp_span_copy(k->sub->id, k->subtask, sizeof k->subtask);
    } else {
        snprintf(k->subtask, sizeof k->subtask, "%.200s-S1", k->task);
    }
}

void amp_work_release(struct amp_work *k)
{
    amp_buf_release(&k->criteria);
    amp_git_refs_release(&k->refs);
    amp_git_diff_release(&k->diff);
    json_decref(k->said);
}

int amp_work_contract(struct amp_worker *w, struct amp_work *k, struct amp_error *err)
{
    const struct amp_spans *c = &k->v->body.dispatch.criteria;
    struct amp_jw jw;

    amp_buf_reset(&k->criteria);
    amp_jw_init(&jw, &k->criteria);
    amp_jw_open(&jw, '[');
    for (uint32_t i = 0; i < c->n; i++)
        amp_jw_str(&jw, c->v[i]);
    amp_jw_close(&jw, ']');
    if (amp_jw_end(&jw, err))
        return -1;
    k->contract = (struct amp_contract){
        .role = w->opt->role,
        .agent = w->opt->agent,
        .task = k->task,
        .subtask = k->subtask,
        .attempt = k->attempt,
        .worktree = k->worktree,
        .branch = k->branch,
        .base = k->base,
        .state_dir = w->state_dir,
        .message = k->v->line,
        .criteria = amp_buf_span(&k->criteria),
        .extra = amp_agent_git_env(),
    };
    return amp_attempt_make(&k->contract, &k->files, err);
}

static const char *text(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static int commit(struct amp_worker *w, struct amp_work *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf message = {0};
    char email[256];
    struct amp_span what = k->sub ? k->sub->description : k->v->body.dispatch.description;

    amp_buf_init(&message, 1 << 20);
    amp_agent_email(w->opt->agent, email, sizeof email);
    if (text(k->said, "commit_message")) {
        if (amp_buf_str(&message, text(k->said, "commit_message"), err))
            return -1;
    } else if (amp_buf_fmt(&message, err, "%.*s\n\nSubtask %s, attempt %lld\n",
                           (int)(what.n > 4000 ? 4000 : what.n), what.p, k->subtask,
                           (long long)k->attempt)) {
        return -1;
    }
    const struct amp_git_commit_spec spec = {
        k->repo, k->worktree, w->opt->agent, email, amp_buf_span(&message).p, w->opt->agent};
    return amp_git_commit(w->git, &spec, k->commit, err) < 0 ? -1 : 0;
}

/* Whether what stands there is still a worktree of the repository; -1 where git cannot say. */
static int is_worktree(struct amp_worker *w, const struct amp_work *k, struct amp_git_info *info,
                       struct amp_error *err)
{
    struct amp_git_info repo;

    if (amp_git_info(w->git, k->repo, &repo, err))
        return -1;
    if (!amp_git_info(w->git, k->worktree, info, err))
        return !strcmp(info->common, repo.common);
    return strcmp(err->code, "repo_not_git") ? -1 : 0;
}

int amp_work_measure(struct amp_worker *w, struct amp_work *k, struct amp_error *err)
{
    struct amp_git_info info;
    struct amp_error e;

    if (amp_answer_read(&k->files, "result.json", &k->said, &e)) {
        k->said = NULL;
        snprintf(k->trouble, sizeof k->trouble, "The agent's answer is refused: %s", e.what);
    }
    int ours = is_worktree(w, k, &info, err);
    if (ours < 0)
        return -1;
    if (!ours || strcmp(info.branch, k->branch)) {
        if (ours)
            snprintf(k->trouble, sizeof k->trouble,
                     "The agent left the branch %s: the worktree is at %s", k->branch,
                     *info.branch ? info.branch : "a detached commit");
        else
            snprintf(k->trouble, sizeof k->trouble, "The agent did away with its worktree");
        int rc = amp_git_resolve(w->git, k->repo, k->branch, k->commit, &e);
        if (rc && e.status == AMP_INTERRUPTED) {
            *err = e;
            return -1;
        }
        if (rc)
            snprintf(k->commit, sizeof k->commit, "%s", k->start);
        return amp_git_diff(w->git, k->repo, NULL, k->base, k->commit, NULL, &k->diff, err);
    }
    if (commit(w, k, &e)) {
        if (e.status == AMP_INTERNAL || e.status == AMP_UNAVAILABLE ||
            e.status == AMP_INTERRUPTED) {
            *err = e;
            return -1;
        }
        snprintf(k->trouble, sizeof k->trouble, "What the agent left cannot be committed: %s",
                 e.what);
        snprintf(k->commit, sizeof k->commit, "%s", info.head);
    }
    return amp_git_diff(w->git, k->repo, NULL, k->base, k->commit, NULL, &k->diff, err);
}

bool amp_work_out_of_scope(const struct amp_work *k, const char *const *patterns, char *what,
                           size_t size)
{
    char by[256];

    for (uint32_t i = 0; i < k->diff.n_files; i++) {
        if (amp_scope_forbids(amp_span_str(k->diff.files[i]), patterns,
                              &k->v->body.dispatch.forbidden, by, sizeof by)) {
            snprintf(what, size, "The change touches %s, out of scope: %s", k->diff.files[i], by);
            return true;
        }
    }
    return false;
}

/* The word for the whole, and what stands in its way (an array, empty for complete). */
static enum amp_completion conclude(struct amp_work *k, enum amp_attempt_end end, const char *why,
                                    json_t *blockers)
{
    const char *word = text(k->said, "completion_status");
    json_t *own = json_object_get(k->said, "blockers");
    enum amp_completion c = AMP_COMPLETION_COMPLETE;
    char line[200], said[1400];
    size_t i;
    json_t *b;

    if (*k->trouble)
        json_array_append_new(blockers, json_string(k->trouble));
    json_array_foreach(own, i, b) json_array_append(blockers, b);
    if (*k->trouble || end != AMP_END_DONE || (word && !strcmp(word, "failed")))
        c = AMP_COMPLETION_FAILED;
    else if ((word && !strcmp(word, "partial")) || (!word && json_array_size(own)))
        c = AMP_COMPLETION_PARTIAL;
    if (end != AMP_END_DONE && !(*k->trouble && end == AMP_END_MACHINERY && !*k->files.dir)) {
        amp_attempt_last_line(k->files.err, line, sizeof line);
        snprintf(said, sizeof said, "The agent did not finish: %s%s%s", why,
                 *line ? "; it said: " : "", line);
        json_array_append_new(blockers, json_string(said));
    }
    if (c == AMP_COMPLETION_COMPLETE && !strcmp(k->commit, k->start)) {
        c = AMP_COMPLETION_PARTIAL;
        json_array_append_new(blockers, json_string("The agent changed nothing"));
    }
    if (c == AMP_COMPLETION_COMPLETE)
        json_array_clear(blockers);
    else if (!json_array_size(blockers))
        json_array_append_new(blockers, json_string("The agent gives no reason"));
    return c;
}

/* One entry a criterion: the agent's, or null where it did not judge. */
static json_t *assessment(const struct amp_work *k)
{
    json_t *own = json_object_get(k->said, "self_assessment");
    json_t *met = json_object_get(own, "criteria_met"), *notes = json_object_get(own, "notes");
    json_t *all = json_array();

    for (uint32_t i = 0; i < k->v->body.dispatch.criteria.n; i++) {
        json_t *one = json_array_get(met, i);
        json_array_append(all, one ? one : json_null());
    }
    return json_pack("{s:o, s:o}", "criteria_met", all, "notes",
                     json_is_array(notes) ? json_incref(notes) : json_array());
}

static json_t *work_log(struct amp_work *k, const char *why, struct amp_error *err)
{
    json_t *log = json_array(), *e, *own;
    int64_t now = amp_now_ms();
    char detail[512];
    size_t i;
    struct amp_error ignored;

    if (*k->files.dir && amp_work_log_read(&k->files, now, log, &ignored)) {
        e = json_pack("{s:s, s:s}", "action", "bad_work_log", "detail", ignored.what);
        int rc = e ? amp_work_log_add(log, e, now, err) : -1;
        json_decref(e);
        if (rc)
            goto fail;
    }
    json_array_foreach(json_object_get(k->said, "work_log"), i,
                       own) if (amp_work_log_add(log, own, now, err)) goto fail;
    if (json_is_object(json_object_get(k->said, "usage"))) {
        char *spent = json_dumps(json_object_get(k->said, "usage"), JSON_COMPACT);
        e = json_pack("{s:s, s:s}", "action", "usage", "detail", spent ? spent : "");
        free(spent);
        int rc = e ? amp_work_log_add(log, e, now, err) : -1;
        json_decref(e);
        if (rc)
            goto fail;
    }
    snprintf(detail, sizeof detail, "attempt %lld took %lld ms: %s", (long long)k->attempt,
             (long long)k->wall_ms, why);
    e = json_pack("{s:s, s:s}", "action", "run_agent", "detail", detail);
    int failed = e ? amp_work_log_add(log, e, now, err) : -1;
    json_decref(e);
    if (!failed)
        return log;
fail:
    json_decref(log);
    return NULL;
}

int amp_work_result(struct amp_worker *w, struct amp_work *k, enum amp_attempt_end end,
                    const char *why, struct amp_buf *line, struct amp_error *err)
{
    json_t *files = json_array(), *blockers = json_array(), *log = work_log(k, why, err);
    char id[256];
    const char *refs[] = {id, NULL};

    if (!log) {
        json_decref(files);
        json_decref(blockers);
        return -1;
    }
    amp_span_copy(k->v->id, id, sizeof id);
    for (uint32_t i = 0; i < k->diff.n_files; i++)
        json_array_append_new(files, json_string(k->diff.files[i]));
    enum amp_completion c = conclude(k, end, why, blockers);
    json_t *payload = json_pack(
        "{s:s, s:s, s:{s:o, s:I, s:I}, s:o, s:o}", "subtask_id", k->subtask, "completion_status",
        amp_completion_name(c), "diff_summary", "files_changed", files, "lines_added",
        (json_int_t)k->diff.lines_added, "lines_removed", (json_int_t)k->diff.lines_removed,
        "self_assessment", assessment(k), "work_log", log);
    if (*k->commit)
        json_object_set_new(payload, "commit_hash", json_string(k->commit));
    const char *blocker = json_string_value(json_array_get(blockers, 0));
    w->opt->progress("%s: %s: %s, %u files, +%lld -%lld%s%s", k->task, k->subtask,
                     amp_completion_name(c), k->diff.n_files, (long long)k->diff.lines_added,
                     (long long)k->diff.lines_removed, blocker ? ": " : "", blocker ? blocker : "");
    if (c == AMP_COMPLETION_COMPLETE)
        json_decref(blockers);
    else
        json_object_set_new(payload, "blockers", blockers);
    const struct amp_envelope env = {
        .type = "task_result",
        .from = "executor",
        .to = "coordinator",
        .task_id = k->task,
        .now_ms = amp_now_ms(),
        .context_ref = refs,
    };
    return amp_compose_message(&env, payload, line, NULL, err);
}
