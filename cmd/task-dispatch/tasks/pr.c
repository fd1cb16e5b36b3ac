/* task-dispatch land --pr: gives the verified work to the script that pushes it and opens a pull
 * request, share/task/pull-request. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/runner.h"
#include "land.h"
#include "people/proof/bundle.h"

#define GRACE_MS 2000

/* The script reads this, one JSON object. */
static int request_write(const struct landing *l, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf proof = {.max = AMP_BUNDLE_MAX}, title = {.max = 256};
    const struct amp_verified *v = &l->v;
    const struct amp_task *t = &l->task;
    char first[128];
    struct amp_jw w;

    snprintf(first, sizeof first, "%.*s", (int)strcspn(t->description, "\r\n"), t->description);
    if (amp_text_safe(amp_span_str(first), 72, &title, err) < 0 ||
        task_bundle_text(l->store, l->git, l->repo, t->id, &proof, err) < 0)
        return -1;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "task", t->id);
    amp_jw_member_text(&w, "title", title.data);
    amp_jw_member_text(&w, "description", t->description);
    amp_jw_member_text(&w, "commit", v->commit);
    amp_jw_member_text(&w, "branch", t->branch);
    amp_jw_member_text(&w, "into", l->branch);
    amp_jw_member_text(&w, "verdict", t->n_parts ? t->parts[t->n_parts - 1].verdict : "");
    amp_jw_member_text(&w, "reviewer", v->who.reviewer);
    amp_jw_member_text(&w, "executor", v->who.executor);
    amp_jw_member_text(&w, "operator", v->who.operator_);
    amp_jw_member_text(&w, "approved", v->approved);
    amp_jw_member_text(&w, "tree", v->tree);
    amp_jw_member_text(&w, "message", v->verdict);
    amp_jw_member_str(&w, "proof", amp_buf_span(&proof));
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int land_pull(struct landing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf request = {.max = 2 * (size_t)AMP_BUNDLE_MAX};
    char script[PATH_MAX];
    const char *const argv[] = {script, NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .cwd = l->repo,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true};
    struct amp_runner run;
    struct amp_child_end end;

    if (strlen(l->task.branch) > 255 || strcmp(l->task.branch, l->branch) == 0)
        return amp_fail(err, AMP_USAGE, bad_branch, "%.100s: a pull request is from another branch",
                        l->task.branch);
    if (amp_helper_path("../../share/amp/task/pull-request", script, sizeof script, err) < 0 ||
        request_write(l, &request, err) < 0 ||
        amp_runner_start(&run, &spec, amp_buf_span(&request), -1, GRACE_MS, err) < 0 ||
        amp_runner_finish(&run, &amp_stop, &end, err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 1;
    /* The script has said why. */
    bool usage = end.exited && end.exit_code == AMP_USAGE;
    bool missing = end.exited && end.exit_code == AMP_UNAVAILABLE;
    return amp_fail_text(err,
                         usage     ? AMP_USAGE
                         : missing ? AMP_UNAVAILABLE
                                   : AMP_NO,
                         usage     ? AMP_CODE(bad_value)
                         : missing ? AMP_CODE(command_not_found)
                                   : AMP_CODE(command_refused),
                         "%s: no pull request was opened", l->task.id);
}
