/* The terminal: its mode, its turns, its signals; lines at a prompt; pages of a text. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/codes.h"
#include "cli/cli.h"

#define KEPT_MAX   (256u << 10) /* bytes of messages that wait */
#define PLAIN_MAX  4095         /* bytes of a line that the kernel passes on in canonical mode */
#define TTY_MAJOR  136          /* of pseudo-terminals: 136 to 143 */
#define MORE_BYTES 128
#define WIDTH_MIN  24 /* columns; a narrower terminal wraps lines itself */

static void mode_set(struct terminal *t, bool raw);
static void line_show(struct terminal *t);

/* --- opening --- */

void terminal_init(struct terminal *t, bool plain)
{
    const char *term = getenv("TERM");

    *t = (struct terminal){.fd = -1, .lock = -1, .signals = -1, .width = 80, .height = 24};
    t->plain = plain || !term || !*term || !strcmp(term, "dumb");
    amp_buf_init(&t->in, 2 * (PLAIN_MAX + 1));
    amp_buf_init(&t->kept, KEPT_MAX);
    amp_buf_init(&t->page.text, SIZE_MAX / 2);
    line_reset(&t->line);
}

static void size_read(struct terminal *t)
{
    struct winsize w;

    if (ioctl(t->fd, TIOCGWINSZ, &w) == 0 && w.ws_col)
        t->width = w.ws_col < WIDTH_MIN ? WIDTH_MIN : w.ws_col;
    if (ioctl(t->fd, TIOCGWINSZ, &w) == 0 && w.ws_row)
        t->height = w.ws_row < 4 ? 4 : w.ws_row;
}

/* /dev/tty is the same file for all terminals, so the turns need the device itself. */
static int device_open(const struct terminal *t)
{
    char path[64] = "";
    unsigned dev = 0;
    struct stat st;

    if (ioctl(t->fd, TIOCGDEV, &dev))
        return -1;
    if (major(dev) >= TTY_MAJOR && major(dev) < TTY_MAJOR + 8)
        snprintf(path, sizeof path, "/dev/pts/%u", minor(dev) + 256 * (major(dev) - TTY_MAJOR));
    for (int fd = 0; fd <= 2 && !*path; fd++)
        if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == dev)
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!*path)
        return -1;
    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != dev)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool terminal_is(const struct terminal *t, int fd)
{
    struct stat st, own;

    if (!isatty(fd) || fstat(fd, &st) || !S_ISCHR(st.st_mode))
        return false;
    return t->lock < 0 || fstat(t->lock, &own) || own.st_rdev == st.st_rdev;
}

static void signals_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTSTP);
    sigaddset(set, SIGCONT);
    sigaddset(set, SIGWINCH);
}

/* While a line is typed, a message is printed above it, or kept; see terminal.h. */
static bool message_take(void *ctx, struct amp_span text)
{
    struct terminal *t = ctx;

    if (t->fd < 0 || t->gone || !terminal_is(t, STDERR_FILENO) ||
        (!t->prompt && !t->page.on && !t->away))
        return false;
    if (!t->away && !t->page.on && !t->plain) {
        terminal_say(t, text);
        return true;
    }
    if (amp_buf_add(&t->kept, text.p, text.n, NULL) < 0)
        t->lost += text.n;
    return true;
}

int terminal_open(struct terminal *t, struct amp_error *err)
{
    sigset_t set;

    if (t->fd >= 0)
        return 0;
    t->fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (t->fd < 0)
        return amp_fail(err, AMP_UNAVAILABLE, no_terminal, "there is no terminal: use --answer");
    t->lock = device_open(t);
    amp_signals_reload(); /* HUP sets amp_hangup */
    signals_set(&set);
    sigprocmask(SIG_BLOCK, &set, &t->blocked_before);
    t->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    size_read(t);
    amp_err_divert(message_take, t);
    return 0;
}

void terminal_release(struct terminal *t)
{
    amp_err_divert(NULL, NULL);
    if (t->fd >= 0) {
        terminal_unprompt(t);
        terminal_pass(t);
        close(t->fd);
        sigprocmask(SIG_SETMASK, &t->blocked_before, NULL);
    }
    if (t->lock >= 0)
        close(t->lock);
    if (t->signals >= 0)
        close(t->signals);
    amp_buf_release(&t->in);
    amp_buf_release(&t->kept);
    amp_buf_release(&t->page.text);
    t->fd = t->lock = t->signals = -1;
}

bool terminal_ours(const struct terminal *t)
{
    return t->fd >= 0 && !t->gone && tcgetpgrp(t->fd) == getpgrp();
}

