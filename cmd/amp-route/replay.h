/* The verb replay. */
#ifndef AMP_ROUTE_REPLAY_H
#define AMP_ROUTE_REPLAY_H

#include "cli/cli.h"

extern const struct amp_opt replay_opts[];
int route_replay(int argc, char **argv);

#endif
