/* Findings about lines, in the form in which all tools print them. */
#ifndef CLI_FINDING_H
#define CLI_FINDING_H

#include <amp/protocol/protocol.h>

/* Appends one diagnostic: location, code, problem, found, expected:
 *     TOOL: error: FILE:LINE: FIELD: CODE: MESSAGE; found …; expected …
 * The location is "line LINE" without a file, and absent without a line (at NULL or line 0).
 * document: the input is one text, not lines. May be called from any thread. */
int amp_finding_line(const struct amp_finding *f, const struct amp_line_place *at, bool document,
                     bool color, struct amp_buf *out, struct amp_error *err);

/* Prints the line on stderr; a callback for findings. ctx is not used. */
void amp_finding_print(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);
/* Prints errors only, not warnings. */
void amp_finding_print_error(void *ctx, const struct amp_finding *f,
                             const struct amp_line_place *at);

#endif
