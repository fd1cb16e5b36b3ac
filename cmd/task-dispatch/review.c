/* task-dispatch review: the Reviewer around an agent's command. */
#include <unistd.h>

#include "flow/review/review.h"
#include "verbs.h"
#include "worker_opts.h"
#include "worktree/person.h"

static struct worker_opts o = WORKER_OPTS_DEFAULT;
static bool by_exit;

const struct amp_opt task_review_opts[] = {
    {0, "verdict-by-exit", AMP_OPT_FLAG, &by_exit, NULL,
     "without an answer use the exit status: 0 approves, others reject"},
    WORKER_OPT_TABLE("reviewer"),
    AMP_OPT_END,
};

int task_review(int argc, char **argv)
{
    struct amp_review_options opt = {.verdict_by_exit = by_exit};
    struct amp_store *store;
    struct amp_error err;
    json_t *config = NULL;
    enum amp_status status;

    if (amp_person_only(environ, "start a reviewer", &err))
        return amp_complain(&err);
    if (worker_open(&o, "reviewer", "review", &opt.worker, &store, &config, &err))
        return amp_complain(&err);
    int rc = amp_flow_review(store, &opt, &status, &err);
    amp_store_close(store);
    worker_patterns_free(opt.worker.protected_);
    return rc ? amp_complain(&err) : (int)status;
}
