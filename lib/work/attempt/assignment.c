/* One attempt: its files, the agent's process, its captured output, its time limit, and the check
 * of protected refs. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/process/runner.h"
#include "message/delivery/settle/cost.h"
#include "work/agent/work.h"
#include "work/attempt/control.h"
#include "work/attempt/io.h"
#include "work/attempt/left/forgeries.h"
#include "work/attempt/stop/stop.h"
#include "work/attempt/walls/confined.h"
#include "work/git/worktree.h"
#include "work/task/record.h"

void amp_assignment_release(struct amp_assignment *k)
{
    amp_buf_release(&k->criteria);
    amp_buf_release(&k->activity);
    amp_git_refs_release(&k->refs);
    amp_git_quarantine_release(&k->walls.quarantine);
    json_decref(k->words.log);
}

int amp_assignment_look_up(struct amp_worker *w, struct amp_assignment *k, bool base,
                           struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};

    k->attempt = 1;
    if (amp_task_load(w->store, k->v->task, &t, NULL, err) < 0)
        return -1;
    if (base && *t.base)
        snprintf(k->base, sizeof k->base, "%s", t.base);
    const struct amp_task_part *part = amp_task_part(&t, amp_span_str(k->subtask));
    if (part && part->attempts > 0)
        k->attempt = part->attempts;
    return 0;
}

static bool variable_passes(const void *policy, const char *variable)
{
    return amp_confine_env_passes(policy, variable);
}

int amp_assignment_files(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    struct amp_contract *c = &k->contract;

    c->role = k->role ? k->role : w->opt->role;
    c->agent = w->opt->agent;
    c->task = k->task;
    c->subtask = k->subtask;
    c->attempt = k->attempt;
    c->worktree = k->worktree;
    c->branch = k->branch;
    c->base = k->base;
    c->state_dir = w->state_dir;
    c->message = k->message.p ? k->message : k->v->message;
    c->criteria = amp_buf_span(&k->criteria);
    amp_buf_release(&k->activity);
    amp_buf_init(&k->activity, AMP_ACTIVITY_SCOPE_BYTES * 2);
    if (amp_notice_scope(w->store, amp_span_str(w->opt->agent),
                         amp_span_str(*k->repo ? k->repo : k->in_repo), amp_span_str(k->task),
                         &k->activity, err) < 0)
        return -1;
    c->activity = amp_buf_span(&k->activity);
    c->extra = k->extra ? k->extra : amp_agent_git_env();
    c->type = w->opt->type;
    c->session = w->opt->session;
    c->helpers = amp_confined_helpers(k->helpers) ? k->helpers : NULL;
    c->confined = amp_worker_confines(w);
    if (c->confined) {
        c->walls = amp_confine_level_name(w->opt->confine->level);
        c->passes = variable_passes;
        c->passes_ctx = w->opt->policy;
    }
    return amp_attempt_make(c, &k->files, err);
}

/* A captured stream: a pipe whose first `room` bytes are stored in a file. The rest is read and
 * dropped, so that the agent never blocks. */
struct capture {
    int from, to;
    int64_t room;
};

static void capture_close(struct capture *c)
{
    if (c->from >= 0)
        close(c->from);
    if (c->to >= 0)
        close(c->to);
    c->from = c->to = -1;
}

/* Opens the file and the pipe; *write_end is the child's. */
static int capture_open(struct capture *c, const char *path, int64_t room, int *write_end,
                        struct amp_error *err)
{
    int p[2];

