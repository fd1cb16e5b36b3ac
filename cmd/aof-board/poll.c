/* aof-board poll --exec, --executor: the commands that work on task files, confined, and
 * the server that spawns sessions. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/pipe.h>
#include <amp/json/writer.h>

#include "aof.h"
#include "base/codes.h"
#include "base/process/runner.h"
#include "cli/rows.h"
#include "message/port/port.h"
#include "work/aof/board/aof.h"
#include "work/confine/confinement.h"
#include "work/confine/gate.h"

enum {
    POLL_MIN = 100,
    PARALLEL_MOST = 64,
    BODY_MOST = 16 << 20,
    VARIABLES = 16,
    VARIABLE_MOST = 256
};

static struct amp_list command, headers;
static struct amp_confine_cli walls;
static const char *url;
static struct amp_aof_lease lease = {NULL, 600000, 300000, 3};
static int64_t most = 1, every, timeout_ms = 3600000, grace_ms = 10000;

static const struct amp_opt aof_poll_opts[] = {
    AOF_ROUTER_ROWS,
    {0, "every", AMP_OPT_DURATION, &every, "TIME", .doc = "poll again after TIME, until a signal",
     .min = POLL_MIN, .max = AOF_DAY_MS},
    {0, "executor", AMP_OPT_STRING, &url, "URL",
     .doc = "have the server at URL spawn a session for each task"},
    {0, "http-headers", AMP_OPT_LIST, &headers, "HOST=FILE",
     .doc = "send the headers in FILE to HOST; may be repeated"},
    {0, "agent", AMP_OPT_STRING, &lease.agent, "NAME",
     .doc = "the agent of tasks whose routing names none"},
    {0, "parallel", AMP_OPT_INT, &most, "N", .doc = "tasks at work at the same time", .min = 1,
     .max = PARALLEL_MOST},
    {0, "lease-time", AMP_OPT_DURATION, &lease.lease_ms, "TIME",
     .doc = "until a lease that is not renewed expires", .min = 1000, .max = AOF_DAY_MS},
    {0, "renewals", AMP_OPT_INT, &lease.renewals, "N",
     .doc = "how often a lease is renewed (default: 3)", .max = 1000000},
    {0, "heartbeat", AMP_OPT_DURATION, &lease.beat_ms, "TIME",
     .doc = "until a heartbeat expires; three are written in this time", .min = 300,
     .max = AOF_DAY_MS},
    {'t', "timeout", AMP_OPT_DURATION, &timeout_ms, "TIME",
     .doc = "time limit of a command, 0 for none", .max = 365LL * AOF_DAY_MS},
    {0, "grace", AMP_OPT_DURATION, &grace_ms, "TIME", .doc = "time between TERM and KILL",
     .max = AOF_DAY_MS},
    AMP_OPT_UNCONFINED(walls),
    AMP_OPT_CONFINE(walls),
    {'x', "exec", AMP_OPT_REST, &command, "COMMAND",
     .doc = "the agents' command and its arguments"},
    AMP_OPT_END,
};

static struct {
    struct amp_confine_policy policy;
    struct amp_confine_report report;
    char scratch[PATH_MAX], command[PATH_MAX];
    int lock; /* of scratch */
    struct amp_gate gates[PARALLEL_MOST];
    struct amp_port *port;
    bool posted;
    struct amp_error answer;
} x = {.lock = -1};

/* ---- local commands ---- */

static int walls_choose(struct amp_error *err)
{
    const char *tmp = getenv("TMPDIR");
    const struct amp_confinement_args args = AMP_CONFINEMENT_ARGS(walls);
    if (amp_confinement_choose(&args, amp_note, &x.policy, &x.report, err) < 0)
        return -1;
    if (x.report.demand == AMP_CONFINE_OFF || x.report.means.namespaces)
        return 0;
    if (!tmp || tmp[0] != '/')
        tmp = "/tmp";
    x.lock = amp_confine_scratch_make(tmp, x.scratch, sizeof x.scratch, err);
    return x.lock < 0 ? -1 : 0;
}

/* The task's own folder, where the command works. */
static int folder_make(const struct amp_aof_given *g, char out[PATH_MAX], struct amp_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/tasks/in-progress/%s/outputs", aof_shared.data_dir,
                 g->id) >= (int)sizeof path ||
        amp_mkdirs(path, 0700, err) < 0)
        return -1;
    struct stat st;
    *strrchr(path, '/') = '\0';
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return amp_fail(err, AMP_CANTCREAT, not_a_directory, "%s is not a directory", path);
    return realpath(path, out) ? 0 : amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
}

