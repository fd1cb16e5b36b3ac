/*
 * One worker, one request at a time, over a socket, so that a dead worker is an error and not a
 * signal. A worker that is too slow or sends an invalid reply is killed; the next call starts
 * another. The failed request is not sent again: it may have been carried out.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/loop.h"
#include "work/git/repository/call.h"
#include "json/text.h"

#define TIME_LIMIT_MS  60000
#define REQUEST_MAX    (1u << 20)
#define REPLY_MAX      (32u << 20)
#define READ_SIZE      65536
#define KILL_GRACE_MS  1000
#define START_LIMIT_MS 5000
#define STOP_GRACE_MS  2000

int amp_git_open(const struct amp_git_options *opt, struct amp_git **out, struct amp_error *err)
{
    struct amp_git *g = calloc(1, sizeof *g);
    if (!g)
        return amp_fail_memory(err);
    g->time_limit_ms = opt && opt->time_limit_ms ? opt->time_limit_ms : TIME_LIMIT_MS;
    g->stop = opt ? opt->stop : NULL;
    g->wait = opt ? opt->wait : NULL;
    g->wait_ctx = opt ? opt->wait_ctx : NULL;
    g->fd = -1;
    amp_buf_init(&g->request, REQUEST_MAX);
    amp_buf_init(&g->reply, REPLY_MAX);
    amp_buf_init(&g->arena, REPLY_MAX);
    amp_tape_init(&g->tape, NULL);
    *out = g;
    return 0;
}

void amp_git_rest(struct amp_git *g)
{
    if (g->fd < 0)
        return;
    close(g->fd); /* the worker ends at the end of its input */
    g->fd = -1;
    g->ending = true;
}

static void stop_worker(struct amp_git *g, bool kill)
{
    struct amp_child_end end;
    amp_git_rest(g);
    if (!g->ending)
        return;
    g->ending = false;
    if (kill)
        amp_child_kill_tree(&g->child, SIGKILL);
    amp_child_wait(&g->child, KILL_GRACE_MS, KILL_GRACE_MS, NULL, &end, NULL);
}

void amp_git_close(struct amp_git *g)
{
    if (!g)
        return;
    stop_worker(g, false);
    amp_buf_release(&g->request);
    amp_buf_release(&g->reply);
    amp_buf_release(&g->arena);
    amp_tape_release(&g->tape);
    free(g);
}

/* Whether the worker starts, checked after several crashes: one repository that crashes it must not
 * make it unavailable for all the others. */
static bool worker_starts(struct amp_git *g, const char *path)
{
    struct amp_child child;
    struct amp_child_end end = {0};
    const char *const argv[] = {path, "--version", NULL};
    struct amp_child_spec spec = {
        .argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1, .dies_with_us = true};
    return amp_child_start(&spec, &child, NULL) == 0 &&
           amp_child_wait(&child, START_LIMIT_MS, 0, g->stop, &end, NULL) == 0 && end.exited &&
           end.exit_code == 0;
}

static int start_worker(struct amp_git *g, struct amp_error *err)
{
    char path[PATH_MAX];
    int pair[2];
    stop_worker(g, false);
    if (amp_helper_path("git-worker", path, sizeof path, err) < 0)
        return -1;
    /* The next place of the ring has the oldest of the last crashes. */
    if (g->n_crashes >= AMP_GIT_CRASHES_MAX &&
        amp_mono_ms() - g->crashes[g->n_crashes % AMP_GIT_CRASHES_MAX] < AMP_GIT_CRASHES_MS &&
        !worker_starts(g, path))
        return amp_fail(err, AMP_UNAVAILABLE, git_unavailable,
                        "git-worker broke down %d times within a minute, and does not start",
                        AMP_GIT_CRASHES_MAX);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a socket for git-worker");
    const char *const argv[] = {path, NULL};
    struct amp_child_spec spec = {.argv = argv,
                                  .fd_in = pair[1],
                                  .fd_out = pair[1],
                                  .fd_err = STDERR_FILENO,
                                  .dies_with_us = true};
    int rc = amp_child_start(&spec, &g->child, err);
    close(pair[1]);
    if (rc || fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0) {
        close(pair[0]);
        return rc ? -1 : amp_fail_errno(err, AMP_INTERNAL, "git-worker's socket");
    }
    g->fd = pair[0];
    return 0;
}

int amp_git_wake(struct amp_git *g, struct amp_error *err)
{
    return g->fd < 0 ? start_worker(g, err) : 0;
}

static int request_write(struct amp_git *g, const char *op, const struct amp_git_arg *args,
                         struct amp_error *err)
{
    static const char *const paths[] = {"repo", "worktree", "path"};
    struct amp_jw w;
    for (const struct amp_git_arg *a = args; a->key; a++)
        for (size_t i = 0; a->text && i < sizeof paths / sizeof *paths; i++)
            if (strcmp(a->key, paths[i]) == 0 && amp_utf8_path(a->text, err) < 0)
                return -1;
    amp_buf_reset(&g->request);
    amp_jw_init(&w, &g->request);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "q", ++g->q);
    amp_jw_member_text(&w, "op", op);
    for (; args->key; args++)
        if (args->text)
            amp_jw_member_text(&w, args->key, args->text);
        else if (args->flag)
            amp_jw_member_bool(&w, args->key, true);
        else if (args->number)
            amp_jw_member_int(&w, args->key, args->number);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* Ends the worker after it failed; returns -1. */
