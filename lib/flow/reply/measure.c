/* Measuring the change of a branch. */
#include "flow/reply/measure.h"

#include <limits.h>
#include <string.h>

#include "flow/run/run.h"
#include "task/record.h"
#include "worktree/git/git.h"

/* The base that the coordinator recorded, or the executor. */
static int base_find(struct amp_store *s, const struct amp_view *v, char base[AMP_OID_MAX],
                     struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    if (amp_task_load(s, v->task, &t, NULL, err) < 0)
        return -1;
    if (*t.base)
        return amp_span_copy(amp_span_str(t.base), base, AMP_OID_MAX)
                   ? 0
                   : amp_fail(err, AMP_DATAERR, "bad_record", "the base is not a commit");
    int found = amp_run_base(s, v->task, v->body.dispatch.branch, base, err);
    if (found != 0)
        return found < 0 ? -1 : 0;
    return amp_reply_missing("diff_summary",
                             "no base of the branch is recorded; give it with --data", err);
}

int amp_reply_measure(struct amp_store *s, const struct amp_view *v, const struct amp_reply *r,
                      json_t *data, struct amp_error *err)
{
    char repo[PATH_MAX], branch[256], base[AMP_OID_MAX], head[AMP_OID_MAX];
    struct amp_git_diff diff = {0};
    if (!amp_span_copy(v->body.dispatch.repo, repo, sizeof repo) ||
        !amp_span_copy(v->body.dispatch.branch, branch, sizeof branch))
        return amp_fail(err, AMP_NO, "bad_value", "the dispatch names no repository or branch");
    struct amp_git *git = r->git(r->git_ctx, err);
    if (!git || base_find(s, v, base, err) < 0 ||
        amp_git_resolve(git, repo, branch, head, err) < 0 ||
        amp_git_diff(git, repo, NULL, base, head, NULL, &diff, err) < 0)
        return -1;
    json_t *files = json_array();
    for (uint32_t i = 0; i < diff.n_files; i++)
        json_array_append_new(files, json_string(diff.files[i]));
    json_object_set_new(data, "diff_summary",
                        json_pack("{s:o, s:I, s:I}", "files_changed", files, "lines_added",
                                  (json_int_t)diff.lines_added, "lines_removed",
                                  (json_int_t)diff.lines_removed));
    if (!json_object_get(data, "commit_hash"))
        json_object_set_new(data, "commit_hash", json_string(head));
    amp_git_diff_release(&diff);
    return 0;
}
