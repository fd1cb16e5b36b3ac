/*
 * Which git command runs the hook. Only used to refuse earlier or to say how to mend: what is
 * refused never depends on it alone, since a command line is the caller's word.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"

#define ANCESTORS_MAX 4

/* The parent of a process, or 0. */
static long parent_of(long pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strrchr(text, ')'); /* the name before it may hold anything */
    char state;
    long parent;
    return p && sscanf(p + 1, " %c %ld", &state, &parent) == 2 ? parent : 0;
}

static bool read_words(struct command *c, long pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, c->text, sizeof c->text - 1);
    close(fd);
    if (n <= 0)
        return false;
    c->text[n] = '\0';
    c->n = 0;
    for (char *p = c->text; p < c->text + n && c->n < 127; p += strlen(p) + 1)
        c->word[c->n++] = p;
    return c->n > 0;
}

static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Options before the verb that take a separate value. */
static bool takes_value(const char *word)
{
    static const char *const list[] = {"-c",          "-C",          "--git-dir",   "--work-tree",
                                       "--namespace", "--exec-path", "--config-env"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

void command_find(struct command *c)
{
    memset(c, 0, sizeof *c);
    c->verb = "";
    long pid = getppid();
    /* A hook that another hook manager calls has that manager's shell in between. */
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid)) {
        if (!read_words(c, pid))
            continue;
        const char *name = base(c->word[0]);
        if (strncmp(name, "git-", 4) == 0) {
            c->verb = name + 4;
            return;
        }
        if (strcmp(name, "git") != 0)
            continue;
        for (int w = 1; w < c->n; w++) {
            if (takes_value(c->word[w])) {
                w++;
            } else if (c->word[w][0] != '-') {
                c->verb = c->word[w];
                c->verb_at = w;
                return;
            }
        }
        return;
    }
    c->n = 0;
}

bool command_has(const struct command *c, const char *flag)
{
    for (int w = c->verb_at + 1; w < c->n; w++) {
        if (strcmp(c->word[w], "--") == 0)
            return false;
        if (strcmp(c->word[w], flag) == 0)
            return true;
    }
    return false;
}

const char *command_last(const struct command *c)
{
    const char *last = c->n > c->verb_at + 1 ? c->word[c->n - 1] : NULL;
    return last && last[0] != '-' ? last : NULL;
}

static bool is(const struct command *c, const char *verb)
{
    return strcmp(c->verb, verb) == 0;
}

bool command_starts_with_orig_head(const struct command *c)
{
    return is(c, "merge") || is(c, "pull") || is(c, "am");
}

const char *command_mending(const struct command *c)
{
    if (is(c, "cherry-pick"))
        return "git cherry-pick --quit; git reset --merge";
    if (is(c, "revert"))
        return "git revert --quit; git reset --merge";
    if (is(c, "am"))
        return "git am --abort";
    if (is(c, "rebase"))
        return "git rebase --abort";
    if (is(c, "merge") || is(c, "pull"))
        return "git merge --abort || git reset --merge";
    if (is(c, "reset") &&
        (command_has(c, "--hard") || command_has(c, "--merge") || command_has(c, "--keep")))
        return "git reset --hard";
    if (is(c, "reset") && !command_has(c, "--soft"))
        return "git reset";
    if (is(c, "checkout") || is(c, "switch"))
        return "git reset --hard";
    return NULL;
}
