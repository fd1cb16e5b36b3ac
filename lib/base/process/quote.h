/* Texts as words of a command line that a person or a script gives to a shell. */
#ifndef AMP_BASE_PROCESS_QUOTE_H
#define AMP_BASE_PROCESS_QUOTE_H

#include <amp/base/buf.h>

/* Appends text as one word of sh, bash, zsh and dash: unchanged if no shell gives any of its bytes
 * a meaning, otherwise in single quotes; an empty text becomes ''. Also correct as a part of a
 * word. text has no NUL. A text that begins with '-' stays an option to most commands. */
int amp_shell_quote(struct amp_span text, struct amp_buf *out, struct amp_error *err);

/* The words of a command line, as an argument list. */
#define AMP_SPLIT_WORDS_MAX 4096
struct amp_shell_split {
    char **v; /* NULL-terminated; owned */
    size_t n;
};
/* Divides the line of one command into the words that a shell would give to the program: quotes and
 * backslashes group, blanks separate. Nothing is expanded and no shell runs, so a line in which a
 * shell would expand or interpret something is refused: operators, line feeds between words, $ and
 * ` (also in double quotes), patterns of files, ~ where it is a home directory, lists in braces,
 * comments; assignments and reserved words before the program. What only bash expands counts, too,
 * and a backslash before a letter outside of quotes, which a shell would drop from a Windows path.
 * DATAERR bad_command: one of these, or a quote without its end, a NUL byte, no word, more than
 * AMP_SPLIT_WORDS_MAX words; the text has the place (bytes from 1) and what to write instead. */
int amp_shell_split(struct amp_span line, struct amp_shell_split *out, struct amp_error *err);
void amp_shell_split_release(struct amp_shell_split *s);

#endif
