/* Texts as words of a command line that a person or a script gives to a shell. */
#ifndef AMP_BASE_PROCESS_QUOTE_H
#define AMP_BASE_PROCESS_QUOTE_H

#include <amp/base/buf.h>

/* Appends text as one word of sh, bash, zsh and dash: unchanged if no shell gives any of its bytes
 * a meaning, otherwise in single quotes; an empty text becomes ''. Also correct as a part of a
 * word. text has no NUL. A text that begins with '-' stays an option to most commands. */
int amp_shell_quote(struct amp_span text, struct amp_buf *out, struct amp_error *err);

#endif
