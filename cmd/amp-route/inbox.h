/* The verb inbox. */
#ifndef AMP_ROUTE_INBOX_H
#define AMP_ROUTE_INBOX_H

#include "cli/cli.h"

extern const struct amp_opt inbox_opts[];
int route_inbox(int argc, char **argv);

#endif
