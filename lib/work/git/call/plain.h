/*
 * Plain command lines. A line is plain if what a shell does with it can be read from its words: it
 * is a sequence of simple commands of literal words, joined by `&&`, `||`, `;` or `|`, without
 * redirections other than `>/dev/null`, `2>/dev/null` and `2>&1`, and no program of it runs the
 * commands that its arguments or its input name (runs.c).
 *
 * A literal word has letters, digits and _-./:=,@%+ of ASCII; its end may be in quotes, where all
 * other characters may be, in double quotes but for $, ` and the backslash. No shell (sh, bash,
 * zsh, dash) reads such a word in another way.
 *
 * `cd DIR &&` may be first. Everything else is not plain; the text says why. Where only a program
 * is the reason, the words are known all the same. Nothing is expanded, opened or run.
 */
#ifndef AMP_WORK_GIT_CALL_PLAIN_H
#define AMP_WORK_GIT_CALL_PLAIN_H

#include "work/git/call/event/event.h"

struct amp_plain_command {
    char **words; /* NULL-terminated, at least one */
    size_t n;
};

struct amp_plain {
    struct amp_plain_command *v;
    size_t n, cap; /* n is 0 if the words are not literal */
    bool moves;    /* the first command is `cd DIR`; the others run in DIR */
    char why[128]; /* why the line is not plain; "": it is */
};

/* Reads the command of an event. An event without one is plain, without commands; one of another
 * shell (PowerShell), and one with several, is not. -1: no memory. The caller releases it in any
 * case. */
int amp_plain_read(const struct amp_call_event *e, struct amp_plain *out, struct amp_error *err);
int amp_plain_line(struct amp_span line, struct amp_plain *out, struct amp_error *err);
void amp_plain_release(struct amp_plain *p);
#define AMP_PLAIN AMP_CLEANUP(amp_plain_release) struct amp_plain

/* True if the command runs other commands, or changes how the shell reads those that follow. */
bool amp_runs_others(const struct amp_plain_command *c);

/* ---- patterns ---- */

/* A pattern is a list of words; in a word `*` and `?` match as in a glob, and the last word may be
 * `*` alone, which stands for all further words, also none. */
#define AMP_PATTERN_MAX 1024 /* bytes */

/* CONFIG bad_config: empty, too long, a control character, or a character that only a shell would
 * read (a quote, $, `, ;, &, |, <, >, a parenthesis, a backslash). */
int amp_call_pattern_check(struct amp_span pattern, struct amp_error *err);
/* For rules that allow: the command has exactly the words of the pattern. */
bool amp_plain_fits(const struct amp_plain_command *c, struct amp_span pattern);
/* For rules that refuse: more words may follow those of the pattern, options and their values may
 * be between them, and the program may have a directory. */
bool amp_plain_names(const struct amp_plain_command *c, struct amp_span pattern);

#endif
