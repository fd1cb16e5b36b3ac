/* Shared by main.c, the files of the verbs inbox and replay, and lane_rules.c and reload.c, which
 * read the configuration. */
#ifndef AMP_ROUTE_WIRING_H
#define AMP_ROUTE_WIRING_H

#include "cli/cli.h"
#include "cli/rows.h"
#include "route/router/router.h"

extern const struct amp_opt inbox_opts[], replay_opts[];
int route_inbox(int argc, char **argv);
int route_replay(int argc, char **argv);

/* Sets the lanes' limits from the configuration, then from `given`, n texts KEY=N. */
int lanes_set(const char *config, const char *state, const char *const *given, int n,
              struct amp_lane_rules *out, struct amp_error *err);

struct reload_source {
    const char *config, *state;
    const struct amp_list *lanes; /* --lane */
};
/* A hang-up reads the routes again if these are the configuration's. */
void reload_start(const struct reload_source *from, const struct amp_list *routes);
void reload_routes(struct amp_router *r);

extern const struct amp_route_voice voice;

#endif
