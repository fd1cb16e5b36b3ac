/* Shared by main.c, the files of the verbs inbox and replay, and lane_rules.c and reload.c, which
 * read the configuration. */
#ifndef AMP_ROUTE_WIRING_H
#define AMP_ROUTE_WIRING_H

#include "message/route/router/router.h"
#include "shared/identity.h"
#include "shared/state.h"

extern const struct amp_verb replay_verbs[], inbox_verbs[];

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

/* The options of identities: of the router, and of inbox. */
extern struct amp_identity_cli route_identity;
/* The keys of answers are those of the state directory (NULL: answers are not signed). agent: whose
 * inbox is handed over; NULL: none. */
void answers_open(const char *state, const char *config, const char *agent);
void answers_close(void);
/* Appends the answer without LF, signed by the key of its sender: "system", the router's name, the
 * agent's name, or ROLE/AGENT in a protocol whose agents answer as a role. A sender whose name
 * cannot be a principal has no key: then it is unchanged. */
int answer_sign(struct amp_span line, struct amp_buf *out, struct amp_error *err);

/* The confinement of commands that get messages, for exec-each ports and inbox --exec. */
struct confine_options {
    bool confine, best_effort;
    const char *policy;
};
#define CONFINE_OPTS(o)                                                                            \
    AMP_OPT_ROW(0, "confine", AMP_OPT_FLAG, &(o).confine, NULL,                                    \
                "confine the commands that get messages to the current directory"),                \
        AMP_OPT_ROW(0, "policy", AMP_OPT_PATH, &(o).policy, "FILE",                                \
                    "the same with the confinement policy of FILE"),                               \
        AMP_OPT_ROW(0, "best-effort", AMP_OPT_FLAG, &(o).best_effort, NULL,                        \
                    "confine with what can be enforced, and report the rest")
/* *wrap: for the specs of the commands, or NULL if no option asks for confinement. */
int confine_open(const struct confine_options *o, const char *state,
                 const struct amp_child_wrap **wrap, struct amp_error *err);
void confine_close(void);

#endif
