/* Commands as words, and the plan as a script for the shell. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../verbs.h"
#include "base/codes.h"
#include "base/process/quote.h"
#include "loop.h"
#include "work/task/suspend.h"

/* Characters that make a text more than words. */
#define SPECIAL "|&;<>()$`\\\"'*?[]#~={}!\n\r\001"

#define WORDS_MAX 256

void loop_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* Replaces a program's name or relative path by a path that works in every directory. */
static int program_find(const char *option, char **word, struct amp_error *err)
{
    char found[PATH_MAX];
    struct amp_error why, ignored;
    bool adapter = false;
    if (amp_child_find(*word, environ, found, sizeof found, &why) < 0) {
        adapter = strncmp(*word, "agent-", 6) == 0 &&
                  amp_helper_path(*word, found, sizeof found, &ignored) == 0 &&
                  access(found, X_OK) == 0;
        if (!adapter)
            return amp_fail_text(err, AMP_USAGE, why.code, "%s: %s", option, why.what);
    }
    /* A program in PATH may be a link whose name it reads. */
    char *real = adapter || strchr(*word, '/') ? realpath(found, NULL) : strdup(found);
    if (!real)
        return amp_fail_errno(err, AMP_USAGE, "%s: %s", option, *word);
    free(*word);
    *word = real;
    return 0;
}

static int words_split(const char *option, const char *text, char **words, struct amp_error *err)
{
    size_t n = 0;
    for (const char *p = text + strspn(text, " \t"); *p; p += strspn(p, " \t")) {
        size_t len = strcspn(p, " \t");
        if (n == WORDS_MAX)
            return amp_fail(err, AMP_USAGE, bad_value, "%s: more than %d words", option, WORDS_MAX);
        if (!(words[n++] = strndup(p, len)))
            return amp_fail_memory(err);
        p += len;
    }
    return n ? program_find(option, &words[0], err)
             : amp_fail(err, AMP_USAGE, bad_value, "%s: an empty command", option);
}

int loop_command(const char *option, const char *text, char ***out, struct amp_error *err)
{
    char **words = calloc(WORDS_MAX + 1, sizeof *words);
    if (!words)
        return amp_fail_memory(err);
    int rc = 0;
    if (strpbrk(text, SPECIAL)) {
        rc =
            (words[0] = strdup("/bin/sh")) && (words[1] = strdup("-c")) && (words[2] = strdup(text))
                ? 0
                : amp_fail_memory(err);
    } else {
        rc = words_split(option, text, words, err);
    }
    if (rc < 0) {
        loop_words_free(words);
        return -1;
    }
    *out = words;
    return 0;
}

/* Appends text as one word of the shell. The marker LOOP_FIFOS becomes "$fifos". */
static int quote_write(const char *text, struct amp_buf *out, struct amp_error *err)
{
    if (!*text)
        return amp_buf_str(out, "''", err);
    while (*text) {
        size_t n = strcspn(text, LOOP_FIFOS);
        if (n && amp_shell_quote((struct amp_span){text, n}, out, err) < 0)
            return -1;
        text += n;
        if (!*text)
            break;
        if (amp_buf_str(out, "\"$fifos\"", err) < 0)
            return -1;
        text++;
    }
    return 0;
}

/* ---- the script ---- */

static int words_write(const struct loop_filter *f, size_t n, struct amp_buf *out,
                       struct amp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if ((i && amp_buf_str(out, " ", err) < 0) || quote_write(f->argv[i], out, err) < 0)
            return -1;
    return 0;
}

/* "export NAME=VALUE". */
static int variable_write(const char *name, const char *value, struct amp_buf *out,
                          struct amp_error *err)
{
    if (!value)
        return 0;
    return amp_buf_fmt(out, err, "export %s=", name) < 0 || quote_write(value, out, err) < 0 ||
                   amp_buf_str(out, "\n", err) < 0
               ? -1
               : 0;
}

