/* Ends the agents that people suspended. */
#include "people/pause/end.h"

#include <poll.h>

#include <amp/base/clock.h>

#include "work/agent/contract/contract.h"

#define ENDS_MS 700  /* for the tools to end their agents; the grace is AMP_PAUSE_GRACE_MS */
#define KILL_MS 1500 /* then what is left is killed; the limit of the wait */
#define LOOK_MS 5

/* The processes of agents that are suspended. */
static int processes_count(const char *dir, const struct amp_pauses *p, bool kill)
{
    int n = 0;

    for (uint32_t i = 0; i < p->n_v; i++) {
        char name[AMP_PAUSE_NAME_MAX + 1];
        const struct amp_pause *v = &p->v[i];
        amp_span_copy(v->name, name, sizeof name);
        const struct amp_attempt_processes of = {
            .state_dir = dir,
            .agent = v->scope == AMP_PAUSE_AGENT ? name : NULL,
            .task = v->scope == AMP_PAUSE_TASK ? name : NULL,
            .kill = kill,
        };
        n += amp_attempt_processes(&of);
        if (v->scope == AMP_PAUSE_ALL)
            return n;
    }
    return n;
}

int amp_pause_end(const char *dir, const struct amp_pauses *p, void (*note)(const char *fmt, ...))
{
    int64_t began = amp_mono_ms(), took = 0;
    int n, killed = 0, running = processes_count(dir, p, false);

    for (n = running; n > 0 && (took = amp_mono_ms() - began) < KILL_MS;
         n = processes_count(dir, p, false)) {
        if (took >= ENDS_MS)
            killed += processes_count(dir, p, true);
        poll(NULL, 0, LOOK_MS);
    }
    if (running)
        note("%d process%s of agents ended within %lld ms%s", running - n,
             running - n == 1 ? "" : "es", (long long)(amp_mono_ms() - began),
             killed ? "; some were killed by this command, because their tool did not" : "");
    return n;
}