bool terminal_gone(struct terminal *t)
{
    struct pollfd hung = {.fd = t->fd};

    if (amp_hangup || (t->fd >= 0 && poll(&hung, 1, 0) == 1 && (hung.revents & POLLHUP)))
        t->gone = true;
    return t->gone;
}

bool terminal_turn(struct terminal *t)
{
    if (!t->turn && t->lock >= 0 && flock(t->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    t->turn = true;
    return true;
}

void terminal_pass(struct terminal *t)
{
    if (t->turn && t->lock >= 0)
        flock(t->lock, LOCK_UN);
    t->turn = false;
}

/* --- output --- */

/* A terminal that takes no output is gone, unless a signal ended the wait. */
static void bytes_write(struct terminal *t, struct amp_span text)
{
    struct amp_error err;

    if (!t->gone && t->fd >= 0 && amp_write_until(t->fd, text, &amp_stop, &err) < 0 && !amp_stop)
        t->gone = true;
}

static void kept_print(struct terminal *t)
{
    char more[MORE_BYTES];

    bytes_write(t, amp_buf_span(&t->kept));
    amp_buf_reset(&t->kept);
    if (t->lost) {
        int n = snprintf(more, sizeof more, "  (%zu bytes of messages were left out)\n", t->lost);
        bytes_write(t, (struct amp_span){more, (size_t)n});
    }
    t->lost = 0;
}

void terminal_say(struct terminal *t, struct amp_span text)
{
    if (t->prompt && t->raw)
        bytes_write(t, AMP_SPAN("\r\033[K"));
    bytes_write(t, text);
    if (t->prompt && (t->raw || t->plain))
        line_show(t);
}

/* Shows the prompt, with the typed line in raw mode. */
static void line_show(struct terminal *t)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_error err;

    if (!t->raw) {
        bytes_write(t, amp_span_str(t->prompt));
        return;
    }
    amp_buf_init(&out, 65536);
    if (line_draw(&t->line, t->prompt, t->width, &out, &err) == 0)
        bytes_write(t, amp_buf_span(&out));
}

/* --- the mode --- */

/* Raw: bytes come one by one and are not echoed; signals of keys and the output are as before. */
static void mode_set(struct terminal *t, bool raw)
{
    struct termios now;

    if (t->gone || raw == t->raw || !terminal_ours(t))
        return;
    if (raw) {
        if (tcgetattr(t->fd, &t->before))
            return;
        now = t->before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
        now.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | ISTRIP);
        now.c_cc[VMIN] = 1;
        now.c_cc[VTIME] = 0;
    } else {
        now = t->before;
    }
    if (tcsetattr(t->fd, TCSADRAIN, &now) == 0) {
        t->raw = raw;
        /* Bracketed paste: a pasted line end is not an answer. */
        bytes_write(t, raw ? AMP_SPAN("\033[?2004h") : AMP_SPAN("\033[?2004l"));
    }
}

void terminal_prompt(struct terminal *t, const char *prompt)
{
    /* Discards input that was typed before the question was printed. */
    tcflush(t->fd, TCIFLUSH);
    amp_buf_reset(&t->in);
    line_reset(&t->line);
    kept_print(t);
    t->prompt = prompt;
    if (!t->plain)
        mode_set(t, true);
    line_show(t);
}

void terminal_unprompt(struct terminal *t)
{
    if (!t->prompt && !t->page.on && !t->raw) {
        if (t->fd >= 0)
            kept_print(t);
        return;
    }
    bytes_write(t, t->raw ? AMP_SPAN("\r\033[K") : AMP_SPAN("\n"));
    if (terminal_ours(t))
        tcflush(t->fd, TCIFLUSH);
    t->prompt = NULL;
    t->page.on = false;
    mode_set(t, false);
    kept_print(t);
}

/* --- pages --- */