    c->room = room;
    c->to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (c->to < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
    if (pipe2(p, O_CLOEXEC))
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a pipe");
    c->from = p[0];
    *write_end = p[1];
    fcntl(c->from, F_SETFL, O_NONBLOCK);
    return 0;
}

static void capture_read(struct capture *c)
{
    char b[65536];

    for (int turns = 0; c->from >= 0 && turns < 16; turns++) {
        ssize_t n = read(c->from, b, sizeof b);
        if (n < 0)
            return;
        if (n == 0) {
            close(c->from);
            c->from = -1;
            return;
        }
        size_t keep = n > c->room ? (size_t)c->room : (size_t)n;
        if (keep && amp_write_all(c->to, (struct amp_span){b, keep}, NULL))
            keep = (size_t)c->room; /* the disk is full: the rest is dropped */
        c->room -= (int64_t)keep;
    }
}

static void agent_kill(struct amp_runner *run, struct amp_child_end *end)
{
    amp_child_kill_tree(&run->child, SIGKILL);
    amp_child_poll(&run->child, end, NULL);
}

/* Waits for the agent's end. After a signal to the worker it does nothing else. */
static int agent_supervise(struct amp_worker *w, struct amp_assignment *k, struct amp_runner *run,
                           struct capture *out, struct capture *errs, struct amp_child_end *end,
                           struct amp_error *err)
{
    for (;;) {
        int64_t wait = -1;
        struct pollfd p[4] = {{.fd = run->child.pidfd, .events = POLLIN},
                              {.fd = out->from, .events = POLLIN},
                              {.fd = errs->from, .events = POLLIN},
                              {.fd = amp_words_fd(k, &wait), .events = POLLIN}};
        bool stop = *w->opt->stop;
        int over = k->turn && !stop ? k->turn(w, k, &wait, err) : 0;

        if (over < 0) {
            agent_kill(run, end);
            return -1;
        }
        if (w->paused) /* a hold does not delay a person's stop */
            amp_runner_hurry(run, AMP_PAUSE_GRACE_MS);
        else if (stop || (w->halted && !amp_words_hold(w, k, &wait)) ||
                 (w->ask.what && amp_words_yield(w, k, &run->child, &wait)) ||
                 amp_words_starved(w, k, &wait) || over)
            amp_runner_stop(run);
        int64_t own = amp_runner_wait(run);
        if (wait < 0 || (own >= 0 && own < wait))
            wait = own;
        if (stop && !w->opt->wait) {
            amp_poll(p, 3, own, NULL);
        } else if (amp_worker_turn(w, p, 4, wait, err) < 0 || amp_words_read(w, k, err) < 0) {
            agent_kill(run, end);
            return -1;
        }
        int rc = amp_runner_look(run, end, err);
        capture_read(out);
        capture_read(errs);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
}

static int agent_start(struct amp_worker *w, struct amp_assignment *k, struct capture *out,
                       struct capture *errs, struct amp_child *child, struct amp_error *err)
{
    const struct amp_attempt *a = &k->files;
    struct amp_env env = {0};
    AMP_CLOSE int in = -1;
    AMP_CLOSE int out_w = -1;
    AMP_CLOSE int err_w = -1;
    const char *const *envp;

    in = amp_file_open(AT_FDCWD, a->message, O_RDONLY, 0, err);
    if (in < 0)
        return -1;
    if (capture_open(out, a->out, w->opt->output_bytes, &out_w, err) ||
        capture_open(errs, a->err, w->opt->output_bytes, &err_w, err) ||
        amp_confined_prepare(w, k, err) < 0)
        return -1;
    if (k->walls.quarantined && w->opt->confine->level == AMP_LEVEL_LANDLOCK)
        k->contract.git_dir = a->git;
    if (amp_contract_env(&k->contract, a, w->opt->envp, &env, err))
        return -1;
    memcpy(&envp, &env.v, sizeof envp);
    const struct amp_child_spec spec = {
        .argv = k->argv ? k->argv : w->opt->argv,
        .envp = envp,
        .cwd = k->worktree,
        .fd_in = in,
        .fd_out = out_w,
        .fd_err = err_w,
        .new_session = true,
        .owns_tree = true,
    };
    int rc = amp_confined_start(w, k, &spec, child, err);
    amp_env_release(&env);
    return rc;
}

/* ---- the activity buffer ---- */

static struct amp_activity activity_of(const struct amp_worker *w, const struct amp_assignment *k)
{
    const bool own = *k->repo != '\0';

