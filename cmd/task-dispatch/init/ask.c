/* The questions of init, on the terminal, never on standard input. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "init.h"

#define LINE_LONG 4096

static int terminal_open(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && tcgetpgrp(fd) != getpgrp()) {
        close(fd); /* a background job would be stopped */
        fd = -1;
    }
    return fd;
}

bool init_has_terminal(void)
{
    AMP_CLOSE int fd = terminal_open();
    return fd >= 0;
}

/* Reads a line, without what was typed before the question. */
static int line_ask(int fd, const char *question, char *out, size_t size, struct amp_error *err)
{
    char c;
    size_t n = 0;
    tcflush(fd, TCIFLUSH);
    if (amp_write_all(fd, amp_span_str(question), err) < 0)
        return -1;
    for (;;) {
        ssize_t got = read(fd, &c, 1);
        if (got < 0 && errno == EINTR && !amp_stop)
            continue;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted; nothing was made");
        if (got <= 0)
            return amp_fail(err, AMP_USAGE, "no_answer", "no answer; nothing was made");
        if (c == '\n')
            break;
        if (n + 1 < size)
            out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}

static bool program_exists(const char *name)
{
    char path[PATH_MAX];
    struct amp_error ignored;
    return amp_child_find(name, environ, path, sizeof path, &ignored) == 0;
}

/* The adapter of a coding agent that is installed; later: prefer the second one. */
static const char *agent_guess(bool later)
{
    bool claude = program_exists("claude"), codex = program_exists("codex");
    if (later ? codex : !claude && codex)
        return "agent-codex";
    return claude ? "agent-claude" : "";
}

/* Whether the first word is a program; a line for the shell is not checked. */
static bool command_exists(const char *text)
{
    char word[PATH_MAX], path[PATH_MAX];
    struct amp_error ignored;
    size_t n = strcspn(text, " \t");
    if (strpbrk(text, "|&;<>()$`\\\"'*?[]#~={}!"))
        return true;
    if (!amp_span_copy((struct amp_span){text, n}, word, sizeof word))
        return false;
    return program_exists(word) ||
           (strncmp(word, "agent-", 6) == 0 &&
            amp_helper_path(word, path, sizeof path, &ignored) == 0 && access(path, X_OK) == 0);
}

static int command_ask(int fd, const char *role, const char *guess, const char **out,
                       struct amp_error *err)
{
    char question[256], line[LINE_LONG];
    snprintf(question, sizeof question, "Command of the %s%s%s%s: ", role, *guess ? " [" : "",
             guess, *guess ? "]" : " (a program, a script or a shell line)");
    for (;;) {
        if (line_ask(fd, question, line, sizeof line, err) < 0)
            return -1;
        const char *text = line + strspn(line, " \t");
        if (!*text)
            text = guess;
        if (*text && command_exists(text)) {
            *out = strdup(text); /* for the process's life */
            return *out ? 0 : amp_fail_memory(err);
        }
        if (*text && amp_write_all(fd, AMP_SPAN("  there is no such program\n"), err) < 0)
            return -1;
    }
}

int init_ask_commands(struct init *in, struct amp_error *err)
{
    AMP_CLOSE int fd = terminal_open();
    if (fd < 0)
        return 0;
    if (!in->executor && command_ask(fd, "executor", agent_guess(false), &in->executor, err) < 0)
        return -1;
    if (!in->reviewer && command_ask(fd, "reviewer", agent_guess(true), &in->reviewer, err) < 0)
        return -1;
    return 1;
}

int init_ask_proceed(struct amp_error *err)
{
    char line[64];
    AMP_CLOSE int fd = terminal_open();
    if (fd < 0)
        return 0;
    if (line_ask(fd, "Proceed? [Y/n] ", line, sizeof line, err) < 0)
        return -1;
    return line[0] == '\0' || line[0] == 'y' || line[0] == 'Y';
}
