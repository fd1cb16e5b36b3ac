/* Prints questions on the terminal and reads the lines that answer them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "hitl.h"

#define TEXT_MAX (1u << 20)

void terminal_init(struct terminal *t)
{
    *t = (struct terminal){.fd = -1};
    amp_buf_init(&t->line, 65536);
}

void terminal_release(struct terminal *t)
{
    if (t->fd >= 0)
        close(t->fd);
    amp_buf_release(&t->line);
    t->fd = -1;
}

int terminal_open(struct terminal *t, struct amp_error *err)
{
    if (t->fd >= 0)
        return 0;
    t->fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (t->fd < 0)
        return amp_fail(err, AMP_UNAVAILABLE, "no_terminal", "there is no terminal: use --answer");
    return 0;
}

bool terminal_ours(const struct terminal *t)
{
    return tcgetpgrp(t->fd) == getpgrp();
}

int width_of(int fd)
{
    struct winsize w;

    if (ioctl(fd, TIOCGWINSZ, &w) || !w.ws_col)
        return 80;
    return w.ws_col > 100 ? 100 : w.ws_col;
}

void terminal_say(struct terminal *t, const char *words)
{
    struct amp_error err;
    amp_write_until(t->fd, amp_span_str(words), &amp_stop, &err);
}

int terminal_ask(struct terminal *t, const struct amp_question *q, const struct amp_task *task,
                 struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};

    amp_buf_init(&out, TEXT_MAX);
    if (question_text(q, task, width_of(t->fd), &out, err) < 0 ||
        amp_buf_fmt(&out, err, "  Answer: %s\n  An empty line leaves it undecided.\n> ",
                    amp_answer_form(q)) < 0)
        return -1;
    /* Discards input that was typed before the question was printed. */
    tcflush(t->fd, TCIFLUSH);
    amp_buf_reset(&t->line);
    return amp_write_until(t->fd, amp_buf_span(&out), &amp_stop, err);
}

int terminal_line(struct terminal *t)
{
    char b[4096];
    ssize_t n = read(t->fd, b, sizeof b);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -1;
    if (n == 0)
        return -1;
    if (amp_buf_add(&t->line, b, (size_t)n, NULL) < 0) {
        amp_buf_reset(&t->line);
        return 0;
    }
    char *nl = memchr(t->line.data, '\n', t->line.len);
    if (!nl)
        return 0;
    *nl = 0;
    t->line.len = (size_t)(nl - t->line.data);
    return 1;
}