    return (struct amp_activity){.agent = amp_span_str(w->opt->agent),
                                 .task = amp_span_str(k->task),
                                 .subtask = amp_span_str(k->subtask),
                                 .attempt = k->attempt,
                                 .role = amp_span_str(w->opt->role),
                                 .repo = amp_span_str(own ? k->repo : k->in_repo),
                                 .worktree = amp_span_str(k->worktree),
                                 .branch = amp_span_str(own ? k->branch : k->in_branch),
                                 .description = k->about,
                                 .began_ms = amp_now_ms()};
}

static struct amp_activity_publisher publisher_of(const struct amp_worker *w)
{
    return (struct amp_activity_publisher){w->opt->tool, w->opt->activity, w->opt->note};
}

static int activity_begin(struct amp_worker *w, const struct amp_assignment *k,
                          struct amp_error *err)
{
    const struct amp_activity a = activity_of(w, k);
    const struct amp_activity_publisher p = publisher_of(w);
    return amp_notice_begin(w->store, &p, &a, err);
}

static int activity_end(struct amp_worker *w, const struct amp_assignment *k, struct amp_error *err)
{
    static const enum amp_activity_end of[] = {[AMP_END_DONE] = AMP_ACTIVITY_COMPLETED,
                                               [AMP_END_REPEAT] = AMP_ACTIVITY_FAILED,
                                               [AMP_END_FAILED] = AMP_ACTIVITY_FAILED,
                                               [AMP_END_MACHINERY] = AMP_ACTIVITY_FAILED,
                                               [AMP_END_STOPPED] = AMP_ACTIVITY_STOPPED};
    const struct amp_activity a = activity_of(w, k);
    const struct amp_activity_publisher p = publisher_of(w);
    return amp_notice_end(w->store, &p, &a, of[k->end], err);
}

/* The time limit of the attempt; -1: none. */
static int64_t attempt_limit(const struct amp_worker *w, const struct amp_assignment *k)
{
    int64_t limit = w->opt->timeout_ms > 0 ? w->opt->timeout_ms : -1;
    if (k->own_limit)
        return -1;
    return k->limit_ms > 0 && (limit < 0 || k->limit_ms < limit) ? k->limit_ms : limit;
}

/* Notes what its answer says about its usage, and how it can be resumed. An invalid answer is
 * reported by the role. */
static void answer_note(struct amp_worker *w, const struct amp_assignment *k)
{
    json_auto_t *j = NULL;
    struct amp_error e;

    if (amp_answer_read(&k->files, NULL, &j, &e) < 0 || !j)
        return;
    const json_t *used = json_object_get(j, "usage");
    const char *session = json_string_value(json_object_get(j, "session"));
    if (json_is_object(used))
        amp_usage_read(used, &w->left.usage);
    if (session && amp_session_is_safe(session))
        snprintf(w->left.session, sizeof w->left.session, "%s", session);
}

int amp_assignment_cost(struct amp_worker *w, const struct amp_assignment *k, struct amp_error *err)
{
    json_auto_t *j = NULL;
    struct amp_error e;
    struct amp_worker_usage u;
    char id[AMP_KEY_PART_MAX];

    if (amp_answer_read(&k->files, NULL, &j, &e) < 0 ||
        !json_is_object(json_object_get(j, "usage")))
        return 0;
    amp_usage_read(json_object_get(j, "usage"), &u);
    /* Each attempt at the message has a record of its own. */
    snprintf(id, sizeof id, "%.*s/%lld", AMP_CLIP(k->v->id, 200), (long long)k->began_ms);
    const struct amp_usage usage = {u.input_tokens, u.output_tokens, u.cost_micros};
    const struct amp_view of = {.task = amp_span_str(k->task),
                                .correlation = k->v->id,
                                .from = amp_span_str(w->opt->agent)};
    return amp_cost_record(w->store, amp_span_str(id), &of, &usage, amp_now_ms(), err);
}

/* The last line of standard error usually tells people what they need to know about a failure. */
static void why_complete(struct amp_assignment *k)
{
    char last[200];
    size_t n = strlen(k->why);

    amp_attempt_last_line(k->files.err, last, sizeof last);
    if (*last)
        snprintf(k->why + n, sizeof k->why - n, ": %s", last);
}

int amp_assignment_run(struct amp_worker *w, struct amp_item *job, struct amp_assignment *k,
                       struct amp_error *err)
{
    struct capture out = {-1, -1, 0}, errs = {-1, -1, 0};
    struct amp_child child;
    struct amp_child_end how = {0};

