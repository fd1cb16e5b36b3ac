/* --example: a valid message of each type. */
#ifndef AMP_VALIDATE_EXAMPLE_H
#define AMP_VALIDATE_EXAMPLE_H

#include <stdbool.h>

#include <amp/base/error.h>

/* Made from examples/messages/messages.tsv by scripts/embed-examples.sh: for each example its
 * names, separated by blanks, and its line, both with a NUL; then an empty string. */
extern const char amp_examples[];

/* Writes an example of each type (or of each type of a protocol), or without types the list of
 * names; json: as objects. */
int example_print(char **types, int n, bool json, struct amp_error *err);

#endif
