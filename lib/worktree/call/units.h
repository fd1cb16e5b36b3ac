/*
 * The simple commands of a tool call, and whether a command pattern names them. A pattern is a list
 * of words; in a word `*` and `?` match as in a glob, and the last word may be `*` alone, which
 * stands for all further words, also none.
 *
 * The two directions differ, so that nothing slips through either of them:
 * - amp_unit_fits is for rules that allow. It is true only if the command is exactly what the
 *   pattern says: no expansion, glob, assignment, redirection to or from a file, here-document or
 *   command substitution.
 * - amp_unit_names is for rules that refuse. More words may follow those of the pattern; options
 *   between them, the directory of the program, assignments and wrappers (sudo, env, xargs …) do
 *   not hide a command, nor do `sh -c`, eval, substitutions and here-documents of a shell. What
 *   cannot be read might be named.
 */
#ifndef AMP_WORKTREE_CALL_UNITS_H
#define AMP_WORKTREE_CALL_UNITS_H

#include "worktree/call/event/event.h"

#define AMP_UNITS_MAX   4096
#define AMP_PATTERN_MAX 1024 /* bytes of a command pattern */

struct amp_call_unit {
    const struct amp_shell_word *words; /* after its assignments */
    size_t n, n_assignments;            /* n_assignments words are before the first one */
    bool derived;    /* a command inside of another one: only refused, never what is allowed */
    bool plain;      /* nothing but words */
    bool unknown;    /* it may be any command */
    const char *dir; /* where it runs: absolute, canonical; NULL: unknown */
};

struct amp_call_units {
    struct amp_call_unit *v;
    size_t n;
    bool unread; /* a command line could not be read; why says which part */
    char why[128];
    /* The files that redirections name, as words; their directory is that of the unit. */
    struct amp_call_file {
        const struct amp_shell_word *word;
        const char *dir;
    } * files;
    size_t n_files;
    bool moves;   /* it changes its directory */
    void *memory; /* private */
};

/* cwd: absolute and canonical. What cannot be read is no failure. The units refer to the event. */
int amp_call_units_read(const struct amp_call_event *e, const char *cwd, struct amp_call_units *out,
                        struct amp_error *err);
void amp_call_units_release(struct amp_call_units *u);

/* CONFIG bad_config: empty, too long, a control character, or a character that only a shell would
 * read (a quote, $, `, ;, &, |, <, >, a parenthesis, a backslash). */
int amp_call_pattern_check(struct amp_span pattern, struct amp_error *err);
bool amp_unit_fits(const struct amp_call_unit *u, struct amp_span pattern);
enum amp_named { AMP_NAMED_NO, AMP_NAMED_PERHAPS, AMP_NAMED_YES };
enum amp_named amp_unit_names(const struct amp_call_unit *u, struct amp_span pattern);

#endif
