/* task-dispatch run: the Executor around an agent's command. */
#include "flow/run/run.h"
#include "verbs.h"
#include "worker_opts.h"

static struct worker_opts o = WORKER_OPTS_DEFAULT;
static const char *base;

const struct amp_opt task_run_opts[] = {
    {0, "base", AMP_OPT_STRING, &base, "REVISION", "start of a new branch whose task has no base"},
    WORKER_OPT_TABLE("executor"),
    AMP_OPT_END,
};

int task_run(int argc, char **argv)
{
    static const char *const levels[] = {
        [AMP_RISK_LOW] = "low", [AMP_RISK_MEDIUM] = "medium", [AMP_RISK_HIGH] = "high"};
    struct amp_run_options opt = {.base = base};
    struct amp_store *store;
    struct amp_error err;
    json_t *config = NULL;
    enum amp_status status;

    if (worker_open(&o, "executor", "run", &opt.worker, &store, &config, &err))
        return amp_complain(&err);
    int rc = 0;
    for (int i = AMP_RISK_LOW; !rc && i <= AMP_RISK_HIGH; i++)
        rc = worker_patterns(config, "risk", levels[i], "forbid", &opt.forbid[i], &err);
    if (!rc)
        rc = amp_flow_run(store, &opt, &status, &err);
    amp_store_close(store);
    worker_patterns_free(opt.worker.protected_);
    for (int i = AMP_RISK_LOW; i <= AMP_RISK_HIGH; i++)
        worker_patterns_free(opt.forbid[i]);
    return rc ? amp_complain(&err) : (int)status;
}