/* The command gets the variables that a sandbox passes, and the task's. */
static const char **environment_make(const struct amp_aof_given *g,
                                     char own[VARIABLES][VARIABLE_MOST])
{
    size_t n = 0, kept = 0, k = 0;
    while (environ[n])
        n++;
    const char **out = calloc(n + VARIABLES + 1, sizeof *out);
    if (!out)
        return NULL;
    snprintf(own[k++], VARIABLE_MOST, "AMP_AGENT=%s", g->agent);
    snprintf(own[k++], VARIABLE_MOST, "AMP_TASK_ID=%s", g->id);
    snprintf(own[k++], VARIABLE_MOST, "AMP_ROLE=executor");
    snprintf(own[k++], VARIABLE_MOST, "NO_COLOR=1");
    snprintf(own[k++], VARIABLE_MOST, "TERM=dumb");
    snprintf(own[k++], VARIABLE_MOST, "CI=1");
    for (size_t i = 0; i < n; i++) {
        bool passes = x.report.demand == AMP_CONFINE_OFF
                          ? strncmp(environ[i], "AMP_", 4) != 0
                          : amp_confine_env_passes(&x.policy, environ[i]);
        for (size_t j = 0; passes && j < k; j++)
            passes = strncmp(environ[i], own[j], strcspn(own[j], "=") + 1) != 0;
        if (passes)
            out[kept++] = environ[i];
    }
    for (size_t j = 0; j < k; j++)
        out[kept++] = own[j];
    return out;
}

/* One command's place and its way out. */
struct place {
    const char *folder;
    int gate_fd;
};

static int confined_start(void *ctx, const struct amp_child_spec *spec, struct amp_child *child,
                          struct amp_error *err)
{
    const struct place *at = ctx;
    const struct amp_confine_place place = {.path = x.command};
    const struct amp_confine c = {.policy = &x.policy,
                                  .report = &x.report,
                                  .worktree = at->folder,
                                  .home = getenv("HOME"),
                                  .places = &place,
                                  .n_places = x.command[0] ? 1 : 0,
                                  .scratch = x.scratch[0] ? x.scratch : NULL,
                                  .gate_fd = at->gate_fd};
    return amp_confine_start(&c, spec, child, err);
}

/* The gate of a command with EGRESS_RESTRICTED; its decisions are in DATA/.amp/egress.ndjson. */
static int gate_make(unsigned slot, const char *agent, struct amp_error *err)
{
    char own[PATH_MAX];
    x.gates[slot] = AMP_GATE_NONE;
    if (x.report.demand == AMP_CONFINE_OFF || x.policy.network != AMP_NETWORK_EGRESS_RESTRICTED)
        return 0;
    if (snprintf(own, sizeof own, "%s/.amp", aof_shared.data_dir) >= (int)sizeof own)
        return amp_fail(err, AMP_CANTCREAT, bad_path, "the data directory's path is too long");
    AMP_CLOSE int log = amp_gate_log(own, err);
    return log < 0 ? -1 : amp_gate_start(&x.policy, agent, log, STDERR_FILENO, &x.gates[slot], err);
}

static void task_ended(void *ctx, unsigned slot)
{
    (void)ctx;
    amp_gate_end(&x.gates[slot]);
}