static int worker_failed(struct amp_git *g)
{
    g->crashes[g->n_crashes++ % AMP_GIT_CRASHES_MAX] = amp_mono_ms();
    stop_worker(g, true);
    return -1;
}

/* Sends the request and reads the complete reply. */
static int reply_wait(struct amp_git *g, struct amp_error *err)
{
    int64_t end = amp_mono_ms() + g->time_limit_ms, stop = INT64_MAX;
    size_t sent = 0;
    amp_buf_reset(&g->reply);
    for (;;) {
        int64_t now = amp_mono_ms(), left = end - now;
        if (g->stop && *g->stop && stop == INT64_MAX)
            stop = now + STOP_GRACE_MS;
        if (now >= stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted,
                            "interrupted while git-worker did not answer");
        struct pollfd fd;
        struct amp_loop turn = amp_loop_turn(&fd, 1, stop == INT64_MAX ? g->stop : NULL, NULL);
        const struct pollfd *p =
            amp_loop_add(&turn, g->fd, sent < g->request.len ? POLLIN | POLLOUT : POLLIN);
        amp_loop_within(&turn, left > 0 ? left : 0);
        if (stop < INT64_MAX)
            amp_loop_within(&turn, stop - now);
        if ((g->wait ? g->wait(g->wait_ctx, &turn, err) : amp_loop_wait(&turn, err)) < 0)
            return -1;
        if (!p->revents && left <= 0)
            return amp_fail(err, AMP_TIMEDOUT, git_timeout, "git-worker took longer than %lld ms",
                            (long long)g->time_limit_ms);
        if (p->revents & POLLOUT) {
            ssize_t put = send(g->fd, g->request.data + sent, g->request.len - sent, MSG_NOSIGNAL);
            if (put < 0 && errno != EAGAIN && errno != EINTR)
                return amp_fail(err, AMP_TEMPFAIL, git_crashed, "git-worker ended early");
            sent += put > 0 ? (size_t)put : 0;
        }
        if (!(p->revents & (POLLIN | POLLHUP | POLLERR)))
            continue;
        if (amp_buf_reserve(&g->reply, READ_SIZE, err) < 0)
            return -1;
        ssize_t got = recv(g->fd, g->reply.data + g->reply.len, READ_SIZE, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return amp_fail(err, AMP_TEMPFAIL, git_crashed, "git-worker ended early");
        g->reply.len += (size_t)got;
        if (g->reply.data[g->reply.len - 1] == '\n')
            return 0;
    }
}

int amp_git_call(struct amp_git *g, const char *op, const struct amp_git_arg *args,
                 struct amp_error *err)
{
    struct amp_json_fault fault;
    if (request_write(g, op, args, err) < 0 || amp_git_wake(g, err) < 0)
        return -1;
    if (reply_wait(g, err) < 0)
        return worker_failed(g);
    if (amp_tape_scan(&g->tape, g->reply.data, g->reply.len, &fault) < 0) {
        amp_json_fail(err, AMP_INTERNAL, AMP_CODE(git_crashed), "git-worker's reply", &fault);
        return worker_failed(g);
    }
    if (amp_git_field_int(g, 0, "q") != g->q) {
        amp_fail(err, AMP_INTERNAL, git_crashed, "git-worker answered out of turn");
        return worker_failed(g);
    }
    if (amp_git_field_bool(g, 0, "ok"))
        return 0;
    char code[48], what[416];
    amp_git_field_copy(g, 0, "code", code, sizeof code);
    amp_git_field_copy(g, 0, "what", what, sizeof what);
    int64_t status = amp_git_field_int(g, 0, "status");
    return amp_fail_text(err, status > 0 && status < 256 ? (enum amp_status)status : AMP_INTERNAL,
                         code, "%s", what);
}

struct amp_span amp_git_field(struct amp_git *g, uint32_t object, const char *key)
{
    struct amp_span text = {NULL, 0};
    uint32_t tok = amp_tape_get(&g->tape, object, amp_span_str(key));
    amp_buf_reset(&g->arena);
    if (tok == AMP_TOK_NONE || g->tape.tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(&g->tape, tok, &g->arena, &text, NULL))
        return (struct amp_span){NULL, 0};
    return text;
}

void amp_git_field_copy(struct amp_git *g, uint32_t object, const char *key, char *out, size_t size)
{
    amp_span_copy(amp_git_field(g, object, key), out, size);
}

int64_t amp_git_field_int(struct amp_git *g, uint32_t object, const char *key)
{
    int64_t n = 0;
    uint32_t tok = amp_tape_get(&g->tape, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && amp_tok_int(&g->tape, tok, &n) ? n : 0;
}

bool amp_git_field_bool(struct amp_git *g, uint32_t object, const char *key)
{
    uint32_t tok = amp_tape_get(&g->tape, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && g->tape.tok[tok].type == AMP_JSON_TRUE;
}
