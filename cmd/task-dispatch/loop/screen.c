/* Shows what the filters print on standard error, between the questions of the prompt. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "loop.h"

#define HELD_MAX ((size_t)256 << 10)

static struct termios modes;

int loop_screen_open(struct loop_screen *s, struct amp_error *err)
{
    *s = (struct loop_screen){.pipe = {-1, -1}, .tty = -1};
    if (pipe2(s->pipe, O_CLOEXEC) != 0)
        return amp_fail_errno(err, AMP_IOERR, "a pipe");
    fcntl(s->pipe[0], F_SETFL, O_NONBLOCK);
    amp_buf_init(&s->text, 2 * HELD_MAX);
    s->tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    s->has_modes = s->tty >= 0 && tcgetattr(s->tty, &modes) == 0;
    return 0;
}

/* The prompt edits a line: the terminal is not in its usual mode. */
static bool question_shown(const struct loop_screen *s)
{
    struct termios now;
    return s->has_modes && (modes.c_lflag & ICANON) && isatty(STDERR_FILENO) &&
           tcgetattr(s->tty, &now) == 0 && !(now.c_lflag & ICANON);
}

/* Keeps the newest lines. */
static void text_limit(struct loop_screen *s)
{
    while (s->text.len > HELD_MAX) {
        const char *lf = memchr(s->text.data, '\n', s->text.len);
        amp_buf_drop(&s->text, lf ? (size_t)(lf - s->text.data) + 1 : s->text.len);
        s->dropped++;
    }
}

static void lines_print(struct loop_screen *s, bool rest)
{
    const char *lf = s->text.len ? memrchr(s->text.data, '\n', s->text.len) : NULL;
    size_t n = rest ? s->text.len : lf ? (size_t)(lf - s->text.data) + 1 : 0;
    if (s->dropped)
        amp_note("%llu lines are not shown; amp-ack log has the messages",
                 (unsigned long long)s->dropped);
    s->dropped = 0;
    if (!n)
        return;
    amp_err((struct amp_span){s->text.data, n});
    amp_buf_drop(&s->text, n);
}

void loop_screen_take(struct loop_screen *s)
{
    char piece[16384];
    ssize_t n;
    while ((n = read(s->pipe[0], piece, sizeof piece)) > 0) {
        if (amp_buf_add(&s->text, piece, (size_t)n, NULL) < 0)
            s->dropped++;
        text_limit(s);
    }
    if (!question_shown(s))
        lines_print(s, false);
}

bool loop_screen_waits(const struct loop_screen *s)
{
    return s->dropped > 0 || (s->text.len > 0 && memchr(s->text.data, '\n', s->text.len));
}

void loop_screen_restore(const struct loop_screen *s)
{
    if (question_shown(s) && tcgetpgrp(s->tty) == getpgrp())
        tcsetattr(s->tty, TCSADRAIN, &modes);
}

void loop_screen_close(struct loop_screen *s)
{
    if (s->pipe[0] < 0)
        return;
    loop_screen_restore(s);
    loop_screen_take(s);
    lines_print(s, true);
    for (int i = 0; i < 2; i++)
        if (s->pipe[i] >= 0)
            close(s->pipe[i]);
    if (s->tty >= 0)
        close(s->tty);
    amp_buf_release(&s->text);
    s->pipe[0] = s->pipe[1] = s->tty = -1;
}
