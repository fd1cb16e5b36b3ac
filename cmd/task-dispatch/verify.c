/* task-dispatch verify: checks whether the tree of a commit was approved. */
#include "flow/review/verify.h"

#include "cli/rows.h"
#include "verbs.h"

static const char *repo = ".";
static bool quiet, no_coordinator;

const struct amp_opt task_verify_opts[] = {
    AMP_OPT_REPO(repo),
    {0, "no-coordinator", AMP_OPT_FLAG, &no_coordinator, NULL,
     "also accept verdicts on tasks without a coordinator"},
    {'q', "quiet", AMP_OPT_FLAG, &quiet, NULL, "print nothing"},
    AMP_OPT_END,
};

int task_verify(int argc, char **argv)
{
    const struct amp_store_options opt = {.lock_timeout_ms = task_lock_timeout, .read_only = true};
    struct amp_verified v;
    struct amp_store *store;
    struct amp_git *git;
    struct amp_error err;

    if (argc != 1)
        amp_die_usage("verify takes one COMMIT");
    if (!task_state || !*task_state)
        amp_die_usage("no state directory: give --state DIR or set AMP_STATE");
    const struct amp_verify what = {repo, argv[0], no_coordinator};
    if (amp_store_open(task_state, &opt, &store, &err))
        return amp_complain(&err);
    int rc = amp_git_open(NULL, &git, &err);
    if (!rc) {
        rc = amp_flow_verify(store, git, &what, &v, &err);
        amp_git_close(git);
    }
    amp_store_close(store);
    if (rc < 0)
        return amp_complain(&err);
    if (!quiet && rc)
        amp_note("%.12s is approved: task %s, %s", v.commit, v.task, v.verdict);
    else if (!quiet)
        amp_warn("%.12s is not approved: %s", v.commit, v.why);
    return rc ? AMP_OK : AMP_NO;
}
