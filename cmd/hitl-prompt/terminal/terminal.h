/*
 * The terminal of a person: /dev/tty, never standard input. It shows text, and reads one line at a
 * prompt, or pages through a long text. It never blocks on its input: poll its descriptors, then
 * call terminal_step.
 *
 * In raw mode the line is edited here, so messages can be printed above it while it is typed. In
 * plain mode (TERM=dumb, --plain; for screen readers) the terminal's own line editing is used, the
 * cursor is never moved, and messages are kept until the line is complete.
 *
 * Two processes on one terminal take turns (terminal_turn). A stop by ^Z and the background of a
 * shell restore the terminal's mode.
 */
#ifndef HITL_TERMINAL_H
#define HITL_TERMINAL_H

#include <poll.h>
#include <signal.h>
#include <termios.h>

#include <amp/base/buf.h>

#include "line.h"

struct terminal {
    int fd;      /* -1: not open */
    int lock;    /* the same device, for the turns; -1: none */
    int signals; /* TSTP, CONT, WINCH as a descriptor; -1 */
    sigset_t blocked_before;
    struct termios before;
    bool plain, raw, turn;
    bool gone;          /* hung up: it reads and shows nothing any more */
    bool lent;          /* another program has it, and `before` is the mode to restore */
    bool away;          /* another program has it: messages are kept */
    const char *prompt; /* shown, and a line is expected; NULL: none */
    struct input_line line;
    struct amp_buf in;   /* plain mode: bytes of an incomplete line */
    struct amp_buf kept; /* messages for later */
    size_t lost;         /* bytes of messages that did not fit */
    struct {
        struct amp_buf text; /* complete lines, wrapped for the width */
        size_t at;           /* of the next line */
        bool on;
    } page;
    int width, height;
};
void terminal_init(struct terminal *t, bool plain);
/* Restores the terminal's mode, prints what was kept, and closes it. */
void terminal_release(struct terminal *t);
/* Opens it; UNAVAILABLE "no_terminal". From now on ^Z, a new size and a hang-up are handled by
 * terminal_step, and messages of amp_err go through the terminal. */
int terminal_open(struct terminal *t, struct amp_error *err);
/* Whether the process is in the foreground; in the background a read would stop it. */
bool terminal_ours(const struct terminal *t);
/* Whether it has hung up. */
bool terminal_gone(struct terminal *t);
/* Whether a descriptor is this terminal. */
bool terminal_is(const struct terminal *t, int fd);
/* Takes the turn among the processes that prompt on this terminal, until terminal_pass. false:
 * another one has it; try again. */
bool terminal_turn(struct terminal *t);
void terminal_pass(struct terminal *t);

/* Prints lines of ours or safe text; above the line that is being typed. */
void terminal_say(struct terminal *t, struct amp_span text);
/* Discards what was typed before, shows the prompt and reads a line. The prompt must stay valid. */
void terminal_prompt(struct terminal *t, const char *prompt);
/* Ends the prompt, without a line. The typed part is discarded. */
void terminal_unprompt(struct terminal *t);
/* Shows text page by page, then the prompt again. The text is complete, wrapped lines. A text that
 * fits the window is printed at once. */
void terminal_page(struct terminal *t, struct amp_span text);
/* Shows the text again for another width, at about the same place. */
void terminal_repage(struct terminal *t, struct amp_span text);
/* Gives the terminal to another program, and takes it back. */
void terminal_lend(struct terminal *t);
void terminal_reclaim(struct terminal *t);

/* Fills the descriptors to poll (at most 2); returns their number. */
unsigned terminal_watch(const struct terminal *t, struct pollfd *fds);

enum terminal_event {
    TERMINAL_QUIET,
    TERMINAL_LINE,    /* *line is complete and valid until the next call */
    TERMINAL_LONG,    /* plain mode: the line was as long as the terminal can pass on; discarded */
    TERMINAL_END,     /* ^D on an empty line */
    TERMINAL_GONE,    /* hung up */
    TERMINAL_REFRESH, /* ^L: show the question again */
    TERMINAL_RESIZED, /* width and height have changed */
    TERMINAL_PAGED,   /* the last page was shown, or the reader ended it */
};
enum terminal_event terminal_step(struct terminal *t, char **line);

#endif