static int head_write(char *const *tasks, struct amp_buf *out, struct amp_error *err)
{
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    if (amp_buf_str(out,
                    "#!/bin/bash\n"
                    "# The loop of task-dispatch-loop(1) as a script; it starts no filter again.\n"
                    "set -euo pipefail\n"
                    "cd ",
                    err) < 0 ||
        quote_write(cwd, out, err) < 0 || amp_buf_str(out, "\n", err) < 0 ||
        variable_write("AMP_STATE", getenv("AMP_STATE"), out, err) < 0 ||
        variable_write("AMP_CONFIG", getenv("AMP_CONFIG"), out, err) < 0 ||
        variable_write("AMP_IDENTITY", getenv("AMP_IDENTITY"), out, err) < 0 ||
        variable_write(AMP_SUSPENSION_ENV, getenv(AMP_SUSPENSION_ENV), out, err) < 0 ||
        amp_buf_str(out,
                    "fifos=$(mktemp -d)\n"
                    "trap 'rm -rf \"$fifos\"' EXIT\n"
                    "trap 'trap - INT TERM; kill 0' INT TERM\n"
                    "mkfifo",
                    err) < 0)
        return -1;
    for (size_t i = 0; loop_fifos[i]; i++)
        if (amp_buf_fmt(out, err, " \"$fifos\"/%s", loop_fifos[i]) < 0)
            return -1;
    if (amp_buf_str(out, tasks[0] ? "\n\ntask-dispatch new --" : "\n", err) < 0)
        return -1;
    for (size_t i = 0; tasks[i]; i++)
        if (amp_buf_str(out, " ", err) < 0 || quote_write(tasks[i], out, err) < 0)
            return -1;
    return amp_buf_str(out, "\n\n", err);
}

/* Ends the filter that lands, and lands the rest. */
static int rest_write(const struct loop_plan *p, struct amp_buf *out, struct amp_error *err)
{
    const struct loop_filter *f = &p->filters[p->n - 1];
    if (f->unit != LOOP_LANDER)
        return amp_buf_str(out, "wait\n", err);
    return amp_buf_str(out, "kill \"$lander\" || :\nwait\n", err) < 0 ||
                   words_write(f, f->n - 1, out, err) < 0
               ? -1
               : amp_buf_str(out, " || status=$?\n", err);
}

int loop_print(const struct loop_plan *p, char *const *tasks, struct amp_buf *out,
               struct amp_error *err)
{
    if (head_write(tasks, out, err) < 0)
        return -1;
    /* Filters of their own first, then the pipeline of the others. */
    for (size_t i = 0; i < p->n; i++)
        if (!p->filters[i].reads &&
            (words_write(&p->filters[i], p->filters[i].n, out, err) < 0 ||
             amp_buf_str(out, p->filters[i].unit == LOOP_LANDER ? " &\nlander=$!\n" : " &\n", err) <
                 0))
            return -1;
    if (amp_buf_str(out, "\nstatus=0\n", err) < 0)
        return -1;
    bool first = true;
    for (size_t i = 0; i < p->n; i++) {
        const struct loop_filter *f = &p->filters[i];
        if (!f->reads)
            continue;
        if ((!first && amp_buf_str(out, "  ", err) < 0) || words_write(f, f->n, out, err) < 0 ||
            amp_buf_str(out, first ? " </dev/null" : "", err) < 0 ||
            amp_buf_str(out, f->writes ? " |\n" : " || status=$?\n", err) < 0)
            return -1;
        first = false;
    }
    return amp_buf_str(out,
                       "# A filter that did not start leaves its FIFO without a writer.\n"
                       "for role in executor reviewer admin system; do : <>\"$fifos/from-$role\"; "
                       "done\n",
                       err) < 0 ||
                   rest_write(p, out, err) < 0
               ? -1
               : amp_buf_str(out, "exit \"$status\"\n", err);
}