static size_t lines_count(struct amp_span text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

static void more_show(struct terminal *t)
{
    char more[MORE_BYTES];
    struct amp_span done = {t->page.text.data, t->page.at};
    int n = snprintf(more, sizeof more, "%s-- line %zu of %zu; %s: more, b: back, q: end -- ",
                     t->raw ? "\r\033[K" : "", lines_count(done),
                     lines_count(amp_buf_span(&t->page.text)), t->raw ? "space" : "Enter");
    bytes_write(t, (struct amp_span){more, (size_t)n});
}

/* The place after n more lines. */
static size_t lines_skip(const struct terminal *t, size_t at, int n)
{
    const struct amp_buf *b = &t->page.text;

    while (n-- > 0 && at < b->len) {
        const char *nl = memchr(b->data + at, '\n', b->len - at);
        at = nl ? (size_t)(nl - b->data) + 1 : b->len;
    }
    return at;
}

/* true: the text has ended. */
static bool page_show(struct terminal *t, int lines)
{
    size_t from = t->page.at;

    if (t->raw)
        bytes_write(t, AMP_SPAN("\r\033[K"));
    t->page.at = lines_skip(t, from, lines);
    bytes_write(t, (struct amp_span){t->page.text.data + from, t->page.at - from});
    if (t->page.at < t->page.text.len) {
        more_show(t);
        return false;
    }
    t->page.on = false;
    return true;
}

/* Two pages before the place. */
static void page_back(struct terminal *t)
{
    int back = 2 * (t->height - 1);
    size_t at = t->page.at;

    while (back >= 0 && at > 0)
        if (t->page.text.data[--at] == '\n' && --back < 0)
            at++;
    t->page.at = at;
}

void terminal_page(struct terminal *t, struct amp_span text)
{
    struct amp_error err;

    amp_buf_reset(&t->page.text);
    if (amp_buf_add(&t->page.text, text.p, text.n, &err) < 0) {
        terminal_say(t, AMP_SPAN("  (no memory to show it)\n"));
        return;
    }
    t->page.at = 0;
    t->page.on = true;
    if (!t->plain && lines_count(text) >= (size_t)t->height)
        mode_set(t, true);
    page_show(t, t->height - 1);
}

void terminal_repage(struct terminal *t, struct amp_span text)
{
    struct amp_span old = amp_buf_span(&t->page.text);
    size_t shown = lines_count((struct amp_span){old.p, t->page.at}), all = lines_count(old);
    struct amp_error err;

    amp_buf_reset(&t->page.text);
    if (amp_buf_add(&t->page.text, text.p, text.n, &err) < 0)
        return;
    size_t lines = all ? lines_count(text) * shown / all : 0;
    t->page.at = lines_skip(t, 0, (int)(lines > (size_t)t->height ? lines - (size_t)t->height : 0));
    page_show(t, t->height - 1);
}

/* A key while a page is shown. true: the pages have ended. */
static bool page_key(struct terminal *t, char c)
{
    switch (c) {
    case 'q':
    case 'Q':
    case 4: /* ^D */
        t->page.on = false;
        if (t->raw)
            bytes_write(t, AMP_SPAN("\r\033[K"));
        return true;
    case 'b':
        page_back(t);
        return page_show(t, t->height - 1);
    case ' ':
    case 'f':
    case '\r':
    case '\n':
        return page_show(t, t->height - 1);
    default:
        return false;
    }
}

/* --- other programs, signals --- */

void terminal_lend(struct terminal *t)
{
    sigset_t stop;

    t->away = true;
    mode_set(t, false);
    t->lent = tcgetattr(t->fd, &t->before) == 0;
    /* ^Z in the other program stops this one, too. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
}

void terminal_reclaim(struct terminal *t)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    t->away = false;
    /* A program that was killed may have left another mode. */
    if (t->lent && terminal_ours(t))
        tcsetattr(t->fd, TCSADRAIN, &t->before);
    t->lent = false;
    size_read(t);
    kept_print(t);
}

/* ^Z: stops as any program does, with the terminal's former mode. */
static void stop_now(struct terminal *t)
{
    sigset_t stop;

    bytes_write(t, t->raw ? AMP_SPAN("\r\033[K") : AMP_SPAN("\n"));
    mode_set(t, false);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* Back in the foreground: the mode and the line as they were. */
static void resume_now(struct terminal *t)
{
    struct termios now;

    size_read(t);
    if (t->away || !terminal_ours(t) || (!t->prompt && !t->page.on))
        return;
    /* A shell has set its own mode, unless this process was not stopped at all. */
    if (tcgetattr(t->fd, &now) == 0 && (now.c_lflag & ICANON))
        t->raw = false;
    if (!t->plain)
        mode_set(t, true);
    if (t->page.on)
        more_show(t);
    else
        line_show(t);
}

static enum terminal_event signals_step(struct terminal *t)
{
    struct signalfd_siginfo info;
    enum terminal_event event = TERMINAL_QUIET;

    while (t->signals >= 0 && read(t->signals, &info, sizeof info) == sizeof info) {
        switch (info.ssi_signo) {
        case SIGTSTP:
            stop_now(t);
            resume_now(t);
            break;
        case SIGCONT:
            resume_now(t);
            break;
        case SIGWINCH:
            size_read(t);
            event = TERMINAL_RESIZED;
            break;
        default:
            break;
        }
    }
    if (event == TERMINAL_RESIZED && t->prompt && !t->page.on && !t->away)
        line_show(t);
    return event;
}

/* --- input --- */

unsigned terminal_watch(const struct terminal *t, struct pollfd *fds)
{
    unsigned n = 0;

    if (t->fd < 0 || t->gone)
        return 0;
    if (t->signals >= 0)
        fds[n++] = (struct pollfd){.fd = t->signals, .events = POLLIN};
    if ((t->prompt || t->page.on) && !t->away && terminal_ours(t))
        fds[n++] = (struct pollfd){.fd = t->fd, .events = POLLIN};
    return n;
}

/* The line is complete: the cursor goes to the next row. */
static enum terminal_event line_done(struct terminal *t, char **line)
{
    /* The complete line stays readable above. */
    t->line.at = t->line.len;
    line_show(t);
    bytes_write(t, AMP_SPAN("\n"));
    t->prompt = NULL;
    mode_set(t, false);
    kept_print(t);
    *line = t->line.text;
    return TERMINAL_LINE;
}

static enum terminal_event raw_byte(struct terminal *t, unsigned char c, char **line)
{
    if (t->page.on)
        return page_key(t, (char)c) ? TERMINAL_PAGED : TERMINAL_QUIET;
    switch (line_byte(&t->line, c)) {
    case LINE_CHANGED:
        line_show(t);
        return TERMINAL_QUIET;
    case LINE_FULL:
        bytes_write(t, AMP_SPAN("\a"));
        return TERMINAL_QUIET;
    case LINE_REFRESH:
        return TERMINAL_REFRESH;
    case LINE_END:
        bytes_write(t, AMP_SPAN("\n"));
        return TERMINAL_END;
    case LINE_DONE:
        return line_done(t, line);
    case LINE_SAME:
        break;
    }
    return TERMINAL_QUIET;
}

/* Plain mode: the terminal passes on complete lines. */
static enum terminal_event plain_bytes(struct terminal *t, const char *bytes, size_t n, char **line)
{
    if (amp_buf_add(&t->in, bytes, n, NULL) < 0) {
        amp_buf_reset(&t->in);
        return TERMINAL_LONG;
    }
    char *nl = memchr(t->in.data, '\n', t->in.len);
    if (!nl)
        return t->in.len >= PLAIN_MAX ? (amp_buf_reset(&t->in), TERMINAL_LONG) : TERMINAL_QUIET;
    size_t len = (size_t)(nl - t->in.data);
    if (t->page.on) {
        char key = len ? t->in.data[0] : '\n';
        amp_buf_reset(&t->in);
        return page_key(t, key) ? TERMINAL_PAGED : TERMINAL_QUIET;
    }
    t->prompt = NULL;
    kept_print(t);
    if (len >= PLAIN_MAX - 1) {
        amp_buf_reset(&t->in);
        return TERMINAL_LONG;
    }
    memcpy(t->line.text, t->in.data, len);
    t->line.text[len] = '\0';
    amp_buf_reset(&t->in);
    *line = t->line.text;
    return TERMINAL_LINE;
}

/* ^D in plain mode, or the terminal has hung up. */
static enum terminal_event input_ended(struct terminal *t, ssize_t n)
{
    struct pollfd hung = {.fd = t->fd, .events = POLLIN};

    if (n == 0 && !(poll(&hung, 1, 0) == 1 && (hung.revents & (POLLHUP | POLLERR))))
        return TERMINAL_END;
    t->gone = true;
    return TERMINAL_GONE;
}

enum terminal_event terminal_step(struct terminal *t, char **line)
{
    char b[PLAIN_MAX + 1];

    if (amp_hangup)
        t->gone = true;
    if (t->gone || t->fd < 0)
        return TERMINAL_GONE;
    enum terminal_event event = signals_step(t);
    if (event != TERMINAL_QUIET || (!t->prompt && !t->page.on) || t->away || !terminal_ours(t))
        return t->gone ? TERMINAL_GONE : event;
    /* In raw mode byte by byte, so that what follows the end of a line is not read. */
    do {
        ssize_t n = read(t->fd, b, t->raw ? 1 : sizeof b);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return TERMINAL_QUIET;
        if (n <= 0)
            return input_ended(t, n);
        event =
            t->raw ? raw_byte(t, (unsigned char)b[0], line) : plain_bytes(t, b, (size_t)n, line);
    } while (event == TERMINAL_QUIET && t->raw);
    return event;
}