static int task_start(void *ctx, unsigned slot, const struct amp_aof_given *g,
                      struct amp_runner *run, int *out, struct amp_error *err)
{
    char folder[PATH_MAX], own[VARIABLES][VARIABLE_MOST];
    int pair[2];
    (void)ctx;
    AMP_FREE const char **env = environment_make(g, own);
    if (!env)
        return amp_fail_memory(err);
    if (folder_make(g, folder, err) < 0 || gate_make(slot, g->agent, err) < 0)
        return -1;
    struct place at = {folder, x.gates[slot].fd};
    if (pipe2(pair, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_TEMPFAIL, "cannot make a pipe");
    const struct amp_child_wrap wrap = {confined_start, &at};
    const struct amp_child_spec spec = {.argv = command.v,
                                        .envp = env,
                                        .cwd = folder,
                                        .fd_out = pair[1],
                                        .fd_err = STDERR_FILENO,
                                        .new_session = true,
                                        .no_new_privs = true,
                                        .owns_tree = true,
                                        .wrap = x.report.demand == AMP_CONFINE_OFF ? NULL : &wrap};
    int rc = amp_runner_start(run, &spec, amp_buf_span(&g->text), timeout_ms > 0 ? timeout_ms : -1,
                              grace_ms, err);
    close(pair[1]);
    if (rc < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
        close(pair[0]);
        return -1;
    }
    *out = pair[0];
    return 0;
}

/* ---- sessions of a server ---- */

static void posted_note(void *ctx, uint64_t tag, const struct amp_error *why)
{
    (void)ctx, (void)tag;
    x.posted = true;
    x.answer = why ? *why : (struct amp_error){0};
}

static int body_write(const struct amp_aof_given *g, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "tool", "sessions_spawn");
    amp_jw_member_open(&w, "args", '{');
    amp_jw_member_str(&w, "task", amp_buf_span(&g->text));
    amp_jw_member_text(&w, "agentId", g->agent);
    amp_jw_member_text(&w, "label", g->id);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* The session may have begun: errno ETIMEDOUT (work/aof/board/aof.h). */
static int unknown_fail(const struct amp_error *why, struct amp_error *err)
{
    *err = *why;
    err->sys = ETIMEDOUT;
    if (err->status == AMP_UNAVAILABLE)
        err->status = AMP_TEMPFAIL;
    return -1;
}

/* Waits for the server's answer: the session has begun, or the task goes back. */
static int task_post(void *ctx, const struct amp_aof_given *g, struct amp_error *err)
{
    AMP_BUF struct amp_buf body = {0};
    char key[64];
    (void)ctx;
    amp_buf_init(&body, BODY_MOST);
    x.posted = false;
    /* Another run of the task is another request. */
    snprintf(key, sizeof key, "%s/%lld", g->id, (long long)g->since_ms);
    if (body_write(g, &body, err) < 0 ||
        amp_port_offer(x.port, amp_span_str(key), amp_buf_span(&body), 1, amp_mono_ms(), err) < 0)
        return -1;
    for (;;) {
        struct pollfd fds[AMP_PORT_FDS];
        int timeout = -1;
        amp_port_step(x.port, posted_note, NULL);
        if (x.posted)
            break;
        amp_port_watch(x.port, fds, &timeout);
        if (amp_poll(fds, AMP_PORT_FDS, timeout, &amp_stop) < 0 && amp_stop) {
            amp_fail(&x.answer, AMP_INTERRUPTED, interrupted, "interrupted");
            return unknown_fail(&x.answer, err);
        }
    }
    if (!x.answer.code[0])
        return 0;
    if (x.answer.sys == ETIMEDOUT)
        return unknown_fail(&x.answer, err);
    *err = x.answer;
    return -1;
}

/* ---- both ---- */

static int executor_open(struct amp_error *err)
{
    const struct amp_port_options how = {.consumer = amp_cli_name(),
                                         .open_timeout_ms = -1,
                                         .max_pending = BODY_MOST,
                                         .attempts = 3,
                                         .attempt_timeout_ms = 30000,
                                         .stop = &amp_stop,
                                         .http_headers = headers.v,
                                         .n_http_headers = headers.n};
    char found[PATH_MAX], at[PATH_MAX];
    if (url) {
        size_t n = strlen(url);
        while (n > 0 && url[n - 1] == '/')
            n--;
        snprintf(at, sizeof at, "%.*s/tools/invoke", (int)n, url);
        return amp_port_new(at, &how, &x.port, err);
    }
    if (amp_child_find(command.v[0], environ, found, sizeof found, err) < 0) {
        err->status = AMP_USAGE;
        return -1;
    }
    if (strchr(command.v[0], '/')) {
        if (!realpath(command.v[0], x.command))
            return amp_fail_errno(err, AMP_USAGE, "%s", command.v[0]);
        command.v[0] = x.command;
    }
    return walls_choose(err);
}

static void executor_close(void)
{
    struct amp_error err;
    amp_port_free(x.port);
    x.port = NULL;
    if (x.scratch[0] && amp_confine_scratch_remove(x.scratch, &err) < 0)
        amp_warn("%s", err.what);
    amp_auto_close(&x.lock);
    amp_confine_policy_release(&x.policy);
}

static int executor_run(struct amp_aof_router *r, struct amp_error *err)
{
    const struct amp_aof_executor e = {.lease = lease,
                                       .most = (unsigned)most,
                                       .every_ms = every,
                                       .start = task_start,
                                       .ended = task_ended,
                                       .post = url ? task_post : NULL,
                                       .flush = amp_out_flush,
                                       .stop = &amp_stop};
    for (unsigned i = 0; i < PARALLEL_MOST; i++)
        x.gates[i] = AMP_GATE_NONE;
    int rc = executor_open(err);
    if (rc == 0)
        rc = amp_aof_execute(r, &e, err);
    executor_close();
    return rc;
}

static int polls_run(struct amp_aof_router *r, struct amp_error *err)
{
    struct amp_aof_polled polled;
    if (every > 0 && amp_aof_system(r, "system.startup", err) < 0)
        return -1;
    do {
        if (amp_aof_poll(r, &polled, err) < 0 || amp_out_flush(err) < 0)
            return -1;
    } while (every > 0 && amp_poll(NULL, 0, every, &amp_stop) >= 0);
    return every > 0 ? amp_aof_system(r, "system.shutdown", err) : 0;
}

static int poll_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (command.n > 0 && url)
        amp_die_usage("--exec and --executor exclude each other");
    if (lease.agent && (!*lease.agent || strlen(lease.agent) >= AMP_AOF_AGENT_MAX))
        amp_die_usage("--agent: expected a name of 1 to %d bytes", AMP_AOF_AGENT_MAX - 1);
    return 0;
}

static int aof_poll(struct amp_command *c, struct amp_error *err)
{
    struct amp_aof_router *r = NULL;
    int rc = aof_router_open(false, &r, err);
    (void)c;
    if (rc == 0)
        rc = command.n > 0 || url ? executor_run(r, err) : polls_run(r, err);
    if (rc == 0 && amp_stop)
        rc = amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    aof_router_close(r);
    return rc;
}

const struct amp_verb aof_poll_verbs[] = {
    {"poll", "", "take back task files whose agent is gone", aof_poll_opts, aof_poll,
     .check = poll_check, .act = "change task files", .signals = true, .who = AMP_WHO_PERSON},
    {0},
};
