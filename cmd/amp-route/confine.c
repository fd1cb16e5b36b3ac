/* --confine, --policy: commands that get messages run confined to the current directory. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "wiring.h"
#include "work/confine/confinement.h"
#include "work/confine/gate.h"

#define GATES_MAX 64 /* commands with EGRESS_RESTRICTED at the same time */

static struct {
    struct amp_confine_policy policy;
    struct amp_confine_report report;
    struct amp_child_wrap wrap;
    char directory[PATH_MAX], state[PATH_MAX], scratch[PATH_MAX]; /* "": none */
    struct amp_gate gates[GATES_MAX];
    int log;  /* of the gates */
    int lock; /* of scratch */
} confined = {.log = -1, .lock = -1};

/* Makes the sandbox's variables: those of every sandbox, and those of the message. */
static const char **environment_make(const char *const *envp)
{
    static const char *const own[] = {
        "AMP_AGENT=", "AMP_ATTEMPT=", "AMP_MSG_ID=", "AMP_REDELIVERED=", "AMP_RESULT="};
    size_t n = 0, kept = 0;
    while (envp[n])
        n++;
    const char **out = calloc(n + 1, sizeof *out);
    for (size_t i = 0; out && i < n; i++) {
        bool passes = amp_confine_env_passes(&confined.policy, envp[i]);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            passes = passes || strncmp(envp[i], own[k], strlen(own[k])) == 0;
        if (passes)
            out[kept++] = envp[i];
    }
    return out;
}

/* The directory of the result file, which the command may write. "": there is none. */
static void result_place(const char *const *env, char dir[PATH_MAX])
{
    dir[0] = '\0';
    for (; *env && !dir[0]; env++)
        if (strncmp(*env, "AMP_RESULT=", 11) == 0)
            snprintf(dir, PATH_MAX, "%s", *env + 11);
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';
}

/* A gate serves one command and ends with it. */
static int gate_take(struct amp_gate **out, struct amp_error *err)
{
    struct amp_child_end end;
    *out = NULL;
    for (int i = 0; i < GATES_MAX; i++) {
        struct amp_gate *g = &confined.gates[i];
        if (g->child.pid > 0 && amp_child_poll(&g->child, &end, NULL) == 0)
            continue;
        *g = AMP_GATE_NONE;
        *out = g;
    }
    if (!*out)
        return amp_fail(err, AMP_TEMPFAIL, too_many_commands, "%d commands have a gate", GATES_MAX);
    return amp_gate_start(&confined.policy, "amp-route",
                          confined.log < 0 ? STDERR_FILENO : confined.log, STDERR_FILENO, *out,
                          err);
}

static int command_start(void *ctx, const struct amp_child_spec *spec, struct amp_child *child,
                         struct amp_error *err)
{
    char real[PATH_MAX];
    const char *const hidden[] = {confined.state[0] ? confined.state : NULL, NULL};
    struct amp_gate *gate = NULL;
    (void)ctx;
    AMP_FREE const char **env =
        environment_make(spec->envp ? spec->envp : (const char *const *)environ);
    if (!env)
        return amp_fail_memory(err);
    if (confined.policy.network == AMP_NETWORK_EGRESS_RESTRICTED && gate_take(&gate, err) < 0)
        return -1;
    /* The command itself, if it is a file somewhere else than the toolchain. */
    bool own = spec->argv[0][0] == '/' && realpath(spec->argv[0], real);
    char result[PATH_MAX];
    struct amp_confine_place places[2];
    size_t n_places = 0;
    result_place(env, result);
    if (own)
        places[n_places++] = (struct amp_confine_place){.path = real};
    if (result[0])
        places[n_places++] = (struct amp_confine_place){.path = result, .write = true};
    const struct amp_confine c = {.policy = &confined.policy,
                                  .report = &confined.report,
                                  .worktree = confined.directory,
                                  .home = getenv("HOME"),
                                  .hidden = hidden,
                                  .places = places,
                                  .n_places = n_places,
                                  .scratch = confined.scratch[0] ? confined.scratch : NULL,
                                  .gate_fd = gate ? gate->fd : -1};
    struct amp_child_spec inner = *spec;
    inner.envp = env;
    inner.cwd = confined.directory;
    int rc = amp_confine_start(&c, &inner, child, err);
    if (gate && gate->fd >= 0) {
        close(gate->fd); /* the gate ends with the command */
        gate->fd = -1;
    }
    return rc;
}

int confine_open(const struct confine_options *o, const char *state,
                 const struct amp_child_wrap **wrap, struct amp_error *err)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || tmp[0] != '/')
        tmp = "/tmp";
    *wrap = NULL;
    if (!o->confine && !o->policy && !o->best_effort)
        return 0;
    /* AMP_CONFINE does not override a request for confinement. */
    const struct amp_confinement_args args = {
        .require = !o->best_effort, .best_effort = o->best_effort, .policy = o->policy};
    if (amp_confinement_choose(&args, amp_note, &confined.policy, &confined.report, err) < 0)
        return -1;
    if (!getcwd(confined.directory, sizeof confined.directory))
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot find the current directory");
    if (state && !realpath(state, confined.state))
        confined.state[0] = '\0';
    if (!confined.report.means.namespaces &&
        (confined.lock =
             amp_confine_scratch_make(tmp, confined.scratch, sizeof confined.scratch, err)) < 0)
        return -1;
    amp_confine_scratch_sweep(tmp);
    if (confined.policy.network == AMP_NETWORK_EGRESS_RESTRICTED && confined.state[0] &&
        (confined.log = amp_gate_log(confined.state, err)) < 0)
        return -1;
    for (int i = 0; i < GATES_MAX; i++)
        confined.gates[i] = AMP_GATE_NONE;
    confined.wrap.start = command_start;
    *wrap = &confined.wrap;
    return 0;
}

void confine_close(void)
{
    struct amp_error err;
    for (int i = 0; confined.wrap.start && i < GATES_MAX; i++)
        amp_gate_end(&confined.gates[i]);
    if (confined.log >= 0)
        close(confined.log);
    if (confined.scratch[0] && amp_confine_scratch_remove(confined.scratch, &err) < 0)
        amp_warn("%s", err.what);
    amp_auto_close(&confined.lock);
    amp_confine_policy_release(&confined.policy);
}
