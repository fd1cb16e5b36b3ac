/* Runs the command that judges two jobs. */
#include "work/item/judge/exec/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>
#include <amp/schema/schema.h>

#include "base/codes.h"
#include "base/process/process.h"
#include "message/protocol/compose/json.h"

#define ANSWER_MAX (64u << 10)
#define GRACE_MS   1000
#define MARK       "AMP_CONFLICT_CHECK"
#define ROUNDS     20 /* of ending what a command left */

extern char **environ;

/* ---- what it left ---- */

/* Kills the processes with the mark: a process that left the session of the command, and whose
 * parent ended, is not found in any other way. Returns their number. */
static int marked_kill(const char *mark, struct amp_buf *env)
{
    DIR *proc = opendir("/proc");
    struct dirent *d;
    struct amp_span value;
    int64_t pid;
    int n = 0;

    while (proc && (d = readdir(proc)))
        if (amp_num_parse(amp_span_str(d->d_name), 2, 1 << 30, &pid, NULL) == 0 &&
            amp_process_environ((pid_t)pid, env) &&
            amp_environ_get(amp_buf_span(env), MARK, &value) && amp_span_is(value, mark))
            n += kill((pid_t)pid, SIGKILL) == 0;
    if (proc)
        closedir(proc);
    return n;
}

static void rest_end(const struct amp_judge_run *r)
{
    AMP_BUF struct amp_buf env = {0};

    amp_buf_init(&env, AMP_ENVIRON_MAX + 65536);
    for (int round = 0; round < ROUNDS && marked_kill(r->mark, &env) > 0; round++)
        usleep(1000);
}

/* ---- starting ---- */

/* The environment without variables that control git or these tools. The list is the caller's, its
 * texts are not, but for the first one. */
static char **environment_make(const char *mark)
{
    size_t n = 0, kept = 0;

    while (environ[n])
        n++;
    char **env = calloc(n + 2, sizeof *env);
    if (!env || asprintf(&env[kept++], MARK "=%s", mark) < 0) {
        free(env);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "GIT_", 4) != 0 && strncmp(environ[i], "AMP_", 4) != 0)
            env[kept++] = environ[i];
    return env;
}

int amp_judge_run_start(struct amp_judge_run *r, char *const *argv, struct amp_span request,
                        int64_t limit_ms, struct amp_error *err)
{
    int out[2];

    *r = (struct amp_judge_run){.fd = -1};
    amp_uuid4(r->mark);
    amp_buf_init(&r->answer, ANSWER_MAX);
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a pipe");
    /* Only our end does not block. */
    fcntl(out[1], F_SETFL, 0);
    char **env = environment_make(r->mark);
    const struct amp_child_spec spec = {.argv = (const char *const *)argv,
                                        .envp = (const char *const *)env,
                                        .fd_out = out[1],
                                        .fd_err = STDERR_FILENO,
                                        .new_session = true,
                                        .dies_with_us = true};
    int rc = !env ? amp_fail_memory(err)
                  : amp_runner_start(&r->runner, &spec, request, limit_ms, GRACE_MS, err);
    close(out[1]);
    if (env)
        free(env[0]);
    free(env);
    if (rc < 0) {
        close(out[0]);
        return -1;
    }
    r->runner.hurried = true; /* its descendants are ended with it */
    r->fd = out[0];
    return 0;
}

/* ---- its output and its end ---- */

static void output_close(struct amp_judge_run *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

/* A command that writes too much is ended. */
static void output_read(struct amp_judge_run *r)
{
    char part[8192];

    while (r->fd >= 0) {
        ssize_t n = read(r->fd, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n > 0 && amp_buf_add(&r->answer, part, (size_t)n, NULL) == 0)
            continue;
        if (n > 0) {
            r->flooded = true;
            amp_runner_stop(&r->runner);
        }
        output_close(r);
    }
}

static void run_release(struct amp_judge_run *r)
{
    output_close(r);
    rest_end(r);
}

int amp_judge_run_look(struct amp_judge_run *r, struct amp_child_end *end, struct amp_error *err)
{
    output_read(r);
    int rc = amp_runner_look(&r->runner, end, err);
    if (rc > 0) {
        output_read(r);
        run_release(r);
    }
    return rc;
}

void amp_judge_run_stop(struct amp_judge_run *r)
{
    struct amp_child_end end;
    struct amp_error e;

    amp_runner_hurry(&r->runner, 0);
    amp_runner_finish(&r->runner, NULL, &end, &e);
    run_release(r);
    amp_buf_release(&r->answer);
}

/* ---- its answer ---- */

static int answer_parse(const struct amp_judge_run *r, int64_t *confidence, struct amp_buf *reason,
                        struct amp_error *why)
{
    struct amp_error e;
    json_auto_t *j = amp_json_load(amp_buf_span(&r->answer), &e);
    const json_t *version = json_object_get(j, "version");

    if (!json_is_object(j))
        return amp_fail(why, AMP_DATAERR, bad_answer, "the answer is not one JSON object");
    if (json_is_integer(version) && json_integer_value(version) != 1)
        return amp_fail(why, AMP_DATAERR, version_incompatible,
                        "the answer has version %lld (expected 1)",
                        (long long)json_integer_value(version));
    if (amp_schema_check_text("queue/conflict_answer.json", amp_buf_span(&r->answer), &e) < 0)
        return amp_fail(why, AMP_DATAERR, bad_answer, "%.200s (schemas/queue/conflict_answer.json)",
                        e.what);
    double value = json_number_value(json_object_get(j, "confidence"));
    *confidence = (int64_t)(value * 1000000); /* never above what was said */
    return amp_buf_str(reason, json_string_value(json_object_get(j, "reason")), why);
}

int amp_judge_run_answer(const struct amp_judge_run *r, const struct amp_child_end *end,
                         int64_t *confidence, struct amp_buf *reason, struct amp_error *why)
{
    if (end->timed_out)
        return amp_fail(why, AMP_TIMEDOUT, command_timeout, "no answer within %lld ms",
                        (long long)r->runner.limit_ms);
    if (r->flooded)
        return amp_fail(why, AMP_DATAERR, bad_answer, "the answer is longer than %u bytes",
                        ANSWER_MAX);
    if (end->signaled)
        return amp_fail(why, AMP_UNAVAILABLE, command_failed, "killed by signal %d", end->signal);
    if (end->exit_code != 0)
        return amp_fail(why, AMP_UNAVAILABLE, command_failed, "exit status %d", end->exit_code);
    return answer_parse(r, confidence, reason, why);
}
