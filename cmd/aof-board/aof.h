/* The verbs of AOF/1, and what they share. */
#ifndef TASK_DISPATCH_AOF_H
#define TASK_DISPATCH_AOF_H

#include "cli/rows.h"
#include "work/aof/board/aof.h"

/* Values of the options of several verbs. */
extern struct aof_shared {
    const char *data_dir; /* NULL: the default, until aof_router_open */
    bool stops;
    bool no_messages; /* the verb neither reads nor writes messages: it needs no keys */
    struct aof_notify {
        const char *command, *port;
        int64_t timeout_ms;
        bool ask;
    } notify;
} aof_shared;
#define AOF_DAY_MS 86400000
/* clang-format off */
#define AOF_DATA_ROW                                                                                   \
    {0, "data-dir", AMP_OPT_DIR, &aof_shared.data_dir, "DIR", .doc = "the data directory (default: ~/.openclaw/aof)"}
#define AOF_ROUTER_ROWS                                                                                \
    AOF_DATA_ROW,                                                                                      \
    {0, "stop-at-review", AMP_OPT_FLAG, &aof_shared.stops, NULL, .doc = "leave work that is done in review",         \
     .config = "aof.done_stops_at_review"},                                                        \
    {0, "notify", AMP_OPT_STRING, &aof_shared.notify.command, "COMMAND",                           \
     .doc = "start COMMAND for each notification, with it on stdin", .config = "aof.notify"},             \
    {0, "notify-port", AMP_OPT_STRING, &aof_shared.notify.port, "PORT",                           \
     .doc = "send each notification to a port, as with amp-route --to", .config = "aof.notify_port"},  \
    {0, "notify-timeout", AMP_OPT_DURATION, &aof_shared.notify.timeout_ms, "TIME",                \
     .doc = "time limit of a notification", .min = 1, .max = AOF_DAY_MS},                         \
    {0, "ask", AMP_OPT_FLAG, &aof_shared.notify.ask, NULL,                                        \
     .doc = "print a question to a person for tasks in review or blocked", .config = "aof.ask"}
/* clang-format on */

/* The router with these options; handles signals from now on. make: creates the data directory. */
int aof_router_open(bool make, struct amp_aof_router **out, struct amp_error *err);
void aof_router_close(struct amp_aof_router *r);

#endif
