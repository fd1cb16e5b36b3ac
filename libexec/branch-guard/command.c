/*
 * The git command that runs the hook. It is used only to refuse earlier and to print a hint: no
 * refusal depends on it alone, because the caller controls the command line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/process.h"
#include "guard.h"

#define ANCESTORS_MAX 4

static bool read_words(struct command *c, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, c->text, sizeof c->text - 1);
    if (n <= 0)
        return false;
    c->text[n] = '\0';
    c->n = 0;
    for (char *p = c->text; p < c->text + n && c->n < 127; p += strlen(p) + 1)
        c->word[c->n++] = p;
    return c->n > 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the word is an option before the verb that takes a separate value. */
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
    pid_t pid = getppid();
    /* If a hook manager calls the hook, its shell is between git and the hook. */
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = amp_process_parent(pid)) {
        if (!read_words(c, pid))
            continue;
        const char *name = base_name(c->word[0]);
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

bool command_starts_with_orig_head(const struct command *c)
{
    static const char *const verbs[] = {"merge", "pull", "am"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(c->verb, verbs[i]) == 0)
            return true;
    return false;
}

const char *command_cleanup(const struct command *c)
{
    /* The first row that matches; flag NULL: any. */
    static const struct {
        const char *verb, *flag, *cleanup;
    } rows[] = {
        {"cherry-pick", NULL, "git cherry-pick --quit; git reset --merge"},
        {"revert", NULL, "git revert --quit; git reset --merge"},
        {"am", NULL, "git am --abort"},
        {"rebase", NULL, "git rebase --abort"},
        {"merge", NULL, "git merge --abort || git reset --merge"},
        {"pull", NULL, "git merge --abort || git reset --merge"},
        {"reset", "--hard", "git reset --hard"},
        {"reset", "--merge", "git reset --hard"},
        {"reset", "--keep", "git reset --hard"},
        {"reset", "--soft", NULL},
        {"reset", NULL, "git reset"},
        {"checkout", NULL, "git reset --hard"},
        {"switch", NULL, "git reset --hard"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(c->verb, rows[i].verb) == 0 && (!rows[i].flag || command_has(c, rows[i].flag)))
            return rows[i].cleanup;
    return NULL;
}
