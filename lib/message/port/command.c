/*
 * command:ARGV — one long-lived process with NDJSON on its standard input. Its command line is
 * split into words without a shell: quotes are removed, nothing is expanded.
 */
#include "message/port/private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"

#define RETRY_MS      10
#define RESTART_MS    200
#define CRASH_WINDOW  60000
#define COMMAND_GRACE 2000
#define WORDS_MAX     1024

void amp_argv_free(char **argv)
{
    for (char **w = argv; w && *w; w++)
        free(*w);
    free(argv);
}

/* Copies the next word of *text to `room`, which is as large as the text. -1: a quote is open. */
static int word_take(const char **text, char *room)
{
    const char *p = *text;
    size_t n = 0;
    char quote = 0;
    for (; *p && (quote || (*p != ' ' && *p != '\t')); p++) {
        if (quote && *p == quote)
            quote = 0;
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            room[n++] = *++p;
        else
            room[n++] = *p;
    }
    *text = p;
    room[n] = 0;
    return quote ? -1 : 0;
}

int amp_argv_split(const char *text, char ***out, struct amp_error *err)
{
    char **argv = calloc(WORDS_MAX + 1, sizeof(*argv));
    AMP_FREE char *room = malloc(strlen(text) + 1);
    int n = 0;
    if (!argv || !room)
        goto failed;
    for (const char *p = text;;) {
        p += strspn(p, " \t");
        if (!*p)
            break;
        if (n == WORDS_MAX || word_take(&p, room) < 0) {
            amp_argv_free(argv);
            return amp_fail(err, AMP_USAGE, bad_port,
                            n == WORDS_MAX ? "too many words in \"%.200s\""
                                           : "a quote is not closed in \"%.200s\"",
                            text);
        }
        if (!(argv[n] = strdup(room)))
            goto failed;
        n++;
    }
    if (n == 0) {
        amp_argv_free(argv);
        return amp_fail(err, AMP_USAGE, bad_port, "the command is empty");
    }
    *out = argv;
    return 0;
failed:
    amp_argv_free(argv);
    return amp_fail_memory(err);
}

static int command_connect(struct amp_port *p, int *fd, struct amp_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a pipe for %s", p->spec);
    struct amp_child_spec spec = {
        .argv = (const char *const *)p->argv,
        .fd_in = ends[0],
        .fd_out = STDOUT_FILENO,
        .fd_err = STDERR_FILENO,
    };
    int rc = amp_child_start(&spec, &p->child, err);
    close(ends[0]);
    if (rc < 0) {
        close(ends[1]);
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    *fd = ends[1];
    return 1;
}

/* Checks for a command that ended before its input did. */
static void command_look(struct amp_port *p, int64_t now_ms)
{
    struct amp_child_end end;
    struct amp_error err;
    if (p->finishing || p->child.pid <= 0 || amp_child_poll(&p->child, &end, &err) != 1)
        return;
    p->child.pid = 0;
    amp_port_lost_reader(p, now_ms);
    p->retry_ms = now_ms + RESTART_MS;
    bool too_often = p->crashes[0] > 0 && now_ms - p->crashes[0] < CRASH_WINDOW;
    memmove(p->crashes, p->crashes + 1, sizeof(p->crashes) - sizeof(p->crashes[0]));
    p->crashes[2] = now_ms;
    if (too_often) {
        p->failed = true;
        amp_fail(&p->why, AMP_UNAVAILABLE, agent_unavailable,
                 "%s ended again and again (last with %s %d)", p->spec,
                 end.signaled ? "signal" : "status", end.signaled ? end.signal : end.exit_code);
    }
}

static int command_watch(const struct amp_port *p, struct pollfd *fds, int64_t *wait_ms)
{
    bool pending = p->queue.n > p->out;
    (void)wait_ms;
    if (p->child.pid <= 0 || (p->open && pending) || (!pending && !p->finishing && !p->opt.minds))
        return 0;
    fds[0] = (struct pollfd){.fd = p->child.pidfd, .events = POLLIN};
    return 1;
}

static int command_finish(struct amp_port *p, struct amp_error *err)
{
    struct amp_child_end end;
    amp_port_disconnect(p, false);
    if (p->child.pid <= 0)
        return 1;
    int rc = amp_child_poll(&p->child, &end, err);
    if (rc == 0)
        return 0;
    p->child.pid = 0;
    if (rc < 0)
        return -1;
    if (end.signaled)
        return amp_fail(err, AMP_UNAVAILABLE, command_failed, "%s was ended by signal %d", p->spec,
                        end.signal);
    if (end.exit_code != 0)
        return amp_fail(err, AMP_UNAVAILABLE, command_failed, "%s ended with status %d", p->spec,
                        end.exit_code);
    return 1;
}

static int command_open(struct amp_port *p, struct amp_error *err)
{
    return amp_argv_split(p->arg, &p->argv, err) < 0 ? -1 : amp_stream_open(p, err);
}

static void command_close(struct amp_port *p)
{
    amp_stream_close(p);
    if (p->child.pid > 0) {
        struct amp_child_end end;
        struct amp_error err;
        int stop = 1;
        amp_child_wait(&p->child, -1, COMMAND_GRACE, &stop, &end, &err);
    }
}

static const struct amp_stream stream = {.connect = command_connect,
                                         .retry_ms = RETRY_MS,
                                         .look = command_look,
                                         .watch = command_watch,
                                         .finish = command_finish};

const struct amp_port_ops amp_port_command = {.word = "command",
                                              .takes_arg = true,
                                              .traits = AMP_PORT_PIPED,
                                              .stream = &stream,
                                              .open = command_open,
                                              .offer = amp_stream_offer,
                                              .step = amp_stream_step,
                                              .watch = amp_stream_watch,
                                              .finish = amp_stream_finish,
                                              .close = command_close,
                                              .retract = amp_stream_retract};
