/*
 * A shell command line as words, for a decision about it. Nothing is expanded or run. This reads
 * the syntax of POSIX shells as far as coding agents use it; other syntax is an error, and the
 * caller must not take it for harmless.
 */
#ifndef AMP_WORKTREE_CALL_SHELL_H
#define AMP_WORKTREE_CALL_SHELL_H

#include <stdbool.h>

#include <amp/base/buf.h>

#define AMP_SHELL_MAX       (1u << 20) /* bytes of a command line */
#define AMP_SHELL_WORDS_MAX 4096       /* of a simple command */

struct amp_shell_word {
    char *text;
    bool opaque; /* it has an expansion or a glob: the value is not known */
};

enum amp_shell_kind {
    AMP_SHELL_COMMAND,
    AMP_SHELL_OPEN,  /* a subshell begins */
    AMP_SHELL_CLOSE, /* and ends */
};

struct amp_shell_item {
    enum amp_shell_kind kind;
    struct amp_shell_word *words; /* assignments before the command included */
    size_t n;
    struct amp_shell_word *targets; /* files that its output goes to */
    size_t n_targets;
    struct amp_shell_word *sources; /* and its input comes from */
    size_t n_sources;
    char **nested; /* command lines inside of it: $(…), `…`, <(…) */
    size_t n_nested;
    char *input;       /* here-documents, one after the other, or the text of <<<; or NULL */
    bool input_opaque; /* the text of a <<< has an expansion */
};

struct amp_shell {
    struct amp_shell_item *items;
    size_t n;
};

/* DATAERR bad_command: a syntax that this does not read. */
int amp_shell_parse(struct amp_span line, struct amp_shell *out, struct amp_error *err);
void amp_shell_release(struct amp_shell *s);

#endif