    if ((*k->repo && amp_git_refs(w->git, k->repo, true, &k->refs, err) < 0) ||
        activity_begin(w, k, err) < 0 || amp_store_sync(w->store, err) < 0)
        return -1;
    snprintf(w->left.worktree, sizeof w->left.worktree, "%s", *k->repo ? k->worktree : "");
    k->began_ms = amp_now_ms();
    k->walls.gate = AMP_GATE_NONE;
    k->job = job;
    k->status = -1;
    k->started = false;
    if (amp_control_open(&k->words.control, &k->files, err) < 0)
        return -1;
    int rc = w->opt->claimed ? w->opt->claimed(w->opt->wait_ctx, err) : 0;
    if (rc == 0)
        rc = agent_start(w, k, &out, &errs, &child, err);
    if (rc &&
        (amp_code_is(err->code, command_not_found) || amp_code_is(err->code, not_executable))) {
        snprintf(k->why, sizeof k->why, "its command could not be started: %.200s", err->what);
        k->end = AMP_END_MACHINERY;
        rc = 0;
    } else if (!rc) {
        w->task = k->task;
        k->started = true;
        amp_pause_watch_renew(&w->pauses);
        struct amp_runner agent = amp_runner_of(&child, attempt_limit(w, k), w->opt->grace_ms);
        rc = agent_supervise(w, k, &agent, &out, &errs, &how, err);
        /* Somebody else may have ended it, too. */
        if (!rc)
            rc = amp_worker_look(w, err);
        w->task = NULL;
        if (!rc) {
            k->end = amp_attempt_read_end(&how, k->why, sizeof k->why);
            k->status = how.exited ? how.exit_code : -1;
            /* An answer within the grace period is used. */
            if (w->paused && k->end != AMP_END_DONE)
                k->end = AMP_END_STOPPED;
            if (k->end == AMP_END_STOPPED && how.exited && how.exit_code == 0 &&
                !access(k->files.result, F_OK))
                k->end = AMP_END_DONE;
            if (w->opt->wait)
                amp_stop_judge(w, k, &how);
            k->wall_ms = how.wall_ms;
        }
    }
    capture_close(&out);
    capture_close(&errs);
    if (rc == 0 && k->started && k->end != AMP_END_DONE && k->end != AMP_END_STOPPED)
        why_complete(k);
    /* The agent's last lines may still be in the FIFO. */
    if (rc == 0)
        rc = amp_words_end(w, k, err);
    if (rc == 0 && w->opt->wait)
        answer_note(w, k);
    if (rc == 0)
        rc = amp_forgeries_left(w, k, err);
    amp_control_close(&k->words.control);
    return rc < 0 || amp_confined_finish(w, k, err) < 0 ? -1 : activity_end(w, k, err);
}

/* The pause that the agent asked for, in milliseconds; 0: none. */
static int64_t retry_after(struct amp_worker *w, const struct amp_attempt *files)
{
    json_auto_t *j = NULL;
    struct amp_error e;

    if (amp_answer_read(files, NULL, &j, &e) < 0) {
        w->opt->note("%s is not used: %s", files->result, e.what);
        return 0;
    }
    const json_t *asked = json_object_get(j, "retry_after_sec");
    json_int_t sec = json_integer_value(asked);
    if (!asked || (json_is_integer(asked) && sec >= 0 && sec <= AMP_RETRY_AFTER_MAX_SEC))
        return (int64_t)sec * 1000;
    w->opt->note("%s: retry_after_sec is not used: expected an integer from 0 to %d", files->result,
                 AMP_RETRY_AFTER_MAX_SEC);
    return 0;
}

int64_t amp_assignment_wait(struct amp_worker *w, const struct amp_assignment *k)
{
    int64_t wait = retry_after(w, &k->files);
    int64_t limit = k->words.limited ? k->words.limit_ms - amp_now_ms() : 0;

    return limit > wait ? limit : wait;
}

int amp_assignment_again(struct amp_worker *w, struct amp_item *job, const struct amp_assignment *k,
                         enum amp_attempt_end end, const char *why, bool *spent,
                         struct amp_error *err)
{
    struct amp_queue_step step = {.why = why};
    int64_t wait = end == AMP_END_REPEAT ? amp_assignment_wait(w, k) : 0;

    *spent = false;
    if (end == AMP_END_STOPPED) {
        /* A pool gives the job back, or goes on with it. */
        step.event = w->opt->step ? AMP_QUEUE_EV_HALT : AMP_QUEUE_EV_RELEASE;
        step.keeps = w->paused || w->left.yielded;
        w->opt->note(step.keeps ? "%s: stopped; it goes on in its worktree when it is resumed"
                                : "%s: stopped; it is repeated later",
                     job->msg_id);
        return amp_worker_conclude(w, job, &step, NULL,
                                   w->halted || w->paused || w->ask.what == AMP_ASK_PREEMPT
                                       ? AMP_AGENT_EV_SUSPEND
                                       : AMP_AGENT_EV_SHUTDOWN,
                                   err);
    }
    if (end == AMP_END_REPEAT && job->attempts <= w->opt->retries + 20) {
        step.event = AMP_QUEUE_EV_PARK;
        step.until_ms = amp_now_ms() + (wait > 0 ? wait : w->opt->pause_ms);
        if (wait > 0)
            w->left.limit_ms = step.until_ms;
        w->opt->note("%s: %s: again later", job->msg_id, why);
        if (amp_worker_step(w, job, &step, NULL, err))
            return -1;
        /* Only a usage limit has a known end. */
        return amp_worker_wait(w, wait > 0 ? AMP_AGENT_EV_LACK : AMP_AGENT_EV_WAIT, step.until_ms,
                               err);
    }
    if (job->breaks >= w->opt->retries) {
        *spent = true;
        return 0;
    }
    step.event = AMP_QUEUE_EV_BREAK;
    w->opt->note("%s: %s: not counted against the agent; repeating", job->msg_id, why);
    return amp_worker_conclude(w, job, &step, NULL, AMP_AGENT_EV_FAIL, err);
}
