/* Ending a line that a killed writer left incomplete. */
#ifndef AMP_BASE_FILE_LINE_H
#define AMP_BASE_FILE_LINE_H

#include <amp/base/error.h>

/* If fd is at the end of a regular file, or appends to it, ends its incomplete last line. Otherwise
 * the next line would be joined with it, and both would be lost. */
int amp_line_end(int fd, struct amp_error *err);

#endif
