/* aop-session run: carries out the TASKs of sessions on stdin. */
#include <limits.h>

#include "shared/work/tool.h"
#include "shared/work/worker.h"
#include "work/aop/run/session.h"

static const struct amp_opt session_run_opts[] = {
    AMP_TOOL_WORKER_OPTS("executor"),
    AMP_OPT_END,
};

static json_t *config;
static const char *agent; /* --agent, as it was given */

static int run_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    agent = amp_tool_worker.agent;
    return amp_tool_worker_check("executor", "aop-session.run", AMP_TOOL_COMMAND_OPTIONAL, &config,
                                 err);
}

static int session_run(struct amp_command *c, struct amp_error *err)
{
    char here[PATH_MAX];
    enum amp_status status;

    if (amp_tool_here(here, err) < 0 || amp_tool_worker_identify(err) < 0)
        return -1;
    const struct amp_session_options opt = {
        .worker = amp_tool_worker, .agent = agent, .config = config, .here = here};
    int rc = amp_session_loop(c->store, &opt, &status, err);
    amp_identities_close(amp_tool_worker.ids);
    amp_tool_worker_release();
    return rc < 0 ? -1 : (int)status;
}

const struct amp_verb session_run_verbs[] = {
    {"run", "", "carry out the TASKs on stdin, those of --agent or of all agents", session_run_opts,
     session_run, AMP_TOOL_COMMAND_HINT, .check = run_check, .opens = AMP_OPENS_MADE,
     .act = "start an executor", .signals = true, .who = AMP_WHO_PERSON},
    {0},
};
